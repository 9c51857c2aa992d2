//! `[worker]` of the configuration file, which the flags of the command beat.

use serde::Deserialize;

use super::Kind;

/// How workers are run, unless flags say otherwise.
#[derive(Clone, Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct WorkerFile {
    /// As `--memory`, e.g. `8GiB`.
    pub memory: Option<String>,
    /// As `--price`: SNO per billion multiply-adds.
    pub price: Option<String>,
    /// As `--eth-price`: ETH per billion multiply-adds.
    pub eth_price: Option<String>,
    /// As `--max-stake`: SNO.
    pub max_stake: Option<String>,
    /// As `--max-duration`, seconds.
    pub max_duration: Option<u64>,
    /// As `--max-wait`, seconds.
    pub max_wait: Option<u64>,
    /// As `--hours`, e.g. `22:00-07:00`.
    pub hours: Option<String>,
    /// As `--only`.
    pub only: Option<Kind>,
    /// As `--bursts`.
    pub bursts: Option<bool>,
    /// As `--disk`, e.g. `10GiB`.
    pub disk: Option<String>,
    /// As `--device`.
    pub device: Option<String>,
}
