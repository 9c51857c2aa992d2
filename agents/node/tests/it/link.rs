//! Bandwidth, measured over links of a known one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tensorlink_node::link::{Link, answer_all};
use tensorlink_node::ports::{Net, Protocol};
use tensorlink_types::Address;
use tokio::sync::mpsc;

use crate::support::net::{Hub, MemoryNet};

const PEER: Address = Address::repeat_byte(2);

/// A net whose peer answers over a link of so many bytes a second each way and such a round trip; and how many bytes it
/// has moved.
async fn net(rate: (f64, f64), round_trip: Duration) -> (MemoryNet, Arc<AtomicU64>) {
    lying(rate, round_trip, |answer| answer).await
}

/// The same whose peer answers with what `change` makes of the right answer.
async fn lying(
    rate: (f64, f64),
    round_trip: Duration,
    change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static,
) -> (MemoryNet, Arc<AtomicU64>) {
    let hub = Arc::<Hub>::default();
    let mut requests = MemoryNet { own: PEER, hub: hub.clone() }.serve(Protocol::Burst).await.unwrap();
    let moved = Arc::<AtomicU64>::default();
    let (count, (to, answers)) = (moved.clone(), mpsc::channel(1));
    tokio::spawn(answer_all(answers));
    tokio::spawn(async move {
        while let Some(mut request) = requests.recv().await {
            let (reply, answer) = tokio::sync::oneshot::channel();
            let (back, length) = (std::mem::replace(&mut request.reply, reply), request.body.len());
            tokio::time::sleep(round_trip + Duration::from_secs_f64(length as f64 / rate.0)).await;
            to.send(request).await.unwrap();
            let Ok(answer) = answer.await else { continue };
            tokio::time::sleep(Duration::from_secs_f64(answer.len() as f64 / rate.1)).await;
            count.fetch_add((length + answer.len()) as u64, Ordering::Relaxed);
            // Who asked may have given up.
            let _ = back.send(change(answer.to_vec()).into());
        }
    });
    (MemoryNet { own: Address::repeat_byte(1), hub }, moved)
}

#[tokio::test]
async fn each_direction_is_measured_and_a_slow_one_with_few_bytes() {
    let (net, moved) = net((1e6, 2e6), Duration::ZERO).await;
    let Link { to, from } = Link::measure(&net, PEER).await.unwrap();
    assert!((0.5e6..1.05e6).contains(&to) && (1e6..2.1e6).contains(&from), "{to} {from}");
    assert!(moved.load(Ordering::Relaxed) < 1 << 20, "the largest burst is for fast links");
}

#[tokio::test]
async fn a_wide_link_to_far_away_is_wide() {
    let (net, moved) = net((20e6, 20e6), Duration::from_millis(60)).await;
    let Link { to, from } = Link::measure(&net, PEER).await.unwrap();
    assert!((10e6..25e6).contains(&to) && (10e6..25e6).contains(&from), "{to} {from}");
    assert!(moved.load(Ordering::Relaxed) > 2 << 20, "the largest bursts are those that tell");
}

#[tokio::test]
async fn a_link_that_carries_nothing_in_time_is_a_slow_one() {
    let (net, _) = net((1e3, 1e9), Duration::ZERO).await;
    let Link { to, from } = Link::measure(&net, PEER).await.unwrap();
    assert!(
        [to, from].iter().all(|rate| (60e3..72e3).contains(rate)),
        "{to} {from}: the first burst is still on its way"
    );
}

#[tokio::test]
async fn of_who_is_not_there_or_gives_something_else_nothing_is_known() {
    let (net, _) = lying((1e9, 1e9), Duration::ZERO, |_| vec![7]).await;
    assert_eq!(Link::measure(&net, PEER).await, None);
    assert_eq!(Link::measure(&net, Address::repeat_byte(3)).await, None);
}
