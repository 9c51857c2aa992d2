//! Confirmed events: in order, each once, whatever happens to the endpoint and to the chain.

use std::net::SocketAddr;
use std::time::Duration;

use tensorlink_node::ports::chain::{Event, EventAt, Mark, News, Role};
use tensorlink_node::ports::{Call, Chain};
use tensorlink_proof::commit::digest::record_hash;
use tensorlink_types::JobKey;
use tokio::sync::mpsc;

use crate::proxy::{Proxy, Wire};
use crate::world::{OTHER, USER, WORKER, World, claim, commit_first, first_link, link, nothing, sno, take};

fn positions(events: &[EventAt]) -> Vec<(u64, u64)> {
    events.iter().map(|event| (event.block, event.log_index)).collect()
}

#[tokio::test]
async fn a_jobs_life_is_told_in_order_and_again_from_a_cursor() {
    let world = World::new().await;
    let (user, worker) = (world.chain(USER).await, world.chain(WORKER).await);
    let mut events = user.events(0).await.unwrap();
    let job = world.running_job(&user, &worker).await;
    let (first, committed_at, receipt) = commit_first(&worker, job).await;
    let second = claim(job, 1);
    let commit = Call::Commit { claim: second.clone(), previous: link(&first, committed_at) };
    worker.send(commit).await.unwrap();

    let told = take(&mut events, 6).await;
    let [staked, posted, accepted, started, one, two] = &told[..] else { unreachable!() };
    assert_eq!(staked.event, Event::Staked { account: worker.account(), role: Role::Worker, amount: sno("50") });
    assert!(matches!(&posted.event, Event::JobPosted { user: by, terms, .. }
        if *by == user.account() && terms.programs == world.terms(0).programs));
    assert!(matches!(&accepted.event, Event::JobAccepted { offers, .. } if offers[0].worker == worker.account()));
    assert!(matches!(started.event, Event::JobStarted { job_key, .. } if job_key != JobKey::default()));
    let id = world.contracts().claim_id(&first);
    assert_eq!(one.event, Event::ClaimCommitted { id, claim: first.clone(), committed_at });
    assert_eq!((one.transaction, one.timestamp), (receipt.transaction, committed_at));
    assert!(matches!(&two.event, Event::ClaimCommitted { claim, .. } if *claim == second));
    assert_eq!(user.record(first.lane(), 0).await.unwrap(), record_hash(&first, committed_at));

    let places = positions(&told);
    assert!(places.is_sorted() && places.windows(2).all(|pair| pair[0] != pair[1]), "{places:?}");
    // A node that starts again reads on from its cursor, and past events are the same.
    let mut again = user.events(one.block).await.unwrap();
    assert_eq!(take(&mut again, 2).await, told[4..]);
    assert_eq!(user.past_events(0, u64::MAX).await.unwrap(), told);
    assert_eq!(user.past_events(started.block, started.block).await.unwrap(), told[3..4]);
    nothing(&mut events).await;
}

#[tokio::test]
async fn only_what_is_confirmed_is_told_so_a_reorganisation_is_never_seen() {
    let world = World::new().await;
    let (user, worker) = (world.chain(USER).await, world.chain(WORKER).await);
    let job = world.running_job(&user, &worker).await;
    let patient = world.chain_at(OTHER, world.anvil.endpoint(), 3).await;
    world.mine(2).await;
    let start = user.head().await.unwrap().number + 1;
    let mut events = patient.events(start).await.unwrap();

    commit_first(&worker, job).await;
    nothing(&mut events).await;
    world.reorg(2).await;
    world.mine(4).await;
    // The claim is gone, and was never told.
    nothing(&mut events).await;
    assert!(patient.past_events(start, u64::MAX).await.unwrap().is_empty());

    let (_, _, receipt) = commit_first(&worker, job).await;
    world.mine(3).await;
    let told = take(&mut events, 1).await;
    assert_eq!(told[0].transaction, receipt.transaction);
}

#[tokio::test]
async fn a_reorganisation_deeper_than_the_depth_is_survived() {
    let world = World::new().await;
    let (user, worker) = (world.chain(USER).await, world.chain(WORKER).await);
    let job = world.running_job(&user, &worker).await;
    let mut events = user.events(0).await.unwrap();
    take(&mut events, 4).await;
    let (first, ..) = commit_first(&worker, job).await;
    take(&mut events, 1).await;
    // The claim is undone, and another is made in its place: that is news, nothing else is.
    world.reorg(1).await;
    let other = tensorlink_types::abi::Claim { newState: first.io, ..first };
    worker.send(Call::Commit { claim: other.clone(), previous: first_link() }).await.unwrap();
    let told = take(&mut events, 1).await;
    assert!(matches!(&told[0].event, Event::ClaimCommitted { claim, .. } if *claim == other));
    nothing(&mut events).await;
}

/// The next news, which must come within seconds, without events of others.
async fn next(news: &mut mpsc::Receiver<News>) -> News {
    tokio::time::timeout(Duration::from_secs(20), news.recv()).await.expect("there is no news").expect("the feed ended")
}

/// What is told up to a block that is read to its end.
async fn until(news: &mut mpsc::Receiver<News>, block: u64) -> (Vec<EventAt>, Vec<Mark>) {
    let (mut events, mut marks) = (Vec::new(), Vec::new());
    while marks.last().is_none_or(|last: &Mark| last.block < block) {
        match next(news).await {
            News::Event(event) => events.push(*event),
            News::Until(mark) => marks.push(mark),
            News::Undone { from } => panic!("nothing was undone, and yet all from {from} on"),
        }
    }
    (events, marks)
}

async fn undone_at(depth: u64) {
    let world = World::new().await;
    let worker = world.chain(WORKER).await;
    let stake = |amount| Call::Stake { role: Role::Worker, amount: sno(amount) };
    worker.send(stake("1")).await.unwrap();
    world.mine(8).await;
    let head = worker.head().await.unwrap().number;
    let mut news = worker.follow(Vec::new()).await.unwrap();
    let (told, mut known) = until(&mut news, head).await;
    assert_eq!(told.len(), 1);
    let undone = worker.send(stake("2")).await.unwrap();
    let (told, marks) = until(&mut news, undone.block).await;
    assert_eq!(told.len(), 1);
    known.extend(marks);
    if depth > 1 {
        world.mine(depth - 1).await;
        known.extend(until(&mut news, undone.block + depth - 1).await.1);
    }
    world.reorg(depth).await;
    // Who listens hears of it, and so does who comes back.
    for mut news in [news, worker.follow(known.clone()).await.unwrap()] {
        let News::Undone { from } = next(&mut news).await else { panic!("it is not told at {depth}") };
        assert!(from <= undone.block && from > told[0].block.saturating_sub(9), "{depth}: {from}");
        let (again, _) = until(&mut news, undone.block + depth - 1).await;
        assert!(again.iter().all(|at| at.transaction != undone.transaction), "{depth}: {again:?}");
    }
    // Nobody repeats what is known and still there.
    let first = known.iter().position(|mark| mark.block >= undone.block).unwrap();
    let mut news = worker.follow(known[..first].to_vec()).await.unwrap();
    let (told, _) = until(&mut news, undone.block + depth - 1).await;
    assert!(told.is_empty(), "{told:?}");
}

#[tokio::test]
async fn what_a_reorganisation_undoes_is_told_at_any_depth() {
    for depth in [1, 4, 64] {
        Box::pin(undone_at(depth)).await;
    }
}

/// Of blocks that are known, none is on the chain: the reader is told everything anew.
#[tokio::test]
async fn a_reorganisation_deeper_than_what_is_known_is_told_from_the_first_block_on() {
    let world = World::new().await;
    let worker = world.chain(WORKER).await;
    let staked = worker.send(Call::Stake { role: Role::Worker, amount: sno("1") }).await.unwrap();
    let lost = Mark { block: staked.block, hash: tensorlink_types::B256::repeat_byte(9) };
    let mut news = worker.follow(vec![lost]).await.unwrap();
    assert_eq!(next(&mut news).await, News::Undone { from: worker.deployment().block });
    let (told, _) = until(&mut news, staked.block).await;
    assert_eq!(told.len(), 1);
}

async fn survives_an_outage(scheme: &str) {
    let world = World::new().await;
    let (user, worker) = (world.chain(USER).await, world.chain(WORKER).await);
    let here = Wire::To(SocketAddr::from(([127, 0, 0, 1], world.anvil.port())));
    let proxy = Proxy::new(here).await;
    let watcher = world.chain_at(OTHER, format!("{scheme}://127.0.0.1:{}", proxy.port), 0).await;
    let mut events = watcher.events(0).await.unwrap();
    worker.send(Call::Stake { role: Role::Worker, amount: sno("1") }).await.unwrap();
    take(&mut events, 1).await;

    proxy.lead(Wire::Cut);
    user.send(Call::Stake { role: Role::Worker, amount: sno("2") }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.lead(Wire::Noise);
    user.send(Call::Stake { role: Role::Worker, amount: sno("3") }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.lead(here);
    user.send(Call::Stake { role: Role::Worker, amount: sno("4") }).await.unwrap();

    let told = take(&mut events, 3).await;
    let amounts: Vec<_> = told.iter().map(|told| &told.event).collect();
    for (event, amount) in amounts.into_iter().zip(["2", "3", "4"]) {
        assert_eq!(*event, Event::Staked { account: user.account(), role: Role::Worker, amount: sno(amount) });
    }
    nothing(&mut events).await;
    watcher.head().await.unwrap();
}

#[tokio::test]
async fn an_outage_leaves_no_gap_over_http() {
    Box::pin(survives_an_outage("http")).await;
}

#[tokio::test]
async fn an_outage_leaves_no_gap_over_websocket() {
    Box::pin(survives_an_outage("ws")).await;
}

#[tokio::test]
async fn a_node_that_is_restarted_with_its_state_goes_on() {
    let mut world = World::new().await;
    let to = |world: &World| Wire::To(SocketAddr::from(([127, 0, 0, 1], world.anvil.port())));
    let proxy = Proxy::new(to(&world)).await;
    let chain = world.chain_at(OTHER, format!("ws://127.0.0.1:{}", proxy.port), 0).await;
    let mut events = chain.events(0).await.unwrap();
    let stake = |amount| Call::Stake { role: Role::Worker, amount: sno(amount) };
    chain.send(stake("1")).await.unwrap();
    take(&mut events, 1).await;
    proxy.lead(Wire::Cut);
    world.restart();
    proxy.lead(to(&world));
    chain.send(stake("2")).await.unwrap();
    let told = take(&mut events, 1).await;
    assert!(matches!(told[0].event, Event::Staked { amount, .. } if amount == sno("2")));
    nothing(&mut events).await;
}

#[tokio::test]
async fn a_chain_replaced_by_another_ends_the_feed() {
    let world = World::new().await;
    // Two chains of anvil that start in the same second have the same first block.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let other = World::new().await;
    let to = |world: &World| Wire::To(SocketAddr::from(([127, 0, 0, 1], world.anvil.port())));
    let proxy = Proxy::new(to(&world)).await;
    let watcher = world.chain_at(OTHER, format!("http://127.0.0.1:{}", proxy.port), 0).await;
    let mut events = watcher.events(0).await.unwrap();
    watcher.send(Call::Stake { role: Role::Worker, amount: sno("1") }).await.unwrap();
    take(&mut events, 1).await;
    other.wait(5).await;
    proxy.lead(to(&other));
    let end = tokio::time::timeout(Duration::from_secs(10), events.recv()).await.unwrap();
    assert_eq!(end, None);
}

#[tokio::test]
async fn shutdown_and_a_dropped_receiver_end_the_feed() {
    let world = World::new().await;
    let user = world.chain(USER).await;
    let mut events = user.events(0).await.unwrap();
    world.shutdown.cancel();
    let end = tokio::time::timeout(Duration::from_secs(5), events.recv()).await.unwrap();
    assert_eq!(end, None);
    assert!(user.head().await.is_err());
}
