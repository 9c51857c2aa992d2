//! Users that post what nobody should take: dust, stakes that deter nobody or that nobody has, programs that are not
//! what is registered, or that no worker could defend. Nobody is hired, the user is told why, and everybody has what
//! they had.

use std::process::Command;
use std::time::Duration;

use tensorlink_node::ports::chain::Event;
use tensorlink_types::U256;

use crate::harness::{Job, LONG, Model, Network, USER, address, run, sno, tensorlink, villain, worker_address};

/// Shorter than a user asks a worker again that has not refused for good.
const LIMIT: Duration = Duration::from_secs(90);
const WORKER: usize = 0;

/// A post, and what the user is told.
struct Post {
    /// What a villain's node makes of it; none of an honest one.
    flaw: Option<&'static str>,
    deposit: &'static str,
    stake: &'static str,
    words: &'static [&'static str],
    /// Whether the contracts take it, and its escrow comes back.
    posted: bool,
}

const DUST: &str = "0.000000000000000001";

const POSTS: [Post; 7] = [
    // Not even posted.
    Post { deposit: DUST, words: &["the job needs", "raise --deposit"], ..Post::FAIR },
    Post { stake: DUST, words: &["must have", "at risk", "raise --worker-stake"], ..Post::FAIR },
    // Not taken by the contracts.
    Post { flaw: Some("little_stake"), words: &["the contract refuses: InvalidTerms(workerStake)"], ..Post::FAIR },
    // Posted, offered for, and not accepted by the contracts.
    Post { flaw: Some("deposit"), words: &["the contract refuses: EscrowTooSmall"], ..Post::POSTED },
    // Posted, and declined by the worker.
    Post { flaw: Some("much_stake"), words: &["declines", "this worker risks at most"], ..Post::POSTED },
    Post {
        flaw: Some("other_programs"),
        words: &["declines", "the program has root", "is registered"],
        ..Post::POSTED
    },
    Post { flaw: Some("circular"), words: &["declines", "operator 0", "operand 0 reads"], ..Post::POSTED },
];

impl Post {
    const FAIR: Self = Self { flaw: None, deposit: Job::DEPOSIT, stake: Job::STAKE, words: &[], posted: false };
    const POSTED: Self = Self { posted: true, ..Self::FAIR };

    fn command(&self, network: &Network) -> Command {
        let program = self.flaw.map_or_else(tensorlink, |flaw| villain(&[("POST", flaw)]));
        let model = network.path("model.json");
        std::fs::write(&model, Model { steps: 20 }.json().to_string()).unwrap();
        let mut command = network.command_of(program, USER, &["job", "post", "--stages", "1"]);
        command.args(["--steps-per-interval", "20", "--deposit", self.deposit, "--worker-stake", self.stake]);
        command.arg("--model").arg(model).arg("--data").arg(Job::data());
        command
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_should_take_is_declined_and_locks_nothing() {
    let mut network = Network::start(1).await;
    network.start_workers([WORKER]).await;
    let has = network.owned(address(USER)).await;
    let mut posted = 0;
    for post in POSTS {
        let output = run(post.command(&network), LIMIT).await;
        let what = format!("{:?} {} {}: {}", post.flaw, post.deposit, post.stake, output.stderr);
        assert!(!output.ok && !output.stderr.contains("panicked"), "{what}");
        for word in post.words {
            assert!(output.stderr.contains(word), "`{word}` is not in {what}");
        }
        if post.posted {
            posted += 1;
            let returned = format!("job {posted} was cancelled and its escrow returned");
            assert!(output.stderr.contains(&returned), "`{returned}` is not in {what}");
        }
        assert_eq!(network.owned(address(USER)).await, has, "{what}");
        let stake = network.stake(WORKER).await;
        assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000"), 0), "{what}");
    }
    let events = network.events().await;
    let count = |is: fn(&Event) -> bool| events.iter().filter(|at| is(&at.event)).count();
    assert_eq!(count(|event| matches!(event, Event::JobPosted { .. })), posted);
    assert_eq!(count(|event| matches!(event, Event::JobSettled { .. })), posted);
    assert_eq!(count(|event| matches!(event, Event::JobAccepted { .. })), 0);
    assert_eq!(network.owned(worker_address(WORKER)).await, sno("1000"));
}

/// Its worker is gone once the job is posted.
#[tokio::test(flavor = "multi_thread")]
async fn who_gives_up_before_its_job_starts_has_the_escrow_back() {
    let mut network = Network::start(1).await;
    network.start_workers([WORKER]).await;
    let has = network.owned(address(USER)).await;
    let post = Post::FAIR.command(&network);
    network.spawn("post", post);
    network.said("post", "is posted", LIMIT).await;
    network.cut_worker(WORKER);
    let (ended_well, said) = network.stop("post");
    assert!(!ended_well && said.contains("job 1 was cancelled and its escrow returned"), "{said}");
    assert_eq!(network.owned(address(USER)).await, has);
    let stake = network.stake(WORKER).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000"), 0));
}

/// However little it asks; and where nobody else is left, the user is told what was needed.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_the_work_does_not_fit_is_passed_over() {
    const SMALL: usize = 2;
    let mut network = Network::start(3).await;
    network.start_small_worker(SMALL, "1KiB").await;
    network.start_workers(0..2).await;
    let job = Job { stages: 2, steps: 20, steps_per_interval: 10, ..Job::default() };
    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    assert!(!report.paid().contains_key(&worker_address(SMALL)), "{:?}", report.paid());

    let mut again = Job { stages: 3, ..job }.posting(&network);
    again.args(["--dry-run", "--patience", "1"]);
    let output = run(again, LIMIT).await;
    assert!(!output.ok && !output.stderr.contains("panicked"), "{}", output.stderr);
    for part in ["no set of the 3 workers that answer fits", "tightest is stage", "1.0 KiB is left for it"] {
        assert!(output.stderr.contains(part), "`{part}` is not in {}", output.stderr);
    }
}

/// The cheapest is gone when it is asked for its offer.
#[tokio::test(flavor = "multi_thread")]
async fn where_one_does_not_answer_the_next_is_asked() {
    const GONE: usize = 1;
    let mut network = Network::start(2).await;
    network.start_small_worker(GONE, "256MiB").await;
    network.start_workers([0]).await;
    let job = Job { stages: 1, steps: 20, steps_per_interval: 10, ..Job::default() };
    job.post(&mut network);
    // It is chosen by now.
    network.said("user", "calibrating and compiling", LIMIT).await;
    network.cut_worker(GONE);
    // It is asked again for two minutes: it may have been starting.
    network.said("user", &format!("asking {} instead", worker_address(0)), LONG).await;
    let report = job.settled(&mut network, LONG).await;
    report.assert_finished(&job);
    assert!(!report.paid().contains_key(&worker_address(GONE)), "{:?}", report.paid());
}
