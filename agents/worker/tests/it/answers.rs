//! Who is slow keeps nobody else waiting.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Event, Net, Owner, Protocol, Store, StoreError};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_node::{Identity, Roster};
use tensorlink_program::Reference;
use tensorlink_types::abi::JobTerms;
use tensorlink_types::{Address, U256};
use tensorlink_worker::{Context, Worker};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::fixtures::config;
use crate::support::{self, Hub, JOB, MemoryChain, MemoryNet, MemoryStore, WINDOW, identity, job_view, lane, shards};

/// A store whose files never come, and how many wait for one.
#[derive(Clone)]
struct Stuck(watch::Sender<usize>);

#[async_trait]
impl Store for Stuck {
    fn of(&self, _: Owner) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    async fn put(&self, content: Bytes) -> Result<Cid, StoreError> {
        MemoryStore::default().put(content).await
    }

    async fn get(&self, _: &Cid, _: &[Address], _: u64) -> Result<Bytes, StoreError> {
        self.0.send_modify(|waiting| *waiting += 1);
        std::future::pending().await
    }

    async fn has(&self, _: &Cid) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn own(&self, _: &Cid) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn unpin(&self, _: &Cid) -> Result<(), StoreError> {
        Ok(())
    }

    async fn release(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        Ok(vec![])
    }

    async fn room(&self) -> Result<u64, StoreError> {
        Ok(u64::MAX)
    }
}

/// The job, posted by whomever.
fn posted(user: &Identity, manifest: Cid) -> Event {
    let terms = JobTerms {
        stages: 1,
        replicas: 1,
        intervals: 2,
        stepsPerInterval: 2,
        challengeWindow: WINDOW as u32,
        workerStake: 1,
        manifest: manifest.to_bytes().into(),
        ..JobTerms::default()
    };
    Event::JobPosted { job: JOB, user: user.address(), deposit: U256::ZERO, terms }
}

#[tokio::test]
async fn quotes_that_never_end_hold_up_neither_other_requests_nor_the_quotes_of_others() {
    let (slow, other, stranger) = (identity(8), identity(9), identity(7));
    let hub = Arc::<Hub>::default();
    let (waiting, mut stuck) = watch::channel(0);
    let store = Arc::new(Stuck(waiting));
    let manifest = store.put(Bytes::from_static(b"a manifest")).await.unwrap();
    let chain = MemoryChain::new(job_view(1, 2), &[], &shards(1));
    chain.with(|ledger| {
        ledger.job.state = JobState::Posted;
        ledger.follows = true;
        ledger.tell(posted(&slow, manifest));
    });
    let folder = tempfile::tempdir().unwrap();
    let mut ports = support::ports(1, chain.clone(), Arc::default(), hub.clone(), folder.path());
    ports.store = store;
    let context = Arc::new(Context {
        ports,
        config: config(1 << 30, 2),
        engine: Arc::new(|| Ok(Reference)),
        roster: Arc::new(Roster::new(identity(1).address())),
        stream_router: Default::default(),
    });
    let stop = CancellationToken::new();
    let running = Worker::run(context, stop.clone());

    let ask = |who: &Identity, request: Request| {
        let net = MemoryNet { own: who.address(), hub: hub.clone() };
        async move {
            let body = encode("request", &request).unwrap();
            let answer = net.request(identity(1).address(), Protocol::Rpc, body).await.ok()?;
            Some(decode::<Response>("response", &answer).unwrap())
        }
    };
    let quote = || Request::Quote(lane(0));
    // Until the job is confirmed there, as that of somebody else.
    let is_not_whose_job_it_is = async |who: &Identity| {
        let told =
            |answer| matches!(answer, Some(Response::Declined(reason)) if reason.contains("only the job's user"));
        while !told(ask(who, quote()).await) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let asking = async {
        is_not_whose_job_it_is(&stranger).await;
        // More than the worker answers at once.
        let mut quotes = JoinSet::new();
        (0..12).for_each(|_| drop(quotes.spawn(ask(&slow, quote()))));
        for _ in 0..10 {
            let told = quotes.join_next().await.unwrap().unwrap();
            assert!(matches!(&told, Some(Response::Declined(reason)) if reason.contains("ask again")), "{told:?}");
        }
        assert_eq!(*stuck.borrow_and_update(), 2, "two wait for their files");
        assert_eq!(ask(&slow, Request::Ready(JOB)).await, Some(Response::Ready(false)));
        // The job is another's now, as if each had one.
        chain.with(|ledger| ledger.tell(posted(&other, manifest)));
        is_not_whose_job_it_is(&slow).await;
        quotes.spawn(ask(&other, quote()));
        stuck.wait_for(|waiting| *waiting == 3).await.unwrap();
        stop.cancel();
    };
    let both = async { tokio::join!(running, asking).0 };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("everybody is answered").unwrap();
}
