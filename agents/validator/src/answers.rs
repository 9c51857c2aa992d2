//! Answers for claims that the chain drew us for: sealed in the first quarter of the challenge window, revealed in the
//! second. They are on disk before they are sealed, so that whatever happens in between, what was sealed is revealed:
//! later and for nothing, if need be. Who has sealed an answer about a lane that is convicted has a share of its
//! bounty. This is the book of them; what is due is given by who reads it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tensorlink_node::journal::{Journal, JournalError};
use tensorlink_node::ports::Event;
use tensorlink_node::ports::chain::Parameters;
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_proof::fraud::Signed;
use tensorlink_proof::sortition::Quarters;
use tensorlink_types::abi::{AuditAnswer, AuditedClaim};
use tensorlink_types::{Address, ClaimId, Lane};
use tokio::sync::Notify;

const NAME: &str = "answers";
/// Answers remembered on disk. Who is drawn more often within a window looks at too many claims for one node.
const REMEMBERED: usize = 4096;

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

    /// Takes in an event.
    pub(crate) fn apply(&self, event: &Event) {
        match event {
            Event::Convicted { lane, .. } => self.convicted(*lane),
            Event::AuditRevealed { claim, auditor, answer, .. } => self.revealed(*claim, *auditor, answer.clone()),
            _ => {}
        }
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

    /// The quarters of the window of a claim that was answered for.
    pub(crate) fn quarters_of(&self, given: &Given) -> Quarters {
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
    fn convicted(&self, lane: Lane) {
        let about: Vec<ClaimId> =
            self.given().iter().filter(|given| given.audited.claim.lane() == lane).map(|given| given.id).collect();
        self.sharing().extend(about);
        self.wake();
    }

    fn sharing(&self) -> MutexGuard<'_, HashSet<ClaimId>> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers about which there is something to do.
    pub(crate) fn unfinished(&self) -> Vec<Given> {
        let mut unfinished = self.all();
        unfinished.retain(|given| given.step != Step::Over || self.sharing().contains(&given.id));
        unfinished
    }

    /// A share was asked for.
    pub(crate) fn shared(&self, claim: ClaimId) {
        self.sharing().remove(&claim);
    }

    /// Something can be given at once.
    pub(crate) fn wake(&self) {
        self.ready.notify_one();
    }

    /// Waits until something can be given at once.
    pub(crate) async fn woken(&self) {
        self.ready.notified().await;
    }

    /// Whether a period's seed is not being recorded here yet; from now on it is.
    pub(crate) fn begins_recording(&self, period: u64) -> bool {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).insert(period)
    }

    /// A period's seed is not being recorded here any more.
    pub(crate) fn ends_recording(&self, period: u64) {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).remove(&period);
    }

    /// An auditor has revealed its answer.
    fn revealed(&self, claim: ClaimId, auditor: Address, answer: AuditAnswer) {
        let mut revealed = self.revealed.lock().unwrap_or_else(PoisonError::into_inner);
        if revealed.len() >= REMEMBERED {
            revealed.pop_front();
        }
        revealed.push_back((claim, auditor, answer));
    }

    pub(crate) fn who_answered(&self, claim: ClaimId, answer: &AuditAnswer) -> Vec<Address> {
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

    /// Writes an answer down, at the chain's time `now`; which others are forgotten for it.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn add(&self, given: Given, now: u64) -> Result<Vec<Given>, JournalError> {
        // Nobody can be accused any more when twice the window is over.
        let is_over = |old: &Given| old.step == Step::Over && now >= self.quarters_of(old).end(8);
        let mut before = self.all();
        self.update(|all| {
            all.retain(|old| !is_over(old));
            all.push(given);
        })?;
        self.wake();
        let still: HashSet<ClaimId> = self.given().iter().map(|given| given.id).collect();
        before.retain(|old| !still.contains(&old.id));
        Ok(before)
    }

    /// An answer is so far.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn reaches(&self, claim: ClaimId, step: Step) -> Result<(), JournalError> {
        self.update(|given| given.iter_mut().filter(|given| given.id == claim).for_each(|given| given.step = step))
    }
}
