//! A keeper gives its word for just what it has, keeps it through a restart, and as long as it may be asked for.

#[path = "support/mod.rs"]
mod support;

use std::sync::Arc;

use cid::Cid;
use support::{CONTRACTS, Hub, JOB, MemoryChain, MemoryStore, identity, job_view, lane, ports, publish, shards};
use tensorlink_node::custody::{Asked, KeepError};
use tensorlink_node::interval::state_root_of;
use tensorlink_node::ports::{Event, Store};
use tensorlink_node::{Keeper, files};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::recover;
use tensorlink_types::abi::Claim;
use tensorlink_types::{B256, ClaimId, JobId, U256};

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
        Keeper::open(ports, memory).unwrap()
    }

    fn claim(&self, interval: u32) -> Claim {
        let newState = state_root_of(&self.state);
        let parentState = if interval == 0 { newState } else { B256::ZERO };
        Claim { job: JOB.0, stage: 0, replica: 0, interval, parentState, newState, io: B256::ZERO }
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
async fn the_word_is_for_the_claim_and_the_state_is_there_after_a_restart() {
    let world = world().await;
    let asked = world.asked(0).await;
    let worker = identity(WORKER).address();
    let word = world.keeper(1 << 30).keep(&asked, worker).await.unwrap();
    assert_eq!(recover(&word, CONTRACTS.holding(world.id(0))), Ok(identity(KEEPER).address()));

    let keeper = world.keeper(1 << 30);
    assert_eq!(keeper.file_of(world.id(0)), Some(asked.state));
    assert_eq!(keeper.tensors_of(world.id(0)).await.unwrap(), world.state);
    assert_eq!(keeper.keep(&asked, worker).await.unwrap(), word, "asked again, it says the same");
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
    let zeros = world.store.put(vec![0; length].into()).await.unwrap();
    let other = Asked { state: zeros, ..good.clone() };
    assert!(matches!(keeper.keep(&other, worker).await, Err(KeepError::OtherState)));
    let short = Asked { state: world.store.put(vec![0; length - 1].into()).await.unwrap(), ..good.clone() };
    assert!(matches!(keeper.keep(&short, worker).await, Err(KeepError::File(_))));
    let long = Asked { state: world.store.put(vec![0; length + 1].into()).await.unwrap(), ..good.clone() };
    assert!(matches!(keeper.keep(&long, worker).await, Err(KeepError::Store(_))));
    let poor = world.keeper(100);
    assert!(matches!(poor.keep(&good, worker).await, Err(KeepError::Shard(_) | KeepError::Memory { .. })));
    assert_eq!(keeper.file_of(world.id(0)), None, "nothing was kept");
}

#[tokio::test]
async fn a_state_is_forgotten_when_a_later_one_is_final_and_the_last_is_kept_for_the_user() {
    let world = world().await;
    let (keeper, worker) = (world.keeper(1 << 30), identity(WORKER).address());
    for interval in 0..3 {
        keeper.keep(&world.asked(interval).await, worker).await.unwrap();
    }
    let held = || (0..3).map(|interval| keeper.file_of(world.id(interval)).is_some()).collect::<Vec<_>>();
    keeper.apply(&Event::ClaimsFinalized { lane: lane(1), from: 0, to: 3 }).await.unwrap();
    assert_eq!(held(), [true; 3], "another lane's");
    keeper.apply(&Event::ClaimsFinalized { lane: lane(0), from: 0, to: 2 }).await.unwrap();
    assert_eq!(held(), [false, true, true]);
    keeper.apply(&Event::ClaimsFinalized { lane: lane(0), from: 2, to: 3 }).await.unwrap();
    keeper.apply(&Event::JobSettled { job: JOB, refund: U256::ZERO }).await.unwrap();
    keeper.apply(&Event::JobSettled { job: JobId(99), refund: U256::ZERO }).await.unwrap();
    assert_eq!(held(), [false, false, true]);
    assert_eq!(world.keeper(1 << 30).file_of(world.id(2)), keeper.file_of(world.id(2)), "on disk as well");
}
