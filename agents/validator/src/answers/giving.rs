//! What was computed is kept, sealed and revealed, each in its time; shares of bounties are asked for.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Duration;

use tensorlink_node::Identity;
use tensorlink_node::ports::chain::{JobView, Seed};
use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_node::shard::ShardError;
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::is_receipt;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::sortition::{answer_of, period_after, sealed_answer};
use tensorlink_types::abi::AuditAnswer;
use tensorlink_types::{B256, Bytes, ClaimId};
use tokio_util::sync::CancellationToken;

use super::{Given, Step};
use crate::auditor::Auditor;
use crate::finding::AuditError;
use crate::target::Target;

/// Longest wait between two looks at what can be revealed.
const PERIOD: Duration = Duration::from_secs(1);
/// What the contract says to a move that was made before, and to a draw without a seed.
const AGAIN: &str = "WrongState";
const NO_SEED: &str = "NoSeed";

/// The secret that an answer of this key is sealed with.
fn salt(identity: &Identity, claim: ClaimId) -> Result<B256, SignatureError> {
    identity.salt("tensorlink answer", claim)
}

impl<E> Auditor<E>
where
    E: Engine + Send + 'static,
{
    /// Answers for a claim: what we computed is on disk when this returns, and goes to the chain from there.
    pub(crate) async fn answer_with(
        &self,
        target: &Target,
        job: &JobView,
        (answer, record): (AuditAnswer, &IntervalRecord),
    ) -> Result<(), AuditError> {
        let Some(audited) = target.audited() else { return Ok(()) };
        match self.keep_evidence(target.id, record).await {
            Ok(true) => {}
            Ok(false) => {
                let (lane, interval) = (target.claim.lane(), target.claim.interval);
                tracing::error!(
                    %lane,
                    interval,
                    "drawn, but not answered: what the answer rests on made room for other files meanwhile; give the \
                     store more by --disk, or `disk` in the configuration file"
                );
                return Ok(());
            }
            Err(error) => return Err(ShardError::from(error).into()),
        }
        let (window, record) = (job.challenge_window, record.clone());
        let given = Given { id: target.id, audited, window, answer, record, step: Step::Computed };
        let now = self.ports.chain.head().await?.timestamp;
        // Nobody can be accused any more when twice the window is over.
        let is_over = |old: &Given| old.step == Step::Over && now >= self.answers.quarters_of(old).end(8);
        let before = self.answers.all();
        self.answers.update(|all| {
            all.retain(|old| !is_over(old));
            all.push(given);
        })?;
        self.answers.ready.notify_one();
        let still: HashSet<ClaimId> = self.answers.given().iter().map(|given| given.id).collect();
        for old in before.iter().filter(|old| !still.contains(&old.id)) {
            self.drop_evidence(old.id, &old.record).await;
        }
        Ok(())
    }

    /// Seals and reveals what was computed, each in its time, and asks for shares, until `shutdown`.
    pub(crate) async fn give_answers(&self, shutdown: CancellationToken) {
        let giving = async {
            loop {
                let mut open = self.answers.all();
                open.retain(|given| self.answers.is_open(given));
                if !open.is_empty() {
                    match self.ports.chain.head().await {
                        // Side by side: a worker that keeps us waiting for its word keeps nobody else.
                        Ok(head) => {
                            let given = open.iter().map(|given| self.give(given, head.timestamp));
                            futures::future::join_all(given).await;
                        }
                        Err(error) => tracing::warn!(%error, "the chain cannot be asked"),
                    }
                }
                tokio::select! {
                    () = self.answers.ready.notified() => {}
                    () = self.ports.clock.sleep(PERIOD) => {}
                }
            }
        };
        shutdown.run_until_cancelled(giving).await;
    }

    async fn give(&self, given: &Given, now: u64) {
        let done = match given.step {
            Step::Computed => self.seal(given, now).await,
            Step::Sealed if now >= self.answers.quarters_of(given).end(1) => self.reveal(given, now).await,
            Step::Sealed => Ok(()),
            Step::Over => self.ask_for_share(given).await,
        };
        if let Err(error) = done {
            tracing::warn!(claim = %given.id, %error, "an answer is not on chain yet");
        }
    }

    async fn seal(&self, given: &Given, now: u64) -> Result<(), AuditError> {
        let (lane, interval) = (given.audited.claim.lane(), given.audited.claim.interval);
        let salt = salt(&self.ports.identity, given.id)?;
        let sealed = sealed_answer(given.id, &given.answer, self.ports.identity.address(), salt);
        let call = Call::Audit(Box::new(AuditMove::Commit { audited: given.audited.clone(), sealed }));
        let step = match self.transact(call).await {
            Ok(gas) => {
                tracing::info!(%lane, interval, gas, "drawn: an answer is sealed");
                Step::Sealed
            }
            // By a transaction whose fate we did not learn.
            Err(ChainError::Reverted { name, .. }) if name == AGAIN => Step::Sealed,
            Err(ChainError::Reverted { name, .. }) if now < self.answers.quarters_of(given).end(1) => {
                if name == NO_SEED {
                    self.record_seed(given.audited.fixedAt).await?;
                }
                return Ok(());
            }
            // The contract looks at the time first: killed before we noted it, we may have sealed all the same.
            Err(error @ ChainError::Reverted { .. }) => {
                if self.is_sealed(given).await? {
                    Step::Sealed
                } else {
                    tracing::warn!(%lane, interval, %error, "drawn, but the answer comes too late");
                    Step::Over
                }
            }
            Err(error) => return Err(error.into()),
        };
        Ok(self.answers.reaches(given.id, step)?)
    }

    async fn reveal(&self, given: &Given, now: u64) -> Result<(), AuditError> {
        let (lane, interval) = (given.audited.claim.lane(), given.audited.claim.interval);
        let is_late = now >= self.answers.quarters_of(given).end(2);
        let step = match self.revealing(given).await? {
            Some(step) => step,
            None if !is_late => return Ok(()),
            None => {
                tracing::warn!(%lane, interval, "the worker's statement does not confirm an answer: it is not paid");
                return self.reveal_unpaid(given).await;
            }
        };
        match self.transact(Call::Audit(Box::new(step))).await {
            Ok(gas) => tracing::info!(%lane, interval, gas, "an answer is revealed"),
            Err(ChainError::Reverted { name, .. }) if name == AGAIN => {}
            // The chain's clock decides, and may be behind ours.
            Err(ChainError::Reverted { .. }) if !is_late => return Ok(()),
            Err(error @ ChainError::Reverted { .. }) => {
                tracing::error!(%lane, interval, %error, "an answer was not revealed in time: it is not paid");
                return self.reveal_unpaid(given).await;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.answers.reaches(given.id, Step::Over)?)
    }

    /// Shows an answer that nobody pays for: whoever has sealed one and not shown it cannot unstake (P-46), and shares
    /// no bounty (P-45).
    async fn reveal_unpaid(&self, given: &Given) -> Result<(), AuditError> {
        match self.transact(self.showing(given)?).await {
            Ok(gas) => tracing::info!(claim = %given.id, gas, "an answer is revealed for nothing"),
            Err(ChainError::Reverted { name, .. }) if name == AGAIN => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.answers.reaches(given.id, Step::Over)?)
    }

    /// Whether an answer is sealed and not shown: then, and only then, it can be shown for nothing, at any time.
    async fn is_sealed(&self, given: &Given) -> Result<bool, AuditError> {
        match self.ports.chain.simulate(&self.showing(given)?).await {
            Ok(_) => Ok(true),
            Err(ChainError::Reverted { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn showing(&self, given: &Given) -> Result<Call, AuditError> {
        let (claim, answer) = (given.audited.claim.clone(), given.answer.clone());
        let salt = salt(&self.ports.identity, given.id)?;
        Ok(Call::Audit(Box::new(AuditMove::RevealUnpaid { claim, answer, salt })))
    }

    /// Once: what the contract refuses now it refuses later, unless the lane is convicted anew.
    async fn ask_for_share(&self, given: &Given) -> Result<(), AuditError> {
        let (claim, auditor) = (given.audited.claim.clone(), self.ports.identity.address());
        match self.transact(Call::Audit(Box::new(AuditMove::PayShare { claim, auditor }))).await {
            Ok(gas) => tracing::info!(claim = %given.id, gas, "asked for a share of a convicted lane's bounty"),
            Err(error @ ChainError::Reverted { .. }) => {
                tracing::debug!(claim = %given.id, %error, "no share of a convicted lane's bounty");
            }
            Err(error) => return Err(error.into()),
        }
        self.answers.sharing().remove(&given.id);
        Ok(())
    }

    /// What reveals an answer; that about a receipt, with its worker's word, if that can be had.
    async fn revealing(&self, given: &Given) -> Result<Option<AuditMove>, AuditError> {
        let (audited, answer) = (given.audited.clone(), given.answer.clone());
        let salt = salt(&self.ports.identity, given.id)?;
        if !is_receipt(&audited.claim) {
            return Ok(Some(AuditMove::Reveal { audited, answer, salt }));
        }
        let (worker, _) = self.ports.chain.assignment(audited.claim.lane()).await?;
        let said = match self.ask(worker, &Request::Statements(given.id)).await {
            Ok(Response::Statements(said)) => said,
            Ok(_) => Vec::new(),
            Err(gap) => {
                tracing::debug!(claim = %given.id, %gap, "no word of the worker yet");
                Vec::new()
            }
        };
        let confirming = said.into_iter().find(|(statement, _)| answer_of(statement) == answer);
        Ok(confirming.map(|(statement, signature)| {
            let signature = Bytes::from(signature);
            AuditMove::RevealConfirmed { audited, statement, signature, salt }
        }))
    }

    /// Records the seed that draws for what was fixed at this time, once more if need be: a transaction may have
    /// been undone.
    async fn record_seed(&self, fixed_at: u64) -> Result<(), AuditError> {
        let period = period_after(fixed_at, self.answers.parameters.beacon_period);
        let Some(period) = period else { return Ok(()) };
        if let Some(seed) = self.ports.chain.seed(period).await? {
            self.record_if_new(period, seed).await;
        }
        Ok(())
    }

    /// Records a seed, if it is not, and we are not at it.
    pub(crate) async fn record_if_new(&self, period: u64, seed: Seed) {
        let Some((before, header)) = seed.headers else { return };
        let recording = || self.answers.recording.lock().unwrap_or_else(PoisonError::into_inner);
        if !recording().insert(period) {
            return;
        }
        // Another validator may be faster. Where it fails, who seals an answer sees it.
        match self.transact(Call::Audit(Box::new(AuditMove::Record { period, before, header }))).await {
            Ok(gas) => {
                tracing::info!(period, gas, "a seed is recorded");
                // An answer may wait for it.
                self.answers.ready.notify_one();
            }
            Err(error) => tracing::debug!(period, %error, "a seed is not recorded by us"),
        }
        recording().remove(&period);
    }
}
