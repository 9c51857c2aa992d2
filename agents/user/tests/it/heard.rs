//! What other users say of a worker's speed counts by what they paid, and less than what was seen here.

use std::time::Duration;

use serde_json::json;
use tensorlink_model::Setting;
use tensorlink_node::Journal;
use tensorlink_node::observed::SignedSpeed;
use tensorlink_node::ports::chain::{Deployment, Role};
use tensorlink_node::ports::{Clock, Event, Incoming, Net, Protocol, SystemClock};
use tensorlink_node::price::Prices;
use tensorlink_node::speed::Measured;
use tensorlink_node::wire::gossip::{SPEEDS, WorkerAdvert};
use tensorlink_node::wire::{decode, encode};
use tensorlink_placement::measured::Trust;
use tensorlink_types::abi::JobTerms;
use tensorlink_types::{Address, B256, JobId, Lane, U256};
use tensorlink_user::hire::Candidate;

use crate::support::{MemoryNet, SNO, identity};
use crate::world::{USER_KEY, World};

const WORKER: Address = Address::repeat_byte(0xaa);
const OTHER: Address = Address::repeat_byte(0xbb);
/// One of whom something is said to show that what was said before is heard.
const LAST: Address = Address::repeat_byte(0xcc);
/// What it asks for a billion multiply-adds, and how many it says that it does in a second: an hour of them is 36,000.
const PRICE: u128 = 1;
const SAYS: u64 = 10_000_000_000;
const HOUR: u64 = 36_000;

fn candidate(address: Address) -> Candidate {
    let speed = Measured { fast: SAYS, standard: SAYS, reference: SAYS, memory: 1 }.try_into().unwrap();
    let (prices, engine) = (Prices { sno: PRICE, eth: None }, String::new());
    let advert = WorkerAdvert { memory: 1, disk: 1, free_lanes: 1, prices, speed, engine };
    Candidate { address, advert, price_per_gmac: PRICE }
}

/// A user has paid workers in a job.
fn paid(user: Address, job: u64, workers: &[(Address, u64)], token: Address) -> Vec<Event> {
    let terms = JobTerms { token, ..JobTerms::default() };
    let lane = Lane { job: JobId(job), stage: 0, replica: 0 };
    let posted = Event::JobPosted { job: JobId(job), user, deposit: U256::ZERO, terms };
    let paid = |(worker, amount): &(Address, u64)| Event::Paid {
        lane,
        worker: *worker,
        units: 1,
        amount: U256::from(*amount),
    };
    [posted].into_iter().chain(workers.iter().map(paid)).collect()
}

/// The user of that number says that a worker did this part of what it says in the job of the same number.
fn says(user: u8, worker: Address, share: f64) -> SignedSpeed {
    let speed = (Setting::Standard, (SAYS as f64 * share) as u64);
    let of = (JobId(user.into()), worker);
    SignedSpeed::new((&identity(user), &Deployment::nowhere(31_337)), of, speed, SystemClock.now()).unwrap()
}

/// How fast the worker was in a job of the user's own, and another beside it, which did a half of what it says.
fn seen(job: u64, share: f64) -> serde_json::Value {
    let speed = |worker: Address, share: f64| {
        let rate = SAYS as f64 * share / 2.0;
        json!({"job": job, "worker": worker, "shape": B256::ZERO, "setting": "standard", "rate": rate,
            "said": SAYS as f64, "at": SystemClock.now()})
    };
    json!([speed(WORKER, share), speed(OTHER, 1.0)])
}

impl World {
    /// Of a user that knows how fast the worker was in job 1, which it paid.
    async fn that_saw(share: f64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Journal::open(folder.path()).unwrap().write("speeds", &seen(1, share)).unwrap();
        let world = Self::of(folder).await;
        world.tell(paid(identity(USER_KEY).address(), 1, &[(WORKER, HOUR)], SNO)).await;
        world
    }

    /// A user of that number has paid the worker for so many hours, and says what part it did.
    async fn hears(&self, user: u8, (hours, token): (u64, Address), share: f64) {
        let workers = [(WORKER, hours * HOUR), (LAST, 1)];
        self.tell(paid(identity(user).address(), user.into(), &workers, token)).await;
        let net = MemoryNet { own: identity(user).address(), hub: self.hub.clone() };
        let last = || async { self.user.observed(&[candidate(LAST)], token).await.remove(0).len() };
        let before = last().await;
        let heard = async {
            for statement in [says(user, WORKER, share), says(user, LAST, 1.0)] {
                net.publish(SPEEDS, encode("speeds", &vec![statement]).unwrap()).await.unwrap();
            }
            while last().await == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap();
    }

    /// What is believed of what the worker says.
    async fn believed(&self) -> f64 {
        let observed = self.user.observed(&[candidate(WORKER)], SNO).await.remove(0);
        (Trust::default().trying().share(&observed).unwrap() * 1e3).round() / 1e3
    }
}

#[tokio::test]
async fn what_others_say_counts_by_what_they_paid() {
    let world = World::new().await;
    assert_eq!(world.believed().await, 1.0, "nobody said anything");
    world.hears(21, (0, SNO), 0.1).await;
    assert_eq!(world.believed().await, 1.0, "nothing was paid");
    world.hears(22, (1, SNO), 0.3).await;
    assert_eq!(world.believed().await, 0.3, "as much as an hour of it costs");
    world.hears(23, (10, SNO), 0.9).await;
    assert_eq!(world.believed().await, 1.0, "others paid more, and it did what it says");
    world.hears(24, (1_000, Address::ZERO), 0.2).await;
    assert_eq!(world.believed().await, 1.0, "what was paid in something else cannot be compared");
}

#[tokio::test]
async fn what_was_seen_here_outweighs_what_others_say_however_much_they_paid() {
    for (here, others) in [(0.2, 1.0), (1.0, 0.2)] {
        let world = World::that_saw(here).await;
        world.hears(21, (1_000_000, SNO), others).await;
        assert_eq!(world.believed().await, here);
    }
}

#[tokio::test]
async fn validators_are_asked_for_what_they_have_heard_and_believed_no_more_than_others() {
    let world = World::new().await;
    let validator = identity(7).address();
    world.tell(vec![Event::Staked { account: validator, role: Role::Validator, amount: U256::from(10) }]).await;
    world.tell(paid(identity(21).address(), 21, &[(WORKER, 100 * HOUR)], SNO)).await;
    let mut questions = MemoryNet { own: validator, hub: world.hub.clone() }.serve(Protocol::Observed).await.unwrap();
    tokio::spawn(async move {
        while let Some(Incoming { body, reply, .. }) = questions.recv().await {
            assert_eq!(decode::<Vec<Address>>("workers", &body), Ok(vec![WORKER]));
            // What nobody paid for is made up.
            let told = vec![says(22, WORKER, 0.1), says(21, WORKER, 0.4)];
            reply.send(encode("speeds", &told).unwrap()).unwrap();
        }
    });
    assert_eq!(world.believed().await, 0.4);
}

#[tokio::test]
async fn what_is_heard_before_the_chain_tells_who_paid_counts_afterwards() {
    let world = World::new().await;
    let net = MemoryNet { own: identity(21).address(), hub: world.hub.clone() };
    net.publish(SPEEDS, encode("speeds", &vec![says(21, WORKER, 0.4)]).unwrap()).await.unwrap();
    // What is said next is heard after it.
    world.hears(22, (0, SNO), 0.1).await;
    assert_eq!(world.believed().await, 1.0);
    world.tell(paid(identity(21).address(), 21, &[(WORKER, 100 * HOUR)], SNO)).await;
    let validator = Event::Staked { account: identity(7).address(), role: Role::Validator, amount: U256::from(10) };
    world.tell(vec![validator]).await;
    assert_eq!(world.believed().await, 0.4);
}

#[tokio::test]
async fn a_user_says_how_fast_workers_were_that_it_paid_and_does_not_repeat_itself() {
    let world = World::that_saw(0.2).await;
    let said = || world.hub.published.lock().unwrap().split_off(0);
    world.user.publish_speeds().await;
    let own = identity(USER_KEY);
    let published = said();
    assert_eq!(published.iter().map(|(who, _)| *who).collect::<Vec<_>>(), [own.address()]);
    let statements: Vec<SignedSpeed> = decode("speeds", &published[0].1).unwrap();
    let told = |signed: &SignedSpeed| (signed.job(), signed.worker(), signed.setting(), signed.multiply_adds());
    // Of the other, which it did not pay, it says nothing.
    let expected = (JobId(1), WORKER, Some(Setting::Standard), SAYS / 5);
    assert_eq!(statements.iter().map(told).collect::<Vec<_>>(), [expected]);
    statements[0].check(own.address(), &Deployment::nowhere(31_337)).unwrap();
    world.user.publish_speeds().await;
    assert!(said().is_empty(), "nothing is new");
}
