//! `tensorlink native` as its users meet it: two workers of one user, on this machine.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const USER: u8 = 1;
const STEPS: u64 = 24;

/// `tensorlink` of somebody.
fn tensorlink(folder: &Path, who: u8) -> Command {
    let mut command = crate::tensorlink(folder);
    command
        .env("TENSORLINK_PRIVATE_KEY", format!("0x{}", hex::encode([who; 32])))
        .env("TENSORLINK_DATA_DIR", folder.join(format!("data-{who}")))
        .env("TENSORLINK_LISTEN", "/ip4/127.0.0.1/tcp/0")
        .env("TENSORLINK_DEVICE", "cpu")
        .arg("--json");
    command
}

fn address(folder: &Path, who: u8) -> String {
    let output = tensorlink(folder, who).args(["key", "address"]).output().unwrap();
    json(&output)["address"].as_str().unwrap().to_owned()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A worker's process, which ends with the test.
struct Worker {
    process: Child,
    /// What its user gives as `--worker`.
    at: String,
}

impl Worker {
    fn start(folder: &Path, who: u8, user: &str) -> Self {
        let mut command = tensorlink(folder, who);
        command.args(["native", "work", "--for", user]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let up: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(up["provable"], false);
        Self { process, at: up["addresses"][0].as_str().unwrap().to_owned() }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// A small perceptron that learns which of two sums is larger.
fn job(folder: &Path) {
    let mut rows = String::from("a,b,c,d,class\n");
    for i in 0..200u32 {
        let [a, b, c, d] = [3, 7, 11, 13].map(|factor| i * i * factor % 17);
        writeln!(rows, "{a},{b},{c},{d},{}", if a + b > c + d { "more" } else { "less" }).unwrap();
    }
    std::fs::write(folder.join("sums.csv"), rows).unwrap();
    let job = format!(
        r#"data = "sums.csv"

[model]
name = "sums"
layers = [{{ kind = "linear", out = 16 }}, {{ kind = "relu" }}]
optimizer = {{ learning_rate = 0.05, momentum = 0.9 }}
batch_size = 32
micro_batches = 2
steps = {STEPS}
operand_bits = 8
seed = 3
"#
    );
    std::fs::write(folder.join("sums.toml"), job).unwrap();
}

/// A decoder too small to learn much.
fn decoder(folder: &Path) {
    let text: String = (0..400).map(|i| format!("{} sheep. ", i * 7 % 100)).collect();
    std::fs::write(folder.join("sheep.txt"), text).unwrap();
    let job = r#"data = "sheep.txt"

[model]
name = "sheep"
decoder = { width = 16, layers = 1, heads = 2, kv_heads = 1, hidden = 32, context = 16 }
optimizer = { learning_rate = 0.01, warmup = 2, weight_decay = 0.1, clip = 1.0 }
sequences = 2
steps = 4
operand_bits = 8
seed = 3
"#;
    std::fs::write(folder.join("sheep.toml"), job).unwrap();
}

fn train(folder: &Path, who: u8, workers: &[String], more: &[&str]) -> Output {
    train_file(&folder.join("sums.toml"), folder, who, workers, more)
}

fn train_file(job: &Path, folder: &Path, who: u8, workers: &[String], more: &[&str]) -> Output {
    let mut command = tensorlink(folder, who);
    command.args(["native", "train"]).arg(job);
    workers.iter().for_each(|at| {
        command.args(["--worker", at]);
    });
    // Whatever class of devices this machine is.
    command.args(["--tolerance", "0.01"]).args(more).output().unwrap()
}

#[test]
fn two_workers_train_for_their_user_and_for_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    job(folder);
    let user = address(folder, USER);
    let workers = [2, 3].map(|who| Worker::start(folder, who, &user));

    let at = workers.each_ref().map(|worker| worker.at.clone());

    let refused = train(folder, 4, &at[..1], &["--patience", "5"]);
    assert!(!refused.status.success(), "a stranger gets nothing");

    let output = train(folder, USER, &at, &["--checks", "1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("not provable"), "{said}");
    let report = json(&output);
    assert_eq!((&report["provable"], report["steps"].as_u64()), (&Value::Bool(false), Some(STEPS)), "{said}");
    assert_eq!((&report["intervals"], &report["checked"]), (&Value::from(3), &Value::from(3)), "{said}");
    assert!(report["off"].as_array().is_some_and(Vec::is_empty), "{said}");
    assert!(report["last_loss"].as_f64() < report["first_loss"].as_f64(), "{said}");

    // It is done: the same command says so again, without anybody's help.
    drop(workers);
    let again = json(&train(folder, USER, &at, &["--checks", "1"]));
    assert_eq!((&again["state"], &again["steps"]), (&report["state"], &report["steps"]));
}

#[test]
fn the_folder_of_what_was_learned_says_that_it_is_not_provable() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    decoder(folder);
    let worker = Worker::start(folder, 2, &address(folder, USER));
    let out = folder.join("learned");
    let more = ["--checks", "0", "--out", out.to_str().unwrap()];
    let report = json(&train_file(&folder.join("sheep.toml"), folder, USER, std::slice::from_ref(&worker.at), &more));
    assert_eq!(report["provable"], false);
    assert!(out.join("model.safetensors").exists());
    let label = std::fs::read_to_string(out.join("README.md")).unwrap();
    assert!(label.starts_with("# sheep\n") && label.contains("not provable"), "{label}");
    let told = tensorlink(folder, USER).args(["model", "inspect", out.to_str().unwrap()]).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}
