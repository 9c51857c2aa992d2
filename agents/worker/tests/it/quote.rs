//! Offers ask the advertised price, and no more are out than the worker has lanes.

use std::sync::Arc;

use tensorlink_node::budget::Budget;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::ports::Store;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::price::Prices;
use tensorlink_node::price::{price_per_interval, price_per_token};
use tensorlink_node::shard::{Room, ShardError};
use tensorlink_node::{Journal, Roster};
use tensorlink_program::Reference;
use tensorlink_types::abi::{JobKind, Offer};
use tensorlink_types::{Address, B256};
use tensorlink_worker::hiring::promises::Promises;
use tensorlink_worker::hiring::quote::{Declined, quote};
use tensorlink_worker::{Context, Limits, WorkerConfig};
use tokio::sync::watch;

use crate::fixtures::config;
use crate::support::serving::{LONGEST, publish_serving, serving_shards, serving_view};
use crate::support::{
    self, Hub, JOB, MemoryChain, MemoryStore, STEPS, TERMS, identity, job_view, lane, publish, shards,
};

const PRICE: u128 = 1 << 40;

/// What a worker has promised.
fn promises(context: &Context<Reference>) -> Promises {
    Promises::open(context.ports.journal.clone(), context.config.memory.clone(), 0).unwrap()
}

#[tokio::test]
async fn a_lane_is_offered_again_only_when_its_offer_is_void() {
    let shards = shards(2);
    let store = Arc::new(MemoryStore::default());
    let (manifest, _) = publish(&store, &shards).await;
    let chain = MemoryChain::new(job_view(2, 3), &[], &shards);
    chain.with(|ledger| ledger.job.state = JobState::Posted);
    let folder = tempfile::tempdir().unwrap();
    let context = Context {
        ports: support::ports(1, chain.clone(), store.clone(), Arc::<Hub>::default(), folder.path()),
        config: WorkerConfig { prices: Prices { sno: PRICE, eth: None }, ..config(1 << 30, 1) },
        engine: Arc::new(|| Ok(Reference)),
        roster: Arc::new(Roster::new(identity(1).address())),
        stream_router: Default::default(),
    };
    let promises = promises(&context);
    let ask =
        async |stage| quote(&context, lane(stage), (TERMS, manifest), (&promises, || 1)).await.map(|(offer, _)| offer);
    let offer = ask(0).await.unwrap();
    assert_eq!(Some(offer.pricePerInterval), price_per_interval(&shards[0].program, STEPS, PRICE));
    assert!(offer.pricePerInterval > 1);
    assert!(matches!(ask(1).await, Err(Declined::Busy)), "the only lane is offered");
    ask(0).await.expect("the same lane again takes no further place");

    let expires = u64::try_from(offer.expires).unwrap();
    assert_eq!((promises.count(expires), promises.count(expires + 1)), (1, 0));
    chain.with(|ledger| ledger.now = expires);
    assert!(matches!(ask(1).await, Err(Declined::Busy)), "the chain still takes the offer");
    chain.with(|ledger| ledger.now = expires + 1);
    ask(1).await.expect("the first offer has expired");
    assert!(matches!(ask(0).await, Err(Declined::Busy)));
    promises.release(JOB).unwrap();
    ask(0).await.expect("the job took no offers any more");

    assert!(store.owners().await.unwrap().is_empty(), "what was only quoted takes no job's room");
    store.leave_room(100);
    let declined = ask(0).await.unwrap_err();
    assert!(matches!(declined, Declined::Disk { room: 100, .. }) && declined.is_final(), "{declined}");
    let state = shards[0].program.state.iter().map(|slot| slot.ty.byte_len()).sum::<u64>();
    store.leave_room(tensorlink_node::shard::bytes(&shards[0].program) + state);
    ask(0).await.expect("just enough to begin");
}

#[tokio::test]
async fn a_lane_of_a_serving_job_is_offered_by_the_token() {
    let shards = serving_shards();
    let store = Arc::new(MemoryStore::default());
    let (manifest, _) = publish_serving(&store, &shards).await;
    let chain = MemoryChain::serving(serving_view(2), &[], &shards);
    chain.with(|ledger| ledger.job.state = JobState::Posted);
    let folder = tempfile::tempdir().unwrap();
    let context = |memory| Context {
        ports: support::ports(1, chain.clone(), store.clone(), Arc::<Hub>::default(), folder.path()),
        config: WorkerConfig { prices: Prices { sno: PRICE, eth: None }, ..config(memory, 1) },
        engine: Arc::new(|| Ok(Reference)),
        roster: Arc::new(Roster::new(identity(1).address())),
        stream_router: Default::default(),
    };
    let ask = async |memory, free| {
        let context = context(memory);
        let promises = promises(&context);
        let quoted = quote(&context, lane(1), (TERMS, manifest), (&promises, || free)).await;
        promises.release(JOB).unwrap();
        quoted.map(|(offer, _)| offer)
    };
    let offer = ask(1 << 30, 1).await.unwrap();
    let longest = shards[1].program(LONGEST).unwrap();
    assert_eq!(Some(offer.pricePerInterval), price_per_token(&longest, LONGEST, PRICE));
    let declined = ask(100, 1).await.unwrap_err();
    assert!(matches!(declined, Declined::Shard(_)) && declined.is_final(), "{declined}");
    let busy = ask(1 << 30, 0).await.unwrap_err();
    assert!(matches!(busy, Declined::Busy) && !busy.is_final(), "{busy}");

    // Posted as a training job, its files are of the wrong kind.
    chain.with(|ledger| ledger.job.kind = JobKind::Training);
    let declined = ask(1 << 30, 1).await.unwrap_err().to_string();
    assert!(declined.contains("training stage 1"), "{declined}");
}

#[test]
fn the_disk_of_an_offer_is_kept_for_it_until_its_files_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let promises = Promises::open(Journal::open(folder.path()).unwrap(), Budget::new(0), 0).unwrap();
    let ask = |stage, now| {
        let held = promises.hold(lane(stage), (now, 10), || 3);
        held && promises.reserve(lane(stage), 60, 100) >= 60
    };
    assert!(ask(0, 0) && ask(0, 0), "asked again it takes no more");
    assert_eq!(promises.disk_left(100), 40, "what is advertised");
    assert!(!ask(1, 0), "it would not fit beside the first");
    assert!(ask(1, 11) && !ask(0, 0), "that has expired");
    promises.accepted(JOB, Some(lane(1)));
    assert_eq!(promises.count(0), 0, "the lane is ours");
    assert!(!ask(0, 100), "and fetches its files");
    promises.fetched(lane(1));
    assert_eq!(promises.disk_left(100), 100, "the disk counts what is there itself");
    assert!(ask(0, 100));
    promises.accepted(JOB, None);
    assert!(ask(1, 100), "others were accepted");
    promises.release(JOB).unwrap();
    assert!(ask(0, 100));
}

/// What a lane of these tests needs.
const NEEDS: Footprint = Footprint { lane: 40, repeat: 10 };

/// Whether a lane is held with its memory.
async fn has_memory(promises: &Promises, stage: u16, now: u64) -> Result<(), ShardError> {
    assert!(promises.hold(lane(stage), (now, now + 10), || 8));
    promises.room(lane(stage)).take(NEEDS).await.map(drop)
}

#[tokio::test]
async fn offers_share_the_memory_that_is_lent() {
    let folder = tempfile::tempdir().unwrap();
    let budget = Budget::new(130);
    let promises = Promises::open(Journal::open(folder.path()).unwrap(), budget.clone(), 0).unwrap();
    has_memory(&promises, 0, 0).await.unwrap();
    has_memory(&promises, 0, 0).await.unwrap();
    assert_eq!(promises.left(), 80, "asked again it takes no more");
    has_memory(&promises, 1, 0).await.unwrap();
    assert_eq!(promises.left(), 40, "one lane is repeated at a time");
    let audit = budget.take(1).unwrap();
    let refused = has_memory(&promises, 2, 0).await.unwrap_err();
    assert!(matches!(refused, ShardError::Memory { needed: 40, left: 39, limit: 130 }), "{refused}");
    assert!(Declined::from(refused).is_final());
    drop(audit);
    has_memory(&promises, 2, 0).await.unwrap();
    promises.accepted(JOB, Some(lane(1)));
    assert_eq!(promises.left(), 80, "the others are free");
    has_memory(&promises, 0, 100).await.unwrap();
    has_memory(&promises, 2, 111).await.unwrap();
    assert_eq!(promises.left(), 40, "the first has expired, ours has not");
    promises.release(JOB).unwrap();
    assert_eq!(budget.left(), 130);
}

#[tokio::test]
async fn what_comes_to_no_offer_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let promises = Promises::open(Journal::open(folder.path()).unwrap(), Budget::new(130), 0).unwrap();
    has_memory(&promises, 0, 0).await.unwrap();
    promises.withdraw(lane(0));
    assert_eq!((promises.left(), promises.count(0)), (130, 0));
    // Asked once more, a lane of which an offer is out keeps what that was promised.
    has_memory(&promises, 0, 0).await.unwrap();
    assert!(promises.sign(lane(0)).unwrap() && !promises.sign(lane(1)).unwrap());
    promises.withdraw(lane(0));
    assert_eq!((promises.left(), promises.count(0)), (80, 1));
}

#[tokio::test]
async fn what_was_promised_is_kept_by_a_start_with_less_memory() {
    let folder = tempfile::tempdir().unwrap();
    let open = |bytes, now| {
        let journal = Journal::open(folder.path()).unwrap();
        Promises::open(journal, Budget::new(bytes), now).unwrap()
    };
    let promises = open(200, 0);
    for stage in 0..3 {
        has_memory(&promises, stage, 0).await.unwrap();
        assert!(promises.sign(lane(stage)).unwrap());
    }
    promises.accepted(JOB, Some(lane(1)));
    // Half of what is left then.
    assert_eq!((promises.more(lane(1)).unwrap(), promises.left()), (75, 75));
    drop(promises);
    let promises = open(50, 5);
    assert_eq!(promises.left(), 0);
    let refused = has_memory(&promises, 2, 5).await.unwrap_err();
    assert!(matches!(refused, ShardError::Memory { left: 0, limit: 50, .. }), "{refused}");
    // Events are told again.
    promises.accepted(JOB, Some(lane(1)));
    promises.owed(lane(1)).take(NEEDS).await.unwrap();
    assert_eq!(promises.more(lane(1)).unwrap(), 75, "what its texts were promised");
    promises.release(JOB).unwrap();
    assert_eq!(promises.left(), 50);
    // A lane of ours of which nothing was written down has what it needs.
    promises.owed(lane(7)).take(Footprint { lane: 70, repeat: 0 }).await.unwrap();
    assert_eq!(promises.left(), 0);
    drop(promises);
    // Until all events are told, an offer that has expired may be a lane of ours.
    let promises = open(200, 5);
    has_memory(&promises, 0, 5).await.unwrap();
    assert!(promises.sign(lane(0)).unwrap());
    let promises = open(200, 20);
    has_memory(&promises, 1, 600).await.unwrap();
    assert_eq!(promises.left(), 110);
    has_memory(&promises, 1, 700).await.unwrap();
    assert_eq!(promises.left(), 150);
}

/// A worker that offers nothing but what `change` makes of its configuration, asked for a lane of a job that `job`
/// made.
async fn asked(
    change: impl FnOnce(&mut WorkerConfig),
    job: impl FnOnce(&mut JobView),
    terms: B256,
) -> Result<Offer, Declined> {
    let shards = shards(1);
    let store = Arc::new(MemoryStore::default());
    let (manifest, _) = publish(&store, &shards).await;
    let chain = MemoryChain::new(job_view(1, 3), &[], &shards);
    chain.with(|ledger| {
        ledger.job.state = JobState::Posted;
        job(&mut ledger.job);
    });
    let folder = tempfile::tempdir().unwrap();
    let prices = Prices { sno: PRICE, eth: None };
    let mut config = WorkerConfig { prices, limits: Limits::NONE, ..config(1 << 30, 1) };
    change(&mut config);
    let context = Context {
        ports: support::ports(1, chain, store, Arc::<Hub>::default(), folder.path()),
        config,
        engine: Arc::new(|| Ok(Reference)),
        roster: Arc::new(Roster::new(identity(1).address())),
        stream_router: Default::default(),
    };
    let promises = promises(&context);
    quote(&context, lane(0), (terms, manifest), (&promises, || 1)).await.map(|(offer, _)| offer)
}

#[tokio::test]
async fn an_offer_names_what_was_posted_and_nothing_else() {
    assert_eq!(asked(|_| {}, |_| {}, TERMS).await.unwrap().terms, TERMS);
    // A reorganisation gave the number to another job.
    let declined = asked(|_| {}, |_| {}, B256::ZERO).await.unwrap_err();
    assert!(matches!(declined, Declined::Unknown(_)) && !declined.is_final(), "{declined}");
}

#[tokio::test]
async fn jobs_in_eth_are_taken_at_the_price_of_eth_or_not_at_all() {
    let in_eth = |job: &mut JobView| job.token = Address::ZERO;
    let declined = asked(|_| {}, in_eth, TERMS).await.unwrap_err();
    assert!(matches!(declined, Declined::Token) && declined.is_final(), "{declined}");
    let in_sno = asked(|config| config.prices.eth = Some(PRICE / 1024), |_| {}, TERMS).await.unwrap();
    let in_eth = asked(|config| config.prices.eth = Some(PRICE / 1024), in_eth, TERMS).await.unwrap();
    assert!(in_eth.pricePerInterval > 1);
    assert_eq!(in_sno.pricePerInterval.div_ceil(1024), in_eth.pricePerInterval);
}

#[tokio::test]
async fn stake_is_locked_no_longer_than_the_worker_says() {
    let limits =
        |duration, wait| move |config: &mut WorkerConfig| config.limits = Limits { duration, wait, ..Limits::NONE };
    let job = |duration, wait| {
        move |job: &mut JobView| {
            job.duration = duration;
            job.accept_by += wait;
        }
    };
    let wait = job_view(1, 3).accept_by;
    asked(limits(600, u64::MAX), job(600, 0), TERMS).await.unwrap();
    let declined = asked(limits(600, u64::MAX), job(601, 0), TERMS).await.unwrap_err();
    assert!(matches!(declined, Declined::Time { asked: 601, limit: 600, .. }) && declined.is_final(), "{declined}");
    asked(limits(u64::MAX, wait), job(600, 0), TERMS).await.unwrap();
    let declined = asked(limits(u64::MAX, wait), job(600, wait + 1_000_000), TERMS).await.unwrap_err();
    assert!(
        matches!(declined, Declined::Time { .. }) && declined.to_string().contains("until it starts"),
        "{declined}"
    );
}

#[tokio::test]
async fn jobs_are_taken_of_the_kind_and_in_the_hours_that_the_worker_says() {
    let limits = |hours: Option<&str>, only| {
        let hours = hours.map(|hours| hours.parse().unwrap());
        move |config: &mut WorkerConfig| config.limits = Limits { hours, only, ..Limits::NONE }
    };
    asked(limits(None, Some(JobKind::Training)), |_| {}, TERMS).await.unwrap();
    let declined = asked(limits(None, Some(JobKind::Serving)), |_| {}, TERMS).await.unwrap_err();
    assert!(declined.is_final() && declined.to_string().contains("no training jobs"), "{declined}");
    // It is one of the halves of the day.
    let mut declined = Vec::new();
    for half in ["00:00-12:00", "12:00-24:00"] {
        declined.extend(asked(limits(Some(half), None), |_| {}, TERMS).await.err());
    }
    let [declined] = declined.try_into().unwrap();
    assert!(matches!(declined, Declined::Hour(_)) && !declined.is_final(), "{declined}");
}

#[tokio::test]
async fn no_job_is_taken_while_the_owner_uses_the_machine() {
    let (tell, in_use) = watch::channel(true);
    let listens = |config: &mut WorkerConfig| config.in_use = in_use.clone();
    let declined = asked(listens, |_| {}, TERMS).await.unwrap_err();
    assert!(matches!(declined, Declined::InUse) && declined.is_final(), "others are asked at once: {declined}");
    tell.send_replace(false);
    asked(listens, |_| {}, TERMS).await.unwrap();
}
