//! `tensorlink check`: what works on this machine and what does not.

use anyhow::{Result, bail};
use serde::Serialize;
use tensorlink_graph::Engine;
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::config::Config;
use crate::{device, keys, node, output};

#[derive(Serialize)]
struct Finding {
    what: &'static str,
    ok: bool,
    detail: String,
}

/// Checks configuration, device, key, deployment, chain and contracts, each on its own.
pub async fn run(config: &Config, shutdown: &CancellationToken) -> Result<()> {
    let mut findings = Vec::new();
    let mut note = |what, result: Result<String>| {
        let (ok, detail) = match result {
            Ok(detail) => (true, detail),
            Err(error) => (false, format!("{error:#}")),
        };
        findings.push(Finding { what, ok, detail });
    };
    let none = "none: flags, environment and defaults only";
    note("config", Ok(config.source.as_ref().map_or(none.to_owned(), |path| path.display().to_string())));
    note("device", device::open(None).map(|engine| engine.describe()));
    note("key", keys::load(config).map(|identity| identity.address().to_string()));
    let deployment = tensorlink_chain::read_deployment(&config.deployment);
    note("deployment", deployment.map(|d| format!("chain {}, jobs {}", d.chain_id, d.jobs)).map_err(Into::into));
    note("chain", chain(config, shutdown).await);
    let failed = findings.iter().filter(|finding| !finding.ok).count();
    for finding in &findings {
        output::print(config.json, finding, || {
            format!("{:<4} {:<10}  {}", if finding.ok { "ok" } else { "FAIL" }, finding.what, finding.detail)
        })?;
    }
    if failed > 0 { bail!("{failed} of {} checks failed", findings.len()) } else { Ok(()) }
}

async fn chain(config: &Config, shutdown: &CancellationToken) -> Result<String> {
    let (identity, chain) = node::chain(config, shutdown).await?;
    let (head, parameters) = (chain.head().await?, chain.parameters().await?);
    let own = identity.address();
    let (eth, sno) = (chain.balance(own, Default::default()).await?, chain.balance(own, chain.deployment().sno).await?);
    Ok(format!(
        "block {}, collateral {} SNO, own balance {} ETH and {} SNO",
        head.number,
        Wei::from(parameters.validator_collateral),
        Wei(eth),
        Wei(sno)
    ))
}
