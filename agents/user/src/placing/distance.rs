//! How far workers are from this node: half of what a short question and its answer take.
//!
//! In serving, this node carries what one stage gives to the next, so that a hop is just the way to it and from it.
//! Between workers that train, such a detour is an upper bound.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use tensorlink_node::Ports;
use tensorlink_node::ports::Protocol;
use tensorlink_types::Address;

/// Questions to each worker, of which the fastest answer counts: the first may open a connection.
const QUESTIONS: usize = 3;
/// Workers that are asked at once.
const AT_ONCE: usize = 32;
/// The longest wait for the first answer: a worker may have to be found, and a connection opened.
const OPENING: Duration = Duration::from_secs(5);
/// The longest wait for another, and what is taken for it of who gives none.
const LONGEST: Duration = Duration::from_secs(1);

/// Seconds to each worker, one way, in their order.
pub(crate) async fn distances(ports: &Ports, workers: &[Address]) -> Vec<f64> {
    let distance = |worker: Address| async move {
        let mut least = LONGEST;
        for number in 0..QUESTIONS {
            let asked = Instant::now();
            // Blocks are for everybody, before there is a job: that of no name is nowhere.
            let answer = ports.net.request(worker, Protocol::Block, Bytes::new());
            let patience = if number == 0 { OPENING } else { LONGEST };
            let Ok(Ok(_)) = tokio::time::timeout(patience, answer).await else { break };
            least = least.min(asked.elapsed());
        }
        least.as_secs_f64() / 2.0
    };
    futures::stream::iter(workers.iter().copied().map(distance)).buffered(AT_ONCE).collect().await
}
