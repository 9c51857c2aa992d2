//! What contracts hold and refuse, as far as roles notice.

use std::collections::{BTreeMap, HashMap};

use tensorlink_node::ports::chain::*;
use tensorlink_node::ports::*;
use tensorlink_proof::challenge::Move;
use tensorlink_proof::commit::{epoch_record, recover, seal, verify_signer};
use tensorlink_types::abi::{Claim, JobKind, Voucher};
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};

use super::{CONTRACTS, JOB, SEAL_WINDOW, WINDOW};

/// What a [`MemoryChain`] holds.
pub struct Ledger {
    pub job: JobView,
    pub now: u64,
    pub lanes: HashMap<Lane, LaneView>,
    /// Of replica 0.
    pub claims: BTreeMap<(u16, u32), (Claim, u64)>,
    /// By stage, interval and replica; when they were made.
    pub seals: BTreeMap<(u16, u32, u16), (B256, u64)>,
    pub workers: Vec<Address>,
    /// What accounts have bonded; of others it is 100.
    pub stakes: HashMap<Address, u128>,
    pub roots: Vec<(B256, B256)>,
    pub sent: Vec<&'static str>,
    /// Of the first lane: the interval whose claim a challenge holds back.
    pub challenged: Option<u32>,
    /// Of us, on a claim, mined and not confirmed.
    pub open_challenge: Option<(ClaimId, U256)>,
    /// What is left of the deposits of challenges, and what gas costs.
    pub deposit_left: U256,
    pub base_fee: U256,
    /// The next commit is mined and its receipt lost.
    pub lose_receipt: bool,
    /// What lanes have redeemed: the last voucher of each, and when.
    pub redeemed: BTreeMap<Lane, (Voucher, u64)>,
    /// Confirmed events, which end with the last of them; without these the chain is silent, and does not end.
    pub told: Option<Vec<EventAt>>,
    /// Calls that the budget for gas still holds back.
    pub held_back: u32,
    /// How often remembered events were taken back.
    pub undone: u64,
    /// Whether events go on: what calls cause is told, too.
    pub follows: bool,
    /// How often somebody began to follow them.
    pub feeds: u32,
}

impl Ledger {
    pub fn redeemed_of(&self, lane: Lane) -> RedeemedView {
        let view = |(v, at): &(Voucher, u64)| RedeemedView {
            epoch: v.epoch,
            tokens: v.tokens,
            at: *at,
            record: epoch_record(v.receipts, *at),
        };
        self.redeemed.get(&lane).map(view).unwrap_or_default()
    }

    /// When the first of a round was made.
    pub fn first_seal(&self, stage: u16, interval: u32) -> Option<u64> {
        self.seals.iter().filter(|((s, n, _), _)| (*s, *n) == (stage, interval)).map(|(_, (_, at))| *at).min()
    }

    /// Whether nobody can seal any more; the replicas here either seal everything or nothing.
    fn seals_are_in(&self, stage: u16, interval: u32) -> bool {
        let seals = self.seals.keys().filter(|(s, n, _)| (*s, *n) == (stage, interval)).count();
        let over = self.first_seal(stage, interval).is_some_and(|first| self.now >= first + SEAL_WINDOW);
        seals == usize::from(self.job.replicas) || over || self.job.state == JobState::Closing
    }

    /// Tells an event, in a block of its own.
    pub fn tell(&mut self, event: Event) {
        if let Event::JobPosted { user, terms, .. } = &event {
            self.job.terms = terms.hash_of(*user);
        }
        let (timestamp, told) = (self.now, self.told.get_or_insert_default());
        let block = told.len() as u64;
        let (block_hash, transaction) = (B256::ZERO, B256::ZERO);
        told.push(EventAt { block, block_hash, timestamp, log_index: 0, transaction, event });
    }

    /// Takes a call, in a block of its own; what the contracts tell of it.
    pub fn take(&mut self, call: Call) -> Result<Vec<Event>, ChainError> {
        let mut events = Vec::new();
        let salt = if let Call::Reveal { salt, .. } = &call { Some(*salt) } else { None };
        match call {
            Call::Seal { lane, interval, seal } => {
                self.sent.push("seal");
                let (at, first) = ((lane.stage, interval, lane.replica), self.first_seal(lane.stage, interval));
                if self.job.state != JobState::Running {
                    return Err(refused("JobNotOpen"));
                }
                if self.seals.contains_key(&at) {
                    return Err(refused("AlreadySealed"));
                }
                if interval > 0 && !self.seals.contains_key(&(lane.stage, interval - 1, lane.replica)) {
                    return Err(refused("NotTheNextClaim"));
                }
                if first.is_some_and(|first| self.now >= first + SEAL_WINDOW) {
                    return Err(refused("SealingOver"));
                }
                self.now += 1;
                self.seals.insert(at, (seal, self.now));
                if std::mem::take(&mut self.lose_receipt) {
                    return Err(ChainError::Pending(B256::ZERO));
                }
                events.push(Event::ClaimSealed { lane, interval, seal, sealed_at: self.now });
            }
            Call::Commit { claim, previous } | Call::Reveal { claim, previous, .. } => {
                if let Some(salt) = salt {
                    self.sent.push("reveal");
                    let sealed = self.seals.get(&(claim.stage, claim.interval, claim.replica));
                    if sealed.is_none_or(|(sealed, _)| *sealed != seal(CONTRACTS.claim_id(&claim), salt)) {
                        return Err(refused("WrongSeal"));
                    }
                    if !self.seals_are_in(claim.stage, claim.interval) {
                        return Err(refused("SealingOpen"));
                    }
                } else {
                    self.sent.push("commit");
                }
                let at = (claim.stage, claim.interval);
                let before = claim.interval.checked_sub(1).map(|n| self.claims.get(&(claim.stage, n)));
                if self.claims.contains_key(&at) {
                    return Err(refused("ClaimExists"));
                }
                if before.is_some_and(|b| b.is_none_or(|(_, at)| *at != previous.committedAt)) {
                    return Err(refused("WrongLink"));
                }
                self.now += 1;
                self.claims.insert(at, (claim.clone(), self.now));
                if std::mem::take(&mut self.lose_receipt) {
                    return Err(ChainError::Pending(B256::ZERO));
                }
                events.push(Event::ClaimCommitted { id: CONTRACTS.claim_id(&claim), claim, committed_at: self.now });
            }
            Call::Finalize { claims, holder } => {
                self.sent.push("finalize");
                let held = !holder.signature.is_empty();
                if let Some((last, _)) = claims.last().filter(|_| held) {
                    let signer = recover(&holder.signature, CONTRACTS.holding(CONTRACTS.claim_id(last)));
                    let at = Lane { job: JobId(last.job), stage: holder.stage, replica: holder.replica };
                    let other = self.lanes.get(&at).map(|lane| lane.worker).filter(|_| at != last.lane());
                    if !signer.is_ok_and(|signer| signer == self.job.user || other == Some(signer)) {
                        return Err(refused("WrongHolder"));
                    }
                }
                if claims.iter().any(|(claim, _)| self.challenged == Some(claim.interval)) {
                    return Err(refused("Challenged"));
                }
                let window = if held { WINDOW } else { 2 * WINDOW };
                for (claim, at) in claims {
                    let known = self.claims.get(&(claim.stage, claim.interval));
                    if known != Some(&(claim.clone(), at)) || at + window > self.now {
                        return Err(refused("WindowOpen"));
                    }
                    self.lanes.get_mut(&claim.lane()).unwrap().finalized = claim.interval + 1;
                }
            }
            Call::Redeem { voucher, signature } => {
                self.sent.push("redeem");
                verify_signer(&signature, CONTRACTS.voucher(&voucher), self.job.user)
                    .map_err(|_| refused("BadSignature"))?;
                if !matches!(self.job.state, JobState::Running | JobState::Closing) {
                    return Err(refused("JobNotOpen"));
                }
                let (stage, replica) = (voucher.stage, voucher.replica);
                let lane = Lane { job: JobId(voucher.job), stage, replica };
                if self.job.state == JobState::Closing && self.now >= self.job.deadline {
                    return Err(refused("RedemptionOver"));
                }
                let last = self.redeemed_of(lane);
                if voucher.epoch != last.epoch + 1 {
                    return Err(refused("NotTheNextEpoch"));
                }
                if voucher.before != last.tokens {
                    return Err(refused("NotPaidBefore"));
                }
                if voucher.tokens < last.tokens || voucher.tokens > self.job.intervals {
                    return Err(refused("TokensOutOfRange"));
                }
                let (epoch, tokens, receipts) = (voucher.epoch, voucher.tokens, voucher.receipts);
                events.push(Event::VoucherRedeemed { lane, epoch, tokens, receipts });
                self.redeemed.insert(lane, (voucher, self.now));
            }
            Call::Cancel { .. } => {
                self.sent.push("cancel");
                self.job.state = JobState::Closing;
                if self.job.kind == JobKind::Serving {
                    self.job.deadline = self.now + WINDOW;
                    events.push(Event::JobClosing { job: JOB, convicted: false });
                }
            }
            Call::Settle { .. } if self.job.kind == JobKind::Serving => {
                self.sent.push("settle");
                let last = self.redeemed.values().map(|(_, at)| at + WINDOW).max().unwrap_or_default();
                if self.job.state != JobState::Closing || self.now < self.job.deadline.max(last) {
                    return Err(refused("WindowOpen"));
                }
                self.job.state = JobState::Settled;
                events.push(Event::JobSettled { job: JOB, refund: U256::ZERO });
            }
            Call::Challenge { step, .. } => {
                self.sent.push(match *step {
                    Move::Open { .. } => "open",
                    Move::Fund { amount } => {
                        self.deposit_left += amount;
                        "fund"
                    }
                    _ => "move",
                });
            }
            _ => self.sent.push("other"),
        }
        if self.follows {
            events.iter().cloned().for_each(|event| self.tell(event));
        }
        Ok(events)
    }
}

fn refused(name: &str) -> ChainError {
    ChainError::Reverted { name: name.into(), arguments: String::new() }
}
