//! What users say of workers' speeds is kept if they paid for it, and told to whoever asks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tensorlink_model::Setting;
use tensorlink_node::observed::{Keeper, Observed, Payments, SignedSpeed, Unfounded, ask};
use tensorlink_node::ports::chain::Deployment;
use tensorlink_node::ports::{Event, Net};
use tensorlink_node::speed::MOST_MULTIPLY_ADDS;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::gossip::{MOST_SPEEDS, SPEEDS, is_well_formed};
use tensorlink_types::abi::JobTerms;
use tensorlink_types::{Address, JobId, Lane, U256};
use tokio_util::sync::CancellationToken;

use crate::support::clock::Set;
use crate::support::{self, Hub, MemoryChain, MemoryNet, SNO, identity, job_view};

const NOW: u64 = 2_000_000_000;
const DAY: u64 = 86_400;
const USER: u8 = 2;
const WORKER: Address = Address::repeat_byte(0xaa);

fn deployment() -> Deployment {
    Deployment { jobs: Address::repeat_byte(1), ..Deployment::nowhere(31_337) }
}

/// A user says that a worker did so many multiply-adds in a job.
fn said(user: u8, job: u64, worker: Address, multiply_adds: u64, at: u64) -> SignedSpeed {
    let of = (JobId(job), worker);
    SignedSpeed::new((&identity(user), &deployment()), of, (Setting::Standard, multiply_adds), at).unwrap()
}

/// A user has paid a worker in a job.
fn paid(user: u8, job: u64, worker: Address, amount: u64, token: Address) -> [Event; 2] {
    let terms = JobTerms { token, ..JobTerms::default() };
    let posted = Event::JobPosted { job: JobId(job), user: identity(user).address(), deposit: U256::ZERO, terms };
    let lane = Lane { job: JobId(job), stage: 0, replica: 0 };
    [posted, Event::Paid { lane, worker, units: 1, amount: U256::from(amount) }]
}

fn observed(events: impl IntoIterator<Item = Event>) -> Observed {
    let payments = Arc::new(Payments::default());
    events.into_iter().for_each(|event| payments.apply(&event, NOW));
    Observed::new(deployment(), payments)
}

fn speeds(observed: &Observed, worker: Address, now: u64) -> Vec<u64> {
    let mut speeds: Vec<u64> = observed.of(worker, now).iter().map(|told| told.signed.multiply_adds()).collect();
    speeds.sort_unstable();
    speeds
}

#[test]
fn only_who_paid_a_worker_says_how_fast_it_was() {
    let observed = observed([paid(USER, 1, WORKER, 5, SNO), paid(USER, 2, WORKER, 0, SNO)].concat());
    let refused = |signed| observed.take(signed, NOW).unwrap_err();
    assert!(matches!(refused(said(3, 1, WORKER, 9, NOW)), Unfounded::Signature(_)), "another's job");
    assert_eq!(refused(said(USER, 2, WORKER, 9, NOW)), Unfounded::Unpaid, "nothing was paid");
    assert_eq!(refused(said(USER, 1, SNO, 9, NOW)), Unfounded::Unpaid, "not in that job");
    assert_eq!(refused(said(USER, 1, WORKER, 9, NOW - 15 * DAY)), Unfounded::Untimely);
    assert_eq!(refused(said(USER, 1, WORKER, 9, NOW + 3_600)), Unfounded::Untimely);
    let elsewhere = Deployment { chain_id: 1, ..deployment() };
    let of = (JobId(1), WORKER);
    let elsewhere = SignedSpeed::new((&identity(USER), &elsewhere), of, (Setting::Standard, 9), NOW).unwrap();
    assert!(matches!(refused(elsewhere), Unfounded::Signature(_)), "signed for another chain");
    observed.take(said(USER, 1, WORKER, 9, NOW), NOW).unwrap();
    for soon in [NOW, NOW + 59] {
        assert_eq!(refused(said(USER, 1, WORKER, 8, soon)), Unfounded::NoRoom, "known already");
    }
    observed.take(said(USER, 1, WORKER, 7, NOW + 60), NOW).unwrap();
    assert_eq!(speeds(&observed, WORKER, NOW), [7], "the newest of a job");
    assert!(observed.of(WORKER, NOW + 15 * DAY).is_empty(), "it says nothing any more");
}

#[test]
fn what_was_paid_long_ago_is_not_said_again_as_if_it_were_new() {
    let payments = Arc::new(Payments::default());
    let events = paid(USER, 1, WORKER, 5, SNO);
    events.iter().for_each(|event| payments.apply(event, NOW));
    let observed = Observed::new(deployment(), payments.clone());
    let later = NOW + 10 * DAY;
    observed.take(said(USER, 1, WORKER, 9, later), later).unwrap();
    assert_eq!(observed.of(WORKER, later)[0].at, NOW);
    let late = NOW + 15 * DAY;
    assert!(observed.of(WORKER, late).is_empty());
    assert_eq!(observed.take(said(USER, 1, WORKER, 9, late), late), Err(Unfounded::Untimely));
    payments.apply(&events[1], late);
    assert_eq!(observed.take(said(USER, 1, WORKER, 9, late), late), Ok(()), "it has paid again");
}

#[test]
fn what_cannot_be_is_not_signed_and_no_message() {
    let user = identity(USER);
    let signed = |multiply_adds| {
        SignedSpeed::new((&user, &deployment()), (JobId(1), WORKER), (Setting::Fast, multiply_adds), NOW)
    };
    for impossible in [0, MOST_MULTIPLY_ADDS + 1] {
        assert_eq!(signed(impossible).unwrap_err(), Unfounded::Impossible);
    }
    let message = |speeds: &[SignedSpeed]| encode("speeds", &speeds).unwrap();
    let one = signed(1).unwrap();
    assert!(is_well_formed(SPEEDS, &message(std::slice::from_ref(&one))));
    let mut many = vec![one.clone(); MOST_SPEEDS];
    assert!(is_well_formed(SPEEDS, &message(&many)) && !is_well_formed(SPEEDS, &message(&[])));
    many.push(one.clone());
    assert!(!is_well_formed(SPEEDS, &message(&many)));
    // Of a byte less, the signature is none.
    let mut json = serde_json::to_value(&one).unwrap();
    json["signature"].as_array_mut().unwrap().pop();
    let short: SignedSpeed = serde_json::from_value(json.clone()).unwrap();
    assert!(!short.is_possible() && !is_well_formed(SPEEDS, &message(&[short])));
    json["speed"]["setting"] = 3.into();
    let unknown: SignedSpeed = serde_json::from_value(json).unwrap();
    assert_eq!((unknown.setting(), unknown.is_possible()), (None, false));
}

#[test]
fn of_each_worker_the_best_paid_are_kept_in_each_token() {
    let jobs = (1..=20).flat_map(|job| paid(USER, job, WORKER, job, SNO));
    let observed = observed(jobs.chain(paid(USER, 21, WORKER, 1, Address::ZERO)));
    for job in (1..=10).chain((11..=20).rev()).chain([21]) {
        let result = observed.take(said(USER, job, WORKER, job, NOW), NOW);
        assert_eq!(result.is_err(), [11, 12].contains(&job), "{job}: {result:?}");
    }
    assert_eq!(speeds(&observed, WORKER, NOW), [13, 14, 15, 16, 17, 18, 19, 20, 21]);
}

#[test]
fn workers_of_whom_something_is_known_are_bounded() {
    let worker = |number: u64| Address::left_padding_from(&number.to_be_bytes());
    let many = 4_097;
    let observed = observed((0..=many).flat_map(|number| paid(USER, number, worker(number), 1, SNO)));
    let old = NOW - 13 * DAY;
    for number in 0..many - 1 {
        observed.take(said(USER, number, worker(number), 1, old), NOW).unwrap();
    }
    let one_more = said(USER, many, worker(many), 1, NOW);
    assert_eq!(observed.take(one_more.clone(), NOW), Err(Unfounded::NoRoom));
    assert_eq!(observed.take(one_more, NOW + 2 * DAY), Ok(()), "the others say nothing any more");
    assert_eq!(observed.all().len(), 1);
}

#[tokio::test]
async fn a_keeper_hears_answers_and_has_it_all_again_after_a_restart() {
    let (hub, folder) = (Arc::<Hub>::default(), tempfile::tempdir().unwrap());
    let chain = MemoryChain::new(job_view(1, 2), &[], &[]);
    let clock = Arc::new(Set::default());
    clock.0.store(NOW, Ordering::Relaxed);
    let keeper = |observed: &Arc<Observed>| {
        let mut ports = support::ports(9, chain.clone(), Arc::default(), hub.clone(), folder.path());
        ports.clock = clock.clone();
        let stop = CancellationToken::new();
        (tokio::spawn(Keeper::open(ports, observed.clone()).unwrap().run(stop.clone())), stop)
    };
    let here = Arc::new(observed(paid(USER, 1, WORKER, 5, SNO)));
    let (running, stop) = keeper(&here);
    let user = MemoryNet { own: identity(USER).address(), hub: hub.clone() };
    let said_by_two = [said(USER, 1, WORKER, 9, NOW), said(3, 1, WORKER, 1, NOW)];
    let message = encode("speeds", &said_by_two.as_slice()).unwrap();
    let nodes = [Address::ZERO, identity(9).address()];
    let told = async || {
        let heard = async {
            loop {
                let told = ask(&user, &nodes, &[SNO, WORKER]).await;
                if !told.is_empty() {
                    break told;
                }
                user.publish(SPEEDS, message.clone()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap()
    };
    assert_eq!(told().await, [said(USER, 1, WORKER, 9, NOW)]);
    stop.cancel();
    running.await.unwrap().unwrap();
    // Another run knows it from the disk, though nobody says it again.
    hub.published.lock().unwrap().clear();
    let again = Arc::new(observed(paid(USER, 1, WORKER, 5, SNO)));
    let (running, stop) = keeper(&again);
    let known = async {
        while again.all().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), known).await.unwrap();
    assert_eq!(ask(&user, &nodes, &[WORKER]).await, [said(USER, 1, WORKER, 9, NOW)]);
    assert!(hub.published.lock().unwrap().is_empty(), "nothing was said again");
    stop.cancel();
    running.await.unwrap().unwrap();
}
