//! A serving job of the small pretrained model, and a gateway to its workers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::eventually;
use super::network::{Network, USER};

/// Name of the gateway's process.
const GATEWAY: &str = "gateway";
const MODEL: &str = "all-MiniLM-L6-v2";
/// The model is read, calibrated and published, or its files are fetched and checked for every length.
const START: Duration = Duration::from_secs(180);
const ANSWER: Duration = Duration::from_secs(60);

/// A posted job that serves texts.
pub(crate) struct Serving {
    pub(crate) job: u64,
    http: reqwest::Client,
    url: String,
    key: String,
}

fn model() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolchain/models").join(MODEL);
    assert!(folder.is_dir(), "{} is missing: run script/setup", folder.display());
    folder
}

impl Serving {
    /// SNO put into escrow.
    pub(crate) const DEPOSIT: &'static str = "10";
    /// Seconds.
    pub(crate) const WINDOW: u32 = 6;

    /// Posts a job of `stages`, hires workers for it, and opens a gateway to them.
    pub(crate) async fn start(network: &mut Network, stages: u16) -> Self {
        let model = model();
        let arguments = ["--json", "job", "serve", "--deposit", Self::DEPOSIT, "--longest", "32"];
        let mut command = network.command(USER, &arguments);
        command.args(["--stages", &stages.to_string(), "--challenge-window", &Self::WINDOW.to_string()]).arg(&model);
        let posted = super::run(command, START).await.json();
        let job = posted.iter().find_map(|line| line["job"].as_u64()).unwrap_or_else(|| panic!("no job in {posted:?}"));
        let http = reqwest::Client::builder().no_proxy().timeout(ANSWER).build().unwrap();
        let mut serving = Self { job, http, url: String::new(), key: String::new() };
        serving.open_gateway(network).await;
        serving
    }

    /// Starts the gateway.
    pub(crate) async fn open_gateway(&mut self, network: &mut Network) {
        let job = self.job.to_string();
        let mut command = network.command(USER, &["--json", "serve", "--job", &job, "--http", "127.0.0.1:0"]);
        command.arg(model());
        network.spawn(GATEWAY, command);
        let ready: Value = network.first_json(GATEWAY, START).await;
        self.url = ready["url"].as_str().unwrap().to_owned();
        self.key = std::fs::read_to_string(ready["key_file"].as_str().unwrap()).unwrap().trim().to_owned();
    }

    /// Ends the gateway as a power cut would.
    pub(crate) fn cut_gateway(&self, network: &mut Network) {
        network.cut(GATEWAY);
    }

    /// Vectors of texts, and the id of their receipts.
    pub(crate) async fn embed(&self, texts: &[&str]) -> Result<(Vec<Vec<f64>>, String), Value> {
        let body = json!({ "model": MODEL, "input": texts });
        let request = self.http.post(format!("{}/embeddings", self.url)).bearer_auth(&self.key).json(&body);
        let answer = request.send().await.unwrap();
        let (ok, id) = (answer.status().is_success(), answer.headers().get("x-receipt-id").cloned());
        let answer: Value = answer.json().await.unwrap();
        if !ok {
            return Err(answer);
        }
        let vectors = answer["data"].as_array().unwrap().iter();
        let vectors = vectors.map(|item| serde_json::from_value(item["embedding"].clone()).unwrap()).collect();
        Ok((vectors, id.unwrap().to_str().unwrap().to_owned()))
    }

    /// Asks until there is an answer: workers may be restarting.
    pub(crate) async fn embed_eventually(&self, texts: &[&str]) -> (Vec<Vec<f64>>, String) {
        eventually("an answer", START, async || self.embed(texts).await.ok()).await
    }

    /// The receipts of a response, as anybody can check them.
    pub(crate) async fn receipts(&self, id: &str) -> Value {
        let request = self.http.get(format!("{}/receipts/{id}", self.url)).bearer_auth(&self.key);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{:?}", answer.text().await);
        answer.json().await.unwrap()
    }
}
