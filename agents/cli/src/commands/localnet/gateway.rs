//! The gateway of the local network: a model of this machine over HTTP.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tensorlink_folder::{ModelFolder, there};
use toml::{Table, Value};

use super::folder::{Folder, make};
use super::nodes::Started;
use super::state::{GATEWAY, Gateway};
use super::{UpArgs, programs};

/// It answers within: a large model has to be put into integers first.
const START: Duration = Duration::from_secs(600);

/// Which model, and where: what was asked for, else the model that script/setup brings, if it is there and nobody
/// said no.
pub(super) fn wanted(args: &UpArgs) -> Result<Option<Gateway>> {
    let model = match &args.model {
        Some(model) => there(model)?,
        None if args.no_gateway => return Ok(None),
        None => match programs::model() {
            Some(model) => model,
            None => return Ok(None),
        },
    };
    let listener = TcpListener::bind(args.http);
    listener.with_context(|| format!("the gateway cannot listen on {}: choose another --http", args.http))?;
    ensure!(args.http.port() != 0, "--http needs a port: the gateway keeps it from one start to the next");
    ensure!(
        args.http.ip().is_loopback(),
        "the local network is for this machine: choose a loopback address for --http, or start `tensorlink serve` yourself"
    );
    let output = ModelFolder::open(&model)?.architecture().output;
    Ok(Some(Gateway { http: args.http, model, output, accept_loss: args.acceptance.accept_loss, process: None }))
}

/// Starts it.
pub(super) fn start(folder: &Folder, gateway: &Gateway) -> Result<Started> {
    let own = folder.node(GATEWAY);
    make(&own)?;
    let config = own.join(crate::config::NAME);
    let data = own.to_str().with_context(|| format!("{} is no UTF-8", own.display()))?;
    let table = Table::from_iter([("data_dir".to_owned(), Value::String(data.to_owned()))]);
    std::fs::write(&config, table.to_string()).with_context(|| format!("cannot write {}", config.display()))?;
    let mut command = Command::new(programs::own()?);
    command.arg("--config").arg(config).arg("serve").arg(&gateway.model).args(["--http", &gateway.http.to_string()]);
    if gateway.accept_loss {
        command.arg("--accept-loss");
    }
    Started::spawn(folder, GATEWAY, command)
}

/// Waits until it answers.
pub(super) async fn ready(folder: &Folder, started: &Started) -> Result<()> {
    started.says(folder, "base URL", START).await
}

/// Where clients send requests.
pub(super) fn url(gateway: &Gateway) -> String {
    format!("http://{}/v1", gateway.http)
}

/// The file with the key that it asks for.
pub(super) fn key_file(folder: &Folder) -> PathBuf {
    folder.node(GATEWAY).join("gateway.key")
}

/// The model's name.
pub(super) fn model(path: &Path) -> String {
    let gguf = path.extension().is_some_and(|ending| ending == "gguf");
    let name = if gguf { path.file_stem() } else { path.file_name() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}
