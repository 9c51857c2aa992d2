//! An interval is written to disk while the next one is computed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::{Owner, Store, StoreError};
use tensorlink_types::Address;
use tokio::sync::Semaphore;

use crate::lanes::world::{World, claims_of, until};

const LIMIT: Duration = Duration::from_secs(20);

/// A store that writes a file for each permit, and fails once it gets no more.
struct Slow {
    store: Arc<dyn Store>,
    permits: Arc<Semaphore>,
}

impl Slow {
    fn over(world: &World) -> Arc<Self> {
        Arc::new(Self { store: world.store.clone(), permits: Arc::new(Semaphore::new(0)) })
    }
}

#[async_trait]
impl Store for Slow {
    fn of(&self, owner: Owner) -> Arc<dyn Store> {
        Arc::new(Self { store: self.store.of(owner), permits: self.permits.clone() })
    }

    async fn put(&self, content: Bytes) -> Result<Cid, StoreError> {
        let full = StoreError::Full { needed: content.len() as u64, budget: 0 };
        self.permits.acquire().await.map_err(|_| full)?.forget();
        self.store.put(content).await
    }

    async fn get(&self, cid: &Cid, holders: &[Address], limit: u64) -> Result<Bytes, StoreError> {
        self.store.get(cid, holders, limit).await
    }

    async fn has(&self, cid: &Cid) -> Result<bool, StoreError> {
        self.store.has(cid).await
    }

    async fn own(&self, cid: &Cid) -> Result<bool, StoreError> {
        self.store.own(cid).await
    }

    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError> {
        self.store.unpin(cid).await
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.store.release().await
    }

    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.store.owners().await
    }

    async fn room(&self) -> Result<u64, StoreError> {
        self.store.room().await
    }
}

/// Its neighbour can only have signed the second interval when it has received all of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_interval_is_computed_meanwhile_and_nothing_of_it_is_signed() {
    let expected = World::new(2, 4).train().await;
    let world = World::new(2, 4);
    let slow = Slow::over(&world);
    let (first, second) = (world.start(0).await, world.start_with(1, slow.clone()).await);
    let mut changes = first.log.watch();
    let signs = async {
        while first.log.get().promised.as_ref().is_none_or(|(interval, _)| *interval != 1) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(LIMIT, signs).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let record = second.log.get();
    assert_eq!((record.next, record.promised.map(|(interval, _)| interval)), (0, Some(0)));
    assert_eq!(first.log.get().next, 1, "it has no attestation for its second interval, and so has not done it");

    slow.permits.add_permits(100);
    tokio::time::timeout(LIMIT, first.task).await.unwrap().unwrap();
    tokio::time::timeout(LIMIT, second.task).await.unwrap().unwrap();
    assert_eq!([claims_of(&first.log), claims_of(&second.log)], [expected[0].clone(), expected[1].clone()]);
}

/// What was computed beside the interval that was not written is computed again with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_meanwhile_costs_time_and_nothing_else() {
    let expected = World::new(2, 4).train().await;
    let world = World::new(2, 4);
    let full = Slow::over(&world);
    // The first state, what was received, the next state: one interval.
    full.permits.add_permits(3);
    let (first, second) = (world.start(0).await, world.start_with(1, full.clone()).await);
    tokio::time::timeout(LIMIT, until(&second.log, 1)).await.unwrap();
    full.permits.close();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((first.log.get().next.min(2), second.log.get().next), (2, 1));
    assert!(!second.task.is_finished(), "it waits for the disk");
    second.stop.cancel();
    tokio::time::timeout(LIMIT, second.task).await.unwrap().unwrap();

    let second = world.start(1).await;
    tokio::time::timeout(LIMIT, first.task).await.unwrap().unwrap();
    tokio::time::timeout(LIMIT, second.task).await.unwrap().unwrap();
    assert_eq!([claims_of(&first.log), claims_of(&second.log)], [expected[0].clone(), expected[1].clone()]);
}
