//! Jobs in which somebody lies.

use serde_json::{Value, json};
use tensorlink_node::ports::chain::{Event, EventAt, Fault};
use tensorlink_proof::challenge::Told;
use tensorlink_types::{Address, U256};

use crate::harness::{
    Job, LIMIT, LONG, Network, PURSE, Purses, Report, Slash, Subject, USER, VALIDATOR, address, eventually, run, sno,
    whole_sno, worker_address,
};

/// Long enough for an audit on a busy machine, so that the verdict comes before finality.
const WINDOW: u32 = 20;
/// Worker 1 lies.
const LIAR: usize = 1;

/// A job whose second interval holds a lie.
const JOB: Job = Job {
    stages: 2,
    replicas: 1,
    steps: 60,
    steps_per_interval: 20,
    token: "sno",
    subject: Subject::Digits,
    challenge_window: WINDOW,
};
const LIE: u32 = 30;
/// The same as a setting of a villain.
const STEP: (&str, &str) = ("STEP", "30");

/// What `tensorlink dispute …` prints for programs, to somebody who has no key.
async fn look(network: &Network, arguments: &[&str]) -> Vec<Value> {
    let mut command = network.command(USER, &["--json", "dispute"]);
    command.args(arguments).env_remove("TENSORLINK_PRIVATE_KEY");
    run(command, LIMIT).await.json()
}

/// The explanation holds all of these.
fn assert_told(explained: &Value, words: &[&str]) {
    let text = explained["text"].as_str().unwrap_or_else(|| panic!("no text in {explained}"));
    for word in words {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_element_costs_the_stake_and_nobody_else_loses() {
    let mut network = Network::start(2).await;
    let before = Purses::of(&network, 2).await;
    network.start_workers([0]).await;
    network.start_villain(LIAR, LIE).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();

    let convicted = report.pick(|event| match event {
        Event::Convicted { worker, auditor, fault, step, claimed, recomputed, .. } => {
            assert_ne!(claimed, recomputed);
            Some((*worker, *auditor, *fault, *step))
        }
        _ => None,
    });
    assert_eq!(convicted, [(worker_address(LIAR), address(VALIDATOR), Fault::Element, LIE)]);

    // Just what was at risk in this lane, in one transaction.
    let verdict = report.verdict(&network).await;
    verdict.assert_signed();
    before.assert_only_stakes_paid(&network, &report).await;
    let (amount, bounty) = (verdict.slash.amount, verdict.slash.bounty);
    assert_eq!(report.slashed().len(), 1, "nobody else");
    let stake = network.stake(LIAR).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000") - amount, 0));
    let stake = network.stake(0).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000"), 0), "the honest worker lost nothing");

    // The lie is in the second interval: the liar's first claim was right and is paid, later ones are void.
    let paid = report.paid();
    assert_eq!(paid.get(&worker_address(LIAR)).map(|(claims, _)| *claims), Some(1), "{paid:?}");
    let honest = paid.get(&worker_address(0)).map_or(0, |(claims, _)| *claims);
    assert!((1..=JOB.intervals()).contains(&honest), "the honest lane is paid for what is final: {paid:?}");
    let voided = report.pick(|event| match event {
        Event::ClaimsVoided { lane, from } => Some((lane.stage, *from)),
        _ => None,
    });
    assert_eq!(voided.iter().map(|(_, from)| *from).min(), Some(1), "{voided:?}");
    assert!(report.refund() > U256::ZERO);
    assert_eq!(report.json["convictions"][0]["fault"], "element");
    assert!(report.json["held_out_percent"].is_null(), "an unfinished job has no model to test: {}", report.json);
    network.await_auditor_owns(address(VALIDATOR), sno(PURSE) + bounty, "the bounty is new").await;
    assert_explained(&network, &report, &verdict.slash).await;
}

/// Anybody can read off the chain what happened, in the words of the model.
async fn assert_explained(network: &Network, report: &Report, slash: &Slash) {
    let convicted = report.events.iter().find_map(|at| match &at.event {
        Event::Convicted { claim, operator, element, claimed, recomputed, .. } => {
            Some((*claim, at.transaction.to_string(), (*operator, *element), (claimed.clone(), recomputed.clone())))
        }
        _ => None,
    });
    let (claim, transaction, (operator, element), (claimed, recomputed)) = convicted.unwrap();
    let explained = look(network, &["explain", "--claim", &claim.to_string()]).await.remove(0);
    let (shown, found) = (&explained["conviction"], &explained["conviction"]["found"]);
    let name = found["operator"]["name"].as_str().unwrap_or_else(|| panic!("no name in {explained}"));
    assert!(name.ends_with(".matmul[mb 0]"), "the first product of the step: {name}");
    assert_eq!(found["opcode"], "mat_mul");
    assert_eq!(
        (&shown["fault"], &shown["step"], &shown["operator"]),
        (&json!("element"), &json!(LIE), &json!(operator))
    );
    assert_eq!((&shown["claimed"], &shown["recomputed"]), (&json!(claimed), &json!(recomputed)));
    assert_eq!((&shown["sent"]["transaction"], &shown["element"]), (&json!(transaction), &json!(element)));
    assert_eq!(shown["sent"]["cost"]["sender"], json!(address(VALIDATOR)));
    let numbers = |value: &Value| value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect::<Vec<_>>();
    let (place, dims) = (numbers(&found["place"]), numbers(&found["output"]["dims"]));
    assert_eq!(place.iter().zip(&dims).fold(0, |flat, (at, dim)| flat * dim + at), element, "{place:?} in {dims:?}");
    assert_told(
        &explained,
        &[
            "was convicted: it got a number wrong",
            &format!("at step {LIE}, the 11th of interval 1, in the output of operator {operator} `{name}` (MatMul)"),
            &format!("Element {element} stands at {place:?} of shape {dims:?}:"),
            &format!("  claimed   {claimed}"),
            &format!("  expected  {recomputed}"),
            &format!("{} loses {} SNO of its stake", worker_address(LIAR), whole_sno(slash.amount)),
            &format!("{} gets {} SNO of it", address(VALIDATOR), whole_sno(slash.bounty)),
            &format!("{} gets {} SNO of it", address(USER), whole_sno(slash.harm)),
            &format!("nobody      gets {} SNO of it: they are burned", whole_sno(slash.burned)),
            &format!("  conviction  {transaction}"),
        ],
    );
    let listed = look(network, &["list", "--job", "1"]).await;
    assert_eq!((listed.len(), &listed[0]["what"], &listed[0]["claim"]), (1, &json!("conviction"), &json!(claim)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validator_that_was_away_still_convicts() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain(LIAR, LIE).await;
    JOB.post(&mut network);
    // The lie comes to the chain while nobody looks.
    let started = network.await_event("the job starts", LIMIT, |event| match event {
        Event::JobStarted { .. } => Some(()),
        _ => None,
    });
    started.await;
    network.cut_validator();
    let wrong = network.await_event("the wrong claim", LIMIT, |event| match event {
        Event::ClaimCommitted { claim, .. } if claim.interval == LIE / JOB.steps_per_interval => Some(()),
        _ => None,
    });
    wrong.await;
    let unseen = network.events().await.iter().all(|at| !matches!(at.event, Event::Convicted { .. }));
    assert!(unseen, "somebody looked");
    network.start_validator().await;
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    report.verdict(&network).await.assert_signed();
    let slashed: Vec<Address> = report.slashed().iter().map(|slashed| slashed.0).collect();
    assert_eq!(slashed, [worker_address(LIAR)]);
}

/// Two replicas of one stage, one of which lies in one element, and nobody else: the only validator leaves as soon as
/// all have met.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_differs_is_convicted_by_the_honest_one() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain(LIAR, LIE).await;
    let job = Job { stages: 1, replicas: 2, ..JOB };
    job.post(&mut network);
    let started = |event: &Event| matches!(event, Event::JobStarted { .. }).then_some(());
    network.await_event("the job starts", LIMIT, started).await;
    network.cut_validator();
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_accounts();

    let wrong = LIE / job.steps_per_interval;
    let differ = report.pick(|event| match event {
        Event::ReplicasDiffer { stage, interval, .. } => Some((*stage, *interval)),
        _ => None,
    });
    assert_eq!(differ.first(), Some(&(0, wrong)), "{differ:?}");
    assert!(differ.iter().all(|(_, interval)| *interval >= wrong), "what was right was the same: {differ:?}");
    let convicted = report.pick(|event| match event {
        Event::Convicted { worker, auditor, fault, step, .. } => Some((*worker, *auditor, *fault, *step)),
        _ => None,
    });
    assert_eq!(convicted, [(worker_address(LIAR), worker_address(0), Fault::Element, LIE)]);
    report.verdict(&network).await.assert_signed();
    let slashed: Vec<Address> = report.slashed().iter().map(|slashed| slashed.0).collect();
    assert_eq!(slashed, [worker_address(LIAR)], "nobody else");

    // Both had revealed the interval in which they differ: the honest one is paid for it and for the one before.
    let paid = report.paid();
    let honest = paid.get(&worker_address(0)).map_or(0, |(claims, _)| *claims);
    assert!((wrong + 1..=job.intervals()).contains(&honest), "{paid:?}");
    assert_eq!(paid.get(&worker_address(LIAR)).map(|(claims, _)| *claims), Some(wrong), "{paid:?}");
    let stake = network.stake(0).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000"), 0), "the honest worker lost nothing");
    assert_eq!(report.json["differences"][0], format!("stage 0, interval {wrong}"));
}

/// What a challenge cost and brought: its answers, how it ended, and that the auditor has its bond and the bounty.
async fn assert_forced(network: &Network, report: &Report, fault: Fault) -> usize {
    let convicted = report.convicted();
    assert_eq!(convicted, [(worker_address(LIAR), address(VALIDATOR), fault)]);
    let ends = report.pick(|event| match event {
        Event::Challenge { told: Told::Won { silence }, .. } => Some(*silence),
        Event::Challenge { told: Told::Lost, .. } => panic!("a challenge was lost"),
        _ => None,
    });
    assert_eq!(ends, [fault == Fault::Silence]);
    let slashed: Vec<Address> = report.slashed().iter().map(|slashed| slashed.0).collect();
    assert_eq!(slashed, [worker_address(LIAR)], "nobody else");
    let bounty = Slash::of_a_lane(false).bounty;
    network.await_auditor_owns(address(VALIDATOR), sno(PURSE) + bounty, "bond and bounty").await;
    let answers =
        report.pick(|event| matches!(event, Event::Challenge { told: Told::Answered { .. }, .. }).then_some(()));
    let verdict = report.verdict(network).await;
    verdict.assert_split();
    assert_eq!(verdict.challenges, 1, "{verdict}");
    assert!(verdict.transactions > answers.len() + 1, "each answer, its question and the end: {verdict}");
    assert_game_told(network, report, fault).await;
    answers.len()
}

/// The challenge that was won can be read off the chain, move by move.
async fn assert_game_told(network: &Network, report: &Report, fault: Fault) {
    let won = report.pick(|event| match event {
        Event::Challenge { challenge, told: Told::Won { .. } } => Some(*challenge),
        _ => None,
    });
    let number = won[0].to_string();
    let moves = report.pick(|event| match event {
        Event::Challenge { challenge, told } if *challenge == won[0] => match told {
            Told::Asked { .. } => Some("asked"),
            Told::Answered { .. } => Some("answered"),
            Told::Won { .. } => Some("won"),
            Told::Established { .. }
            | Told::Stated { .. }
            | Told::LogsGiven { .. }
            | Told::Funded { .. }
            | Told::Charged { .. }
            | Told::Lost => None,
        },
        _ => None,
    });
    let explained = look(network, &["explain", &number]).await.remove(0);
    let game = &explained["challenges"][0];
    let deeds: Vec<&str> =
        game["moves"].as_array().unwrap().iter().map(|step| step["deed"].as_str().unwrap()).collect();
    assert_eq!((deeds, &game["state"]), (moves, &json!("won")));
    let costs = game["moves"].as_array().unwrap().iter().map(|step| step["cost"]["gas"].as_u64());
    assert!(costs.flatten().all(|gas| gas > 21_000), "{game}");
    let title = match fault {
        Fault::Silence => "was convicted: it did not answer a challenge in time",
        _ => "was convicted: it got a number wrong",
    };
    let made = format!("Challenge {number}: {} made the worker answer on chain", address(VALIDATOR));
    let back = format!("{} has its 10 SNO for challenge {number} back", address(VALIDATOR));
    assert_told(&explained, &[title, &made, &back]);
    let shown = network.run(USER, &["dispute", "show", &number]).await;
    assert!(shown.ok && shown.stdout.contains("clocks: challenger"), "{shown:?}");
    let listed = look(network, &["list"]).await;
    let kinds: Vec<&str> = listed.iter().map(|row| row["what"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"challenge") && kinds.contains(&"conviction"), "{listed:?}");
}

/// A job whose claims can be challenged for longer than it takes to see that a worker does not answer.
const SLOW: Job = Job { challenge_window: 60, ..JOB };
/// Base fee of a block, wei: many times that at which a challenge was opened.
const DEAR: u64 = 5_000_000_000;
/// Seconds that either side of a challenge has, where a silent one is waited for: enough for a whole game on a
/// busy machine.
const CLOCK: u32 = 30;

/// A network of two workers with such clocks.
async fn impatient() -> Network {
    let mut network = Network::staked(2, |parameters| parameters.disputeClock = CLOCK).await;
    network.start_validator().await;
    network
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_no_auditor_is_walked_to_its_lie_on_chain() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain_as(LIAR, &[STEP, ("MUTE", "true")]).await;
    SLOW.post(&mut network);
    // The validator is killed in the middle of the game, and finds it again.
    let answered = network.await_event("the first answer", LONG, |event| match event {
        Event::Challenge { told: Told::Answered { .. }, .. } => Some(()),
        _ => None,
    });
    answered.await;
    network.cut_validator();
    network.start_validator().await;
    let report = SLOW.settled(&mut network, LONG).await;
    report.assert_accounts();
    let answers = assert_forced(&network, &report, Fault::Element).await;
    assert!(answers >= 3, "steps, statement and output at least: {answers}");
    let step = report.pick(|event| match event {
        Event::Convicted { step, .. } => Some(*step),
        _ => None,
    });
    assert_eq!(step, [LIE]);
}

/// Waits until a challenged worker has given so many answers.
async fn await_answers(network: &Network, count: usize) {
    let answered = |at: &EventAt| matches!(at.event, Event::Challenge { told: Told::Answered { .. }, .. });
    let enough = async || (network.events().await.iter().filter(|at| answered(at)).count() >= count).then_some(());
    eventually("its answers", LONG, enough).await;
}

/// The worker is killed in the middle of the game; then its last answer is undone, and whatever else the blocks held.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_killed_within_a_game_that_a_reorganisation_sets_back_is_walked_to_its_lie() {
    let liar = [STEP, ("MUTE", "true")];
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain_as(LIAR, &liar).await;
    SLOW.post(&mut network);
    await_answers(&network, 1).await;
    network.cut_worker(LIAR);
    network.start_villain_as(LIAR, &liar).await;
    await_answers(&network, 2).await;
    network.reorganise(3).await;
    let report = SLOW.settled(&mut network, LONG).await;
    report.assert_accounts();
    assert!(assert_forced(&network, &report, Fault::Element).await >= 3);
}

/// Nobody tells the validator what went from stage to stage, so that it computes all of them. Gas becomes dear within
/// the game: what was put up for the worker's does not do, and more is.
#[tokio::test(flavor = "multi_thread")]
async fn who_lies_among_workers_that_answer_no_auditor_is_walked_to_its_lie_all_the_same() {
    let mut network = Network::start(2).await;
    network.start_dear_villain_as(0, &[("HONEST", "true"), ("MUTE", "true")]).await;
    network.start_villain_as(LIAR, &[STEP, ("MUTE", "true")]).await;
    SLOW.post(&mut network);
    await_answers(&network, 1).await;
    network.set_base_fee(DEAR).await;
    let report = SLOW.settled(&mut network, LONG).await;
    report.assert_accounts();
    assert!(assert_forced(&network, &report, Fault::Element).await >= 3);
    let deposits = report.pick(|event| match event {
        Event::Challenge { told: Told::Funded { amount }, .. } => Some(*amount),
        _ => None,
    });
    assert!(deposits.len() > 1 && deposits[1] > deposits[0], "{deposits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_gone_when_its_lie_is_challenged_is_convicted_of_silence() {
    let mut network = impatient().await;
    network.start_workers([0]).await;
    network.start_villain_as(LIAR, &[STEP, ("MUTE", "true")]).await;
    SLOW.post(&mut network);
    let hired = network.await_event("the job is accepted", LONG, |event| match event {
        Event::JobAccepted { offers, .. } => {
            offers.iter().find(|offer| offer.worker == worker_address(LIAR)).map(|offer| offer.stage)
        }
        _ => None,
    });
    let (stage, interval) = (hired.await, LIE / JOB.steps_per_interval);
    let wrong = network.await_event("the wrong claim", LONG, |event| match event {
        Event::ClaimCommitted { claim, .. } if (claim.stage, claim.interval) == (stage, interval) => Some(()),
        _ => None,
    });
    wrong.await;
    network.cut_worker(LIAR);
    let report = SLOW.settled(&mut network, LONG).await;
    report.assert_accounts();
    assert_eq!(assert_forced(&network, &report, Fault::Silence).await, 0, "it said nothing");
}

/// Its own claim is right, and its neighbour's, given what that was sent: only the two together show who is to blame.
#[tokio::test(flavor = "multi_thread")]
async fn who_tells_its_neighbour_something_else_than_it_claims_is_convicted_of_it() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain_as(LIAR, &[STEP, ("FORK", "true")]).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    let convicted = report.convicted();
    assert_eq!(
        convicted,
        [(worker_address(LIAR), worker_address(0), Fault::Equivocation)],
        "to its neighbour's credit"
    );
    report.verdict(&network).await.assert_signed();
    let slashed: Vec<Address> = report.slashed().iter().map(|slashed| slashed.0).collect();
    assert_eq!(slashed, [worker_address(LIAR)], "the neighbour, which was misled, lost nothing");
    let stake = network.stake(0).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000"), 0));
    let claim = report.pick(|event| match event {
        Event::Convicted { claim, .. } => Some(claim.to_string()),
        _ => None,
    });
    let explained = look(&network, &["explain", "--claim", &claim[0]]).await.remove(0);
    assert_told(&explained, &["one thing and the chain another", "signed to its neighbour at stage"]);
}

/// How many answers a liar with such a tongue gives, before it is convicted of silence.
async fn answers_of(tongue: &str) -> usize {
    let mut network = impatient().await;
    network.start_workers([0]).await;
    network.start_villain_as(LIAR, &[STEP, ("MUTE", "true"), ("TONGUE", tongue)]).await;
    SLOW.post(&mut network);
    let report = SLOW.settled(&mut network, LONG).await;
    report.assert_accounts();
    assert_forced(&network, &report, Fault::Silence).await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_falls_silent_at_the_last_question_is_convicted_of_silence() {
    assert!(answers_of("silent_at_last").await >= 2, "states and statement at least");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_with_junk_is_convicted_of_silence() {
    assert_eq!(answers_of("junk").await, 0, "junk is no answer");
}

/// What does not fit in an answer; how many answers are taken before the first that is not: states, statement and
/// trace; why that is not.
const INCONSISTENT: [(&str, usize, &str); 6] = [
    ("count", 0, "WrongState"),
    // What it says is a list that leads to its claim: it is taken. Of a step from a state to itself the node then has
    // no record to sign.
    ("first", 1, "does not hold what is asked for"),
    ("last", 0, "WrongState"),
    ("wiring", 1, "WrongProgram"),
    ("attributes", 1, "WrongProgram"),
    ("data_root", 2, "WrongAnswer"),
];

/// Replicas that lie alike, each of which answers for it in its own inconsistent way. What does not fit is no answer,
/// so that their clocks run out.
#[tokio::test(flavor = "multi_thread")]
async fn who_answers_with_roots_that_do_not_fit_is_convicted_of_silence() {
    let workers = INCONSISTENT.len();
    let mut network = Network::staked(workers, |parameters| parameters.disputeClock = CLOCK).await;
    // Bonds of all challenges at once.
    network.fund(address(VALIDATOR), "50").await;
    network.start_validator().await;
    let before = Purses::of(&network, workers).await;
    for (worker, (what, ..)) in INCONSISTENT.iter().enumerate() {
        let tongue = json!({ "inconsistent": what }).to_string();
        network.start_villain_as(worker, &[("STEP", "10"), ("MUTE", "true"), ("TONGUE", &tongue)]).await;
    }
    let job = Job { stages: 1, replicas: workers as u16, steps: 20, ..SLOW };
    job.post(&mut network);
    let report = job.settled(&mut network, LONG).await;
    report.assert_accounts();

    let verdicts = report.verdicts(&network).await;
    assert_eq!(verdicts.len(), workers, "{verdicts:?}");
    for (worker, (what, wanted, refusal)) in INCONSISTENT.iter().enumerate() {
        let liar = worker_address(worker);
        let verdict = verdicts.iter().find(|verdict| verdict.worker == liar).unwrap();
        assert_eq!((verdict.auditor, verdict.fault), (address(VALIDATOR), Fault::Silence), "{what}");
        assert_eq!(answers_by(&report, liar), *wanted, "{what}");
        network.said(&format!("worker-{worker}"), refusal, LIMIT).await;
        // The opening and the timeout, and each answer with the question that follows it.
        assert_eq!((verdict.challenges, verdict.transactions), (1, 2 + 2 * wanted), "{what}: {verdict}");
    }
    before.assert_only_stakes_paid(&network, &report).await;
}

/// Answers of a worker in the challenge of its claim.
fn answers_by(report: &Report, accused: Address) -> usize {
    let challenges = report.pick(|event| match event {
        Event::ChallengeOpened { challenge, worker, .. } if *worker == accused => Some(*challenge),
        _ => None,
    });
    let answered = report.pick(|event| match event {
        Event::Challenge { challenge, told: Told::Answered { .. } } => Some(*challenge),
        _ => None,
    });
    answered.iter().filter(|challenge| challenges.contains(challenge)).count()
}
