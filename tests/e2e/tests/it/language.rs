//! A decoder trained on text by strangers, and those among them who compute something else.

use std::path::Path;

use serde_json::{Value, json};
use tensorlink_node::ports::chain::{Event, Fault};

use crate::harness::{Job, LIMIT, Network, Subject, USER, worker_address};

/// The worker that plays all parts.
const VILLAIN: usize = 0;
const JOB: Job = Job {
    stages: 1,
    replicas: 1,
    steps: 4,
    steps_per_interval: 4,
    token: "sno",
    subject: Subject::KingJames,
    challenge_window: 40,
};
/// Where they begin.
const STEP: u32 = 2;

/// Operators of gradients, and what is done to them.
const GRADIENTS: [(&str, &str); 4] = [
    ("gather_grad", r#"{"flip":2}"#),
    ("inverse_norm", r#"{"flip":0}"#),
    // Of what a token sees: what it does not see leads nowhere, and is no wrong state.
    ("row_combine", r#"{"flip":0}"#),
    ("row_mul", r#"{"flip":9}"#),
];
/// The same of the optimiser, and of heads that share keys and values.
const OPTIMIZER: [(&str, &str); 4] = [
    ("group_sum", r#"{"flip":4}"#),
    ("ratio", r#"{"flip":5}"#),
    ("shrink", r#"{"flip":0}"#),
    ("at_step", r#"{"flip":0}"#),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_decoder_learns_on_two_workers() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let job = Job { stages: 2, steps: 60, steps_per_interval: 20, challenge_window: 6, ..JOB };
    let out = job.train(&mut network, "");
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    assert!(report.json["stopped"].is_null(), "{}", report.json);

    // More than its context holds, and the same each time.
    let one = sampled(&network, &out, &["--tokens", "24"]).await;
    assert_eq!((&one["tokens"], &one["prompt_tokens"]), (&json!(24), &json!(6)));
    let text = one["text"].as_str().unwrap();
    assert!(text.starts_with("In the") && text.chars().count() == 30, "{text:?}");
    assert_eq!(sampled(&network, &out, &["--tokens", "24"]).await, one);
    assert_ne!(sampled(&network, &out, &["--tokens", "24", "--seed", "1"]).await, one);
    let refused = network.run(USER, &["model", "sample", &out.display().to_string(), "--prompt", "In #"]).await;
    assert!(!refused.ok && refused.stderr.contains("'#'"), "{}", refused.stderr);
}

/// Two stages of an encoder, each of which draws the tokens that tell it what is padding.
#[tokio::test(flavor = "multi_thread")]
async fn an_encoder_learns_classes_on_two_workers() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let subject = Subject::Beginnings;
    let job = Job { stages: 2, steps: 80, steps_per_interval: 20, challenge_window: 6, subject, ..JOB };
    let out = job.train(&mut network, "");
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    let config: Value = serde_json::from_slice(&std::fs::read(out.join("config.json")).unwrap()).unwrap();
    assert_eq!(config["id2label"], json!({ "0": "and", "1": "other" }));
    let told = network.ok(USER, &["model", "inspect", &out.display().to_string()]).await;
    assert!(told.stdout.contains("2 classes"), "{}", told.stdout);
    // What was learned is served as it is.
    let serving = ["--json", "serve", "--no-auth", "--accept-loss", "--device", "cpu", "--http", "127.0.0.1:0"];
    let mut command = network.command(USER, &serving);
    command.arg(&out);
    network.spawn("gateway", command);
    let ready: Value = network.first_json("gateway", LIMIT).await;
    let model = out.file_name().unwrap().to_str().unwrap();
    let asked = json!({ "model": model, "input": ["And it came", "The king"] });
    let http = reqwest::Client::builder().no_proxy().timeout(LIMIT).build().unwrap();
    let request = http.post(format!("{}/classify", ready["url"].as_str().unwrap())).json(&asked);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    for item in answer["data"].as_array().unwrap_or_else(|| panic!("{answer}")) {
        let probs: Vec<f64> = serde_json::from_value(item["probs"].clone()).unwrap();
        assert!((probs.iter().sum::<f64>() - 1.0).abs() < 1e-9 && probs.len() == 2, "{answer}");
        assert_eq!(item["label"], if probs[0] >= probs[1] { "and" } else { "other" }, "{answer}");
    }
    assert_eq!(answer["data"].as_array().map(Vec::len), Some(2), "{answer}");
}

/// Of two that train an encoder, the one whose pooler or padding is another.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_tells_classes_otherwise_is_convicted_of_it() {
    let job = Job { subject: Subject::Beginnings, ..JOB };
    all_are_convicted(&[("lookup", r#"{"flip":3}"#), ("gather", r#"{"flip":1}"#)], &job).await;
}

/// What a trained model goes on with.
async fn sampled(network: &Network, folder: &Path, options: &[&str]) -> Value {
    let folder = folder.display().to_string();
    let mut arguments = vec!["--json", "model", "sample", &folder, "--prompt", "In the", "--device", "cpu"];
    arguments.extend(options);
    network.ok(USER, &arguments).await.json().remove(0)
}

/// Once with all its weights, and once with adapters beside them, which are then added in.
#[tokio::test(flavor = "multi_thread")]
async fn a_trained_model_is_trained_on() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let job = Job { stages: 2, steps: 40, steps_per_interval: 20, challenge_window: 6, ..JOB };
    let base = job.train(&mut network, "");
    let first = job.settled(&mut network, LIMIT).await.number("held_out_loss");

    let adapters = Job { subject: Subject::Adapters, ..job };
    let learned = adapters.train(&mut network, "");
    let report = adapters.settled(&mut network, LIMIT).await;
    assert!(report.number("held_out_loss") < first, "from {first}: {}", report.json);
    assert!(learned.join("adapter_config.json").exists() && !learned.join("model.safetensors").exists());
    let merged = network.path("merged");
    let [from, with, to] = [&base, &learned, &merged].map(|path| path.display().to_string());
    let told = network.ok(USER, &["--json", "model", "merge", &from, "--adapters", &with, "--out", &to]).await;
    // Queries and values of two blocks.
    assert_eq!(told.json()[0]["projections"], json!(4));

    let whole = Job { subject: Subject::TrainedOn, ..job };
    let tuned = whole.train(&mut network, "");
    let report = whole.settled(&mut network, LIMIT).await;
    assert!(report.number("held_out_loss") < first, "from {first}: {}", report.json);
    assert_eq!(report.paid().len(), 2);
    for folder in [merged, tuned] {
        let said = sampled(&network, &folder, &["--tokens", "24"]).await;
        assert_eq!(said["text"].as_str().unwrap().chars().count(), 30, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_has_learned_enough_is_stopped_and_leaves_its_model() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    // No improvement is large enough: it ends after the second interval or a few more.
    let job = Job { stages: 2, steps: 2000, steps_per_interval: 20, challenge_window: 6, ..JOB };
    let out = job.train(&mut network, "early_stop = { patience = 1, min_delta = 100.0 }");
    // Who follows it after an interruption does so by the same rules.
    job.taken_up_again(&mut network, &out, LIMIT).await;
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    assert!(report.json["stopped"]["stale"]["best"].as_f64().is_some(), "{}", report.json);
    let intervals = report.number("intervals") as u32;
    assert!((2..job.intervals()).contains(&intervals), "{}", report.json);
    // Whatever is claimed is paid; neighbours are at most an interval apart.
    assert!(
        report.paid().values().all(|(claims, _)| (intervals..=intervals + 1).contains(claims)),
        "{:?}",
        report.paid()
    );
    assert_eq!(report.paid().len(), job.lanes());
    assert!(report.number("held_out_loss") < 5.0, "{}", report.json);
    assert!(out.join("model.safetensors").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_tested_while_it_runs_and_stopped_by_what_it_knows_of_text_that_no_worker_saw() {
    const GOAL: f64 = 3.0;
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let job = Job { stages: 2, steps: 4000, steps_per_interval: 20, challenge_window: 6, ..JOB };
    let out = job.train(&mut network, &format!("evaluate_every = 2\nearly_stop = {{ loss = {GOAL} }}"));
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    let tests = report.json["evaluations"].as_array().unwrap();
    let of = |test: &Value| (test["steps"].as_u64().unwrap(), test["loss"].as_f64().unwrap());
    let ((last, low), before) = tests.split_last().map(|(last, before)| (of(last), before)).unwrap();
    assert!(before.iter().all(|test| of(test).1 > GOAL) && low <= GOAL, "{tests:?}");
    assert!(tests.iter().map(of).is_sorted_by(|one, next| one.0 < next.0), "{tests:?}");
    assert!(tests.iter().all(|test| of(test).0.is_multiple_of(40)), "{tests:?}");
    let reached = report.json["stopped"]["reached"]["loss"].as_f64();
    assert!(reached.is_some_and(|loss| (loss - low).abs() < 1e-6), "{}", report.json);
    // It may have gone on for a while when that was known.
    assert!(report.number("steps") >= last as f64 && report.number("intervals") < f64::from(job.intervals()));
    assert!(report.number("held_out_loss") < GOAL + 0.2 && out.join("model.safetensors").exists(), "{}", report.json);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_weights_outgrow_their_types_is_stopped_and_paid_to_there() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let subject = Subject::TooFast;
    let job = Job { stages: 2, steps: 2000, steps_per_interval: 20, challenge_window: 6, subject, ..JOB };
    job.train(&mut network, "");
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    assert!(report.json["stopped"]["saturated"]["share"].as_f64().is_some_and(|share| share > 0.05), "{}", report.json);
    // The interval in which it shows is paid, and nothing after, for no worker goes on. Which one that is, the job's
    // key decides.
    let halts = halts(&network);
    let (paid, shows) = (report.paid(), halts.first().copied().unwrap());
    assert!(halts.iter().all(|halt| *halt == shows) && shows < job.intervals(), "{halts:?}");
    assert!(paid.len() == job.lanes() && paid.values().all(|(claims, _)| *claims == shows), "{shows}: {paid:?}");
    assert_eq!(report.number("intervals") as u32, shows, "{}", report.json);
}

/// After how many intervals lanes were halted, by the records on their workers' disks.
fn halts(network: &Network) -> Vec<u32> {
    let data = std::fs::read_dir(network.path("")).unwrap().map(|entry| entry.unwrap().path().join("journal"));
    let records =
        data.filter_map(|journal| std::fs::read_dir(journal).ok()).flatten().map(|entry| entry.unwrap().path());
    let lanes = records.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("lane-"));
    let halted = lanes.filter_map(|path| {
        let record: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        record["record"]["halted"]["intervals"].as_u64()
    });
    halted.map(|intervals| intervals as u32).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_gives_other_gradients_is_convicted_of_it() {
    all_are_convicted(&GRADIENTS, &JOB).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_another_step_is_convicted_of_it() {
    all_are_convicted(&OPTIMIZER, &JOB).await;
}

/// By another key than the job's, and by none.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_drops_otherwise_is_convicted_of_it() {
    let job = Job { subject: Subject::Dropout, ..JOB };
    all_are_convicted(&[("dropout", r#""other_key""#), ("dropout", r#""stay""#)], &job).await;
}

/// One after another on one network, each in a job of its own.
async fn all_are_convicted(cast: &[(&str, &str)], job: &Job) {
    let mut network = Network::start(1).await;
    network.endow(VILLAIN, cast.len()).await;
    for (index, (operator, deed)) in cast.iter().enumerate() {
        network.start_part(VILLAIN, (STEP, operator, deed)).await;
        job.post(&mut network);
        let report = job.settled(&mut network, LIMIT).await;
        network.cut_worker(VILLAIN);
        let convicted = report.pick(|event| match event {
            Event::Convicted { worker, fault, step, claimed, recomputed, .. } => {
                assert_ne!(claimed, recomputed, "{operator}");
                Some((*worker, *fault, *step))
            }
            _ => None,
        });
        assert_eq!(convicted.len(), index + 1, "{operator}: {convicted:?}");
        assert_eq!(convicted.last(), Some(&(worker_address(VILLAIN), Fault::Element, STEP)), "{operator}");
        assert!(report.paid().is_empty(), "{operator}: nothing is paid for a wrong claim");
    }
}
