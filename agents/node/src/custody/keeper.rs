//! Keeps states for others, and gives them to who asks.

mod answers;
mod fetching;
mod mirror;
mod turns;

use std::collections::HashSet;
use std::sync::Arc;

use cid::Cid;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::record_hash;
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, ClaimId, JobId, Lane};

use super::KeepError;
use super::holdings::{Holding, Holdings};
use super::programs::{Programs, source};
use crate::budget::Budget;
use crate::files;
use crate::finality::Finality;
use crate::journal::JournalError;
use crate::ports::{Event, Owner, Ports, Store};
use crate::shard::{Shard, ShardError};
use crate::undone;

pub use self::mirror::SPARED;
use self::turns::Turns;

/// Lanes of jobs that are over of whose states it is remembered where they are, so that their users can still fetch
/// them while there is room for them.
const PAST: usize = 4;
/// States of a lane's claims that are not final yet, at once: one attestation serves all claims before it.
const MOST: usize = 8;
/// States fetched at once to be kept, and to be mirrored.
const PLACES: usize = 2;
const MIRRORS: usize = 1;

/// What a worker asks to be kept.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its claim.
    pub claim: Claim,
    /// Timestamp of the claim's block.
    pub committed_at: u64,
    /// CID of the state that it ends in.
    pub state: Cid,
    /// CID of the job's manifest.
    pub manifest: Cid,
}

/// The states that this node keeps for others; on disk before anybody is told.
pub struct Keeper {
    ports: Ports,
    memory: Arc<Budget>,
    /// Fetches of states to be kept, and to be mirrored.
    to_keep: Turns,
    to_mirror: Turns,
    holdings: Holdings,
    programs: Programs,
    finality: Finality,
}

impl Keeper {
    /// Takes up what is on disk. States are checked in this memory.
    ///
    /// # Errors
    /// [`JournalError`] if it cannot be read.
    pub fn open(ports: Ports, memory: Arc<Budget>) -> Result<Self, JournalError> {
        let (holdings, programs) = (Holdings::open(ports.journal.clone())?, Programs::new(ports.clone()));
        let (to_keep, to_mirror) = (Turns::new(PLACES, fetching::wait_of), Turns::new(MIRRORS, mirror::wait_of));
        Ok(Self { ports, memory, to_keep, to_mirror, holdings, programs, finality: Finality::default() })
    }

    /// How far jobs are final, by the events that were taken in.
    pub const fn finality(&self) -> &Finality {
        &self.finality
    }

    /// Before events are told anew: jobs of which it is not known that they are over may not be, if that was not looked
    /// at since events were taken back for the last of `times`.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails.
    pub async fn take_back(&self, times: u64) -> Result<(), JournalError> {
        let going_on = async {
            let over: HashSet<JobId> =
                self.holdings.all().iter().filter(|held| held.over).map(|held| held.claim.lane().job).collect();
            for job in over {
                if !self.ports.chain.is_known_settled(job).await {
                    self.holdings.update(|holdings| {
                        let of_job = holdings.iter_mut().filter(|held| held.claim.lane().job == job);
                        of_job.for_each(|held| held.over = false);
                    })?;
                }
            }
            Ok(())
        };
        undone::take_back(&self.ports.journal, "holdings", times, going_on).await
    }

    /// At the start, before any event: what is on record is kept, and nothing else.
    pub async fn take_stock(&self) {
        let kept = self.holdings.all().iter().filter(|held| !held.over).cloned().collect::<Vec<_>>();
        let mut ids = HashSet::new();
        for held in kept {
            let id = self.ports.contracts.claim_id(&held.claim);
            ids.insert(id);
            let Ok(cid) = held.state.parse() else { continue };
            match self.held(id).own(&cid).await {
                Ok(true) => {}
                // It is forgotten when it is needed.
                Ok(false) if held.mirrored => {}
                Ok(false) => {
                    tracing::error!(lane = %held.claim.lane(), %cid, "a state that this node attested is gone");
                }
                Err(error) => tracing::warn!(%cid, %error, "a state that this node keeps may make room for others"),
            }
        }
        match self.ports.store.owners().await {
            Ok(owners) => {
                for owner in owners {
                    if let Owner::Holding(id) = owner
                        && !ids.contains(&id)
                        && let Err(error) = self.held(id).release().await
                    {
                        tracing::warn!(%error, "a state that nobody needs keeps its place");
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "it is not known who owns files: what nobody needs may keep its place");
            }
        }
    }

    /// Fetches the state that a claim ends in from the claim's worker, who asks, and attests that we have it: a
    /// signature (rule C-16).
    ///
    /// # Errors
    /// [`KeepError`].
    pub async fn keep(&self, asked: &Asked, worker: Address) -> Result<[u8; 65], KeepError> {
        let id = self.ports.contracts.claim_id(&asked.claim);
        let finalized = self.check(asked, worker).await?;
        if self.holding(id).is_none_or(|held| held.mirrored) {
            let lane = asked.claim.lane();
            let open =
                |held: &&Holding| !held.mirrored && held.claim.lane() == lane && held.claim.interval >= finalized;
            let kept = self.holdings.all().iter().filter(open).count();
            if kept >= MOST {
                return Err(KeepError::Busy);
            }
            if !self.is_here(id).await? {
                self.take(asked, (worker, finalized), &self.to_keep).await?;
            }
            self.hold_on_to(id).await?;
            tracing::info!(%lane, asked.claim.interval, "a state is kept for its worker");
        }
        Ok(self.ports.identity.sign(self.ports.contracts.holding(id))?)
    }

    /// Whether the state that a claim ends in is kept here, and its file is. What is mirrored may have lost it in a
    /// kill, or with its job, and is forgotten then.
    async fn is_here(&self, id: ClaimId) -> Result<bool, KeepError> {
        let _pins = self.ports.pins.lock().await;
        self.is_whole(id).await
    }

    /// The same for who holds the pins.
    async fn is_whole(&self, id: ClaimId) -> Result<bool, KeepError> {
        let Some(held) = self.holding(id) else { return Ok(false) };
        if !held.mirrored {
            return Ok(true);
        }
        let cid: Cid = held.state.parse().map_err(|_| KeepError::Unknown)?;
        let is_whole = self.held(id).own(&cid).await?;
        if !is_whole {
            self.holdings.update(|holdings| holdings.retain(|other| *other != held))?;
        }
        Ok(is_whole)
    }

    /// What is mirrored stays from now on. Nobody drops it meanwhile.
    async fn hold_on_to(&self, id: ClaimId) -> Result<(), KeepError> {
        let _pins = self.ports.pins.lock().await;
        if !self.is_whole(id).await? {
            // A newer one took its place.
            return Err(KeepError::Busy);
        }
        Ok(self.holdings.update(|holdings| {
            let it = holdings.iter_mut().filter(|held| self.ports.contracts.claim_id(&held.claim) == id);
            it.for_each(|held| held.mirrored = false);
        })?)
    }

    /// Whether a claim is one of this worker's, on chain and not void; how many of its lane are final.
    async fn check(&self, asked: &Asked, worker: Address) -> Result<u32, KeepError> {
        let (chain, claim) = (self.ports.chain.as_ref(), &asked.claim);
        let lane = claim.lane();
        // The record of a final claim may be gone.
        let finalized = chain.lane(lane).await?.finalized;
        let recorded = chain.record(lane, claim.interval).await? == record_hash(claim, asked.committed_at);
        if chain.assignment(lane).await?.0 != worker || (!recorded && claim.interval >= finalized) {
            return Err(KeepError::Unknown);
        }
        Ok(finalized)
    }

    /// The store as a claim's end state is kept in it.
    fn held(&self, claim: ClaimId) -> Arc<dyn Store> {
        self.ports.store.of(Owner::Holding(claim))
    }

    /// Fetches the files of the shard of another's lane for the lane of ours that is its keeper, to be able to give
    /// them to others.
    ///
    /// # Errors
    /// [`ShardError`].
    pub async fn store_shard(
        &self,
        lane: Lane,
        manifest: Cid,
        (worker, keeper): (Address, Lane),
    ) -> Result<(), ShardError> {
        let source = source(&self.ports, lane, manifest, worker).await?;
        let store = self.ports.store.of(Owner::Ward(keeper));
        Shard::store(self.ports.chain.as_ref(), store.as_ref(), &source).await
    }

    /// CID of the state that a claim ends in, if it is kept here.
    pub fn file_of(&self, id: ClaimId) -> Option<Cid> {
        self.holding(id)?.state.parse().ok()
    }

    fn holding(&self, id: ClaimId) -> Option<Holding> {
        self.holdings.all().iter().find(|held| self.ports.contracts.claim_id(&held.claim) == id).cloned()
    }

    /// The tensors of the state that a claim ends in.
    ///
    /// # Errors
    /// [`KeepError::Unknown`] if it is not kept here.
    pub async fn tensors_of(&self, id: ClaimId) -> Result<Vec<Tensor>, KeepError> {
        let held = self.holding(id).ok_or(KeepError::Unknown)?;
        let lane = held.claim.lane();
        let (worker, _) = self.ports.chain.assignment(lane).await?;
        let manifest = held.manifest.parse().map_err(|_| KeepError::Unknown)?;
        let program = self.programs.of(lane, manifest, worker).await?;
        let types = || program.state.iter().map(|slot| &slot.ty);
        let cid = held.state.parse().map_err(|_| KeepError::Unknown)?;
        let bytes = self.ports.store.of(Owner::Nobody).get(&cid, &[], files::file_len(types())).await?;
        Ok(files::split(&bytes, types())?)
    }

    /// Takes in a confirmed event. Of a lane's final states the last is kept, and those since the last that all stages
    /// of its job have reached; after the job ends they stay for its user while there is room for them.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails.
    pub async fn apply(&self, event: &Event) -> Result<(), JournalError> {
        self.finality.apply(event);
        match event {
            Event::ClaimsFinalized { lane, .. } => {
                let past = |held: &Holding| {
                    let of = held.claim.lane();
                    of.job == lane.job && held.claim.interval < self.finality.needed_from(of, 1)
                };
                self.drop_where(past).await
            }
            Event::JobSettled { job, .. } => {
                self.programs.forget(*job);
                self.to_keep.forget(*job);
                self.to_mirror.forget(*job);
                let of_job = |held: &Holding| held.claim.lane().job == *job;
                if !self.holdings.all().iter().any(of_job) {
                    return Ok(());
                }
                self.holdings.update(|holdings| {
                    holdings.iter_mut().filter(|held| of_job(held)).for_each(|held| held.over = true);
                })?;
                let ended: Vec<Holding> = self.holdings.all().iter().filter(|held| of_job(held)).cloned().collect();
                for held in &ended {
                    let id = self.ports.contracts.claim_id(&held.claim);
                    if let Err(error) = self.held(id).release().await {
                        tracing::warn!(%job, %error, "a state of a job that is over keeps its place for now");
                    }
                }
                let mut past: Vec<Lane> = Vec::new();
                for held in self.holdings.all().iter().filter(|held| held.over) {
                    let lane = held.claim.lane();
                    if !past.contains(&lane) {
                        past.push(lane);
                    }
                }
                let most = past.len().saturating_sub(PAST);
                let oldest = past.get(..most).unwrap_or_default();
                self.drop_where(|held| held.over && oldest.contains(&held.claim.lane())).await
            }
            _ => Ok(()),
        }
    }

    /// Forgets holdings, and their files unless others need them.
    async fn drop_where(&self, old: impl Fn(&Holding) -> bool) -> Result<(), JournalError> {
        let _pins = self.ports.pins.lock().await;
        let dropped: Vec<Holding> = self.holdings.all().iter().filter(|held| old(held)).cloned().collect();
        if dropped.is_empty() {
            return Ok(());
        }
        for held in &dropped {
            if let Ok(cid) = held.state.parse()
                && let Err(error) = self.held(self.ports.contracts.claim_id(&held.claim)).unpin(&cid).await
            {
                tracing::debug!(%cid, %error, "not unpinned");
            }
        }
        // Last, so that a kill before it leaves nothing pinned for ever: the events tell again.
        self.holdings.update(|holdings| holdings.retain(|held| !dropped.contains(held)))
    }
}
