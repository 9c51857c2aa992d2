//! What to try next: commands that work as they stand, from the folder in which the network was started.

use std::env;
use std::path::{Path, PathBuf};

use tensorlink_model::Output;

use super::folder::Folder;
use super::state::{Gateway, Role, State};
use super::{gateway, programs};

/// Stages of the example's pipeline, if there are as many workers.
const STAGES: usize = 3;

/// Three things.
pub(super) fn words(folder: &Folder, state: &State) -> String {
    let program = program();
    let mut lines = vec!["Try next:".to_owned()];
    let mut item = |what: &str, command: &str| lines.push(format!("\n# {what}\n{command}"));

    let workers = state.nodes.iter().filter(|node| matches!(node.role, Role::Worker { .. })).count();
    let job = programs::checkout().map(|root| job(&program, &root, workers.clamp(1, STAGES)));
    match &job {
        Some(_) if workers == 0 => item("start a worker", &format!("{program} localnet add-worker")),
        Some(job) => item("train a network that reads handwritten digits, on staked workers", job),
        None => item("look at your account; examples to train lie in a checkout", &format!("{program} balance")),
    }
    match &state.gateway {
        Some(gateway) => item("ask the gateway", &ask(folder, gateway)),
        None => item("show who runs", &format!("{program} localnet status")),
    }
    if let Some(job) = job.filter(|_| workers > 0) {
        let built = match programs::villain() {
            Ok(_) => String::new(),
            Err(_) => format!("{} && ", build()),
        };
        let catch = format!("{built}{program} localnet add-villain && {job}");
        item("catch a liar: it is hired, lies, loses its stake", &catch);
    }
    lines.join("\n")
}

/// This program as the shell finds it from here.
fn program() -> String {
    let Ok(own) = programs::own() else { return "tensorlink".to_owned() };
    let found = programs::in_path("tensorlink").and_then(|path| path.canonicalize().ok());
    if found.is_some() && found == own.canonicalize().ok() { "tensorlink".to_owned() } else { here(&own) }
}

fn job(program: &str, root: &Path, stages: usize) -> String {
    let example = |name: &str| here(&root.join("examples").join(name));
    format!(
        "{program} job post --model {} --data {} --stages {stages} --steps-per-interval 20 --deposit 10 \\\n    \
         --challenge-window 15 --watch",
        example("digits.json"),
        example("digits.csv.gz")
    )
}

fn ask(folder: &Folder, gateway: &Gateway) -> String {
    let (key, model) = (here(&gateway::key_file(folder)), gateway::model(&gateway.model));
    let (route, input) = match gateway.output {
        Output::Embedding(_) => ("embeddings", r#""input": "How do I get a stain out of a rug?""#),
        Output::Classes(1) => {
            ("rerank", r#""query": "a stain on a rug", "documents": ["red wine on a carpet", "share prices"]"#)
        }
        Output::Classes(_) => ("classify", r#""input": "In the beginning""#),
        Output::Logits { .. } => ("completions", r#""prompt": "In the beginning", "max_tokens": 20"#),
    };
    let body = format!(r#"{{"model": {}, {input}}}"#, serde_json::Value::String(model));
    format!(
        "curl -s {}/{route} -H \"Authorization: Bearer $(cat {key})\" \\\n    -H \"Content-Type: application/json\" -d {}",
        gateway::url(gateway),
        shell(&body)
    )
}

/// How the villain is built.
fn build() -> String {
    let profile = if cfg!(debug_assertions) { "" } else { " --release" };
    let command = format!("cargo build --locked --bin villain{profile}");
    match (programs::checkout(), env::current_dir()) {
        (Some(root), Ok(here)) if !here.starts_with(&root) => format!("(cd {} && {command})", quoted(&root)),
        _ => command,
    }
}

/// A path for the shell: relative where it lies below the current folder.
fn here(path: &Path) -> String {
    let below = env::current_dir().ok().and_then(|here| path.strip_prefix(here).map(PathBuf::from).ok());
    quoted(below.as_deref().unwrap_or(path))
}

/// A path that the shell takes as it stands.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if text.chars().all(plain) { text } else { shell(&text) }
}

/// A word that the shell takes as it stands.
fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_the_shell_needs_it() {
        assert_eq!(quoted(Path::new("/a/b-c.json")), "/a/b-c.json");
        assert_eq!(quoted(Path::new("/my files/it's")), r"'/my files/it'\''s'");
        let job = job("tensorlink", Path::new("/src"), 2);
        assert!(job.contains("--model /src/examples/digits.json") && job.contains("--stages 2"), "{job}");
    }
}
