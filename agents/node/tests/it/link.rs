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

/// A net whose peer answers with what `change` makes of the right answer, at so many bytes a second each way; and how
/// many bytes it has had to move.
async fn net(rate: (f64, f64), change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static) -> (MemoryNet, Arc<AtomicU64>) {
    let hub = Arc::<Hub>::default();
    let mut requests = MemoryNet { own: PEER, hub: hub.clone() }.serve(Protocol::Burst).await.unwrap();
    let moved = Arc::<AtomicU64>::default();
    let (count, (to, answers)) = (moved.clone(), mpsc::channel(1));
    tokio::spawn(answer_all(answers));
    tokio::spawn(async move {
        while let Some(mut request) = requests.recv().await {
            let (reply, answer) = tokio::sync::oneshot::channel();
            let (back, length) = (std::mem::replace(&mut request.reply, reply), request.body.len());
            tokio::time::sleep(Duration::from_secs_f64(length as f64 / rate.0)).await;
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
    let (net, moved) = net((1e6, 2e6), |answer| answer).await;
    let Link { to, from } = Link::measure(&net, PEER, Duration::ZERO).await.unwrap();
    assert!((0.5e6..1.05e6).contains(&to) && (1e6..2.1e6).contains(&from), "{to} {from}");
    assert!(moved.load(Ordering::Relaxed) < 1 << 20, "the largest burst is for fast links");
}

#[tokio::test]
async fn a_round_trip_does_not_count() {
    let (net, _) = net((1e6, 1e6), |answer| answer).await;
    let near = Link::measure(&net, PEER, Duration::ZERO).await.unwrap();
    let far = Link::measure(&net, PEER, Duration::from_millis(100)).await.unwrap();
    assert!(far.to > near.to * 1.2, "{near:?} {far:?}");
}

#[tokio::test]
async fn a_link_that_carries_nothing_in_time_is_a_slow_one() {
    let (net, _) = net((1e3, 1e9), |answer| answer).await;
    let Link { to, from } = Link::measure(&net, PEER, Duration::ZERO).await.unwrap();
    assert!((to - 32_768.0).abs() < 1.0 && from < to * 1.01, "{to} {from}: the first burst is still on its way");
}

#[tokio::test]
async fn of_who_is_not_there_or_gives_something_else_nothing_is_known() {
    let (net, _) = net((1e9, 1e9), |_| vec![7]).await;
    assert_eq!(Link::measure(&net, PEER, Duration::ZERO).await, None);
    assert_eq!(Link::measure(&net, Address::repeat_byte(3), Duration::ZERO).await, None);
}
