//! Workers, their order and the cut, chosen jointly by what they say of their speed; and shown.

use std::ops::Range;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tensorlink_model::partition::PartitionError;
use tensorlink_node::link::Link;
use tensorlink_placement::Refusal;
use tensorlink_placement::explain::Expected;
use tensorlink_types::Address;
use tensorlink_user::hire::Candidate;
use tensorlink_user::placing::{Market, Placement, Seen, Wish, Work};
use tokio_util::sync::CancellationToken;

use super::{Aim, Hiring};
use crate::live::say;

/// A planner looks at so many workers, the cheapest.
const LOOKED_AT: usize = 256;
/// How many times as dear as the cheapest that are enough a worker may be.
const DEARER: u128 = 2;

/// A placement as it is told to people.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Seconds of a step, or of a token, by what the workers say of their speed.
    pub seconds: f64,
    /// Each lane as it is expected to go, in the order of lanes.
    pub ring: Vec<RingLane>,
    /// The ring; nothing where a job is posted.
    picture: String,
}

/// A lane as it is expected to go, by what its worker says of its speed.
#[derive(Clone, Debug, Serialize)]
pub struct RingLane {
    worker: Address,
    /// Of its speed: `A`, `B` or `C`.
    tier: String,
    /// Layers, `first..end`.
    layers: Range<usize>,
    /// What its part of a unit of the work takes.
    seconds: f64,
    /// What it waits for meanwhile.
    waits_for: &'static str,
    /// Until what it gives is with the next stage; none after the last.
    hop_seconds: Option<f64>,
    /// What that waits for, likewise.
    hop_waits_for: Option<&'static str>,
    /// Between this machine and the worker; none where it is not known.
    bandwidth: Option<Bandwidth>,
    /// What is believed of the speed that it says, as a part of that; none of whom nobody saw.
    believed: Option<f64>,
}

/// Bytes a second.
#[derive(Clone, Copy, Debug, Serialize)]
struct Bandwidth {
    /// To the worker.
    to: f64,
    /// From it.
    from: f64,
}

impl From<Link> for Bandwidth {
    fn from(Link { to, from }: Link) -> Self {
        Self { to, from }
    }
}

impl Shown {
    /// The ring below a quote.
    pub fn below(&self, quote: String) -> String {
        if self.picture.is_empty() { quote } else { format!("{quote}\n\n{}", self.picture.trim_end()) }
    }
}

impl Hiring<'_> {
    /// Chooses workers, their order and the cut of the work; waits for more of them as long as `--patience` lasts.
    /// `shares`: pipelines of a replica that share a step's sequences.
    pub async fn place(&mut self, shutdown: &CancellationToken, work: &Work, shares: u16) -> Result<Vec<Range<usize>>> {
        let said = self.said;
        if let Some(stages) = said.filter(|stages| !stages.is_multiple_of(shares.max(1))) {
            return Err(PartitionError::Shares { stages: stages.into(), shares: shares.into() }.into());
        }
        let mut told = false;
        loop {
            let placed = tokio::select! {
                () = shutdown.cancelled() => bail!("interrupted; nothing was posted"),
                placed = self.place_now(work, shares) => placed?,
            };
            match placed {
                Ok(cut) => return Ok(cut),
                Err(refusal) if self.node.ports.clock.now() >= self.until => return Err(refusal.into()),
                Err(refusal) if !told => {
                    let answer = self.affordable().len();
                    say!("the work is not placed on the {answer} workers that answer ({refusal}); waiting ...");
                    told = true;
                }
                Err(_) => {}
            }
            self.look_again(shutdown).await?;
        }
    }

    /// Places stages again on those that answer now. Where it cannot be done, nobody is chosen, and
    /// [`Self::fit_programs`] may choose whoever has the memory.
    ///
    /// # Errors
    /// When it cannot be done though a bandwidth is asked for, by which nobody else would choose.
    pub async fn place_again(&mut self, work: &Work) -> Result<()> {
        match self.place_now(work, 1).await? {
            Err(refusal) if self.args.min_bandwidth.is_some() => Err(refusal.into()),
            Err(refusal) => {
                tracing::info!("the stages go to whoever has the memory for them: {refusal}");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// As [`Self::place`], on those that answer now.
    pub async fn place_now(&mut self, work: &Work, shares: u16) -> Result<Result<Vec<Range<usize>>, Refusal>> {
        self.release();
        let near = self.affordable();
        let mut seen = self.seen(&near, true).await;
        if self.args.min_bandwidth.is_some() {
            // Of whom it is not known, nobody can say that it is enough.
            for seen in &mut seen {
                seen.reach.link.get_or_insert(Link { to: 1.0, from: 1.0 });
            }
        }
        let Placement { lanes, cut } = match Market::new(work, &seen).place(&self.wish(shares, self.said)) {
            Ok(placement) => placement,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let of = |lane: &usize| seen.get(*lane).map(|seen| seen.candidate.clone());
        let chosen = lanes.iter().map(of).collect::<Option<Vec<_>>>().context("a lane has no worker")?;
        self.stages = u16::try_from(cut.len().saturating_mul(shares.into()))?;
        self.choose(chosen);
        Ok(Ok(cut))
    }

    /// The ring that was chosen, with these layers in each stage of a share. Only who posts nothing is shown a picture:
    /// for that, all who answer are asked and searched once more.
    pub async fn show(&self, work: &Work, shares: u16, cut: &[Range<usize>]) -> Result<Shown> {
        let others = if self.args.dry_run { self.others.as_slice() } else { &[] };
        let all: Vec<Candidate> = self.candidates.iter().chain(others).take(LOOKED_AT).cloned().collect();
        // Who hires by price does not wait for it.
        let seen = self.seen(&all, self.args.dry_run || self.args.objective != Aim::Price).await;
        let market = Market::new(work, &seen);
        // What was placed stands, also if a link is narrower by now.
        let wish = Wish { bandwidth: 0.0, ..self.wish(shares, Some(self.stages)) };
        let placement = Placement { lanes: (0..self.candidates.len()).collect(), cut: cut.to_vec() };
        // Programs may need less than was estimated, and stand on workers that the estimate would not fit.
        let light = work.weightless();
        let by_time = Market::new(&light, &seen);
        let figures = by_time.figures(&wish, &placement)?;
        let lane = |(expected, seen): (Expected, &Seen<'_>)| RingLane {
            worker: seen.candidate.address,
            tier: expected.tier.to_string(),
            layers: expected.stage.first..expected.stage.end,
            seconds: expected.seconds,
            waits_for: expected.waits_for,
            hop_seconds: expected.hop.map(|hop| hop.wait),
            hop_waits_for: expected.hop.map(|hop| hop.waits_for),
            bandwidth: seen.reach.link.map(Into::into),
            believed: seen.believed(),
        };
        let ring = by_time.ring(&wish, &placement)?.into_iter().zip(&seen).map(lane).collect();
        let seconds = work.seconds(figures.latency, figures.bottleneck);
        if !self.args.dry_run {
            return Ok(Shown { seconds, ring, picture: String::new() });
        }
        let mut picture =
            market.explain(&wish, &placement).unwrap_or_else(|broken| format!("the ring is not drawn: {broken}\n"));
        if self.args.objective == Aim::Price
            && let Ok(faster) = market.place(&wish)
        {
            let share = market.figures(&wish, &faster)?.latency / figures.latency;
            picture.push_str(&format!("by --objective latency it would be {share:.2} times as long\n"));
        }
        picture.push_str("a hop is taken to pass through this machine, over the links to both workers\n");
        for seen in &seen {
            if let Some(share) = seen.believed().filter(|share| *share < 1.0) {
                let worker = seen.candidate.address;
                picture.push_str(&format!("{worker} was {share:.2} times as fast as it says, and is planned so\n"));
            }
        }
        let unknown = seen.iter().filter(|seen| seen.reach.link.is_none()).count();
        if unknown > 0 {
            picture.push_str(&format!("bandwidth is not known of {unknown} of {} workers\n", seen.len()));
        }
        Ok(Shown { seconds, ring, picture })
    }

    pub(super) fn wish(&self, shares: u16, stages: Option<u16>) -> Wish {
        Wish {
            objective: self.args.objective.objective(),
            strategy: self.args.strategy.0,
            stages: stages.map(|stages| usize::from(stages).checked_div(shares.into()).unwrap_or_default()),
            chains: usize::from(shares).saturating_mul(self.args.replicas.into()),
            bandwidth: self.args.min_bandwidth.map_or(0.0, |megabytes| f64::from(megabytes.get()) * 1e6),
        }
    }

    /// The cheapest of those that answer, none of them much dearer than others that are enough.
    fn affordable(&self) -> Vec<Candidate> {
        let lanes = usize::from(self.stages).saturating_mul(self.args.replicas.into());
        let dearest = self.others.get(lanes.saturating_sub(1)).map_or(u128::MAX, |other| other.price_per_gmac);
        let most = dearest.saturating_mul(DEARER);
        let near = self.others.iter().filter(|other| other.price_per_gmac <= most);
        near.take(LOOKED_AT).cloned().collect()
    }

    pub(super) async fn seen<'c>(&self, candidates: &'c [Candidate], measured: bool) -> Vec<Seen<'c>> {
        let reaches = self.user.reaches(candidates, measured).await;
        let observed = self.user.observed(candidates, self.asked.token).await;
        let seen = |((candidate, reach), observed)| Seen { candidate, reach, observed };
        candidates.iter().zip(reaches).zip(observed).map(seen).collect()
    }
}
