//! `[worker]` of the configuration file, which the flags of the command beat.

use serde::Deserialize;

use super::Kind;
use crate::owner::Percent;

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
    /// As `--max-other-load`, per cent.
    pub max_other_load: Option<Percent>,
    /// As `--only`.
    pub only: Option<Kind>,
    /// As `--bursts`.
    pub bursts: Option<bool>,
    /// As `--disk`, e.g. `10GiB`.
    pub disk: Option<String>,
    /// As `--device`.
    pub device: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::commands::worker::WorkerCommand;

    #[test]
    fn what_others_may_use_is_a_share_of_the_machine() {
        let file = |text: &str| toml::from_str::<WorkerFile>(text).map(|file| file.max_other_load);
        let flag = |text: &str| {
            let cli = Cli::try_parse_from(["tensorlink", "worker", "run", "--max-other-load", text]).ok()?;
            let Command::Worker(WorkerCommand::Run(args)) = cli.command else { return None };
            args.max_other_load
        };
        assert_eq!(file("").unwrap(), None);
        let share: Percent = "25".parse().unwrap();
        assert_eq!((file("max_other_load = 25").unwrap(), flag("25")), (Some(share), Some(share)));
        for wrong in ["0", "100", "-1"] {
            let error = file(&format!("max_other_load = {wrong}")).unwrap_err().to_string();
            assert!(error.contains("max_other_load"), "{error}");
            assert_eq!(flag(wrong), None, "{wrong}");
        }
    }
}
