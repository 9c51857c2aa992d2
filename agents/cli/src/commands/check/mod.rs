//! `tensorlink check`: what works on this machine and what does not.

mod machine;
mod network;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use tensorlink_node::Identity;
use tensorlink_node::ports::Chain;
use tensorlink_program::Engine;
use tensorlink_types::Address;
use tokio_util::sync::CancellationToken;

use crate::advice;
use crate::amount::Wei;
use crate::config::Config;
use crate::{device, keys, node, output};

#[derive(Serialize)]
struct Finding {
    what: &'static str,
    ok: bool,
    detail: String,
}

/// What was found so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn note(&mut self, what: &'static str, found: Result<String>) {
        let (ok, detail) = match found {
            Ok(detail) => (true, detail),
            Err(error) => (false, advice::words(&error)),
        };
        self.0.push(Finding { what, ok, detail });
    }
}

/// Checks what a node needs, each on its own: configuration, device, disk, key, deployment, chain, clock, gas, ports
/// and peers.
pub async fn run(config: &Config, shutdown: &CancellationToken) -> Result<()> {
    let mut findings = Findings::default();
    let none = "none: flags, environment and defaults only";
    findings.note("config", Ok(config.source.as_ref().map_or(none.to_owned(), |path| path.display().to_string())));
    let wanted = std::env::var("TENSORLINK_DEVICE").ok().or_else(|| config.file.worker.device.clone());
    findings.note("device", device::open(wanted.as_deref()).map(|engine| engine.describe()));
    findings.note("disk", machine::disk(&config.data_dir));
    let key = keys::load(config);
    let identity = key.as_ref().ok().cloned();
    findings.note("key", key.map(|identity| identity.address().to_string()));
    let deployment = tensorlink_chain::read_deployment(&config.deployment);
    findings
        .note("deployment", deployment.map(|d| format!("chain {}, jobs {}", d.chain_id, d.jobs)).map_err(Into::into));
    match node::reader(config, shutdown).await {
        Ok((_, chain)) => {
            findings.note("chain", describe(chain.as_ref()).await);
            findings.note("clock", clock(chain.as_ref()).await);
            findings.note("gas", gas(chain.as_ref(), identity.as_ref()).await);
        }
        Err(error) => findings.note("chain", Err(error)),
    }
    findings.note("ports", network::ports(&config.listen));
    findings.note("peers", network::peers(&config.bootstrap).await);
    let Findings(findings) = findings;
    let failed = findings.iter().filter(|finding| !finding.ok).count();
    for finding in &findings {
        output::print(config.json, finding, || {
            format!("{:<4} {:<10}  {}", if finding.ok { "ok" } else { "FAIL" }, finding.what, finding.detail)
        })?;
    }
    if failed > 0 { bail!("{failed} of {} checks failed", findings.len()) } else { Ok(()) }
}

async fn describe(chain: &dyn Chain) -> Result<String> {
    let (head, parameters) = (chain.head().await?, chain.parameters().await?);
    Ok(format!("block {}, collateral {} SNO", head.number, Wei::from(parameters.validator_collateral)))
}

async fn clock(chain: &dyn Chain) -> Result<String> {
    let block = chain.head().await?.timestamp;
    machine::clock(block, chain.deployment().chain_id)
}

/// Whether transactions can be paid for.
async fn gas(chain: &dyn Chain, identity: Option<&Identity>) -> Result<String> {
    let own = identity.context("unknown without a key")?.address();
    let eth = chain.balance(own, Address::ZERO).await?;
    let sno = chain.balance(own, chain.deployment().sno).await?;
    ensure!(!eth.is_zero(), "{own} has no ETH and can send no transaction: send it some");
    Ok(format!("{} ETH and {} SNO of {own}", Wei(eth), Wei(sno)))
}
