//! Operators have names where the job's files can be had: from this machine's blocks, or from a peer.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cid::Cid;
use tensorlink::config::Config;
use tensorlink::dispute::files;
use tensorlink::node::Node;
use tensorlink_node::ports::Chain;
use tensorlink_node::shard::{Shard, ShardSource};
use tensorlink_node::wire::encode;
use tensorlink_node::wire::manifest::{MANIFEST_VERSION, Manifest, StageFiles, TrainingFiles};
use tensorlink_proof::commit::ProgramCommitment;
use tokio_util::sync::CancellationToken;

use crate::support::{JOB, MemoryChain, identity, job_view, shards};

/// Who posted the job.
const USER: u8 = 0x55;
const DISK: u64 = 1 << 30;
const LIMIT: Duration = Duration::from_secs(20);

fn config(folder: &Path, bootstrap: &[String]) -> Config {
    Config { data_dir: folder.to_owned(), bootstrap: bootstrap.to_vec(), ..Config::defaults().unwrap() }
}

/// Puts a stage's program, and what names it, into a node's store.
async fn publish(node: &Node, shard: &Shard) -> Cid {
    let store = &node.ports.store;
    let program = store.put(encode("program", &**shard.program).unwrap()).await.unwrap().to_string();
    let (state, notes) = (program.clone(), program.clone());
    let files = StageFiles::Training(TrainingFiles { program, state, constants: vec![], notes });
    let manifest =
        Manifest { version: MANIFEST_VERSION, name: "test".into(), stages: vec![files], bounds: Default::default() };
    store.put(serde_json::to_vec(&manifest).unwrap().into()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_comes_from_own_blocks_or_from_a_peer_or_it_is_said_that_nobody_has_it() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shards = shards(1);
    let chain: Arc<dyn Chain> = MemoryChain::new(job_view(1, 2), &[identity(USER).address()], &shards);
    let running = CancellationToken::new();
    let user = Node::join(&config(own.path(), &[]), (identity(USER), chain.clone()), DISK, &running).await.unwrap();
    let manifest = publish(&user, &shards[0]).await;
    let addresses = user.net.listen_addresses().await.unwrap();
    let bootstrap: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    assert!(!bootstrap.is_empty());

    let root = ProgramCommitment::new(&shards[0].program).unwrap().root();
    let shutdown = CancellationToken::new();
    let fetch = async |folder: &Path, bootstrap: &[String]| {
        let holders = vec![identity(USER).address()];
        let source = ShardSource { job: JOB, stage: 0, manifest, holders };
        let nobody = (identity(0x66), chain.clone());
        files::program(&config(folder, bootstrap), nobody, Ok((source, (0, root))), &shutdown).await
    };
    let names = &shards[0].program.names;
    assert_eq!(fetch(other.path(), &bootstrap).await.unwrap().names, *names, "from a peer");
    assert_eq!(fetch(own.path(), &bootstrap).await.unwrap().names, *names, "this machine's blocks are in use");
    let error = fetch(other.path(), &[]).await.unwrap_err().to_string();
    assert!(error.contains("--bootstrap") && error.contains("--ipfs"), "{error}");
    assert!(other.path().read_dir().unwrap().next().is_none(), "nothing is left behind");

    user.net.shutdown().await;
    running.cancel();
    drop(user);
    // The blocks are free once the last of the node's tasks has ended.
    let started = Instant::now();
    while !fetch(own.path(), &[]).await.is_ok_and(|program| program.names == *names) {
        assert!(started.elapsed() < LIMIT, "this machine's blocks are not read");
    }
}
