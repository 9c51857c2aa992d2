//! How statements are asked for and answered.
//!
//! A question is the workers' addresses; the answer, what is known of them. Both postcard.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tensorlink_types::Address;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::statement::SignedSpeed;
use super::table::Observed;
use crate::ports::{Clock, Incoming, Net, Protocol};
use crate::wire::{Malformed, decode, encode};

/// Most workers that one question is about.
const AT_ONCE: usize = 256;
/// Nodes that are asked, answers that are enough, and the longest wait for them.
const ASKED: usize = 8;
const ENOUGH: usize = 3;
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks nodes what they know of workers, all at the same time, until a few have answered. What they say is to be
/// checked: any of them may have been lied to, or lie.
pub async fn ask(net: &dyn Net, nodes: &[Address], workers: &[Address]) -> Vec<SignedSpeed> {
    let workers = &workers[..workers.len().min(AT_ONCE)];
    let Ok(question) = encode("workers", &workers) else { return Vec::new() };
    let ask = |node: &Address| {
        let (node, question) = (*node, question.clone());
        async move {
            let answer = net.request(node, Protocol::Observed, question).await.map_err(|error| error.to_string());
            let told = answer
                .and_then(|answer| decode::<Vec<SignedSpeed>>("speeds", &answer).map_err(|error| error.to_string()));
            told.inspect_err(|error| tracing::debug!(%node, "tells no speeds: {error}")).ok()
        }
    };
    let mut answers: FuturesUnordered<_> = nodes.iter().take(ASKED).map(ask).collect();
    let mut told = Vec::new();
    let gather = async {
        let mut enough = ENOUGH;
        while enough > 0
            && let Some(answer) = answers.next().await
        {
            if let Some(statements) = answer {
                told.extend(statements);
                enough = enough.saturating_sub(1);
            }
        }
    };
    // What came until then counts.
    let _ = timeout(PATIENCE, gather).await;
    told
}

/// Answers such questions, as long as they are handed to it.
pub(super) async fn answer_all(mut requests: mpsc::Receiver<Incoming>, observed: Arc<Observed>, clock: Arc<dyn Clock>) {
    while let Some(Incoming { peer, body, reply }) = requests.recv().await {
        match answer(&body, &observed, clock.now()) {
            // Who asked may have given up.
            Ok(answer) => drop(reply.send(answer)),
            Err(error) => tracing::debug!(%peer, %error, "a question about speeds"),
        }
    }
}

fn answer(question: &[u8], observed: &Observed, now: u64) -> Result<bytes::Bytes, Malformed> {
    let workers: Vec<Address> = decode("workers", question)?;
    let workers = workers.into_iter().take(AT_ONCE);
    let told: Vec<SignedSpeed> = workers.flat_map(|worker| observed.of(worker, now)).map(|told| told.signed).collect();
    encode("speeds", &told)
}
