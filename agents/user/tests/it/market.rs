//! A user knows the adverts of staked workers only.

use std::time::Duration;

use tensorlink_node::Speed;
use tensorlink_node::ports::chain::Role;
use tensorlink_node::ports::{Event, Net};
use tensorlink_node::price::Prices;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::gossip::{WORKERS, WorkerAdvert};
use tensorlink_types::{Address, U256};
use tensorlink_user::HireError;
use tensorlink_user::hire::Asked;

use crate::support::{MemoryNet, identity};
use crate::world::{World, slashed};

impl World {
    async fn advertise(&self, worker: Address) {
        let (prices, engine) = (Prices { sno: 1, eth: None }, String::new());
        let advert = WorkerAdvert { memory: 1, disk: 1, speed: Speed::LEAST, free_lanes: 1, prices, engine };
        let net = MemoryNet { own: worker, hub: self.hub.clone() };
        net.publish(WORKERS, encode("advert", &advert).unwrap()).await.unwrap();
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
