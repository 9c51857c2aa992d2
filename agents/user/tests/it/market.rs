//! A user knows the adverts of staked workers only.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::Speed;
use tensorlink_node::ports::chain::Role;
use tensorlink_node::ports::{Event, Net};
use tensorlink_node::price::Prices;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::gossip::{WORKERS, WorkerAdvert};
use tensorlink_types::{Address, U256};
use tensorlink_user::hire::Asked;
use tensorlink_user::{HireError, User};
use tokio_util::sync::CancellationToken;

use crate::support::{self, Hasty, Hub, MemoryChain, MemoryNet, identity, job_view};

/// A user, its chain, and what it hears.
struct World {
    user: Arc<User>,
    chain: Arc<MemoryChain>,
    hub: Arc<Hub>,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let (hub, chain) = (Arc::<Hub>::default(), MemoryChain::new(job_view(1, 2), &[], &[]));
        chain.with(|ledger| {
            ledger.follows = true;
            ledger.told = Some(Vec::new());
        });
        let folder = tempfile::tempdir().unwrap();
        let mut ports = support::ports(9, chain.clone(), Arc::default(), hub.clone(), folder.path());
        ports.clock = Arc::new(Hasty);
        let user = User::start(ports, CancellationToken::new()).await.unwrap();
        Self { user, chain, hub, _folder: folder }
    }

    async fn advertise(&self, worker: Address) {
        let (prices, engine) = (Prices { sno: 1, eth: None }, String::new());
        let advert = WorkerAdvert { memory: 1, disk: 1, speed: Speed::LEAST, free_lanes: 1, prices, engine };
        let net = MemoryNet { own: worker, hub: self.hub.clone() };
        net.publish(WORKERS, encode("advert", &advert).unwrap()).await.unwrap();
    }

    /// Tells events of the chain, until the user has heard them: a slash of nobody, which it remembers, is the last.
    async fn tell(&self, events: Vec<Event>) {
        let mut heard = self.user.events();
        let last = slashed(Address::ZERO, heard.borrow().len() as u64);
        self.chain.with(|ledger| events.into_iter().chain([last.clone()]).for_each(|event| ledger.tell(event)));
        heard.wait_for(|events| events.last().is_some_and(|at| at.event == last)).await.unwrap();
    }

    /// Workers to be hired, without waiting for more.
    async fn found(&self) -> usize {
        let anybody = Asked::of_any_tier(0, Address::repeat_byte(9));
        match self.user.find_workers(usize::MAX, anybody, Duration::ZERO).await {
            Err(HireError::TooFew(few)) => few.found,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until so many are. An advert that is heard shows that those before it were, too.
    async fn found_eventually(&self, expected: usize) {
        let heard = async {
            while self.found().await != expected {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap();
    }
}

fn staked(account: Address) -> Event {
    Event::Staked { account, role: Role::Worker, amount: U256::from(10) }
}

fn slashed(account: Address, amount: u64) -> Event {
    let part = U256::ZERO;
    Event::Slashed { account, amount: U256::from(amount), bounty: part, shared: part, harm: part, burned: part }
}

#[tokio::test]
async fn what_was_advertised_without_stake_does_not_count_once_there_is_stake() {
    let world = World::new().await;
    let [early, steady] = [1, 2].map(|n| identity(n).address());
    world.tell(vec![staked(steady)]).await;
    world.advertise(early).await;
    world.advertise(steady).await;
    world.found_eventually(1).await;
    world.tell(vec![staked(early)]).await;
    assert_eq!(world.found().await, 1, "its advert of before is not kept");
    world.advertise(early).await;
    world.found_eventually(2).await;
}

#[tokio::test]
async fn what_a_worker_advertised_is_forgotten_with_its_stake() {
    let world = World::new().await;
    let worker = identity(1).address();
    world.tell(vec![staked(worker)]).await;
    world.advertise(worker).await;
    world.found_eventually(1).await;
    world.tell(vec![slashed(worker, 10), staked(worker)]).await;
    assert_eq!(world.found().await, 0);
}
