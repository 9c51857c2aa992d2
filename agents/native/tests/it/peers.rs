//! A user and its workers as nodes of their own, over libp2p.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tensorlink_native::driver::Around;
use tensorlink_native::task::state_bytes;
use tensorlink_native::{
    Driver, Floats, Host, Interval, Listed, Order, Precision, Remote, Tolerances, Worker, WorkerError, distance,
};
use tensorlink_net::{Identity, Libp2pNet, Multiaddr, NetConfig};
use tensorlink_node::Journal;
use tensorlink_node::ports::{Net, NetError, Store, SystemClock};
use tensorlink_store::{Content, Embedded};
use tensorlink_types::Address;
use tokio_util::sync::CancellationToken;

use crate::support::{Machine, task};

const DISK: u64 = 64 << 20;

struct Node {
    net: Arc<Libp2pNet>,
    store: Arc<dyn Store>,
    _folder: tempfile::TempDir,
}

impl Node {
    async fn start(n: u8, bootstrap: Vec<Multiaddr>) -> Self {
        let listen = vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()];
        let config = NetConfig { listen, bootstrap, ..NetConfig::default() };
        let net = Arc::new(Libp2pNet::start(Identity::from_secret([n; 32]).unwrap(), config).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let blocks = Embedded::open(folder.path(), DISK).unwrap();
        let store = Arc::new(Content::start(blocks, net.clone(), CancellationToken::new()).await.unwrap());
        Self { net, store, _folder: folder }
    }

    /// Works for a user.
    async fn work(n: u8, user: Address, machine: Arc<Machine>) -> Self {
        let node = Self::start(n, Vec::new()).await;
        let host = Host::new(node.store.clone(), machine, Listed([user].into()));
        let net = node.net.clone();
        tokio::spawn(async move { host.serve(net.as_ref(), CancellationToken::new()).await });
        node
    }

    fn remote(&self, worker: Address) -> Arc<Remote> {
        Arc::new(Remote { address: worker, net: self.net.clone(), clock: Arc::new(SystemClock) })
    }
}

fn account(n: u8) -> Address {
    Identity::from_secret([n; 32]).unwrap().address()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_trains_on_the_workers_it_names_and_strangers_get_nothing() {
    let user = account(1);
    let workers = [Node::work(2, user, Machine::honest(1)).await, Node::work(3, user, Machine::honest(2)).await];
    let mut at = Vec::new();
    for worker in &workers {
        at.extend(worker.net.listen_addresses().await.unwrap());
    }
    let own = Node::start(1, at.clone()).await;
    let named: BTreeSet<Address> = [2, 3].map(account).into();
    own.net.set_gate(Arc::new(Listed(named.clone())));

    let (task, start) = task();
    let task_bytes = task.to_bytes().unwrap();
    let expected = Machine::honest(9).run(&task, &start, 0..12, Precision::F32).unwrap().0;
    let order = Order {
        steps: 12,
        per_interval: 4,
        precision: Precision::F32,
        checks: 1.0,
        tolerances: Tolerances::default(),
        patience: Duration::from_secs(60),
    };
    let folder = tempfile::tempdir().unwrap();
    let around = Around {
        store: own.store.clone(),
        own: Machine::honest(9),
        workers: named.iter().map(|worker| own.remote(*worker) as Arc<dyn Worker>).collect(),
        draw: Box::new(|| 0.5),
        watch: Box::new(|_| ()),
    };
    let journal = Journal::open(folder.path()).unwrap();
    let mut driver = Driver::begin(order, (task, &start), around, &journal).await.unwrap();
    let (state, report) = driver.run(&CancellationToken::new()).await.unwrap();
    assert!(distance(&start, &state, &expected) < 1e-5);
    assert_eq!((report.checked, report.intervals, report.left_out.len()), (3, 3, 0));

    // A stranger is turned away; so is an interval of what is no state of the task.
    let stranger = Node::start(4, at).await;
    let (task, start) =
        (own.store.put(task_bytes).await.unwrap(), own.store.put(state_bytes(&start).unwrap()).await.unwrap());
    let interval = Interval { task, state: start, first: 0, steps: 4, precision: Precision::F32 };
    let refused = stranger.remote(account(2)).run(&interval).await;
    assert!(matches!(refused, Err(WorkerError::Net(NetError::Refused(_)))), "{refused:?}");
    let state = own.store.put(state_bytes(&Default::default()).unwrap()).await.unwrap();
    for (wrong, named) in [
        (Interval { state, ..interval.clone() }, "another task"),
        (Interval { task: state, ..interval.clone() }, "malformed"),
        (Interval { steps: 17, ..interval.clone() }, "1 to 16"),
        (Interval { first: u32::MAX, ..interval }, "1 to 16"),
    ] {
        let declined = own.remote(account(2)).run(&wrong).await;
        assert!(matches!(&declined, Err(WorkerError::Declined(why)) if why.contains(named)), "{declined:?}");
    }
}
