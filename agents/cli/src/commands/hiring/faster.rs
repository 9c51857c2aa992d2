//! Whether others would be faster than those that serve.

use anyhow::Result;
use tensorlink_types::Address;
use tensorlink_user::HireError;
use tensorlink_user::hire::Candidate;
use tensorlink_user::placing::{Market, Placement, Wish, Work};

use super::Hiring;
use super::aim::Aim;

/// Others by whom the work would be placed now.
#[derive(Clone, PartialEq, Debug)]
pub struct Faster {
    /// How many times as fast they would be, by what all say and were seen to do.
    pub times: f64,
    /// Who is not among them.
    pub without: Vec<Address>,
}

impl Hiring<'_> {
    /// By whom work would be placed now that others do, `serving` in the order of lanes, one layer each; nobody is
    /// waited for, and nobody stays chosen. None where work goes by its price, where too few answer, or where those
    /// that serve did not say what they can.
    ///
    /// # Errors
    /// When the chain fails.
    pub async fn faster(&mut self, work: &Work, serving: &[Address]) -> Result<Option<Faster>> {
        let Some(mut before) = self.user.known(serving, self.asked.token) else { return Ok(None) };
        if self.args.objective == Aim::Price {
            return Ok(None);
        }
        let stages = work.model.layers.len();
        self.stages = u16::try_from(stages)?;
        self.said = Some(self.stages);
        self.candidates.clear();
        self.others = match self.user.ranked(self.lanes(), self.asked).await {
            Err(HireError::TooFew(_)) => return Ok(None),
            ranked => ranked?,
        };
        if self.place_now(work, 1).await?.is_err() {
            return Ok(None);
        }
        // Those that serve hold it already, whatever they have left.
        before.iter_mut().for_each(|serving| (serving.advert.memory, serving.advert.disk) = (u64::MAX, u64::MAX));
        let after = std::mem::take(&mut self.candidates);
        let all: Vec<Candidate> = before.iter().chain(&after).cloned().collect();
        let seen = self.seen(&all, true).await;
        let (market, wish) = (Market::new(work, &seen), Wish { bandwidth: 0.0, ..self.wish(1, self.said) });
        let seconds = |lanes: std::ops::Range<usize>| {
            let cut = (0..stages).map(|stage| stage..stage.saturating_add(1)).collect();
            let figures = market.figures(&wish, &Placement { lanes: lanes.collect(), cut })?;
            Ok::<_, anyhow::Error>(match self.args.objective {
                Aim::Throughput => figures.bottleneck,
                Aim::Price | Aim::Latency => figures.latency,
            })
        };
        let times = seconds(0..before.len())? / seconds(before.len()..all.len())?;
        let is_left = |worker: &Address| after.iter().all(|candidate| candidate.address != *worker);
        Ok(Some(Faster { times, without: serving.iter().copied().filter(is_left).collect() }))
    }
}
