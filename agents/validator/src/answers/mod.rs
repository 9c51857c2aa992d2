//! Answers for claims that the chain drew us for: sealed in the first quarter of the challenge window, revealed in the
//! second. They are on disk before they are sealed, so that whatever happens in between, what was sealed is revealed:
//! later and for nothing, if need be. Who has sealed an answer about a lane that is convicted has a share of its
//! bounty.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tensorlink_node::Identity;
use tensorlink_node::journal::{Journal, JournalError};
use tensorlink_node::ports::chain::{JobView, Parameters, Seed};
use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_node::shard::ShardError;
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::is_receipt;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::fraud::{ElementProof, Signed};
use tensorlink_proof::sortition::{Quarters, answer_of, period_after, sealed_answer};
use tensorlink_types::abi::{AuditAnswer, AuditedClaim};
use tensorlink_types::{Address, B256, Bytes, ClaimId, Lane};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::audit::{AuditError, Auditor, Target};

const NAME: &str = "answers";
/// Answers remembered on disk. Who is drawn more often within a window looks at too many claims for one node.
const REMEMBERED: usize = 4096;
/// Longest wait between two looks at what can be revealed.
const PERIOD: Duration = Duration::from_secs(1);
/// What the contract says to a move that was made before, and to a draw without a seed.
const AGAIN: &str = "WrongState";
const NO_SEED: &str = "NoSeed";

/// How far an answer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It is on our disk.
    Computed,
    /// It is sealed on chain.
    Sealed,
    /// It is revealed, or was never sealed.
    Over,
}

/// An answer of ours.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Given {
    /// The claim's id.
    pub id: ClaimId,
    /// The claim.
    pub audited: AuditedClaim,
    /// The job's challenge window, seconds.
    pub window: u64,
    /// What we computed.
    pub answer: AuditAnswer,
    /// Where the worker keeps what we executed: without it, nobody could be shown that the answer is right. Its files
    /// stay in our store as long.
    pub record: IntervalRecord,
    /// How far it is.
    pub step: Step,
}

/// Our answers.
#[derive(Debug)]
pub struct Answers {
    journal: Journal,
    /// Of the deployment.
    pub parameters: Parameters,
    drawn: Mutex<HashSet<ClaimId>>,
    given: Mutex<Vec<Given>>,
    /// Something can be given at once.
    ready: Notify,
    /// Periods whose seeds are being recorded.
    recording: Mutex<HashSet<u64>>,
    /// What workers have signed to accuse auditors, as the chain told it.
    accusations: Mutex<HashMap<ClaimId, Signed>>,
    /// Answers about lanes that are convicted, whose share is still to be asked for.
    sharing: Mutex<HashSet<ClaimId>>,
    /// The latest answers of anybody, as the chain told them.
    revealed: Mutex<VecDeque<(ClaimId, Address, AuditAnswer)>>,
}

impl Answers {
    /// Reads what was given before.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open(journal: Journal, parameters: Parameters) -> Result<Self, JournalError> {
        let given = Mutex::new(journal.read(NAME)?.unwrap_or_default());
        Ok(Self {
            journal,
            parameters,
            drawn: Mutex::default(),
            given,
            ready: Notify::new(),
            recording: Mutex::default(),
            accusations: Mutex::default(),
            sharing: Mutex::default(),
            revealed: Mutex::default(),
        })
    }

    /// Seconds in which an answer can be sealed, in a job whose window is the longest.
    pub(crate) fn longest_quarter(&self) -> u64 {
        self.quarters(0, self.parameters.max_challenge_window).end(1)
    }

    /// When a worker tells what answers it: once nobody can commit to one any more. None where nobody is drawn.
    pub(crate) fn told_from(&self, fixed_at: u64, window: u64) -> Option<u64> {
        (self.parameters.audits_per_claim_bps > 0).then(|| self.quarters(fixed_at, window).end(1))
    }

    /// Until when an auditor can be accused of its answer.
    pub(crate) fn accused_until(&self, fixed_at: u64, window: u64) -> u64 {
        self.quarters(fixed_at, window).end(3)
    }

    const fn quarters(&self, fixed_at: u64, window: u64) -> Quarters {
        Quarters { fixed_at, window, clock: self.parameters.dispute_clock }
    }

    fn quarters_of(&self, given: &Given) -> Quarters {
        self.quarters(given.audited.fixedAt, given.window)
    }

    /// We are drawn to answer for a claim.
    pub fn drawn(&self, claim: ClaimId) {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner).insert(claim);
    }

    /// An auditor is accused by what a claim's worker signed.
    pub(crate) fn accused(&self, claim: ClaimId, signed: Signed) {
        self.accusations.lock().unwrap_or_else(PoisonError::into_inner).insert(claim, signed);
    }

    /// A lane is convicted: what we have sealed about it brings a share.
    pub(crate) fn convicted(&self, lane: Lane) {
        let about: Vec<ClaimId> =
            self.given().iter().filter(|given| given.audited.claim.lane() == lane).map(|given| given.id).collect();
        self.sharing().extend(about);
        self.ready.notify_one();
    }

    fn sharing(&self) -> MutexGuard<'_, HashSet<ClaimId>> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is to do about an answer.
    fn is_open(&self, given: &Given) -> bool {
        given.step != Step::Over || self.sharing().contains(&given.id)
    }

    /// An auditor has revealed its answer.
    pub(crate) fn revealed(&self, claim: ClaimId, auditor: Address, answer: AuditAnswer) {
        let mut revealed = self.revealed.lock().unwrap_or_else(PoisonError::into_inner);
        if revealed.len() >= REMEMBERED {
            revealed.pop_front();
        }
        revealed.push_back((claim, auditor, answer));
    }

    fn who_answered(&self, claim: ClaimId, answer: &AuditAnswer) -> Vec<Address> {
        let revealed = self.revealed.lock().unwrap_or_else(PoisonError::into_inner);
        revealed.iter().filter(|(of, _, said)| *of == claim && said == answer).map(|(_, auditor, _)| *auditor).collect()
    }

    /// What a claim's worker accuses by.
    pub(crate) fn accusation(&self, claim: ClaimId) -> Option<Signed> {
        self.accusations.lock().unwrap_or_else(PoisonError::into_inner).get(&claim).cloned()
    }

    /// Whether an answer is due that is not given.
    pub(crate) fn is_due(&self, claim: ClaimId) -> bool {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner).contains(&claim) && self.of(claim).is_none()
    }

    /// What we answered about a claim.
    pub fn of(&self, claim: ClaimId) -> Option<Given> {
        self.given().iter().find(|given| given.id == claim).cloned()
    }

    /// All that we answered and may have to stand for.
    pub(crate) fn all(&self) -> Vec<Given> {
        self.given().clone()
    }

    fn given(&self) -> MutexGuard<'_, Vec<Given>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Vec<Given>)) -> Result<(), JournalError> {
        let mut given = self.given();
        let mut changed = given.clone();
        change(&mut changed);
        let over = changed.len().saturating_sub(REMEMBERED);
        changed.drain(..over);
        self.journal.write(NAME, &changed)?;
        *given = changed;
        Ok(())
    }

    fn reaches(&self, claim: ClaimId, step: Step) -> Result<(), JournalError> {
        self.update(|given| given.iter_mut().filter(|given| given.id == claim).for_each(|given| given.step = step))
    }
}

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

    /// Penalises who answered just what a proof has shown to be wrong: it copied the liar. What the day's budget for
    /// gas holds back is sent later; nobody waits for it.
    pub(crate) async fn penalise_copies(&self, proof: &ElementProof) {
        let wrong = answer_of(&proof.statement);
        for auditor in self.answers.who_answered(ClaimId(proof.statement.claimId), &wrong) {
            let call = Call::Audit(Box::new(AuditMove::PenaliseCopy { proof: Box::new(proof.clone()), auditor }));
            match self.transact(call.clone()).await {
                Err(ChainError::OverBudget { .. }) => {
                    let ports = self.ports.clone();
                    tokio::spawn(async move {
                        penalised(auditor, ports.send_within_budget(call).await.map(|receipt| receipt.gas));
                    });
                }
                done => penalised(auditor, done),
            }
        }
    }

    /// Sends a call; the gas it took. It is not tried locally first, which takes as long as sending it: what the
    /// contract refuses, the estimate of its gas tells as well.
    pub(crate) async fn transact(&self, call: Call) -> Result<u64, ChainError> {
        Ok(self.ports.chain.send(call).await?.gas)
    }
}

fn penalised(auditor: Address, done: Result<u64, ChainError>) {
    match done {
        Ok(gas) => tracing::warn!(%auditor, gas, "an auditor that copied a lie is penalised"),
        Err(error) => tracing::warn!(%auditor, %error, "an auditor that copied a lie is not penalised"),
    }
}
