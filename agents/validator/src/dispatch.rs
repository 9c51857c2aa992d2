//! To whom an event goes, and what is to be done about it.

use std::sync::Arc;

use tensorlink_node::Roster;
use tensorlink_node::observed::Payments;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::fraud::Signed;
use tensorlink_types::{Address, B256, ClaimId};

use crate::auditor::Auditor;
use crate::draw::{Rate, drawn};
use crate::draws::Draws;
use crate::epoch::Epoch;
use crate::jobs::Jobs;
use crate::replicas::Replicas;
use crate::target::Target;
use crate::task::Task;

/// All components of a validator that listen to the chain.
pub(crate) struct Dispatch<E> {
    /// Share of claims that is audited whoever draws them.
    rate: Rate,
    /// The chain's time when this node started.
    started: u64,
    roster: Arc<Roster>,
    payments: Arc<Payments>,
    auditor: Arc<Auditor<E>>,
    draws: Arc<Draws>,
    jobs: Jobs,
    replicas: Replicas,
}

impl<E: Engine + Send + 'static> Dispatch<E> {
    /// Of components that have heard nothing yet, at the chain's time `started`.
    pub(crate) fn new(
        (rate, started): (Rate, u64),
        (roster, payments): (Arc<Roster>, Arc<Payments>),
        auditor: Arc<Auditor<E>>,
        draws: Arc<Draws>,
    ) -> Self {
        Self { rate, started, roster, payments, auditor, draws, jobs: Jobs::default(), replicas: Replicas::default() }
    }

    /// Tells everybody of an event; what is to be done about it comes back.
    pub(crate) fn take_in(&mut self, at: EventAt) -> Result<Vec<Task>, SignatureError> {
        self.roster.apply(&at.event);
        self.payments.apply(&at.event, at.timestamp);
        self.auditor.apply(&at);
        self.auditor.answers.apply(&at.event);
        self.jobs.apply(&at.event);
        self.replicas.apply(&at.event);
        let own = self.auditor.ports.identity.address();
        let task = match at.event {
            Event::ClaimCommitted { id, claim, committed_at } => match self.jobs.target(id, claim, committed_at) {
                Some(target) => self.claimed(target, at.block_hash)?,
                None => None,
            },
            Event::ReplicasDiffer { job, stage, interval, .. } => {
                let targets = self.replicas.differ((job, stage, interval));
                tracing::warn!(%job, stage, interval, claims = targets.len(), "replicas differ: all claims are examined");
                return Ok(targets.into_iter().map(Task::Claim).collect());
            }
            // When it was committed is looked up; whoever opened it just now plays it.
            Event::ChallengeOpened { id, claim, challenger, .. } if challenger == own => {
                self.jobs.target(id, claim, 0).map(Task::Challenged)
            }
            Event::AuditorShared { auditor, job, amount, .. } if auditor == own => {
                tracing::info!(%job, wei = %amount, "a share of a convicted lane's bounty is paid");
                None
            }
            Event::AuditorAccused { claim, auditor, statement, signature } => {
                self.accused(claim, auditor, Signed { statement, signature })
            }
            Event::VoucherRedeemed { lane, epoch, receipts, .. } if self.looks_at_receipts() => {
                let epoch = |manifest| Epoch {
                    lane,
                    epoch,
                    receipts,
                    redeemed_at: at.timestamp,
                    block: at.block_hash,
                    manifest,
                };
                self.jobs.manifest(lane.job).map(epoch).filter(|epoch| self.is_recent(epoch)).map(Task::Epoch)
            }
            _ => None,
        };
        Ok(task.into_iter().collect())
    }

    /// Takes in receipts of a redeemed epoch, which the chain may draw us for.
    pub(crate) fn listed(&self, targets: Vec<Target>) {
        targets.into_iter().for_each(|target| self.wait_for_seed(target));
    }

    /// A claim is on chain, in this block; what our own lottery draws is looked into, and what differs from a replica.
    fn claimed(&mut self, target: Target, block: B256) -> Result<Option<Task>, SignatureError> {
        self.wait_for_seed(target.clone());
        let drawn = drawn(&self.auditor.ports.identity, target.id, block, self.rate)?;
        Ok(self.replicas.claimed(&target, drawn).then_some(Task::Claim(target)))
    }

    /// Whoever is accused: a false word convicts who gave it, to the credit of who shows it.
    fn accused(&self, id: ClaimId, auditor: Address, signed: Signed) -> Option<Task> {
        let found = self.auditor.claims.find(id)?;
        let target = self.jobs.target(id, found.claim, found.committed_at)?;
        self.auditor.answers.accused(id, signed.clone());
        if auditor == self.auditor.ports.identity.address() {
            let (lane, interval) = (target.claim.lane(), target.claim.interval);
            tracing::error!(%lane, interval, "accused of a wrong answer");
        }
        Some(Task::Accused(target, signed))
    }

    fn wait_for_seed(&self, target: Target) {
        if self.is_drawn_by_chain() {
            self.draws.add(target, &self.auditor.answers, self.started);
        }
    }

    /// Whether the chain draws anybody.
    fn is_drawn_by_chain(&self) -> bool {
        self.auditor.answers.parameters.audits_per_claim_bps > 0
    }

    fn looks_at_receipts(&self) -> bool {
        self.rate.share() > 0.0 || self.is_drawn_by_chain()
    }

    /// Not long over: a restart hears of all there ever were.
    fn is_recent(&self, epoch: &Epoch) -> bool {
        let longest = 2 * self.auditor.answers.parameters.max_challenge_window;
        epoch.redeemed_at.saturating_add(longest) >= self.started
    }
}
