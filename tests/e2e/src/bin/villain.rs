//! Honest commands of `tensorlink` over a corrupted engine or port; takes the same arguments. Test-only: the product
//! holds no cheating code.
//!
//! A worker that lies about one number, by `TENSORLINK_VILLAIN_` and:
//!
//! | setting | meaning |
//! |---|---|
//! | `STEP` | the step at which it lies, or the number of tokens of a text; every one if it is not set |
//! | `OPERATOR` | the kind of operator that it falsifies; `mat_mul` if it is not set |
//! | `DEED` | what becomes of the operator's output; another number if it is not set |
//! | `MUTE=true` | it answers no auditor |
//! | `TONGUE` | `silent_at_last`, `junk` or `{"inconsistent":"wiring"}`: it answers challenges so; `withholding`: it shows nothing that is demanded on chain |
//! | `KEEP_RESULT=true` | it computes right, and gives its last state to nobody but its keeper |
//! | `HUSH=true` | it computes right, claims it, and withholds its attestation of what it sent from its neighbours |
//! | `HONEST=true` | it computes right |
//! | `COOK` | `inputs` or `output`: it shows auditors another one than it logged or signed; `state`: it gives another one than it claimed |
//! | `COPY=true` | it reveals what other replicas have revealed |
//! | `FORK=true` | it computes right, and tells its neighbours something else in that step |
//! | `HEARSAY=true` | it computes right, but from something else than its neighbour told it in that step |
//! | `FRAME=true` | it computes right, and accuses its auditors |
//!
//! A validator that looks at nothing; with `STEP`, one whose engine gets numbers wrong as such a worker's. A user that
//! posts a job with the flaw `TENSORLINK_VILLAIN_POST`.

use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Parser;
use serde::de::DeserializeOwned;
use tensorlink::args::{Cli, Command};
use tensorlink::commands::job::JobCommand;
use tensorlink::commands::worker::WorkerCommand;
use tensorlink::commands::{post, validator, worker};
use tensorlink::config::Config;
use tensorlink::process;
use tensorlink_e2e::auditing::{Framer, Lazy};
use tensorlink_e2e::cooked::{Cooked, Dish};
use tensorlink_e2e::copier::Copier;
use tensorlink_e2e::corrupted::{Corrupted, Deed, Lie};
use tensorlink_e2e::crooked::Crooked;
use tensorlink_e2e::forked::Forked;
use tensorlink_e2e::hearsay::{Ears, Hearsay};
use tensorlink_e2e::hush::Hush;
use tensorlink_e2e::mute::Mute;
use tensorlink_e2e::posting::Flawed;
use tensorlink_e2e::pressed::Pressed;
use tensorlink_e2e::tongue::Tongue;
use tensorlink_node::ports::{Chain, Net};
use tensorlink_node::{Identity, Ports};
use tensorlink_types::Opcode;

/// Key of what holds a neighbour's place.
const PUPPET: [u8; 32] = [0x13; 32];

/// What an environment variable says, as JSON or as a bare word; none if it is not set.
fn setting<T: DeserializeOwned>(name: &str) -> anyhow::Result<Option<T>> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    let value = serde_json::from_str(&text).unwrap_or_else(|_| serde_json::Value::String(text.clone()));
    serde_json::from_value(value).map(Some).with_context(|| format!("{name}={text:?} means nothing here"))
}

/// Where an engine errs, and how.
fn lie() -> anyhow::Result<Lie> {
    let step = setting("TENSORLINK_VILLAIN_STEP")?;
    let opcode = setting("TENSORLINK_VILLAIN_OPERATOR")?.unwrap_or(Opcode::MatMul);
    let deed = setting("TENSORLINK_VILLAIN_DEED")?.unwrap_or(Deed::Flip(5));
    Ok(Lie { step, opcode, deed })
}

/// The same at a step that no job has.
fn never(lie: Lie) -> Lie {
    Lie { step: Some(u32::MAX), ..lie }
}

fn main() -> ! {
    let cli = Cli::parse();
    process::log(cli.common.verbose);
    process::run(|shutdown| async move {
        let config = Config::load(&cli.common)?;
        let args = match &cli.command {
            Command::Worker(WorkerCommand::Run(args)) => args,
            Command::Validator(validator::ValidatorCommand::Run(args)) => {
                let lie = lie()?;
                let looks = lie.step.is_some();
                // Who looks at nothing computes for nothing, too: right.
                let lie = if looks { lie } else { never(lie) };
                let dress = |ports: Ports| {
                    if looks {
                        return ports;
                    }
                    let chain = Arc::new(Crooked(ports.chain.clone(), Arc::new(Lazy(ports.clone()))));
                    Ports { chain, ..ports }
                };
                return validator::run_on(&config, args, shutdown, move |engine| Corrupted::new(engine, lie), dress)
                    .await;
            }
            Command::Job(JobCommand::Post(args)) => {
                let flaw = setting("TENSORLINK_VILLAIN_POST")?.context("what is wrong with the job?")?;
                return post::run_on(&config, args, shutdown, |ports: Ports| {
                    let flawed = Arc::new(Flawed::new(flaw));
                    let chain = Arc::new(Crooked(ports.chain.clone(), flawed.clone()));
                    Ports { chain, store: Arc::new(Pressed { press: flawed, store: ports.store.clone() }), ..ports }
                })
                .await;
            }
            _ => bail!("a villain runs as a worker or as a validator, or posts a job"),
        };
        let lie = lie()?;
        let step = lie.step;
        let mute = setting("TENSORLINK_VILLAIN_MUTE")?.unwrap_or(false);
        let fork = setting("TENSORLINK_VILLAIN_FORK")?.unwrap_or(false);
        let frame = setting("TENSORLINK_VILLAIN_FRAME")?.unwrap_or(false);
        let hearsay = setting("TENSORLINK_VILLAIN_HEARSAY")?.unwrap_or(false);
        let cook: Option<Dish> = setting("TENSORLINK_VILLAIN_COOK")?;
        let copy = setting("TENSORLINK_VILLAIN_COPY")?.unwrap_or(false);
        let keep_result = setting("TENSORLINK_VILLAIN_KEEP_RESULT")?.unwrap_or(false);
        let hush = setting("TENSORLINK_VILLAIN_HUSH")?.unwrap_or(false);
        let honest = setting("TENSORLINK_VILLAIN_HONEST")?.unwrap_or(fork || frame || hearsay || keep_result || hush);
        let lie = if honest { never(lie) } else { lie };
        let tongue: Option<Tongue> = setting("TENSORLINK_VILLAIN_TONGUE")?;
        let puppet = Identity::new(&PUPPET)?;
        let dress = |ports: Ports| {
            if hearsay {
                let ears = Arc::new(Hearsay::new(ports.clone(), puppet, step.unwrap_or_default()));
                let chain = Arc::new(Crooked(ports.chain.clone(), ears.clone()));
                return Ports { net: Arc::new(Ears(ears)), chain, ..ports };
            }
            let net: Arc<dyn Net> = match (mute, fork, cook) {
                (true, ..) => Arc::new(Mute::about_claims(ports.net.clone())),
                (_, true, _) => Arc::new(Forked::new(ports.clone(), step.unwrap_or_default())),
                (.., Some(dish)) => Arc::new(Cooked(ports.clone(), dish)),
                _ if hush => Arc::new(Hush::new(ports.net.clone())),
                _ if keep_result => Arc::new(Mute::about_results(ports.net.clone())),
                _ => ports.net.clone(),
            };
            let chain: Arc<dyn Chain> = match tongue {
                Some(tongue) => Arc::new(Crooked(ports.chain.clone(), Arc::new(tongue))),
                None if frame => Arc::new(Crooked(ports.chain.clone(), Arc::new(Framer(ports.clone())))),
                None if copy => Arc::new(Crooked(ports.chain.clone(), Arc::new(Copier::default()))),
                None => ports.chain.clone(),
            };
            Ports { net, chain, ..ports }
        };
        worker::run_on(&config, args, shutdown, move |engine| Corrupted::new(engine, lie), dress).await
    })
}
