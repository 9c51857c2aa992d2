//! A keeper attests just what it has, keeps it through a restart, and as long as it may be asked for.

use std::sync::Arc;
use std::time::Duration;

use cid::Cid;
use tensorlink_node::budget::Budget;
use tensorlink_node::custody::{Asked, KeepError};
use tensorlink_node::interval::state_root_of;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Chain, Event, Owner, Store, StoreError};
use tensorlink_node::{Keeper, files};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::recover;
use tensorlink_types::abi::{Claim, JobTerms};
use tensorlink_types::{Address, B256, ClaimId, JobId, U256};

use crate::support::{CONTRACTS, Hub, JOB, MemoryChain, MemoryStore, identity, job_view, lane, ports, publish, shards};

const KEEPER: u8 = 8;
const WORKER: u8 = 7;
const COMMITTED_AT: u64 = 200;

struct World {
    chain: Arc<MemoryChain>,
    store: Arc<MemoryStore>,
    state: Vec<Tensor>,
    manifest: Cid,
    folder: tempfile::TempDir,
}

/// A job of two stages; the state that all claims of the first end in is the one it begins with.
async fn world() -> World {
    let shards = shards(2);
    let store = Arc::new(MemoryStore::default());
    let (manifest, _) = publish(&store, &shards).await;
    let workers = [identity(WORKER).address(), identity(KEEPER).address()];
    let chain = MemoryChain::new(job_view(2, 4), &workers, &shards);
    let state = shards[0].initial_state.to_vec();
    World { chain, store, state, manifest, folder: tempfile::tempdir().unwrap() }
}

impl World {
    /// The keeper as a process that just started finds it.
    fn keeper(&self, memory: u64) -> Keeper {
        let hub = Arc::new(Hub::default());
        let ports = ports(KEEPER, self.chain.clone(), self.store.clone(), hub, self.folder.path());
        Keeper::open(ports, Budget::new(memory)).unwrap()
    }

    /// The same, after it has heard of the job.
    async fn told(&self) -> Keeper {
        let keeper = self.keeper(1 << 30);
        let terms = JobTerms { stages: 2, replicas: 1, ..JobTerms::default() };
        let posted = Event::JobPosted { job: JOB, user: Address::ZERO, deposit: U256::ZERO, terms };
        keeper.apply(&posted).await.unwrap();
        keeper
    }

    fn claim(&self, interval: u32) -> Claim {
        let (job, stage, replica, state) = (JOB.0, 0, 0, state_root_of(&self.state));
        Claim { job, stage, replica, interval, parentState: state, newState: state, io: B256::ZERO }
    }

    /// What is asked about a claim that is on chain.
    async fn asked(&self, interval: u32) -> Asked {
        let claim = self.claim(interval);
        self.chain.with(|ledger| ledger.claims.insert((0, interval), (claim.clone(), COMMITTED_AT)));
        let state = self.store.put(files::join(&self.state).into()).await.unwrap();
        Asked { claim, committed_at: COMMITTED_AT, state, manifest: self.manifest }
    }

    fn id(&self, interval: u32) -> ClaimId {
        CONTRACTS.claim_id(&self.claim(interval))
    }
}

#[tokio::test]
async fn the_attestation_is_for_the_claim_and_the_state_is_there_after_a_restart() {
    let world = world().await;
    let asked = world.asked(0).await;
    let worker = identity(WORKER).address();
    let attestation = world.keeper(1 << 30).keep(&asked, worker).await.unwrap();
    assert_eq!(recover(&attestation, CONTRACTS.holding(world.id(0))), Ok(identity(KEEPER).address()));

    let keeper = world.keeper(1 << 30);
    assert_eq!(keeper.file_of(world.id(0)), Some(asked.state));
    assert_eq!(keeper.tensors_of(world.id(0)).await.unwrap(), world.state);
    assert_eq!(keeper.keep(&asked, worker).await.unwrap(), attestation, "asked again, it says the same");
    assert!(matches!(keeper.tensors_of(world.id(1)).await, Err(KeepError::Unknown)));
}

#[tokio::test]
async fn no_word_is_given_for_what_is_not_there() {
    let world = world().await;
    let (good, worker) = (world.asked(0).await, identity(WORKER).address());
    let keeper = world.keeper(1 << 30);
    let stranger = identity(9).address();
    assert!(matches!(keeper.keep(&good, stranger).await, Err(KeepError::Unknown)), "another's claim");
    let moved = Asked { committed_at: COMMITTED_AT + 1, ..good.clone() };
    assert!(matches!(keeper.keep(&moved, worker).await, Err(KeepError::Unknown)), "not on chain");
    let never = Asked { claim: world.claim(1), ..good.clone() };
    assert!(matches!(keeper.keep(&never, worker).await, Err(KeepError::Unknown)), "never claimed");

    let length = files::join(&world.state).len();
    let zeros = world.store.elsewhere(vec![0; length].into());
    let other = Asked { state: zeros, ..good.clone() };
    assert!(matches!(keeper.keep(&other, worker).await, Err(KeepError::OtherState)));
    let short = Asked { state: world.store.put(vec![0; length - 1].into()).await.unwrap(), ..good.clone() };
    assert!(matches!(world.keeper(1 << 30).keep(&short, worker).await, Err(KeepError::File(_))));
    let long = Asked { state: world.store.put(vec![0; length + 1].into()).await.unwrap(), ..good.clone() };
    assert!(matches!(
        world.keeper(1 << 30).keep(&long, worker).await,
        Err(KeepError::Store(StoreError::TooLarge { .. }))
    ));
    let poor = world.keeper(100);
    assert!(matches!(poor.keep(&good, worker).await, Err(KeepError::Shard(_) | KeepError::Memory { .. })));
    assert_eq!(keeper.file_of(world.id(0)), None, "nothing was kept");
    assert!(!world.store.has(&zeros).await.unwrap(), "what was fetched for nothing takes no place");
    assert!(world.store.has(&good.state).await.unwrap(), "it was here before");

    world.chain.with(|ledger| ledger.lanes.get_mut(&lane(0)).unwrap().finalized = 1);
    assert!(matches!(world.keeper(1 << 30).keep(&good, worker).await, Err(KeepError::Final)));
}

/// Or its worker could have one file after another fetched for nothing, in the places of others.
#[tokio::test]
async fn a_lane_that_gave_a_wrong_file_waits_and_others_do_not() {
    let world = world().await;
    let (keeper, worker) = (world.keeper(1 << 30), identity(WORKER).address());
    let good = [world.asked(0).await, world.asked(1).await];
    let zeros = world.store.elsewhere(vec![0; files::join(&world.state).len()].into());
    let refused = async |good: &Asked| {
        let wrong = Asked { state: zeros, ..good.clone() };
        assert!(matches!(keeper.keep(&wrong, worker).await, Err(KeepError::OtherState)));
        let waits = keeper.keep(good, worker).await.unwrap_err();
        assert!(matches!(waits, KeepError::Paused(59..=61)), "{waits}");
    };
    refused(&good[0]).await;
    let claim = Claim { stage: 1, ..world.claim(0) };
    world.chain.with(|ledger| ledger.claims.insert((1, 0), (claim.clone(), COMMITTED_AT)));
    let of_next = Asked { claim, ..good[0].clone() };
    let other = keeper.keep(&of_next, identity(KEEPER).address()).await.unwrap_err();
    assert!(matches!(other, KeepError::OtherState | KeepError::File(_) | KeepError::Store(_)), "fetched: {other}");
    // With its job, of which nothing is kept yet.
    keeper.apply(&Event::JobSettled { job: JOB, refund: U256::ZERO }).await.unwrap();
    keeper.keep(&good[0], worker).await.unwrap();
    refused(&good[1]).await;
    keeper.keep(&good[0], worker).await.unwrap();
    mirrored(&keeper, &good[1], worker).await.unwrap();
    keeper.keep(&good[1], worker).await.unwrap();
}

#[tokio::test]
async fn no_more_states_are_kept_of_a_lane_than_can_be_until_they_are_final() {
    let world = world().await;
    let (keeper, worker) = (world.keeper(1 << 30), identity(WORKER).address());
    for interval in 0..8 {
        keeper.keep(&world.asked(interval).await, worker).await.unwrap();
    }
    let next = world.asked(8).await;
    assert!(matches!(keeper.keep(&next, worker).await, Err(KeepError::Busy)));
    world.chain.with(|ledger| ledger.lanes.get_mut(&lane(0)).unwrap().finalized = 3);
    keeper.keep(&next, worker).await.unwrap();
}

#[tokio::test]
async fn of_each_lane_the_newest_state_is_mirrored() {
    let world = world().await;
    let (keeper, worker) = (world.keeper(1 << 30), identity(WORKER).address());
    let asked = [world.asked(0).await, world.asked(1).await, world.asked(2).await, world.asked(3).await];
    let here = |keeper: &Keeper| [0, 1, 2, 3].map(|interval| keeper.file_of(world.id(interval)).is_some());
    for one in &asked[..3] {
        mirrored(&keeper, one, worker).await.unwrap();
    }
    // Nothing is claimed by all stages yet: the first will be.
    assert_eq!(here(&keeper), [true, false, true, false]);
    assert!(matches!(mirrored(&keeper, &asked[1], worker).await, Err(KeepError::Older)));
    let stranger = identity(9).address();
    assert!(matches!(keeper.mirror(&asked[3], stranger).await, Err(KeepError::Unknown)), "another's claim");
    let zeros = world.store.elsewhere(vec![0; files::join(&world.state).len()].into());
    let unlike = Asked { state: zeros, ..asked[3].clone() };
    assert!(matches!(mirrored(&keeper, &unlike, worker).await, Err(KeepError::OtherState)));
    assert_eq!(here(&keeper), [true, false, true, false], "what is not mirrored takes the place of none");

    // What is attested stays.
    let keeper = world.keeper(1 << 30);
    let attestation = keeper.keep(&asked[2], worker).await.unwrap();
    assert_eq!(recover(&attestation, CONTRACTS.holding(world.id(2))), Ok(identity(KEEPER).address()));
    mirrored(&keeper, &asked[3], worker).await.unwrap();
    assert_eq!(here(&keeper), [true, false, true, true]);
    let owners = world.store.owners_of(&asked[3].state);
    let expected = [0, 2, 3].map(|interval| Owner::Holding(world.id(interval)));
    assert!(owners.len() == 3 && expected.iter().all(|owner| owners.contains(owner)), "{owners:?}");
    keeper.apply(&Event::JobSettled { job: JOB, refund: U256::ZERO }).await.unwrap();
    assert_eq!(here(&keeper), [true, false, true, true], "while there is room for it");
}

/// As the keeper says, once it has time for it.
async fn mirrored(keeper: &Keeper, asked: &Asked, worker: Address) -> Result<(), KeepError> {
    for _ in 0..600 {
        match keeper.mirror(asked, worker).await {
            Err(KeepError::Busy | KeepError::Paused(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            other => return other,
        }
    }
    Err(KeepError::Busy)
}

/// A stage may be ahead of the others, and its job goes on from what all have claimed.
#[tokio::test]
async fn of_what_all_stages_have_claimed_the_newest_stays_mirrored() {
    let world = world().await;
    let (keeper, worker) = (world.told().await, identity(WORKER).address());
    let claimed = async |stage: u16, interval: u32| {
        let claim = Claim { stage, ..world.claim(interval) };
        let id = CONTRACTS.claim_id(&claim);
        keeper.apply(&Event::ClaimCommitted { id, claim, committed_at: COMMITTED_AT }).await.unwrap();
    };
    let here = || [0, 1, 2, 3].map(|interval| keeper.file_of(world.id(interval)).is_some());
    for (interval, expected) in [
        (0, [true, false, false, false]),
        (1, [true, true, false, false]),
        (2, [true, true, true, false]),
        (3, [true, true, false, true]),
    ] {
        claimed(0, interval).await;
        mirrored(&keeper, &world.asked(interval).await, worker).await.unwrap();
        if interval == 0 {
            claimed(1, 0).await;
        }
        assert_eq!(here(), expected, "the other stage has claimed the first interval alone");
    }
    claimed(1, 1).await;
    mirrored(&keeper, &world.asked(3).await, worker).await.unwrap();
    assert_eq!(here(), [false, true, false, true], "the job would go on from the second");
    for interval in 2..4 {
        claimed(1, interval).await;
    }
    mirrored(&keeper, &world.asked(3).await, worker).await.unwrap();
    assert_eq!(here(), [false, false, false, true]);
}

/// A kill may leave a record of a mirrored state whose file is gone.
#[tokio::test]
async fn no_word_is_given_for_a_mirrored_state_that_is_gone() {
    let world = world().await;
    let (keeper, worker) = (world.keeper(1 << 30), identity(WORKER).address());
    let asked = world.asked(0).await;
    mirrored(&keeper, &asked, worker).await.unwrap();
    for owner in world.store.owners_of(&asked.state) {
        world.store.of(owner).unpin(&asked.state).await.unwrap();
    }
    assert!(!world.store.has(&asked.state).await.unwrap());
    let keeper = world.keeper(1 << 30);
    keeper.take_stock().await;
    keeper.keep(&asked, worker).await.unwrap();
    assert_eq!(world.store.owners_of(&asked.state), [Owner::Holding(world.id(0))], "it was fetched anew");
}

/// Equal files are one file: a replica's state is that of the replica it keeps for.
#[tokio::test]
async fn a_file_that_others_need_outlives_its_holding() {
    let world = world().await;
    let (keeper, worker) = (world.told().await, identity(WORKER).address());
    keeper.apply(&Event::ClaimsFinalized { lane: lane(1), from: 0, to: 5 }).await.unwrap();
    let asked = world.asked(0).await;
    keeper.keep(&asked, worker).await.unwrap();
    assert_eq!(world.store.owners_of(&asked.state), [Owner::Holding(world.id(0))]);
    let other = world.store.of(Owner::Lane(lane(1)));
    assert!(other.own(&asked.state).await.unwrap());
    let ended = Event::ClaimsFinalized { lane: lane(0), from: 0, to: 5 };
    keeper.apply(&ended).await.unwrap();
    assert_eq!((keeper.file_of(world.id(0)), world.store.has(&asked.state).await.unwrap()), (None, true));
    other.unpin(&asked.state).await.unwrap();
    let later = world.asked(1).await;
    keeper.keep(&later, worker).await.unwrap();
    keeper.apply(&ended).await.unwrap();
    assert_eq!((keeper.file_of(world.id(1)), world.store.has(&later.state).await.unwrap()), (None, false));
}

#[tokio::test]
async fn a_state_is_forgotten_when_a_later_one_is_final_in_all_stages_and_the_last_is_kept_for_the_user() {
    let world = world().await;
    let (keeper, worker) = (world.told().await, identity(WORKER).address());
    for interval in 0..3 {
        keeper.keep(&world.asked(interval).await, worker).await.unwrap();
    }
    let held = || (0..3).map(|interval| keeper.file_of(world.id(interval)).is_some()).collect::<Vec<_>>();
    keeper.apply(&Event::ClaimsFinalized { lane: lane(0), from: 0, to: 3 }).await.unwrap();
    assert_eq!(held(), [true; 3], "nothing is final in the other stage: from there the job would go on");
    keeper.apply(&Event::ClaimsFinalized { lane: lane(1), from: 0, to: 2 }).await.unwrap();
    assert_eq!(held(), [false, true, true]);
    keeper.apply(&Event::ClaimsFinalized { lane: lane(1), from: 2, to: 3 }).await.unwrap();
    keeper.apply(&Event::JobSettled { job: JOB, refund: U256::ZERO }).await.unwrap();
    keeper.apply(&Event::JobSettled { job: JobId(99), refund: U256::ZERO }).await.unwrap();
    assert_eq!(held(), [false, false, true]);
    assert!(world.store.owners().await.unwrap().is_empty(), "nothing takes a running job's room any more");
    assert_eq!(world.keeper(1 << 30).file_of(world.id(2)), keeper.file_of(world.id(2)), "on disk as well");
}

/// A process that is killed after the events were cut, and before it took back what it wrote down of them.
#[tokio::test]
async fn a_settlement_that_was_undone_is_taken_back_at_the_next_start() {
    let world = world().await;
    let (keeper, worker) = (world.told().await, identity(WORKER).address());
    let asked = world.asked(0).await;
    keeper.keep(&asked, worker).await.unwrap();
    let settled = Event::JobSettled { job: JOB, refund: U256::ZERO };
    keeper.apply(&settled).await.unwrap();
    assert!(world.store.owners().await.unwrap().is_empty());
    // A store with room still has what nobody needs; that of these tests has not.
    world.asked(0).await;
    world.chain.with(|ledger| ledger.undone = 1);
    let start = async || {
        let keeper = world.keeper(1 << 30);
        keeper.take_back(world.chain.times_undone().unwrap()).await.unwrap();
        keeper.take_stock().await;
        keeper
    };
    let keeper = start().await;
    assert_eq!(world.store.owners_of(&asked.state), [Owner::Holding(world.id(0))], "it is needed again");
    keeper.apply(&settled).await.unwrap();
    start().await;
    assert!(world.store.owners().await.unwrap().is_empty(), "taken back once");
    world.chain.with(|ledger| (ledger.undone, ledger.job.state) = (2, JobState::Settled));
    start().await;
    assert!(world.store.owners().await.unwrap().is_empty(), "what is settled all the same stays so");
}
