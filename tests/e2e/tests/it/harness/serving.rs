//! A serving job of the small pretrained model, and a gateway to its workers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tensorlink_model::Family;
use tensorlink_model::fixture::{CONTEXT, Folder, Stored, tokenizer_json};

use super::eventually;
use super::network::{Network, USER};

/// Name of the gateway's process.
const GATEWAY: &str = "gateway";
const MODEL: &str = "all-MiniLM-L6-v2";
/// Folders of the untrained models: the gateway names a model as its folder.
const DECODER: &str = "tiny-llama";
const RERANKER: &str = "tiny-reranker";
/// Of a text.
const MOST_TOKENS: u64 = 12;
/// The model is read, calibrated and published, or its files are fetched and checked for every length.
const START: Duration = Duration::from_secs(300);
const ANSWER: Duration = Duration::from_secs(180);

/// Lanes of a job, the most tokens of its texts, whether its model is put into integers before it is posted, for how
/// long vouchers are redeemed once it is closed, and audited after that, after how much silence another job takes its
/// place, and how many replicas must agree on a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) stages: u16,
    pub(crate) replicas: u16,
    pub(crate) longest: u32,
    pub(crate) integers: bool,
    /// Its challenge window, seconds.
    pub(crate) window: u32,
    /// Seconds; 0: none does.
    pub(crate) failover: u32,
    pub(crate) security: u16,
}

impl Default for Shape {
    fn default() -> Self {
        Self { stages: 2, replicas: 1, longest: 32, integers: false, window: 15, failover: 0, security: 1 }
    }
}

/// A model and the job that it is served by.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    model: PathBuf,
    calibration: Option<PathBuf>,
    /// Whether it may differ from its floats: scores of words that it does not know are all alike.
    lossy: bool,
    pub(crate) shape: Shape,
}

/// A posted job that serves texts.
pub(crate) struct Serving {
    pub(crate) job: u64,
    served: Served,
    http: reqwest::Client,
    url: String,
    key: String,
}

/// The pretrained model.
fn encoder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolchain/models").join(MODEL);
    assert!(folder.is_dir(), "{} is missing: run script/setup", folder.display());
    folder
}

/// Writes an untrained model of a dozen words, and texts to calibrate it on.
fn untrained(network: &Network, name: &str, folder: &Folder) -> (PathBuf, PathBuf) {
    let path = network.path(name);
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("config.json"), folder.config_json()).unwrap();
    std::fs::write(path.join("model.safetensors"), folder.safetensors(Stored::Bf16)).unwrap();
    std::fs::write(path.join("tokenizer.json"), tokenizer_json()).unwrap();
    std::fs::write(path.join("tokenizer_config.json"), json!({"bos_token": "<s>", "eos_token": "</s>"}).to_string())
        .unwrap();
    let texts = network.path("texts.txt");
    std::fs::write(&texts, "the cat sat on the mat\na dog ran\nthe dog sat on a cat\n").unwrap();
    (path, texts)
}

impl Served {
    /// The untrained decoder, which is put into integers when its job is posted.
    pub(crate) fn decoder(network: &Network, shape: Shape) -> Self {
        let mut folder = Folder::new(Family::Llama);
        folder.config.insert("max_position_embeddings".into(), shape.longest.into());
        let (model, texts) = untrained(network, DECODER, &folder);
        Self { model, calibration: Some(texts), lossy: false, shape }
    }

    /// An untrained encoder that scores pairs of texts.
    fn reranker(network: &Network) -> Self {
        let (model, texts) = untrained(network, RERANKER, &Folder::reranker(Family::Bert));
        let longest = u32::try_from(CONTEXT).unwrap();
        Self { model, calibration: Some(texts), lossy: true, shape: Shape { longest, ..Shape::default() } }
    }

    /// The command that posts the job.
    pub(crate) fn posting(&self, network: &Network) -> Command {
        let mut command = network.command(USER, &["--json", "job", "serve", "--deposit", Serving::DEPOSIT]);
        let numbers = [
            ("--stages", self.shape.stages.into()),
            ("--replicas", self.shape.replicas.into()),
            ("--security", self.shape.security.into()),
            ("--longest", self.shape.longest),
            ("--challenge-window", self.shape.window),
        ];
        for (name, number) in numbers {
            command.args([name, &number.to_string()]);
        }
        command.arg(&self.model);
        if let Some(texts) = &self.calibration {
            command.arg("--calibration").arg(texts);
        }
        if self.lossy {
            command.arg("--accept-loss");
        }
        command
    }

    /// The command that opens a gateway to the job's workers.
    pub(crate) fn gateway(&self, network: &Network, job: u64, http: &str) -> Command {
        let mut command = network.command(USER, &["--json", "serve", "--job", &job.to_string(), "--http", http]);
        command.args(["--failover", &self.shape.failover.to_string()]).arg(&self.model);
        command
    }
}

impl Serving {
    /// SNO put into escrow.
    pub(crate) const DEPOSIT: &'static str = "10";

    /// Posts a job of two stages for the pretrained encoder, hires workers for it, and opens a gateway to them.
    pub(crate) async fn start(network: &mut Network) -> Self {
        Self::of(network, Served { model: encoder(), calibration: None, lossy: false, shape: Shape::default() }).await
    }

    /// The same for a decoder, and a job of this shape.
    pub(crate) async fn start_decoder(network: &mut Network, shape: Shape) -> Self {
        let served = Served::decoder(network, shape);
        if !shape.integers {
            return Self::of(network, served).await;
        }
        let folder = network.path("integers");
        std::fs::create_dir(&folder).unwrap();
        let integers = folder.join(DECODER);
        let mut command = network.command(USER, &["model", "quantize"]);
        command.arg(&served.model).arg("--out").arg(&integers);
        command.arg("--calibration").args(&served.calibration);
        assert!(super::run(command, START).await.ok, "the model is put into integers");
        std::fs::remove_dir_all(served.model).unwrap();
        Self::of(network, Served { model: integers, calibration: None, lossy: false, shape }).await
    }

    /// The same for an untrained encoder that scores pairs of texts.
    pub(crate) async fn start_reranker(network: &mut Network) -> Self {
        let served = Served::reranker(network);
        Self::of(network, served).await
    }

    async fn of(network: &mut Network, served: Served) -> Self {
        let posted = super::run(served.posting(network), START).await.json();
        let job = posted.iter().find_map(|line| line["job"].as_u64()).unwrap_or_else(|| panic!("no job in {posted:?}"));
        let mut serving = Self { job, served, http: client(), url: String::new(), key: String::new() };
        serving.open_gateway(network).await;
        serving
    }

    /// A job whose gateway somebody else looks after, at this address.
    pub(crate) fn at(served: Served, job: u64, http: &str) -> Self {
        Self { job, served, http: client(), url: format!("http://{http}/v1"), key: String::new() }
    }

    /// Starts the gateway.
    pub(crate) async fn open_gateway(&mut self, network: &mut Network) {
        network.spawn(GATEWAY, self.served.gateway(network, self.job, "127.0.0.1:0"));
        let ready: Value = network.first_json(GATEWAY, START).await;
        self.url = ready["url"].as_str().unwrap().to_owned();
        self.take_key(Path::new(ready["key_file"].as_str().unwrap()));
    }

    /// Takes the key that the gateway made.
    pub(crate) fn take_key(&mut self, file: &Path) {
        self.key = std::fs::read_to_string(file).unwrap().trim().to_owned();
    }

    /// Ends the gateway as a power cut would.
    pub(crate) fn cut_gateway(&self, network: &mut Network) {
        network.cut(GATEWAY);
    }

    /// An answer of the gateway, and the id of its receipts.
    async fn post(&self, path: &str, body: Value) -> Result<(Value, String), Value> {
        self.ask(path, body).await.expect("the gateway answers")
    }

    /// The same of a gateway that may be gone.
    async fn ask(&self, path: &str, body: Value) -> reqwest::Result<Result<(Value, String), Value>> {
        let request = self.http.post(format!("{}/{path}", self.url)).bearer_auth(&self.key).json(&body);
        let answer = request.send().await?;
        let (ok, id) = (answer.status().is_success(), answer.headers().get("x-receipt-id").cloned());
        let answer: Value = answer.json().await?;
        Ok(if ok { Ok((answer, id.unwrap().to_str().unwrap().to_owned())) } else { Err(answer) })
    }

    /// What follows a prompt, how many tokens it has, and the id of its receipts.
    pub(crate) async fn complete(&self, prompt: &str, seed: u64) -> Result<(String, u64, String), Value> {
        let (answer, id) = self.post("completions", completion(prompt, seed)).await?;
        let Completed { text, tokens, .. } = Completed::of(&answer);
        Ok((text, tokens, id))
    }

    /// The same of a gateway that may be gone, and its workers, too: none, unless there is an answer.
    pub(crate) async fn complete_if_possible(&self, prompt: &str, seed: u64) -> Option<Completed> {
        let answer = self.ask("completions", completion(prompt, seed)).await.ok()?.ok()?;
        Some(Completed::of(&answer.0))
    }

    /// The likeliest text of so many tokens after a prompt, part by part; none while no worker computes it.
    pub(crate) async fn stream(&self, prompt: &str, tokens: u32) -> Option<Stream> {
        let fields = json!({ "model": DECODER, "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                             "stream": true, "stream_options": { "include_usage": true } });
        let request = self.http.post(format!("{}/completions", self.url)).bearer_auth(&self.key).json(&fields);
        let answer = request.send().await.unwrap();
        let id = answer.headers().get("x-receipt-id").map(|id| id.to_str().unwrap().to_owned());
        answer.status().is_success().then(|| Stream { answer, id: id.unwrap(), unread: String::new() })
    }

    /// Vectors of texts, and the id of their receipts.
    pub(crate) async fn embed(&self, texts: &[&str]) -> Result<(Vec<Vec<f64>>, String), Value> {
        let (answer, id) = self.post("embeddings", json!({ "model": MODEL, "input": texts })).await?;
        let vectors = answer["data"].as_array().unwrap().iter();
        let vectors = vectors.map(|item| serde_json::from_value(item["embedding"].clone()).unwrap()).collect();
        Ok((vectors, id))
    }

    /// Documents by how well they answer a query, the best first, with their scores, and the id of their receipts.
    pub(crate) async fn rerank(&self, query: &str, documents: &[&str]) -> Result<(Vec<(usize, f64)>, String), Value> {
        let asked = json!({ "model": RERANKER, "query": query, "documents": documents });
        let (answer, id) = self.post("rerank", asked).await?;
        let results = answer["results"].as_array().unwrap().iter();
        let scored =
            |result: &Value| (result["index"].as_u64().unwrap() as usize, result["relevance_score"].as_f64().unwrap());
        Ok((results.map(scored).collect(), id))
    }

    /// Asks until there is an answer: workers may be restarting.
    pub(crate) async fn embed_eventually(&self, texts: &[&str]) -> (Vec<Vec<f64>>, String) {
        eventually("an answer", START, async || self.embed(texts).await.ok()).await
    }

    /// The receipts of a response, as anybody can check them; a text that was continued gets them when it has ended.
    pub(crate) async fn receipts(&self, id: &str) -> Value {
        eventually("receipts", ANSWER, async || {
            let request = self.http.get(format!("{}/receipts/{id}", self.url)).bearer_auth(&self.key);
            let answer = request.send().await.unwrap();
            let found = answer.status().is_success();
            let answer: Value = answer.json().await.unwrap();
            found.then_some(answer)
        })
        .await
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(ANSWER).build().unwrap()
}

fn completion(prompt: &str, seed: u64) -> Value {
    json!({ "model": DECODER, "prompt": prompt, "max_tokens": MOST_TOKENS, "temperature": 2, "seed": seed })
}

/// A text that was continued.
pub(crate) struct Completed {
    pub(crate) text: String,
    /// Of it and of the prompt.
    pub(crate) tokens: u64,
    /// Whether it fell silent: it is shorter than it could be, and did not end by itself.
    pub(crate) cut: bool,
}

impl Completed {
    fn of(answer: &Value) -> Self {
        let (choice, usage) = (&answer["choices"][0], &answer["usage"]);
        Self {
            text: choice["text"].as_str().unwrap().to_owned(),
            tokens: usage["total_tokens"].as_u64().unwrap(),
            cut: choice["finish_reason"] == "length" && usage["completion_tokens"].as_u64().unwrap() < MOST_TOKENS,
        }
    }
}

/// An answer that comes in parts.
pub(crate) struct Stream {
    answer: reqwest::Response,
    /// Id of its receipts.
    pub(crate) id: String,
    unread: String,
}

impl Stream {
    /// The next part; none after the last.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.unread.split_once("\n\n") {
                // A comment says that the answer takes longer.
                let part = event
                    .strip_prefix("data: ")
                    .map(|event| (event != "[DONE]").then(|| serde_json::from_str(event).unwrap()));
                self.unread = rest.to_owned();
                if let Some(part) = part {
                    return part;
                }
            }
            let more = self.answer.chunk().await.unwrap()?;
            self.unread.push_str(std::str::from_utf8(&more).unwrap());
        }
    }

    /// What is still to come: the text, and the part that ends it with the usage or an error.
    pub(crate) async fn rest(mut self) -> (String, Value) {
        let (mut text, mut last) = (String::new(), Value::Null);
        while let Some(part) = self.next().await {
            text.push_str(part["choices"][0]["text"].as_str().unwrap_or_default());
            last = part;
        }
        (text, last)
    }
}
