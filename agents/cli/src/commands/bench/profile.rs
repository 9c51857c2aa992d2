//! `tensorlink bench profile`: what a worker advertises of this machine, measured anew.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tensorlink_model::Setting;
use tensorlink_node::{Speed, blocking};

use crate::config::Config;
use crate::profile::cache::Cache;
use crate::profile::{Machine, measured_anew};
use crate::{device, disk, output};

#[derive(Args, Debug)]
pub struct ProfileArgs {
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// What was measured, and what is free.
#[derive(Serialize)]
struct Profile {
    /// Class of the device, by what was measured in setting `standard`.
    tier: String,
    /// Multiply-adds a second.
    fast: u64,
    standard: u64,
    reference: u64,
    /// Bytes of weights a second.
    memory: u64,
    /// Bytes.
    free_memory: u64,
    free_disk: u64,
    engine: String,
    hardware: String,
    /// Where it is remembered.
    cache: Option<PathBuf>,
}

/// Measures this machine, prints it.
pub(super) async fn run(config: &Config, args: &ProfileArgs) -> Result<()> {
    let wanted = args.device.clone().or_else(|| config.file.worker.device.clone());
    let engine = device::open(wanted.as_deref())?;
    let (free_memory, free_disk) = (engine.memory()?, disk::free(&config.data_dir)?);
    let (machine, cache) = (Machine::of(&engine)?, Cache::find());
    let (of, at) = (machine.clone(), cache.clone());
    let speed = blocking(move || measured_anew(&engine, &of, at.as_ref())).await?;
    let [fast, standard, reference] = Setting::ALL.map(|setting| speed.multiply_adds(setting));
    let profile = Profile {
        tier: speed.tier().to_string(),
        fast,
        standard,
        reference,
        memory: speed.memory(),
        free_memory,
        free_disk,
        engine: machine.engine,
        hardware: machine.hardware,
        cache: cache.map(|cache| cache.path()),
    };
    output::print(config.json, &profile, || text(&profile, speed))
}

fn text(profile: &Profile, speed: Speed) -> String {
    let rate = |amount: u64, bits: &str| format!("{:.1} billion multiply-adds a second, {bits} bits", billions(amount));
    let gibibytes = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let Profile { tier, fast, standard, reference, memory, free_memory, free_disk, engine, hardware, cache } = profile;
    output::table(&[
        ("tier", format!("{tier}: {:.4} teraflops in setting standard; B from 5 on, A from 20", speed.teraflops())),
        ("fast", rate(*fast, "8 by 8")),
        ("standard", rate(*standard, "16 by 8")),
        ("reference", rate(*reference, "16 by 16")),
        ("memory", format!("{:.1} GB of weights a second", billions(*memory))),
        ("free", format!("{:.1} GiB of memory, {:.0} GiB of disk", gibibytes(*free_memory), gibibytes(*free_disk))),
        ("device", format!("{hardware}; {engine}")),
        (
            "cache",
            cache.as_ref().map_or_else(
                || "none: there is no home folder, so that every start of a worker measures".to_owned(),
                |path| path.display().to_string(),
            ),
        ),
    ])
}

fn billions(amount: u64) -> f64 {
    amount as f64 / 1e9
}
