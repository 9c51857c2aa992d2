//! `tensorlink serve`.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

pub mod section;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use tensorlink_gateway::generation::batch::Capacity;
use tensorlink_gateway::keys::{Keys, readable_by_others};
use tensorlink_gateway::origins::Origins;
use tensorlink_gateway::{Access, Gateway, Limits, server};
use tensorlink_types::JobId;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::amount::parse_size;
use crate::commands::local::{named, open};
use crate::commands::serve_by_workers::{Computing, How};
use crate::config::Config;
use crate::output;
use crate::quantized::Quantising;
use crate::quantized::loss::Acceptance;

const DEFAULT_HTTP: &str = "127.0.0.1:8080";
/// The file of the key that is made when none is given, in the data folder.
const KEY_FILE: &str = "gateway.key";
/// Requests waiting for a model.
const DEFAULT_QUEUE: usize = 64;
/// Texts that a model continues side by side.
const DEFAULT_TEXTS: usize = 8;
/// Most of them: each keeps the keys and values of its tokens in memory.
const MAX_TEXTS: usize = 256;
/// Seconds of a worker's silence that are borne: clients wait for a token for a minute.
const DEFAULT_FAILOVER: u64 = 30;
/// Seconds between two looks for faster workers.
const DEFAULT_REBALANCE: u64 = 600;
/// Largest body, below which memory for requests stays bounded on small machines too.
const MAX_BODY: u64 = 256 << 20;
/// For requests under way when the process is asked to stop.
const GRACE: Duration = Duration::from_secs(20);

#[derive(Args, Debug, Default)]
pub struct ServeArgs {
    /// Folders of models, as Hugging Face publishes them or quantised, or .gguf files; a model is named as its folder
    /// or file.
    #[arg(required = true, value_name = "FOLDER")]
    pub models: Vec<PathBuf>,
    /// Serving job of ours whose workers compute, instead of this machine; with the folder it was posted from, for
    /// its tokenizer.
    #[arg(long, value_name = "ID", conflicts_with_all = ["calibration", "setting", "accept_loss"])]
    pub job: Option<u64>,
    /// Address to serve HTTP on [default: 127.0.0.1:8080]; put a proxy with TLS before any other.
    #[arg(long, env = "TENSORLINK_HTTP", value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// File with API keys, one a line [default: gateway.key in the data folder, made with a random key].
    #[arg(long, env = "TENSORLINK_API_KEY_FILE", value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Ask for no API key; for loopback addresses only.
    #[arg(long, conflicts_with = "api_key_file")]
    pub no_auth: bool,
    /// Pages in browsers that may ask, by origin, besides those of this machine; * for all. May be repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Refuse requests with fields that are not known, instead of a line in the log.
    #[arg(long)]
    pub strict: bool,
    /// Requests of each key's in a minute; a tenth of them may come at once [default: 600, or as many as come
    /// with --no-auth and without --job].
    #[arg(long, env = "TENSORLINK_REQUESTS_PER_MINUTE", value_name = "N")]
    pub requests_per_minute: Option<u32>,
    /// Requests that may wait for each model [default: 64].
    #[arg(long, env = "TENSORLINK_QUEUE", value_name = "N")]
    pub queue: Option<usize>,
    /// Texts that each model of this machine continues side by side [default: 8].
    #[arg(long, env = "TENSORLINK_TEXTS", value_name = "N")]
    pub texts: Option<usize>,
    /// Largest body of a request [default: 4MiB].
    #[arg(long, env = "TENSORLINK_MAX_BODY", value_name = "SIZE")]
    pub max_body: Option<String>,
    /// Seconds until a text's first token, and from token to token; of vectors, until they are there [default: 60].
    #[arg(long, env = "TENSORLINK_TIMEOUT", value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// With --job: seconds of silence after which a worker is given up, and another is hired in its place, in another
    /// job of the same terms [default: 30]. It is at once where it was convicted; and once an hour at most where it has
    /// been four times as slow as before for so long, and for 30 seconds at least. 0: never.
    #[arg(long, env = "TENSORLINK_FAILOVER", requires = "job", value_name = "SECONDS")]
    pub failover: Option<u64>,
    /// With --job, if it was hired by latency or throughput: seconds between two looks for other workers. If they would
    /// be half as fast again, by what they say and were seen to do, and no dearer, at two looks in a row, they take
    /// over in another job; once in six looks at most [default: 600]. 0: never.
    #[arg(long, env = "TENSORLINK_REBALANCE", requires = "job", value_name = "SECONDS")]
    pub rebalance: Option<u64>,
    /// With --job: lanes of each stage that compute every text, and must agree; as many as there are replicas at most
    /// [default: as many as `job serve` was told].
    #[arg(long, env = "TENSORLINK_SECURITY", requires = "job", value_name = "LANES",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub security: Option<u16>,
    #[command(flatten)]
    pub how: Quantising,
    #[command(flatten)]
    pub acceptance: Acceptance,
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one]. With --job it computes texts again on which workers
    /// differ.
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// What was decided, all of it checked.
#[derive(Debug)]
struct Plan {
    job: Option<JobId>,
    models: Vec<(String, PathBuf)>,
    http: SocketAddr,
    key_file: Option<PathBuf>,
    make_key: bool,
    limits: Limits,
    origins: Origins,
    strict: bool,
    queue: usize,
    texts: usize,
    failover: Option<Duration>,
    rebalance: Option<Duration>,
    security: Option<u16>,
    how: Quantising,
    acceptance: Acceptance,
    device: Option<String>,
}

/// What is printed once requests are answered.
#[derive(Serialize)]
struct Ready<'a> {
    url: String,
    key_file: Option<&'a Path>,
    models: Vec<&'a str>,
}

/// Serves models until interrupted.
pub async fn run(config: &Config, args: ServeArgs, shutdown: CancellationToken) -> Result<()> {
    let plan = Arc::new(Plan::new(config, args)?);
    let access = plan.access()?;
    let listener = TcpListener::bind(plan.http).await.with_context(|| format!("cannot listen on {}", plan.http))?;
    let address = listener.local_addr()?;
    let backend = tokio::select! {
        backend = plan.backend(config, &shutdown) => backend?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let served = backend.port();
    let models = served.models().iter().map(|model| model.id.as_str()).collect();
    let ready = Ready { url: format!("http://{address}/v1"), key_file: plan.key_file.as_deref(), models };
    output::print(config.json, &ready, || {
        let key = ready.key_file.map_or("none is asked for".to_owned(), |path| format!("in {}", path.display()));
        let mut rows = vec![("serving", ready.models.join(", ")), ("base URL", ready.url.clone()), ("API key", key)];
        if let Some(path) = ready.key_file {
            // The first key of the file, which the log and the screen do not show.
            let key = format!("$(grep -m1 -v '^ *\\(#\\|$\\)' '{}')", path.display());
            rows.push(("for clients", format!("export OPENAI_BASE_URL={} OPENAI_API_KEY={key}", ready.url)));
        }
        output::table(&rows)
    })?;
    let gateway = Gateway::new(Arc::clone(&served), access, plan.limits, Instant::now());
    let router = gateway.with_origins(plan.origins.clone()).strict(plan.strict).router();
    server::serve(listener, router, GRACE, shutdown).await?;
    drop(served);
    backend.end().await
}

impl Plan {
    fn new(config: &Config, args: ServeArgs) -> Result<Self> {
        let file = &config.file.serve;
        let default = Limits::default();
        let http = match args.http.or(file.http) {
            Some(address) => address,
            None => DEFAULT_HTTP.parse()?,
        };
        ensure!(
            !args.no_auth || http.ip().is_loopback(),
            "--no-auth opens {http} to everybody who reaches it: listen on a loopback address, or leave --no-auth out"
        );
        let given = args.api_key_file.or_else(|| file.api_key_file.clone());
        let make_key = given.is_none();
        let key_file = (!args.no_auth).then(|| given.unwrap_or_else(|| config.data_dir.join(KEY_FILE)));
        let body = match args.max_body.as_ref().or(file.max_body.as_ref()) {
            Some(text) => parse_size(text)?,
            None => default.body as u64,
        };
        ensure!((1..=MAX_BODY).contains(&body), "--max-body must be 1 B to {} MiB", MAX_BODY >> 20);
        let time = args.timeout.or(file.timeout).map_or(default.time, Duration::from_secs);
        ensure!((1..=3600).contains(&time.as_secs()), "--timeout must be 1 to 3600 seconds");
        // Without keys there is one caller, who competes with nobody; with them a proxy may stand in front.
        let counted = args.job.is_some() || !args.no_auth;
        let usual = if counted { default.per_minute } else { None };
        let per_minute = args.requests_per_minute.or(file.requests_per_minute).or(usual);
        ensure!(per_minute != Some(0), "--requests-per-minute must be at least 1");
        let pages = if args.allow_origin.is_empty() { &file.allow_origin } else { &args.allow_origin };
        let origins = Origins::new(pages.iter().map(String::as_str)).context("--allow-origin")?;
        let queue = args.queue.or(file.queue).unwrap_or(DEFAULT_QUEUE);
        ensure!((1..=default.requests).contains(&queue), "--queue must be 1 to {}", default.requests);
        let job = args.job.map(JobId);
        ensure!(job.is_none() || args.models.len() == 1, "a job serves one model: name one folder with --job");
        let texts = args.texts.or(file.texts).unwrap_or(DEFAULT_TEXTS);
        ensure!((1..=MAX_TEXTS).contains(&texts), "--texts must be 1 to {MAX_TEXTS}");
        let security = args.security.or(file.security);
        ensure!(security != Some(0), "--security must be at least 1");
        Ok(Self {
            job,
            models: named(&args.models)?,
            http,
            key_file,
            make_key,
            limits: Limits { body: usize::try_from(body)?, time, per_minute, ..default },
            origins,
            strict: args.strict || file.strict,
            queue,
            texts,
            failover: Some(args.failover.or(file.failover).unwrap_or(DEFAULT_FAILOVER))
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            rebalance: Some(args.rebalance.or(file.rebalance).unwrap_or(DEFAULT_REBALANCE))
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            security,
            how: Quantising {
                calibration: args.how.calibration.or_else(|| file.calibration.clone()),
                setting: args.how.setting.or(file.setting),
            },
            acceptance: Acceptance { accept_loss: args.acceptance.accept_loss || file.accept_loss },
            device: args.device.or_else(|| file.device.clone()),
        })
    }

    fn access(&self) -> Result<Access> {
        let Some(path) = &self.key_file else { return Ok(Access::Open) };
        let keys = if self.make_key { Keys::read_or_create(path)? } else { Keys::read(path)? };
        if readable_by_others(path) {
            tracing::warn!("others may read the API keys in {0}: chmod 600 {0}", path.display());
        }
        if !self.http.ip().is_loopback() {
            tracing::warn!("keys and texts cross the network in clear: put a proxy with TLS before {}", self.http);
        }
        Ok(Access::Keys(keys))
    }

    async fn backend(self: &Arc<Self>, config: &Config, shutdown: &CancellationToken) -> Result<Computing> {
        if let (Some(job), [(id, path)]) = (self.job, self.models.as_slice()) {
            let Self { queue, failover: borne, rebalance, security, .. } = **self;
            let how = How { queue, borne, rebalance, security, device: self.device.clone() };
            return Computing::there(config, (job, how), (id, path), shutdown).await;
        }
        let plan = Arc::clone(self);
        let opened = tokio::task::spawn_blocking(move || {
            let capacity = Capacity { queue: plan.queue, texts: plan.texts };
            open(&plan.models, capacity, (&plan.how, Some(plan.acceptance)), plan.device.as_deref())
        });
        Ok(Computing::Here(Arc::new(opened.await.context("a model could not be read")??)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Common;

    fn plan(text: &str, change: impl FnOnce(&mut ServeArgs)) -> Result<Plan> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.toml");
        std::fs::write(&path, text).unwrap();
        let config = Config::load(&Common { config: Some(path), ..Common::default() }).unwrap();
        let mut args = ServeArgs { models: vec![folder.path().to_owned()], ..ServeArgs::default() };
        change(&mut args);
        Plan::new(&config, args)
    }

    #[test]
    fn keys_are_asked_for_unless_said_otherwise_on_loopback() {
        let default = plan("", |_| ()).unwrap();
        assert_eq!((default.key_file.as_deref(), default.make_key), (Some(Path::new(".tensorlink/gateway.key")), true));
        assert!(default.http.ip().is_loopback());
        assert_eq!(plan("", |args| args.no_auth = true).unwrap().key_file, None);
        let open = plan("[serve]\nhttp = \"0.0.0.0:80\"", |args| args.no_auth = true).unwrap_err();
        assert!(open.to_string().contains("--no-auth"), "{open}");
        let given = plan("[serve]\napi_key_file = \"k\"", |_| ()).unwrap();
        assert_eq!((given.key_file.as_deref(), given.make_key), (Some(Path::new("k")), false));
    }

    #[test]
    fn a_loss_is_accepted_where_the_flag_or_the_file_says_so() {
        let accepted =
            |text, flag| plan(text, |args| args.acceptance.accept_loss = flag).unwrap().acceptance.accept_loss;
        assert!(!accepted("", false) && accepted("", true) && accepted("[serve]\naccept_loss = true", false));
    }

    #[test]
    fn a_flag_beats_the_file_and_absurd_values_are_refused() {
        let text = "[serve]\nqueue = 3\ntimeout = 5\nmax_body = \"1MiB\"";
        let both = plan(text, |args| args.queue = Some(4)).unwrap();
        assert_eq!((both.queue, both.limits.time, both.limits.body), (4, Duration::from_secs(5), 1 << 20));
        for text in [
            "queue = 0",
            "timeout = 0",
            "max_body = \"0B\"",
            "max_body = \"1TiB\"",
            "requests_per_minute = 0",
            "texts = 0",
            "security = 0",
        ] {
            assert!(plan(&format!("[serve]\n{text}"), |_| ()).is_err(), "{text}");
        }
    }
}
