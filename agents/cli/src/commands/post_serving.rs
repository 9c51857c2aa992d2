//! `tensorlink job serve`: from a pretrained transformer to a running serving job.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use tensorlink_folder::{Distance, ModelFolder};
use tensorlink_model::memory::cut;
use tensorlink_model::{Output, Quantized, Setting};
use tensorlink_node::ports::chain::Parameters;
use tensorlink_node::price::{audit_budget, price_per_token};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, JobId, U256};
use tensorlink_user::placing;
use tensorlink_user::serving::{PreparedServing, publish_serving};
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::commands::hiring::{Aim, HireArgs, Hiring, RingLane, Work};
use crate::commands::local::named;
use crate::commands::serve_by_workers::Record;
use crate::config::Config;
use crate::hf_tokenizer::HfTokenizer;
use crate::live::say;
use crate::quantized::loss::Acceptance;
use crate::quantized::{Quantising, loss, measured};
use crate::{device, output};

/// Most tokens that a job of ours pays a lane for; the contract has room for 2^32 − 1 (rule P-18).
const MOST_TOKENS: u32 = 1_000_000;
/// Most tokens of a text where the user says nothing: workers hash a program for each length.
const DEFAULT_LONGEST: u32 = 512;

#[derive(Args, Debug)]
pub struct JobServeArgs {
    /// Folder of a pretrained transformer, as Hugging Face publishes it or quantised, or a .gguf file.
    #[arg(value_name = "FOLDER")]
    pub model: PathBuf,
    /// Most tokens of a text [default: those of the model, at most 512].
    #[arg(long, value_name = "TOKENS")]
    pub longest: Option<u32>,
    /// Most tokens to pay for in each lane [default: what the deposit pays for by the workers' adverts, at
    /// most 1000000].
    #[arg(long, value_name = "TOKENS")]
    pub tokens: Option<u32>,
    /// Lanes of each stage that compute every text. Nothing on which they differ is delivered; this machine computes it
    /// again then, and convicts who was wrong. Raises --replicas to this number if it is lower.
    #[arg(long, value_name = "LANES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub security: u16,
    #[command(flatten)]
    pub hire: HireArgs,
    #[command(flatten)]
    pub how: Quantising,
    #[command(flatten)]
    pub acceptance: Acceptance,
    /// Device to calibrate on: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// What a serving job will cost and risk, before anything is signed.
#[derive(Serialize)]
struct Quote {
    /// Name of the model.
    model: String,
    /// In how many bits it is computed.
    setting: Setting,
    /// How far it is from its floats; none if that is not known.
    distance: Option<Distance>,
    /// Gas of convicting a worker by one element of a product over 4,096 elements in this setting; by shorter ones it
    /// costs less.
    conviction_gas: u64,
    /// Layers of each stage, `first..end`.
    layers: Vec<Range<u32>>,
    /// Replicas of the pipeline; texts take turns among them.
    replicas: u16,
    /// How many of them compute each text, and must agree.
    security: u16,
    /// Most tokens of a text.
    longest: u32,
    /// Most tokens that each lane is paid for.
    tokens: u32,
    /// `SNO` or `ETH`, which the job pays in.
    token: &'static str,
    /// Escrow, in wei of the token.
    deposit: Wei,
    /// Most of it that audits can take.
    audit_budget: Wei,
    /// The most that a token costs, through all replicas that compute it, in wei; by the workers' adverts. Binding
    /// prices come with their offers.
    price_per_token: Wei,
    /// What a token takes, by what the workers say of their speed.
    seconds_per_token: f64,
    /// Wei of SNO that each worker must have at risk in this job.
    worker_stake: Wei,
    /// Seconds after the job's end in which a receipt can be disproved.
    challenge_window: u64,
    /// Who is asked, lane by lane.
    workers: Vec<Address>,
    /// How each lane is expected to go, lane by lane.
    ring: Vec<RingLane>,
}

/// Printed once the job runs.
#[derive(Serialize)]
struct Started {
    job: JobId,
}

/// Posts a serving job, hires, starts it.
pub async fn run(config: &Config, args: &JobServeArgs, shutdown: CancellationToken) -> Result<()> {
    let (name, path) = named(std::slice::from_ref(&args.model))?.pop().context("name a folder")?;
    let folder = ModelFolder::open(&path)?;
    if matches!(folder.architecture().output, Output::Logits { .. }) {
        // What the gateway will need of it, before anything is paid for.
        HfTokenizer::of(&folder).with_context(|| name.clone())?;
    }
    let longest = longest(args.longest, folder.architecture().context)?;
    let hire = HireArgs { replicas: args.hire.replicas.max(args.security), ..args.hire.clone() };
    let even = hire.stages().said().map(|stages| cut(folder.architecture(), stages)).transpose()?;
    let mut hiring = Hiring::look(config, &hire, &shutdown).await?;
    say!("{} {name} ...", if folder.integers().is_some() { "reading" } else { "calibrating" });
    let (model, distance) = {
        let (how, device) = ((args.how.clone(), args.acceptance), args.device.clone());
        let quantise = move || quantise(&folder, &how, device.as_deref());
        tokio::task::spawn_blocking(quantise).await?.with_context(|| name.clone())?
    };
    let (setting, asked) = (model.setting(), placing::Work::serving(&name, &model, longest)?);
    let layers = match even {
        Some(even) if hire.objective == Aim::Price => even,
        _ => hiring.place(&shutdown, &asked, 1).await?.into_iter().map(numbers).collect::<Result<_>>()?,
    };
    say!("hashing its programs of {} stages ...", layers.len());
    let prepared = {
        let layers = layers.clone();
        let prepare = move || PreparedServing::new(&model, &layers, longest);
        tokio::task::spawn_blocking(prepare).await?.with_context(|| name.clone())?
    };
    let needs = prepared.stages.iter().map(|stage| stage.memory(longest)).collect::<Result<_, _>>()?;
    hiring.fit_programs(&shutdown, needs).await?;
    let prices = hiring.prices(|stage, per_gmac| {
        prepared.stages.get(stage).and_then(|s| price_per_token(&s.longest, longest, per_gmac))
    })?;
    let tokens = tokens(args.tokens, (hiring.deposit, &hiring.parameters), (&prices, longest))?;
    let audits = hiring.afford(&prices, tokens, longest)?;
    let places: Vec<Range<usize>> = layers.iter().map(|layers| layers.start as usize..layers.end as usize).collect();
    let shown = hiring.show(&asked, 1, &places).await?;
    let quote = Quote {
        model: name.clone(),
        setting,
        distance,
        conviction_gas: setting.conviction_gas(),
        layers,
        replicas: hire.replicas,
        security: args.security,
        longest,
        tokens,
        token: hiring.token_name(),
        deposit: Wei(hiring.deposit),
        audit_budget: Wei(audits),
        price_per_token: Wei(dearest(&prices, prepared.stages.len(), args.security)),
        seconds_per_token: shown.seconds,
        worker_stake: hiring.asked.stake.into(),
        challenge_window: hiring.window,
        workers: hiring.candidates.iter().map(|candidate| candidate.address).collect(),
        ring: shown.ring.clone(),
    };
    output::print(config.json, &quote, || shown.below(show(&quote)))?;
    if hire.dry_run {
        return Ok(());
    }

    let published = publish_serving(hiring.node.ports.store.as_ref(), &name, &prepared).await?;
    let work = Work {
        kind: JobKind::Serving,
        intervals: tokens,
        steps_per_interval: longest,
        programs: published.programs.clone(),
        initial_states: Vec::new(),
        manifest: published.manifest,
        continues: None,
    };
    let note = &published.note;
    let record = Record::new(&hiring, &prepared, args.security)?;
    let job = hiring.post(work, note).await?;
    record.write(&hiring.node.ports.journal, job)?;
    hiring.start(job, &prices, &shutdown).await?;
    output::print(config.json, &Started { job }, || {
        format!("job {job} runs; serve it with `tensorlink serve {} --job {job}`", args.model.display())
    })?;
    hiring.node.net.shutdown().await;
    Ok(())
}

/// Reads the folder, and puts it into integers if it is not.
fn quantise(
    folder: &ModelFolder,
    (how, acceptance): &(Quantising, Acceptance),
    device: Option<&str>,
) -> Result<(Quantized, Option<Distance>)> {
    let measured = measured(folder, how, &device::open(device)?)?;
    let distance = measured.distance.clone();
    Ok((acceptance.admit(measured)?, distance))
}

fn numbers(layers: Range<usize>) -> Result<Range<u32>> {
    Ok(layers.start.try_into()?..layers.end.try_into()?)
}

fn longest(asked: Option<u32>, context: u32) -> Result<u32> {
    let longest = asked.unwrap_or_else(|| context.min(DEFAULT_LONGEST));
    ensure!((1..=context).contains(&longest), "--longest must be 1 to {context}, the tokens that this model takes");
    Ok(longest)
}

/// Most tokens to pay for, such that the escrow covers them in every lane, and their audits (rules P-3, P-29).
pub(super) fn tokens(
    asked: Option<u32>,
    (deposit, parameters): (U256, &Parameters),
    (prices, longest): (&[u128], u32),
) -> Result<u32> {
    let covers = |tokens: u32| {
        let audits = audit_budget(parameters, total(prices), tokens, longest);
        total(prices).saturating_mul(U256::from(tokens)).saturating_add(audits) <= deposit
    };
    // The cost grows with the tokens: the last that is covered lies in [covered, beyond).
    let (mut covered, mut beyond) = (0, MOST_TOKENS.saturating_add(1));
    while beyond.saturating_sub(covered) > 1 {
        let middle = covered.midpoint(beyond);
        if covers(middle) { covered = middle } else { beyond = middle }
    }
    ensure!(covered > 0, "--deposit does not pay for one token at the workers' prices: raise it");
    let tokens = asked.unwrap_or(covered);
    ensure!(
        (1..=covered).contains(&tokens),
        "--tokens must be 1 to {covered}: at the workers' prices --deposit pays for no more, and a job for {MOST_TOKENS} at most"
    );
    Ok(tokens)
}

fn total(prices: &[u128]) -> U256 {
    prices.iter().map(|price| U256::from(*price)).sum()
}

/// Of a token in so many replicas, the dearest of them.
fn dearest(prices: &[u128], stages: usize, replicas: u16) -> U256 {
    let mut totals: Vec<U256> = prices.chunks(stages.max(1)).map(total).collect();
    totals.sort_unstable();
    totals.iter().rev().take(replicas.into()).sum()
}

fn show(quote: &Quote) -> String {
    let layers: Vec<String> = quote.layers.iter().map(|layers| format!("{}..{}", layers.start, layers.end)).collect();
    output::table(&[
        ("model", format!("{}, texts of up to {} tokens", quote.model, quote.longest)),
        ("setting", quote.setting.to_string()),
        ("lost", quote.distance.as_ref().map_or_else(|| "not known".into(), loss::told)),
        ("pipeline", format!("{} stages (layers {}) x {} replicas", layers.len(), layers.join(", "), quote.replicas)),
        (
            "security",
            match quote.security {
                1 => "one replica computes each text".to_owned(),
                lanes => format!("{lanes} replicas compute each text, and must agree"),
            },
        ),
        ("pays for", format!("{} tokens a lane", quote.tokens)),
        (
            "price",
            format!(
                "at most {} {} a token; {} {} in escrow, the rest comes back",
                quote.price_per_token, quote.token, quote.deposit, quote.token
            ),
        ),
        ("speed", format!("{:.1} tokens a second, by what the workers say", 1.0 / quote.seconds_per_token)),
        ("audits", format!("up to {} {} of it", quote.audit_budget, quote.token)),
        ("at risk", format!("{} SNO per worker", quote.worker_stake)),
        ("conviction", format!("{} gas by one element of a product over 4,096", quote.conviction_gas)),
        (
            "settled",
            format!(
                "{0} s after the job was closed, and {0} s after the last voucher was redeemed",
                quote.challenge_window
            ),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deposit_bounds_the_tokens() {
        let none = Parameters::default();
        let of = |asked, deposit: u64, prices: &[u128]| tokens(asked, (U256::from(deposit), &none), (prices, 10));
        assert_eq!(of(None, 1000, &[3, 4]).unwrap(), 142);
        assert_eq!(of(Some(7), 1000, &[3, 4]).unwrap(), 7);
        let error = of(Some(143), 1000, &[3, 4]).unwrap_err().to_string();
        assert!(error.contains("1 to 142"), "{error}");
        assert!(of(Some(0), 1000, &[3, 4]).is_err());
        assert!(of(None, 1000, &[1001]).unwrap_err().to_string().contains("--deposit"));
        assert_eq!(of(None, u64::MAX, &[1]).unwrap(), MOST_TOKENS);
        // Every tenth text of 10 tokens is audited for its price: 100 tokens need two tenths of 100 more, and one text.
        let audits = Parameters { audits_per_claim_bps: 1_000, audit_fee_bps: 10_000, ..none };
        assert_eq!(tokens(None, (U256::from(130), &audits), (&[1], 10)).unwrap(), 100);
    }

    #[test]
    fn a_token_costs_what_the_dearest_replicas_ask_that_compute_it() {
        let of = |replicas| dearest(&[1, 2, 5, 5, 3, 3], 2, replicas);
        assert_eq!([1, 2, 3].map(of), [10, 16, 19].map(U256::from));
    }

    #[test]
    fn a_text_is_as_long_as_the_model_takes_at_most() {
        assert_eq!(longest(None, 8192).unwrap(), DEFAULT_LONGEST);
        assert_eq!(longest(None, 256).unwrap(), 256);
        assert_eq!(longest(Some(256), 256).unwrap(), 256);
        assert!(longest(Some(257), 256).is_err() && longest(Some(0), 256).is_err());
    }
}
