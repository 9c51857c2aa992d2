//! What was computed is kept, sealed and revealed, each in its time; shares of bounties are asked for.

use std::time::Duration;

use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_node::shard::ShardError;
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_node::{Identity, Ports};
use tensorlink_proof::commit::is_receipt;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::sortition::{answer_of, sealed_answer};
use tensorlink_types::abi::AuditAnswer;
use tensorlink_types::{B256, Bytes, ClaimId};
use tokio_util::sync::CancellationToken;

use crate::answers::{Answers, Given, Step};
use crate::ask::{ask, transact};
use crate::evidence::Evidence;
use crate::finding::AuditError;
use crate::seeds::Seeds;
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

/// Gives answers.
#[derive(Clone, Copy)]
pub(crate) struct Giving<'a> {
    ports: &'a Ports,
    answers: &'a Answers,
    evidence: Evidence<'a>,
    seeds: Seeds<'a>,
}

impl<'a> Giving<'a> {
    /// Of the answers in this book.
    pub(crate) const fn new(ports: &'a Ports, answers: &'a Answers) -> Self {
        Self { ports, answers, evidence: Evidence::new(ports, answers), seeds: Seeds::new(ports, answers) }
    }

    /// Answers for a claim: what we computed is on disk when this returns, and goes to the chain from there.
    pub(crate) async fn answer(
        &self,
        target: &Target,
        job: &JobView,
        (answer, record): (AuditAnswer, &IntervalRecord),
    ) -> Result<(), AuditError> {
        let Some(audited) = target.audited() else { return Ok(()) };
        match self.evidence.keep(target.id, record).await {
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
        for old in self.answers.add(given, now)? {
            self.evidence.drop_of(old.id, &old.record).await;
        }
        Ok(())
    }

    /// Seals and reveals what was computed, each in its time, and asks for shares, until `shutdown`.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        let giving = async {
            loop {
                let open = self.answers.unfinished();
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
                    () = self.answers.woken() => {}
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
        let step = match transact(self.ports, call).await {
            Ok(gas) => {
                tracing::info!(%lane, interval, gas, "drawn: an answer is sealed");
                Step::Sealed
            }
            // By a transaction whose fate we did not learn.
            Err(ChainError::Reverted { name, .. }) if name == AGAIN => Step::Sealed,
            Err(ChainError::Reverted { name, .. }) if now < self.answers.quarters_of(given).end(1) => {
                if name == NO_SEED {
                    self.seeds.record_for(given.audited.fixedAt).await?;
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
        match transact(self.ports, Call::Audit(Box::new(step))).await {
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
        match transact(self.ports, self.showing(given)?).await {
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
        match transact(self.ports, Call::Audit(Box::new(AuditMove::PayShare { claim, auditor }))).await {
            Ok(gas) => tracing::info!(claim = %given.id, gas, "asked for a share of a convicted lane's bounty"),
            Err(error @ ChainError::Reverted { .. }) => {
                tracing::debug!(claim = %given.id, %error, "no share of a convicted lane's bounty");
            }
            Err(error) => return Err(error.into()),
        }
        self.answers.shared(given.id);
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
        let said = match ask(self.ports, worker, &Request::Statements(given.id)).await {
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
}
