//! How far workers are from this node: half of what a short question and its answer take.
//!
//! In serving, this node carries what one stage gives to the next, so that a hop is just the way to it and from it.
//! Between workers that train, such a detour is an upper bound.

use std::time::{Duration, Instant};

use futures::StreamExt;
use tensorlink_node::Ports;
use tensorlink_node::ports::Protocol;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::rpc::Request;
use tensorlink_types::{Address, JobId};

/// Questions to each worker, of which the fastest answer counts: the first may open a connection.
const QUESTIONS: usize = 3;
/// Workers that are asked at once.
const AT_ONCE: usize = 32;
/// The longest wait for an answer, and the distance of who does not give one.
const LONGEST: Duration = Duration::from_millis(500);

/// Seconds to each worker, one way, in their order.
pub(crate) async fn distances(ports: &Ports, workers: &[Address]) -> Vec<f64> {
    // No job has this number: the answer is short.
    let Ok(question) = encode("request", &Request::Ready(JobId(0))) else { return vec![0.0; workers.len()] };
    let distance = |worker: Address| {
        let question = question.clone();
        async move {
            let mut least = LONGEST;
            for _ in 0..QUESTIONS {
                let asked = Instant::now();
                let answer = ports.net.request(worker, Protocol::Rpc, question.clone());
                if let Ok(Ok(_)) = tokio::time::timeout(LONGEST, answer).await {
                    least = least.min(asked.elapsed());
                }
            }
            least.as_secs_f64() / 2.0
        }
    };
    futures::stream::iter(workers.iter().copied().map(distance)).buffered(AT_ONCE).collect().await
}
