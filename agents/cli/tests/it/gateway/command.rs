//! `tensorlink serve` as its user meets it: a real model, a key that is made, an interrupt.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tensorlink_folder::ModelFolder;
use tensorlink_model::Family;
use tensorlink_model::fixture::{Folder, Stored, tokenizer_json};
use tensorlink_tensor::Device;
use tensorlink_tensor::float::{FloatModel, Precision};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::root;

const MODEL: &str = "all-MiniLM-L6-v2";
/// The model is calibrated first.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_pretrained_model_is_served_until_interrupted() {
    let model = root().join(".toolchain/models").join(MODEL);
    assert!(model.is_dir(), "{} is missing: run script/setup", model.display());
    let folder = tempfile::tempdir().unwrap();
    let (mut serve, line) = start(folder.path(), &[model.to_str().unwrap()]).await;
    let ready: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(ready["models"], json!([MODEL]));

    let key_file = folder.path().join(ready["key_file"].as_str().unwrap());
    assert_eq!(std::fs::metadata(&key_file).unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(key_file).unwrap().trim().to_owned();

    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    let url = format!("{}/embeddings", ready["url"].as_str().unwrap());
    let texts = ["A cat sleeps on the sofa.", "A kitten naps on a couch.", "Share prices fell today."];
    let body = json!({"model": MODEL, "input": texts});
    assert_eq!(http.post(&url).json(&body).send().await.unwrap().status(), 401);
    let answer: Value = http.post(&url).bearer_auth(&key).json(&body).send().await.unwrap().json().await.unwrap();
    let vectors: Vec<Vec<f64>> =
        (0..3).map(|index| serde_json::from_value(answer["data"][index]["embedding"].clone()).unwrap()).collect();
    let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f64>();
    assert!(vectors.iter().all(|vector| vector.len() == 384));
    assert!((cosine(0, 0) - 1.0).abs() < 0.001);
    assert!(cosine(0, 1) > 0.6 && cosine(0, 2) < 0.2, "{} {}", cosine(0, 1), cosine(0, 2));
    let long = json!({"model": MODEL, "input": "word ".repeat(600)});
    // Of 602 tokens as many are read as sentence_bert_config.json says.
    let cut: Value = http.post(&url).bearer_auth(&key).json(&long).send().await.unwrap().json().await.unwrap();
    assert_eq!(cut["usage"]["prompt_tokens"], 256, "{cut}");

    let pid = serve.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let said = tokio::time::timeout(PATIENCE, rest(&mut serve)).await.unwrap();
    assert!(serve.wait().await.unwrap().success(), "{said}");
    assert!(said.contains("texts=3") && said.contains("tokens=26"), "{said}");
    assert!(!said.contains("sofa") && !said.contains(&key) && !line.contains(&key), "{said}");
}

#[tokio::test]
async fn a_decoder_is_served_too() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny");
    std::fs::create_dir(&model).unwrap();
    crate::gateway::decoder::write(&model, true);
    std::fs::write(folder.path().join("texts"), "the cat sat on the mat\na dog ran\n").unwrap();
    let (mut serve, line) = start(folder.path(), &["tiny", "--no-auth", "--calibration", "texts"]).await;
    let ready: Value = serde_json::from_str(&line).unwrap();

    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    let url = format!("{}/completions", ready["url"].as_str().unwrap());
    let body = json!({"model": "tiny", "prompt": "the cat", "max_tokens": 4, "temperature": 0});
    let answer: Value = http.post(&url).json(&body).send().await.unwrap().json().await.unwrap();
    let text = answer["choices"][0]["text"].as_str().unwrap();
    let mut body = body;
    body["stream"] = true.into();
    let told = http.post(&url).json(&body).send().await.unwrap().text().await.unwrap();
    assert!(told.ends_with("data: [DONE]\n\n") && !text.is_empty(), "{told}");

    let pid = serve.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let said = tokio::time::timeout(PATIENCE, rest(&mut serve)).await.unwrap();
    assert!(serve.wait().await.unwrap().success(), "{said}");
    // A stream has its line in the log as a whole answer has.
    let tokens = format!("texts=1 tokens={}", answer["usage"]["total_tokens"]);
    assert_eq!(said.matches(&tokens).count(), 2, "{said}");
    assert!(!said.contains("left=true") && !said.contains("cat"), "{said}");
}

#[tokio::test]
async fn a_model_that_was_quantised_once_is_served_without_its_floats() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny");
    std::fs::create_dir(&model).unwrap();
    crate::gateway::decoder::write(&model, true);
    std::fs::write(model.join("pytorch_model.bin"), "a pickle").unwrap();
    std::fs::write(folder.path().join("texts"), "the cat sat on the mat\na dog ran\n").unwrap();
    let run = async |line: &str| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_tensorlink"));
        run.env("TENSORLINK_HOME", folder.path());
        let output = run.args(line.split(' ')).arg("--json").current_dir(folder.path()).output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        if output.status.success() { Ok(serde_json::from_slice::<Value>(&output.stdout).unwrap()) } else { Err(said) }
    };
    let imported = run("model import tiny --out copy").await.unwrap();
    assert_eq!((&imported["refused"], &imported["ignored"]), (&json!([]), &json!(["pytorch_model.bin"])));
    let made = run("model quantize copy --out exact --calibration texts").await.unwrap();
    let inspected = run("model inspect exact --stages 2").await.unwrap();
    assert_eq!((&inspected["quantised"]["root"], &inspected["parameters"]), (&made["root"], &made["parameters"]));
    assert_eq!(inspected["stages"].as_array().unwrap().len(), 2);
    let there = run("model eval copy --calibration texts --texts texts").await.unwrap();
    let beside = run("model eval exact --against copy --texts texts").await.unwrap();
    assert_eq!(there, beside);
    for (line, told) in [
        ("model import texts", "unpack"),
        ("model import none", "there is no none: models are folders"),
        ("model import owner/model", "hf download owner/model --local-dir model"),
        ("model inspect owner/model", "hf download owner/model --local-dir model"),
        ("model quantize owner/model --out made", "hf download owner/model --local-dir model"),
        ("serve owner/model --no-auth --http 127.0.0.1:0", "hf download owner/model --local-dir model"),
        ("model import exact", "with the floats"),
        ("model import copy --out exact", "exists already"),
        ("model quantize copy --out exact", "exists already"),
        ("model quantize exact --out again", "with the floats"),
        ("model eval exact --texts texts", "--against"),
        ("model eval copy --against tiny --texts texts", "leave out --against"),
        ("serve exact --no-auth --http 127.0.0.1:0 --calibration texts", "leave out --calibration"),
    ] {
        let said = run(line).await.unwrap_err();
        assert!(said.contains(told), "{line}: {said}");
    }
    let config = std::fs::read(model.join("config.json")).unwrap();
    std::fs::write(model.join("config.json"), "{}").unwrap();
    let refused = run("model import tiny --out other").await.unwrap_err();
    assert!(refused.contains("refused for 1 reason"), "{refused}");
    std::fs::write(model.join("config.json"), config).unwrap();
    let mut left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["copy", "exact", "texts", "tiny"]);

    std::fs::remove_dir_all(folder.path().join("copy")).unwrap();
    let mut answers = Vec::new();
    for args in [&["tiny", "--no-auth", "--calibration", "texts"][..], &["exact", "--no-auth"]] {
        let (_serve, line) = start(folder.path(), args).await;
        let ready: Value = serde_json::from_str(&line).unwrap();
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let url = format!("{}/chat/completions", ready["url"].as_str().unwrap());
        let said = [json!({"role": "user", "content": "the cat sat"})];
        let body = json!({"model": args[0], "messages": said, "max_tokens": 6, "seed": 7, "temperature": 1.5});
        let answer: Value = http.post(&url).json(&body).send().await.unwrap().json().await.unwrap();
        answers.push((answer["choices"].clone(), answer["usage"].clone()));
    }
    assert!(answers[0].1["completion_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{answers:?}");
    assert_eq!(answers[0], answers[1]);
}

/// Writes a tiny folder of a dozen words.
fn write(path: &Path, folder: &Folder) {
    std::fs::create_dir(path).unwrap();
    std::fs::write(path.join("config.json"), folder.config_json()).unwrap();
    std::fs::write(path.join("model.safetensors"), folder.safetensors(Stored::F32)).unwrap();
    std::fs::write(path.join("tokenizer.json"), tokenizer_json()).unwrap();
}

#[tokio::test]
async fn a_reranker_is_served_and_scores_as_its_floats_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("texts"), "the cat sat on the mat\na dog ran\nthe dog sat on a cat\n").unwrap();
    let path = folder.path().join("tiny");
    let mut model = Folder::reranker(Family::Bert);
    // Scores far apart, and told as they are.
    model.tensor("classifier.weight").unwrap().values.iter_mut().for_each(|weight| *weight *= 1000.0);
    model.config.insert("sentence_transformers".into(), json!({"activation_fn": "torch.nn.modules.linear.Identity"}));
    write(&path, &model);
    let opened = ModelFolder::open(&path).unwrap();
    let (pairs, weights) = (opened.pairs().unwrap().unwrap(), opened.weights().unwrap());
    let float = FloatModel::new(opened.architecture(), &weights, Device::Cpu, Precision::F32).unwrap();
    let (query, documents) = ("the cat", ["sat on the mat", "a dog ran", "the cat", "dog dog dog"]);
    let due = documents.map(|document| {
        let ids = pairs.encode(query, document).unwrap();
        f64::from(float.forward(&ids, None).unwrap().values().unwrap()[0])
    });
    let args = ["tiny", "--no-auth", "--calibration", "texts", "--setting", "reference", "--accept-loss"];
    let (_serve, line) = start(folder.path(), &args).await;
    let ready: Value = serde_json::from_str(&line).unwrap();
    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    let url = format!("{}/rerank", ready["url"].as_str().unwrap());
    let body = json!({"model": "tiny", "query": query, "documents": documents});
    let answer: Value = http.post(&url).json(&body).send().await.unwrap().json().await.unwrap();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), documents.len(), "{answer}");
    for result in results {
        let (index, score) = (result["index"].as_u64().unwrap(), result["relevance_score"].as_f64().unwrap());
        let due = due[index as usize];
        assert!((score - due).abs() < 0.1, "document {index}: {score}, in floats {due}");
    }
    let [least, most] = [f64::min, f64::max].map(|of| due.into_iter().reduce(of).unwrap());
    assert!(most - least > 1.0, "{due:?}");
}

/// Starts a gateway in a folder; its process, and the line by which it says that it is ready.
async fn start(folder: &Path, args: &[&str]) -> (Child, String) {
    let mut serve = Command::new(env!("CARGO_BIN_EXE_tensorlink"));
    serve.env("TENSORLINK_HOME", folder);
    serve.arg("serve").args(args).args(["--http", "127.0.0.1:0", "--json"]);
    serve.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut serve = serve.spawn().unwrap();
    let mut lines = BufReader::new(serve.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    match line {
        Some(line) => (serve, line),
        None => panic!("{}", rest(&mut serve).await),
    }
}

/// What the process says on stderr until it ends.
async fn rest(serve: &mut Child) -> String {
    let mut said = String::new();
    serve.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
    said
}
