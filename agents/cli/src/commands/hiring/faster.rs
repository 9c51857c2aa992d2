//! Whether others would be faster than those that serve.

use std::ops::Range;

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
    /// How many times as much they ask for it.
    pub dearer: f64,
    /// Who is not among them.
    pub without: Vec<Address>,
}

impl Hiring<'_> {
    /// By whom work would be placed now that others do, `serving` in the order of lanes, one layer each; nobody is
    /// waited for, and nobody stays chosen. None where too few answer, or where those that serve are not a worker for
    /// each lane of whom it is known what they can.
    ///
    /// # Errors
    /// When the chain fails.
    pub async fn faster(&mut self, work: &Work, serving: &[Address]) -> Result<Option<Faster>> {
        self.stages = u16::try_from(work.model.layers.len())?;
        self.said = Some(self.stages);
        self.candidates.clear();
        self.others = match self.user.ranked(self.lanes(), self.asked).await {
            Err(HireError::TooFew(_)) => return Ok(None),
            ranked => ranked?,
        };
        if self.place_now(work, 1).await?.is_err() {
            return Ok(None);
        }
        let found = self.compared(work, serving).await;
        self.release();
        found
    }

    /// Those that are chosen in comparison with those that serve, as above.
    ///
    /// # Errors
    /// As above.
    pub async fn compared(&self, work: &Work, serving: &[Address]) -> Result<Option<Faster>> {
        let (stages, after) = (work.model.layers.len(), &self.candidates);
        let known = self.user.known(serving, self.asked.token);
        let Some(mut before) = known.filter(|known| known.len() == self.lanes() && known.len() == after.len()) else {
            return Ok(None);
        };
        // Those that serve hold it already, whatever they have left.
        before.iter_mut().for_each(|serving| (serving.advert.memory, serving.advert.disk) = (u64::MAX, u64::MAX));
        let all: Vec<Candidate> = before.iter().chain(after).cloned().collect();
        let seen = self.seen(&all, true).await;
        let (market, wish) = (Market::new(work, &seen), Wish { bandwidth: 0.0, ..self.wish(1, self.said) });
        let seconds = |lanes: Range<usize>| {
            let cut = (0..stages).map(|stage| stage..stage.saturating_add(1)).collect();
            let figures = market.figures(&wish, &Placement { lanes: lanes.collect(), cut })?;
            Ok::<_, anyhow::Error>(match self.args.objective {
                Aim::Throughput => figures.bottleneck,
                Aim::Price | Aim::Latency => figures.latency,
            })
        };
        let price = |candidates: &[Candidate]| -> f64 {
            let macs = work.model.layers.iter().map(|layer| layer.prefill.macs).cycle();
            candidates.iter().zip(macs).map(|(candidate, macs)| candidate.price_per_gmac as f64 * macs).sum()
        };
        let lanes = before.len();
        let times = seconds(0..lanes)? / seconds(lanes..all.len())?;
        let dearer = price(after) / price(&before).max(f64::MIN_POSITIVE);
        let is_left = |worker: &Address| after.iter().all(|candidate| candidate.address != *worker);
        Ok(Some(Faster { times, dearer, without: serving.iter().copied().filter(is_left).collect() }))
    }

    /// From now on nobody is asked in place of whoever was chosen and does not offer.
    pub fn take_these_or_none(&mut self) {
        self.others.clear();
        self.other_prices.clear();
    }
}
