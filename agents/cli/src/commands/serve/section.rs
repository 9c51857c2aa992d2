//! `[serve]` of the configuration file, which the flags of the command beat.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use tensorlink_model::Setting;

/// How models are served, unless flags say otherwise.
#[derive(Clone, Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct ServeFile {
    /// As `--http`.
    pub http: Option<SocketAddr>,
    /// As `--api-key-file`.
    pub api_key_file: Option<PathBuf>,
    /// As `--allow-origin`.
    #[serde(default)]
    pub allow_origin: Vec<String>,
    /// As `--strict`.
    #[serde(default)]
    pub strict: bool,
    /// As `--requests-per-minute`.
    pub requests_per_minute: Option<u32>,
    /// As `--queue`.
    pub queue: Option<usize>,
    /// As `--texts`.
    pub texts: Option<usize>,
    /// As `--max-body`, e.g. `4MiB`.
    pub max_body: Option<String>,
    /// As `--timeout`, seconds.
    pub timeout: Option<u64>,
    /// As `--failover`, seconds.
    pub failover: Option<u64>,
    /// As `--rebalance`, seconds.
    pub rebalance: Option<u64>,
    /// As `--security`.
    pub security: Option<u16>,
    /// As `--calibration`.
    pub calibration: Option<PathBuf>,
    /// As `--setting`.
    pub setting: Option<Setting>,
    /// As `--accept-loss`.
    #[serde(default)]
    pub accept_loss: bool,
    /// As `--device`.
    pub device: Option<String>,
}
