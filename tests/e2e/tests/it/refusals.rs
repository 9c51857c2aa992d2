//! What the command line says to bad input: the cause, and what to do about it.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tensorlink_node::ports::EventAt;
use tensorlink_node::ports::chain::{Deployment, Event};
use tensorlink_types::{B256, JobId};

use crate::harness::{LIMIT, Model, Network, Output, Subject, USER, run, tensorlink, worker_address};

/// An endpoint that refuses connections.
const NOBODY: &str = "ws://127.0.0.1:1";
const KEY: &str = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const DEPLOYMENT: &str = r#"
chain_id = 1
block = 0
sno = "0x0000000000000000000000000000000000000011"
staking = "0x0000000000000000000000000000000000000012"
jobs = "0x0000000000000000000000000000000000000013"
checkpoints = "0x0000000000000000000000000000000000000014"
channels = "0x0000000000000000000000000000000000000017"
disputes = "0x0000000000000000000000000000000000000015"
challenges = "0x0000000000000000000000000000000000000018"
custody = "0x000000000000000000000000000000000000001f"
audits = "0x0000000000000000000000000000000000000019"
beacon = "0x000000000000000000000000000000000000001a"
step_verifier = "0x0000000000000000000000000000000000000016"
"#;

/// A folder with what commands without a network read.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write("model.json", Model { steps: 60 }.json().to_string());
        files.write("data.csv", csv(40, 4));
        files.write("deployment.toml", DEPLOYMENT);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// With a key, and an endpoint that refuses connections.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tensorlink();
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env("TENSORLINK_PRIVATE_KEY", KEY)
            .env("TENSORLINK_RPC", NOBODY)
            .env("TENSORLINK_DEPLOYMENT", self.path("deployment.toml"));
        command
    }
}

/// Rows of numbers with two classes in the last column.
fn csv(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let mut cells: Vec<String> = (0..columns).map(|column| ((row * 7 + column * 3) % 11).to_string()).collect();
        cells.push(["even", "odd"][row % 2].to_owned());
        cells.join(",") + "\n"
    };
    (0..rows).map(row).collect()
}

/// It failed, with an error that holds every word.
fn assert_refused(output: &Output, words: &[&str]) {
    assert!(!output.ok, "not refused; it said {} {}", output.stdout, output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    let error = output.stderr.split_once("error: ").map(|(_, error)| error);
    let error = error.unwrap_or_else(|| panic!("no error in {}", output.stderr));
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
}

/// The bytes of a safetensors file with one tensor of zeros, except for its first number.
fn safetensors(name: &str, shape: [usize; 2], first: f32) -> Vec<u8> {
    let bytes = shape[0] * shape[1] * 4;
    let header = json!({ name: { "dtype": "F32", "shape": shape, "data_offsets": [0, bytes] } }).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(first.to_le_bytes());
    file.resize(8 + header.len() + bytes, 0);
    file
}

#[tokio::test]
async fn keys_that_are_missing_or_malformed() {
    let files = Files::new();
    let mut command = files.command(&["key", "address"]);
    command.env_remove("TENSORLINK_PRIVATE_KEY");
    assert_refused(&run(command, LIMIT).await, &["no key", "tensorlink key new", "TENSORLINK_PRIVATE_KEY"]);

    let zero = "0".repeat(64);
    for malformed in ["deadbeefcafe", &KEY[..63], "not a key at all", &zero] {
        let mut command = files.command(&["balance"]);
        command.env("TENSORLINK_PRIVATE_KEY", malformed);
        let output = run(command, LIMIT).await;
        assert_refused(&output, &["TENSORLINK_PRIVATE_KEY"]);
        assert!(!output.stderr.contains(malformed) && !output.stdout.contains(malformed), "it shows the key");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_or_never_answers() {
    let files = Files::new();
    // Takes connections, says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    // All at once: each waits for time limits of its own.
    let asked = |arguments: &[&str], endpoint: &str| {
        let mut command = files.command(arguments);
        command.env("TENSORLINK_RPC", endpoint);
        run(command, LIMIT)
    };
    let (ws, http) = (format!("ws://{address}"), format!("http://{address}"));
    let outputs = futures::join!(
        asked(&["balance"], NOBODY),
        asked(&["dispute", "list"], NOBODY),
        asked(&["balance"], "gopher://example"),
        asked(&["balance"], &ws),
        asked(&["balance"], &http),
    );
    for output in [outputs.0, outputs.1, outputs.2, outputs.3, outputs.4] {
        assert_refused(&output, &["--rpc"]);
        assert!(output.took < Duration::from_secs(150), "{:?}", output.took);
    }
}

#[tokio::test]
async fn deployment_files_that_do_not_fit() {
    let files = Files::new();
    let mut command = files.command(&["balance"]);
    command.env("TENSORLINK_DEPLOYMENT", files.path("nowhere.toml"));
    assert_refused(&run(command, LIMIT).await, &["nowhere.toml", "--deployment"]);
    files.write("half.toml", "chain_id = 1\n");
    let mut command = files.command(&["balance"]);
    command.env("TENSORLINK_DEPLOYMENT", files.path("half.toml"));
    assert_refused(&run(command, LIMIT).await, &["half.toml", "block"]);
}

/// What is wrong, the model, the data, what the error says.
type ModelCase = (&'static str, Value, String, &'static [&'static str]);

fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut model = Model { steps: 60 }.json();
    change(&mut model);
    model
}

fn model_cases() -> Vec<ModelCase> {
    let data = || csv(40, 4);
    let with = |change: fn(&mut Value)| changed(change);
    let mut ragged = data();
    ragged.push_str("1,2,odd\n");
    let mut text = data();
    text.push_str("1,2,three,4,odd\n");
    let mut infinite = data();
    infinite.push_str("1,2,NaN,4,odd\n");
    vec![
        (
            "unknown layer",
            with(|m| m["layers"][0]["kind"] = "convolution".into()),
            data(),
            &["layers[0]", "convolution", "linear"],
        ),
        ("unknown field", with(|m| m["stepz"] = 5.into()), data(), &["stepz"]),
        ("missing field", with(|m| drop(m.as_object_mut().unwrap().remove("steps"))), data(), &["steps"]),
        ("no steps", with(|m| m["steps"] = 0.into()), data(), &["steps"]),
        ("too wide a layer", with(|m| m["layers"][0]["out"] = 4097.into()), data(), &["4097", "4096"]),
        ("too wide data", with(|_| ()), csv(4, 4097), &["4096"]),
        ("no data", with(|_| ()), String::new(), &["0 rows", "2"]),
        ("a row too short", with(|_| ()), ragged, &["row 41", "3 columns", "5"]),
        ("text among numbers", with(|_| ()), text, &["row 41", "column 3", "three"]),
        ("not a number", with(|_| ()), infinite, &["row 41", "column 3", "NaN"]),
    ]
}

#[tokio::test]
async fn models_and_data_that_cannot_be_trained() {
    let files = Files::new();
    for (what, model, data, words) in model_cases() {
        files.write("bad.json", model.to_string());
        files.write("bad.csv", data);
        let output = run(files.command(&["model", "inspect", "bad.json", "--data", "bad.csv"]), LIMIT).await;
        eprintln!("{what}: {}", output.stderr.trim());
        assert_refused(&output, words);
    }
    let output = run(files.command(&["model", "inspect", "none.json", "--data", "data.csv"]), LIMIT).await;
    assert_refused(&output, &["none.json"]);
    files.write("bad.json", "{ \"name\": ");
    let output = run(files.command(&["model", "inspect", "bad.json", "--data", "data.csv"]), LIMIT).await;
    assert_refused(&output, &["bad.json", "line 1"]);
}

/// What is wrong, what becomes of the model, the text, what the error says.
type TextCase = (&'static str, fn(&mut Value), Vec<u8>, &'static [&'static str]);

/// A text that the decoder can be trained on.
fn text() -> Vec<u8> {
    b"In the beginning was the Word. ".repeat(20)
}

fn text_cases() -> Vec<TextCase> {
    let latin1 = [&text()[..], b"\xe9"].concat();
    vec![
        ("another encoding", |_| (), latin1, &["byte 620", "UTF-8"]),
        ("no text", |_| (), Vec::new(), &["0 different characters"]),
        ("one character", |_| (), b"a".repeat(600), &["1 different characters"]),
        ("a text of a line", |_| (), text()[..32].to_vec(), &["32 tokens or characters", "33", "shorter context"]),
        (
            "heads that are no part of it",
            |m| m["decoder"]["heads"] = 3.into(),
            text(),
            &["heads", "3", "divides width"],
        ),
        (
            "keys and values shared by no whole number of heads",
            |m| m["decoder"]["kv_heads"] = 3.into(),
            text(),
            &["kv_heads", "3", "divisor of heads"],
        ),
        ("no context", |m| m["decoder"]["context"] = 1.into(), text(), &["context", "1", "2 to 4096"]),
        ("too many layers", |m| m["decoder"]["layers"] = 129.into(), text(), &["layers", "129", "1 to 128"]),
        (
            "a rate below nothing",
            |m| m["optimizer"]["learning_rate"] = json!(-0.01),
            text(),
            &["learning_rate", "-0.01"],
        ),
        ("an absurd rate", |m| m["optimizer"]["learning_rate"] = json!(1e9), text(), &["learning_rate", "1000000000"]),
        ("nothing is kept", |m| m["dropout"] = json!(1.0), text(), &["dropout", "1"]),
        ("no sequences", |m| m["sequences"] = 0.into(), text(), &["sequences", "0"]),
        ("operands of nine bits", |m| m["operand_bits"] = 9.into(), text(), &["operand_bits", "9"]),
        ("a model that is not there", |m| m["from"] = json!({ "folder": "none", "context": 16 }), text(), &["from"]),
    ]
}

#[tokio::test]
async fn decoders_and_texts_that_cannot_be_trained() {
    let files = Files::new();
    let inspect = || files.command(&["model", "inspect", "bad.json", "--data", "bad.txt"]);
    let decoder = Subject::KingJames.model(60);
    files.write("bad.json", decoder.to_string());
    files.write("bad.txt", text());
    let told = run(inspect(), LIMIT).await;
    assert!(told.ok, "what is changed below is right before: {}", told.stderr);
    for (what, change, data, words) in text_cases() {
        let mut model = decoder.clone();
        change(&mut model);
        files.write("bad.json", model.to_string());
        files.write("bad.txt", data);
        let output = run(inspect(), LIMIT).await;
        eprintln!("{what}: {}", output.stderr.trim());
        assert_refused(&output, words);
    }
}

#[tokio::test]
async fn weights_that_are_no_numbers() {
    let files = Files::new();
    files.write("bad.json", changed(|model| model["weights"] = "weights.safetensors".into()).to_string());
    let inspect = || files.command(&["model", "inspect", "bad.json", "--data", "data.csv"]);
    assert_refused(&run(inspect(), LIMIT).await, &["weights.safetensors"]);
    files.write("weights.safetensors", b"not safetensors");
    assert_refused(&run(inspect(), LIMIT).await, &["weights.safetensors", "export"]);
    files.write("weights.safetensors", safetensors("layers.0.weight", [64, 4], f32::NAN));
    assert_refused(&run(inspect(), LIMIT).await, &["weights.safetensors", "layers.0.weight"]);
}

#[tokio::test]
async fn steps_that_do_not_divide_into_intervals_and_amounts_that_are_none() {
    let files = Files::new();
    let post = |extra: &[&str]| {
        let mut command = files.command(&["job", "post", "--model", "model.json", "--data", "data.csv"]);
        command.args(extra);
        command
    };
    let output = run(post(&["--deposit", "5", "--steps-per-interval", "7"]), LIMIT).await;
    assert_refused(&output, &["60 steps", "steps per interval", "30"]);
    let output = run(post(&["--deposit", "5", "--steps-per-interval", "0"]), LIMIT).await;
    assert_refused(&output, &["steps per interval"]);
    for amount in ["five", "-1", "1e30", ""] {
        let output = run(post(&["--steps-per-interval", "20", &format!("--deposit={amount}")]), LIMIT).await;
        assert!(!output.ok && output.stderr.contains("error: "), "--deposit={amount}: {}", output.stderr);
    }
}

#[tokio::test]
async fn help_shows_examples_and_json_parses() {
    let files = Files::new();
    let help: [&[&str]; 6] = [
        &["--help"],
        &["worker", "run", "--help"],
        &["validator", "run", "--help"],
        &["job", "post", "--help"],
        &["dispute", "--help"],
        &["dispute", "explain", "--help"],
    ];
    for arguments in help {
        let output = run(files.command(arguments), LIMIT).await;
        assert!(output.ok && output.stdout.contains("Example"), "{arguments:?}: {}", output.stdout);
    }
    let shown = run(files.command(&["key", "address", "--json"]), LIMIT).await.json();
    assert_eq!(shown, [json!({ "address": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8" })]);
    let inspect = ["model", "inspect", "model.json", "--data", "data.csv", "--stages", "2", "--json"];
    let shown = run(files.command(&inspect), LIMIT).await.json();
    assert_eq!((shown[0]["stages"].as_array().unwrap().len(), &shown[0]["classes"]), (2, &json!(2)));
}

/// Account of a worker without stake.
const POOR: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_lack_what_it_takes() {
    let network = Network::bare().await;
    let refused = async |arguments: &[&str], words: &[&str]| {
        let output = network.run(POOR, arguments).await;
        eprintln!("{arguments:?}: {}", output.stderr.trim());
        assert_refused(&output, words);
    };
    let own = worker_address(0).to_string();
    refused(&["stake", "5"], &["SNO", &own]).await;
    refused(&["unstake", "5"], &["refuses"]).await;
    refused(&["withdraw"], &["nothing to withdraw"]).await;
    refused(&["worker", "run", "--device", "cpu"], &[&own, "no bonded stake", "tensorlink stake"]).await;
    refused(&["validator", "run", "--device", "cpu"], &[&own, "collateral", "--role validator"]).await;
    refused(&["validator", "run", "--rate", "2"], &["--rate 2", "between 0 and 1"]).await;
    refused(&["worker", "run", "--device", "abacus"], &["abacus", "cpu"]).await;
    refused(&["job", "status", "7"], &["no job 7", "tensorlink job list"]).await;
    refused(&["dispute", "show", "7"], &["no challenge 7", "nobody has challenged anything"]).await;
    refused(&["dispute", "show"], &["--claim"]).await;
    refused(&["dispute", "list", "--job", "7"], &["no job 7", "tensorlink job list"]).await;
    let claim = format!("0x{}", "12".repeat(32));
    refused(&["dispute", "explain", "--claim", &claim], &["no claim 0x1212", "tensorlink dispute list"]).await;
    refused(&["dispute", "show", "--job", "7", "--stage", "0", "--interval", "0"], &["no job 7"]).await;
    refused(&["job", "cancel", "7"], &["no job 7", "tensorlink job list"]).await;
    refused(&["job", "watch", "7"], &["job 7"]).await;
    let balance = network.ok(POOR, &["balance", "--json"]).await.json();
    assert_eq!((&balance[0]["sno"], &balance[0]["worker"]["bonded"]), (&json!("0"), &json!("0")));

    // The same endpoint with the deployment of another chain.
    let other = network.path("other.toml");
    let text = std::fs::read_to_string(network.path("deployment.toml")).unwrap();
    std::fs::write(&other, text.replace("chain_id = 31337", "chain_id = 1")).unwrap();
    let mut command = network.command(POOR, &["balance"]);
    command.env("TENSORLINK_DEPLOYMENT", &other);
    assert_refused(&run(command, LIMIT).await, &["31337", "chain 1", "--deployment"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_peer_is_reached_workers_are_not_what_is_missing() {
    let (network, files) = (Network::bare().await, Files::new());
    let (model, data) = (files.path("model.json"), files.path("data.csv"));
    let (model, data) = (model.display().to_string(), data.display().to_string());
    let post = ["job", "post", "--model", &model, "--data", &data, "--steps-per-interval", "20", "--stages", "1"];
    let post = [post.as_slice(), &["--deposit", "1", "--patience", "1"]].concat();
    let dead = "/ip4/127.0.0.1/tcp/1/p2p/16Uiu2HAmPLe7Mzm8TsYUubgCAW1aJoeFScxrLj8ppHFivPo97bUZ";
    for (bootstrap, words) in [(None, ["no peer was reached", "--bootstrap"]), (Some(dead), ["tried", dead])] {
        let mut command = network.command(USER, &post);
        command.envs(bootstrap.map(|address| ("TENSORLINK_BOOTSTRAP", address)));
        let output = run(command, LIMIT).await;
        assert_refused(&output, &words);
        assert!(!output.stderr.contains("more workers"), "{}", output.stderr);
    }
}

/// A chain that was started anew has the same id and contracts at the same addresses.
#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_of_another_chain_is_refused_and_left_as_it_is() {
    let network = Network::bare().await;
    let watch = || network.run(POOR, &["job", "watch", "7"]);
    assert_refused(&watch().await, &["no job 7"]);
    let folder = network.path(&format!("data-{POOR}"));
    let record = folder.join("chain.json");
    let own = std::fs::read_to_string(&record).unwrap();
    let mut other: Value = serde_json::from_str(&own).unwrap();
    other["record"]["genesis"] = format!("0x{}", "5a".repeat(32)).into();
    let other = other.to_string();
    std::fs::write(&record, &other).unwrap();
    let (name, words) =
        (folder.display().to_string(), ["belongs to chain", "Nothing was changed", "--data-dir", "--rpc"]);
    let words: Vec<&str> = words.into_iter().chain([name.as_str()]).collect();
    for arguments in [
        &["job", "watch", "7"][..],
        &["worker", "run", "--device", "cpu"],
        &["validator", "run", "--device", "cpu"],
        &["challenge", "--job", "1", "--stage", "0", "--interval", "0"],
    ] {
        assert_refused(&network.run(POOR, arguments).await, &words);
        assert_eq!(std::fs::read_to_string(&record).unwrap(), other, "it is as it was");
    }
    std::fs::write(&record, own).unwrap();
    assert_refused(&watch().await, &["no job 7"]);

    // A folder of an earlier version has no record, and remembers events.
    std::fs::remove_file(&record).unwrap();
    let at = EventAt {
        block: 1,
        block_hash: B256::repeat_byte(0x5a),
        timestamp: 1,
        log_index: 0,
        transaction: B256::ZERO,
        event: Event::JobClosing { job: JobId(1), convicted: false },
    };
    let Deployment { chain_id, jobs, .. } = network.deployment();
    let events = folder.join(format!("events-{chain_id}-{jobs}.jsonl"));
    std::fs::write(&events, format!("{}\n", serde_json::to_string(&at).unwrap())).unwrap();
    assert_refused(&watch().await, &["another chain, whose blocks it remembers", "Nothing was changed"]);
    assert!(events.exists() && !record.exists());
}
