//! The signed logs that two stages exchange after an interval.

use tensorlink_node::ports::Duplex;
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::frame::SignedLog;
use tensorlink_proof::commit::logs::BoundaryLists;
use tensorlink_types::abi::EdgeLog;
use tensorlink_worker::training::boundary::{ExchangeError, Neighbour, Neighbours};
use tensorlink_worker::training::link::{Link, LinkError};
use tokio_util::sync::CancellationToken;

use crate::lanes::world::address;
use crate::support::{CONTRACTS, identity, lane, shards};

/// Two ends of a link between stage 0 (address 1) and stage 1 (address 2).
fn ends(stop: &CancellationToken) -> (Neighbours, Link) {
    let (a, b) = tokio::io::duplex(1 << 16);
    let boxed = |stream| Box::new(stream) as Box<dyn Duplex>;
    let neighbour = Neighbour { address: address(1), link: Link::new(boxed(a), 1024, stop) };
    (Neighbours { next: Some(neighbour), ..Neighbours::default() }, Link::new(boxed(b), 1024, stop))
}

/// What stage 0 says to a log that stage 1 makes of the right one, and sends or shows on chain.
async fn exchange_by(
    chain: bool,
    signer: u8,
    change: impl FnOnce(&mut EdgeLog) + Send + 'static,
) -> Result<(), ExchangeError> {
    let (mut neighbours, mut theirs) = ends(&CancellationToken::new());
    let shard = shards(2).remove(0);
    tokio::task::spawn_blocking(move || {
        let logs: BoundaryLists = logs(&shard);
        let mut log =
            EdgeLog { job: 1, replica: 0, fromStage: 1, toStage: 0, interval: 4, root: logs.roots().fromNext };
        change(&mut log);
        let signature = identity(signer).sign(CONTRACTS.edge_log(&log)).unwrap().to_vec();
        let attestation = SignedLog { log, signature };
        if chain {
            neighbours.awaited.shown(attestation);
        } else {
            theirs.send_log(attestation).unwrap();
        }
        let result = neighbours.exchange_logs(lane(0), 4, &logs, &identity(1), &CONTRACTS).map(|_| ());
        let SignedLog { log, signature } = theirs.receive_log(std::future::pending()).unwrap();
        tensorlink_proof::commit::verify_signer(&signature, CONTRACTS.edge_log(&log), address(0)).unwrap();
        assert_eq!(log.root, logs.roots().toNext);
        result
    })
    .await
    .unwrap()
}

/// Logs of an interval of the first stage, of made-up roots.
fn logs(shard: &Shard) -> BoundaryLists {
    use tensorlink_proof::commit::{Boundary, LogBuilder};
    let mut builder = LogBuilder::new(&shard.program, 1).unwrap();
    for boundary in [Boundary::ToNext, Boundary::FromNext] {
        for micro_batch in 0..shard.program.micro_batches {
            let root = tensorlink_types::TensorRoot(tensorlink_types::B256::with_last_byte(micro_batch as u8));
            builder.record(boundary, 0, micro_batch, root).unwrap();
        }
    }
    builder.finish().unwrap()
}

async fn exchange(signer: u8, change: impl FnOnce(&mut EdgeLog) + Send + 'static) -> Result<(), ExchangeError> {
    exchange_by(false, signer, change).await
}

#[tokio::test]
async fn a_word_that_the_neighbour_shows_on_chain_will_do() {
    exchange_by(true, 2, |_| {}).await.unwrap();
    assert!(matches!(exchange_by(true, 3, |_| {}).await, Err(ExchangeError::Signature { .. })), "another's key");
}

#[tokio::test]
async fn only_the_neighbours_own_signature_on_what_it_sent_is_taken() {
    exchange(2, |_| {}).await.unwrap();
    assert!(matches!(exchange(3, |_| {}).await, Err(ExchangeError::Signature { .. })), "another's key");
    assert!(matches!(exchange(2, |log| log.root.0[0] ^= 1).await, Err(ExchangeError::Different { .. })));
    assert!(matches!(exchange(2, |log| log.interval = 3).await, Err(ExchangeError::Different { .. })), "a replay");
}

#[tokio::test]
async fn malformed_and_oversized_frames_end_the_link() {
    for (bytes, what) in [
        ([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0], "oversized"),
        ([9; 16], "unknown"),
        ([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "an empty hello"),
    ] {
        let (mut theirs, ours) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut theirs, &bytes).await.unwrap();
        let mut link = Link::new(Box::new(ours), 1024, &CancellationToken::new());
        let result = tokio::task::spawn_blocking(move || link.receive_tensor(0, 0)).await.unwrap();
        assert!(matches!(result, Err(LinkError::Frame(_))), "{what}: {result:?}");
    }
}
