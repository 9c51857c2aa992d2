//! A row of the villains' table: what a dispute came to, as the chain tells it.

use std::collections::BTreeSet;
use std::fmt;

use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::{Event, EventAt, Fault};
use tensorlink_proof::challenge::Told;
use tensorlink_types::{Address, B256, ClaimId, U256};

use super::job::{Job, Report};
use super::network::Network;
use super::{sno, whole_sno};

/// Most gas of a conviction by what was signed. The models here are small: twice what is measured.
const SIGNED_GAS: u64 = 600_000;

/// A conviction, and what it took.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) worker: Address,
    pub(crate) auditor: Address,
    pub(crate) fault: Fault,
    /// Absolute.
    pub(crate) step: u32,
    pub(crate) slash: Slash,
    /// Challenges of the claim that were opened.
    pub(crate) challenges: usize,
    /// All of the dispute: every move of either side, and what ends it.
    pub(crate) transactions: usize,
    /// Of all of them.
    pub(crate) gas: u64,
}

/// How a stake was split, wei of SNO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slash {
    pub(crate) amount: U256,
    pub(crate) bounty: U256,
    pub(crate) shared: U256,
    pub(crate) harm: U256,
    pub(crate) burned: U256,
}

impl Slash {
    /// The stake of one lane by rules P-7 and P-45: a quarter to the finder, as much to auditors if any had sealed
    /// answers about the lane, 30 % to the user, and the rest is burned.
    pub(crate) fn of_a_lane(has_auditors: bool) -> Self {
        let amount = sno(Job::STAKE);
        let (bounty, harm) = (amount / U256::from(4), amount * U256::from(3) / U256::from(10));
        let shared = if has_auditors { bounty } else { U256::ZERO };
        Self { amount, bounty, shared, harm, burned: amount - bounty - shared - harm }
    }

    /// Asserts that the stake of one lane was split as it should be. Whether auditors had sealed depends on the
    /// machine.
    pub(crate) fn assert_of_a_lane(&self) {
        assert_eq!(*self, Self::of_a_lane(!self.shared.is_zero()));
    }
}

/// Whose moves belong to a dispute.
struct Dispute {
    claim: ClaimId,
    worker: Address,
    fault: Fault,
    /// The transaction that convicts.
    transaction: B256,
    challenges: BTreeSet<U256>,
    demands: BTreeSet<U256>,
}

impl Dispute {
    fn new(events: &[EventAt], (claim, worker, fault): (ClaimId, Address, Fault), transaction: B256) -> Self {
        let mut dispute =
            Self { claim, worker, fault, transaction, challenges: BTreeSet::new(), demands: BTreeSet::new() };
        for at in events {
            match &at.event {
                Event::ChallengeOpened { challenge, id, .. } if *id == claim => {
                    dispute.challenges.insert(*challenge);
                }
                Event::Demanded { id, demand } if demand.holder == worker => {
                    dispute.demands.insert(*id);
                }
                _ => {}
            }
        }
        dispute
    }

    fn has(&self, at: &EventAt) -> bool {
        at.transaction == self.transaction
            || match &at.event {
                Event::ChallengeOpened { challenge, .. } | Event::Challenge { challenge, .. } => {
                    self.challenges.contains(challenge)
                }
                Event::Demanded { id, .. } | Event::AttestationGiven { id, .. } | Event::DemandEnded { id, .. } => {
                    self.demands.contains(id)
                }
                // What contradicts itself. Otherwise it is the liar's attempt at an auditor, which convicts nobody.
                Event::AuditorAccused { claim, .. } => self.fault == Fault::Contradiction && *claim == self.claim,
                _ => false,
            }
    }

    /// How the stake of the convicted was split.
    fn slash(&self, events: &[EventAt]) -> Slash {
        let slashes = events.iter().filter(|at| at.transaction == self.transaction);
        let mut slashes = slashes.filter_map(|at| match &at.event {
            Event::Slashed { account, amount, bounty, shared, harm, burned } if *account == self.worker => {
                Some(Slash { amount: *amount, bounty: *bounty, shared: *shared, harm: *harm, burned: *burned })
            }
            _ => None,
        });
        slashes.next().expect("whoever is convicted is slashed in the same transaction")
    }
}

/// How many transactions told such events, and their gas.
async fn cost(network: &Network, events: &[EventAt], is: impl Fn(&EventAt) -> bool) -> (usize, u64) {
    let told = events.iter().filter(|at| is(at)).map(|at| at.transaction);
    let told: BTreeSet<B256> = told.collect();
    let mut gas = 0;
    for transaction in &told {
        gas += network.chain().mined(*transaction).await.unwrap().expect("its events are on chain").gas;
    }
    (told.len(), gas)
}

/// Rows of whoever accused an honest party, and paid for it: with a challenge's bond, or with an auditor's collateral.
async fn false_accusations(network: &Network, events: &[EventAt]) -> Vec<String> {
    let mut rows = Vec::new();
    for at in events {
        match &at.event {
            Event::Challenge { challenge: lost, told: Told::Lost } => {
                let (transactions, gas) = cost(network, events, |at| match &at.event {
                    Event::ChallengeOpened { challenge, .. } | Event::Challenge { challenge, .. } => challenge == lost,
                    _ => false,
                })
                .await;
                rows.push(format!("a challenge lost | the challenger's bond | {transactions} | {gas}"));
            }
            Event::AuditorPenalised { claim: about, auditor: who, .. } => {
                let (transactions, gas) = cost(network, events, |at| match &at.event {
                    Event::AuditorAccused { claim, auditor, .. } | Event::AuditorPenalised { claim, auditor, .. } => {
                        (claim, auditor) == (about, who)
                    }
                    _ => false,
                })
                .await;
                rows.push(format!("an answer penalised | the auditor's collateral | {transactions} | {gas}"));
            }
            _ => {}
        }
    }
    rows
}

impl Verdict {
    /// Of all convictions among events, in their order.
    pub(crate) async fn all(network: &Network, events: &[EventAt]) -> Vec<Self> {
        let mut verdicts = Vec::new();
        for at in events {
            let Event::Convicted { claim, worker, auditor, fault, step, .. } = &at.event else { continue };
            let dispute = Dispute::new(events, (*claim, *worker, *fault), at.transaction);
            let (transactions, gas) = cost(network, events, |at| dispute.has(at)).await;
            verdicts.push(Self {
                worker: *worker,
                auditor: *auditor,
                fault: *fault,
                step: *step,
                slash: dispute.slash(events),
                challenges: dispute.challenges.len(),
                transactions,
                gas,
            });
        }
        verdicts
    }

    /// The stake of one lane pays.
    pub(crate) fn assert_split(&self) {
        self.slash.assert_of_a_lane();
    }

    /// What the worker had signed convicted it: in one transaction, and nobody had to ask it anything on chain.
    pub(crate) fn assert_signed(&self) {
        self.assert_split();
        assert_eq!((self.challenges, self.transactions), (0, 1), "{self}");
        assert!((21_000..SIGNED_GAS).contains(&self.gas), "{self}");
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, fault, slash, transactions, gas, .. } = self;
        let [bounty, shared, harm, burned] = [slash.bounty, slash.shared, slash.harm, slash.burned].map(whole_sno);
        write!(
            f,
            "{fault:?} | {worker} {} SNO: {bounty} to the auditor, {shared} to those that had sealed, {harm} to the user, \
             {burned} burned \
             | {transactions} | {gas}",
            whole_sno(slash.amount)
        )
    }
}

impl Report {
    /// What the chain says about the job that was posted last.
    pub(crate) fn of_last_job(&self) -> &[EventAt] {
        let posted = self.events.iter().rposition(|at| matches!(at.event, Event::JobPosted { .. }));
        &self.events[posted.unwrap_or_default()..]
    }

    /// All convictions in the job that was posted last.
    pub(crate) async fn verdicts(&self, network: &Network) -> Vec<Verdict> {
        Verdict::all(network, self.of_last_job()).await
    }

    /// Rows of the table: of every conviction in the last job, and of every accusation of an honest party.
    pub(super) async fn rows(&self, network: &Network) -> Vec<String> {
        let convictions = self.verdicts(network).await.into_iter().map(|verdict| verdict.to_string());
        convictions.chain(false_accusations(network, self.of_last_job()).await).collect()
    }

    /// The only one.
    pub(crate) async fn verdict(&self, network: &Network) -> Verdict {
        let mut verdicts = self.verdicts(network).await;
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        verdicts.remove(0)
    }
}
