//! An interval is written to disk while the next one is computed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::{Store, StoreError};
use tokio::sync::Semaphore;

use crate::lanes::world::{World, claims_of, until};
use crate::support::{Press, Pressed};

const LIMIT: Duration = Duration::from_secs(20);

/// Writes a file for each permit, and fails once it gets no more.
struct Slow(Semaphore);

/// A store that is so slow, over the world's.
fn slow(world: &World) -> Arc<Pressed<Slow>> {
    Arc::new(Pressed { press: Arc::new(Slow(Semaphore::new(0))), store: world.store.clone() })
}

#[async_trait]
impl Press for Slow {
    async fn put(&self, store: &dyn Store, content: Bytes) -> Result<Cid, StoreError> {
        let full = StoreError::Full { needed: content.len() as u64, budget: 0 };
        self.0.acquire().await.map_err(|_| full)?.forget();
        store.put(content).await
    }
}

/// Its neighbour can only have signed the second interval when it has received all of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_interval_is_computed_meanwhile_and_nothing_of_it_is_signed() {
    let expected = World::new(2, 4).train().await;
    let world = World::new(2, 4);
    let slow = slow(&world);
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

    slow.press.0.add_permits(100);
    tokio::time::timeout(LIMIT, first.task).await.unwrap().unwrap();
    tokio::time::timeout(LIMIT, second.task).await.unwrap().unwrap();
    assert_eq!([claims_of(&first.log), claims_of(&second.log)], [expected[0].clone(), expected[1].clone()]);
}

/// What was computed beside the interval that was not written is computed again with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_meanwhile_costs_time_and_nothing_else() {
    let expected = World::new(2, 4).train().await;
    let world = World::new(2, 4);
    let full = slow(&world);
    // The first state, what was received, the next state: one interval.
    full.press.0.add_permits(3);
    let (first, second) = (world.start(0).await, world.start_with(1, full.clone()).await);
    tokio::time::timeout(LIMIT, until(&second.log, 1)).await.unwrap();
    full.press.0.close();
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
