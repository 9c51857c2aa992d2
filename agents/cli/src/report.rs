//! What a job came to: summed from confirmed events.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_types::{Address, B256, JobId, Lane, U256};

use crate::amount::Wei;

/// A conviction.
#[derive(Serialize, Clone, Debug)]
pub struct Conviction {
    /// Who lied.
    pub worker: Address,
    /// Who proved it.
    pub auditor: Address,
    /// What kind of wrong it was.
    pub fault: tensorlink_node::ports::chain::Fault,
    /// Step of the job, from 0.
    pub step: u32,
    /// Operator in the step's program. 0 for a contradiction, as are the next three.
    pub operator: u32,
    /// Flat index in the operator's output; for a wiring, the entry of the sink.
    pub element: u64,
    /// Value in the worker's trace.
    pub claimed: String,
    /// Value that the contract computed.
    pub recomputed: String,
    /// The convicting transaction.
    pub transaction: B256,
    /// Gas that it used, once looked up.
    pub gas: Option<u64>,
    /// SNO taken from the worker's stake: bounty, share of auditors, harm and burned together.
    pub slashed: Wei,
    /// SNO to the auditor that found it.
    pub bounty: Wei,
    /// SNO to auditors that had sealed answers about the lane.
    pub shared: Wei,
    /// SNO to the job's user.
    pub harm: Wei,
    /// SNO destroyed.
    pub burned: Wei,
}

/// What a lane of a serving job redeemed.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Redeemed {
    /// Vouchers.
    pub vouchers: u32,
    /// Tokens since the job began.
    pub tokens: u32,
}

/// What a lane of a training job has earned, if its claims stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Earned {
    /// Claims committed.
    pub claims: u32,
    /// Wei for each.
    pub price: U256,
}

/// A job's balance so far.
#[derive(Serialize, Clone, Debug, Default)]
pub struct Report {
    /// Claims that replicas sealed, over all lanes; in jobs with one replica none.
    #[serde(skip_serializing_if = "is_zero")]
    pub seals: u32,
    /// Where replicas claim different things, which not all of them have computed right.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub differences: BTreeSet<String>,
    /// Claims that workers committed, over all lanes.
    pub claims_committed: u32,
    /// Claims that passed their challenge window, over all lanes.
    pub claims_final: u32,
    /// Vouchers that lanes redeemed, and the tokens that they paid; serving jobs only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub redeemed: BTreeMap<String, Redeemed>,
    /// Wei by worker.
    pub paid: BTreeMap<Address, Wei>,
    /// Workers convicted in this job, oldest first.
    pub convictions: Vec<Conviction>,
    /// Wei returned to the user.
    pub refund: Option<Wei>,
    /// Claims that each lane committed, and the price of one, wei.
    #[serde(skip)]
    pub lanes: BTreeMap<Lane, Earned>,
    /// One transaction of each kind, to learn its gas.
    #[serde(skip)]
    pub samples: BTreeMap<&'static str, B256>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Report {
    /// Intervals, from the first on, that some replica of every stage has claimed.
    pub fn claimed_everywhere(&self, stages: u16) -> u32 {
        let of_stage = |stage| {
            let lanes = self.lanes.iter().filter(|(lane, _)| lane.stage == stage);
            lanes.map(|(_, earned)| earned.claims).max().unwrap_or(0)
        };
        (0..stages).map(of_stage).min().unwrap_or(0)
    }

    /// Takes in an event; those of other jobs change nothing.
    pub fn take_in(&mut self, of: JobId, at: &EventAt) {
        let mut sample = |what| {
            self.samples.insert(what, at.transaction);
        };
        match &at.event {
            Event::JobPosted { job, .. } if *job == of => sample("post"),
            Event::JobAccepted { job, offers, .. } if *job == of => {
                sample("accept");
                for offer in offers {
                    let lane = Lane { job: of, stage: offer.stage, replica: offer.replica };
                    self.lanes.entry(lane).or_default().price = U256::from(offer.pricePerInterval);
                }
            }
            Event::JobStarted { job, .. } if *job == of => sample("start"),
            Event::ClaimCommitted { claim, .. } if claim.job == of.0 => {
                sample("claim");
                self.claims_committed += 1;
                let claims = &mut self.lanes.entry(claim.lane()).or_default().claims;
                *claims = (*claims).max(claim.interval.saturating_add(1));
            }
            Event::ClaimSealed { lane, .. } if lane.job == of => {
                sample("seal");
                self.seals += 1;
            }
            Event::ReplicasDiffer { job, stage, interval, .. } if *job == of => {
                self.differences.insert(format!("stage {stage}, interval {interval}"));
            }
            Event::ClaimsFinalized { lane, from, to } if lane.job == of => {
                sample("finalize");
                self.claims_final += to.saturating_sub(*from);
            }
            Event::VoucherRedeemed { lane, tokens, .. } if lane.job == of => {
                sample("redeem");
                let redeemed =
                    self.redeemed.entry(format!("stage {} replica {}", lane.stage, lane.replica)).or_default();
                redeemed.vouchers += 1;
                redeemed.tokens = *tokens;
            }
            Event::Paid { lane, worker, amount, .. } if lane.job == of => {
                *self.paid.entry(*worker).or_default() += Wei(*amount);
            }
            Event::JobSettled { job, refund } if *job == of => {
                sample("settle");
                self.refund = Some(Wei(*refund));
            }
            // A conviction's events are of one transaction; the claim's id does not tell the job, the transaction's
            // JobClosing does.
            Event::Convicted { worker, auditor, fault, step, operator, element, claimed, recomputed, .. } => {
                self.convictions.push(Conviction {
                    worker: *worker,
                    auditor: *auditor,
                    fault: *fault,
                    step: *step,
                    operator: *operator,
                    element: *element,
                    claimed: claimed.clone(),
                    recomputed: recomputed.clone(),
                    transaction: at.transaction,
                    gas: None,
                    slashed: Wei::default(),
                    bounty: Wei::default(),
                    shared: Wei::default(),
                    harm: Wei::default(),
                    burned: Wei::default(),
                });
            }
            _ => {}
        }
    }

    /// What the claims so far come to, and what all of so many intervals will, wei of the job's token.
    pub fn cost(&self, intervals: u32) -> (Wei, Wei) {
        let sum = |claims: &dyn Fn(&Earned) -> u32| {
            Wei(self.lanes.values().map(|lane| lane.price * U256::from(claims(lane))).sum())
        };
        (sum(&|lane| lane.claims), sum(&|_| intervals))
    }

    /// Wei of SNO taken from workers.
    pub fn slashed(&self) -> Wei {
        self.convictions.iter().fold(Wei::default(), |mut sum, conviction| {
            sum += conviction.slashed;
            sum
        })
    }

    /// Completes the convictions from all events of the chain: keeps those of this job, with what was slashed.
    pub fn complete(&mut self, of: JobId, events: &[EventAt]) {
        // The conviction of a receipt voids no claims.
        let ours = |event: &Event| match event {
            Event::ClaimsVoided { lane, .. } => lane.job == of,
            Event::JobClosing { job, convicted } => *convicted && *job == of,
            _ => false,
        };
        let convicted = |transaction| events.iter().any(|at| at.transaction == transaction && ours(&at.event));
        self.convictions.retain(|conviction| convicted(conviction.transaction));
        for conviction in &mut self.convictions {
            for at in events.iter().filter(|at| at.transaction == conviction.transaction) {
                if let Event::Slashed { amount, bounty, shared, harm, burned, .. } = &at.event {
                    (conviction.slashed, conviction.bounty) = (Wei(*amount), Wei(*bounty));
                    conviction.shared = Wei(*shared);
                    (conviction.harm, conviction.burned) = (Wei(*harm), Wei(*burned));
                }
            }
        }
    }
}

/// The auditors' part of a list of who got how much; nothing where there were none.
pub fn to_auditors(shared: Wei) -> String {
    if shared == Wei::default() { String::new() } else { format!("{shared} to auditors that had sealed, ") }
}

impl Conviction {
    /// For people.
    pub fn show(&self) -> String {
        let gas = self.gas.map_or(String::new(), |gas| format!(", gas {gas}"));
        [
            format!("convicted    {} by {} (transaction {}{gas})", self.worker, self.auditor, self.transaction),
            format!(
                "fault        {:?}: step {}, operator {}, element {}: claimed {}, the contract computes {}",
                self.fault, self.step, self.operator, self.element, self.claimed, self.recomputed
            ),
            format!(
                "slashed      {} SNO: {} to the auditor, {}{} to the user, {} burned",
                self.slashed,
                self.bounty,
                to_auditors(self.shared),
                self.harm,
                self.burned
            ),
        ]
        .join("\n")
    }
}
