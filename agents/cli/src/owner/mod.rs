//! Whether whoever lends this machine uses it: then a worker that was told so takes no new jobs.
//!
//! | module | what lives there |
//! |---|---|
//! | here | the rule, and the looks at the machine |
//! | `processors`, `gpu` | what other programs use |
//! | `gate` | whether that is much, for longer than a moment |

mod gate;
mod gpu;
mod processors;

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::gate::Gate;
use self::processors::Times;

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(5);
/// Time before the first.
const FIRST: Duration = Duration::from_secs(1);

/// A share of a machine, between nothing and all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "u8")]
pub struct Percent(u8);

/// No such share.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0} is no percentage from 1 to 99")]
pub struct NoPercentage(String);

impl Percent {
    fn share(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl TryFrom<u8> for Percent {
    type Error = NoPercentage;

    fn try_from(percent: u8) -> Result<Self, NoPercentage> {
        if (1..100).contains(&percent) { Ok(Self(percent)) } else { Err(NoPercentage(percent.to_string())) }
    }
}

impl FromStr for Percent {
    type Err = NoPercentage;

    fn from_str(text: &str) -> Result<Self, NoPercentage> {
        text.parse::<u8>().map_err(|_| NoPercentage(text.to_owned()))?.try_into()
    }
}

/// What was seen of other programs' use.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Seen {
    /// Little.
    Little,
    /// Much.
    Much,
    /// Nothing: the system did not tell.
    Unknown,
}

/// What is looked at, and what was seen.
struct Looks {
    processors: Gate,
    before: Times,
    /// Of a process that computes on a GPU.
    gpu: Option<Gate>,
    seen: Seen,
}

/// Whether other programs use more than `most` of the processors or, if this process computes on a GPU, are there for
/// more than that share of the time; until the end. Without a rule, never.
///
/// # Errors
/// If this system does not tell what they use.
pub async fn watch(most: Option<Percent>, on_gpu: bool, end: &CancellationToken) -> Result<watch::Receiver<bool>> {
    let Some(most) = most else { return Ok(watch::channel(false).1) };
    let begun = Looks::begin(most, on_gpu).await;
    let mut looks = begun.context("what other programs use is not known here, so leave out --max-other-load")?;
    tokio::time::sleep(FIRST).await;
    let (tell, told) = watch::channel(looks.look().await);
    let end = end.clone();
    let looking = async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            tell.send_replace(looks.look().await);
        }
    };
    tokio::spawn(async move { end.run_until_cancelled(looking).await });
    Ok(told)
}

impl Looks {
    async fn begin(most: Percent, on_gpu: bool) -> Result<Self> {
        let before = Times::now()?;
        if on_gpu {
            gpu::used_by_others().await?;
        }
        let gpu = on_gpu.then(|| Gate::new(most));
        Ok(Self { processors: Gate::new(most), before, gpu, seen: Seen::Little })
    }

    /// Looks, and logs what has changed; whether no new jobs are to be taken. Where nothing is seen, none are.
    async fn look(&mut self) -> bool {
        let looked = self.take_in().await;
        let is_much = self.processors.is_much() || self.gpu.as_ref().is_some_and(Gate::is_much);
        let seen = match &looked {
            Err(_) => Seen::Unknown,
            Ok(_) if is_much => Seen::Much,
            Ok(_) => Seen::Little,
        };
        if seen != self.seen {
            match &looked {
                Err(error) => warn!("no new jobs are taken: what other programs use is not known: {error:#}"),
                Ok(used) if is_much => info!("no new jobs are taken: other programs use {used}"),
                Ok(used) => info!("new jobs are taken again: other programs use {used}"),
            }
        }
        self.seen = seen;
        self.seen != Seen::Little
    }

    /// Takes in what others used since the last look; in words what they did in the last minute.
    async fn take_in(&mut self) -> Result<String> {
        let now = Times::now()?;
        // None where no time has passed.
        if let Some(share) = now.others_since(&self.before) {
            self.processors.look(share);
        }
        self.before = now;
        let mut used = format!("{:.0} % of the processors", self.processors.average() * 100.0);
        if let Some(gpu) = &mut self.gpu {
            gpu.look(if gpu::used_by_others().await? { 1.0 } else { 0.0 });
            used.push_str(&format!(", and the GPU {:.0} % of the time", gpu.average() * 100.0));
        }
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_neither_nothing_nor_all() {
        assert_eq!(["1", "25", "99"].map(|text| text.parse::<Percent>().unwrap().0), [1, 25, 99]);
        for wrong in ["0", "100", "-1", "25 %", "0.5", "", "256"] {
            let error = wrong.parse::<Percent>().unwrap_err().to_string();
            assert!(error.contains("1 to 99"), "{error}");
        }
        assert!(Percent::try_from(0).is_err() && Percent::try_from(100).is_err());
        assert!((Percent(25).share() - 0.25).abs() < 1e-9);
    }

    #[tokio::test]
    async fn without_a_rule_nobody_uses_the_machine() {
        let told = watch(None, true, &CancellationToken::new()).await.unwrap();
        assert!(!*told.borrow());
    }
}
