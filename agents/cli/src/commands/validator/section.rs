//! `[validator]` of the configuration file, which the flags of the command beat.

use serde::Deserialize;

/// How validators are run, unless flags say otherwise.
#[derive(Clone, Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct ValidatorFile {
    /// As `--rate`: share of claims to audit, 0 to 1.
    pub rate: Option<f64>,
    /// As `--disk`, e.g. `10GiB`.
    pub disk: Option<String>,
    /// As `--device`.
    pub device: Option<String>,
}
