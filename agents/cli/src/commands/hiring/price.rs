//! What the work costs at the workers' prices, and whether the deposit and the stake are enough.

use anyhow::{Context, Result, ensure};
use tensorlink_node::price::{audit_budget, least_stake};
use tensorlink_types::U256;
use tensorlink_user::hire::Candidate;

use super::{Hiring, Token};
use crate::amount::Wei;
use crate::live::say;

impl Hiring<'_> {
    /// Checks, before anything is paid for, that the deposit covers `units` of work at these prices with its audits
    /// (rules P-3, P-29), and the stake what lanes of these prices must have at risk (P-30). `longest`: the most units
    /// that a claim is about. Returns the budget for audits.
    pub fn afford(&mut self, prices: &[u128], units: u32, longest: u32) -> Result<U256> {
        self.work = (units, longest);
        self.covers(prices)
    }

    /// As [`Self::afford`]; of the deposit no more is put up than this share, or what the work needs if that is more.
    pub fn afford_rest(&mut self, prices: &[u128], units: u32, share: U256) -> Result<U256> {
        let audits = self.afford(prices, units, 1)?;
        self.deposit = self.deposit.min(share.max(self.needed(prices).0));
        Ok(audits)
    }

    /// What the work needs at these prices, and how much of it is for audits, wei.
    fn needed(&self, prices: &[u128]) -> (U256, U256) {
        let (units, longest) = self.work;
        let per_unit: U256 = prices.iter().map(|price| U256::from(*price)).sum();
        let audits = audit_budget(&self.parameters, per_unit, units, longest);
        (per_unit.saturating_mul(U256::from(units)).saturating_add(audits), audits)
    }

    /// As [`Self::afford`], for the same work.
    pub(super) fn covers(&self, prices: &[u128]) -> Result<U256> {
        let (needed, audits) = self.needed(prices);
        ensure!(
            needed <= self.deposit,
            "at the workers' prices the job needs {} {}, {} of it for audits: raise --deposit",
            Wei(needed),
            self.token_name(),
            Wei(audits)
        );
        let stake = self.least_stake(prices, self.work.1);
        ensure!(
            stake <= U256::from(self.asked.stake),
            "lanes of this price must have {} SNO at risk: raise --worker-stake",
            Wei(stake)
        );
        Ok(audits)
    }

    /// What lanes of these prices must have at risk, wei of SNO.
    fn least_stake(&self, prices: &[u128], longest: u32) -> U256 {
        let dearest = prices.iter().copied().max().unwrap_or_default();
        // The contracts know no price of ETH to compare a stake with.
        let in_eth = self.asked.token.is_zero();
        let of_price = if in_eth { U256::ZERO } else { least_stake(&self.parameters, dearest, longest) };
        of_price.max(U256::from(self.parameters.dispute_bond))
    }

    /// Where lanes of a training at these prices must have more at risk than was asked for, looks for workers that have
    /// it: nobody is chosen then. Whether that is so.
    pub async fn raise_stake(&mut self, prices: &[u128]) -> Result<bool> {
        let least = self.least_stake(prices, 1);
        if least <= U256::from(self.asked.stake) {
            return Ok(false);
        }
        say!("lanes of this price must have {} SNO at risk: looking for workers that have it ...", Wei(least));
        self.asked.stake = least.try_into().ok().context("no worker has so much at stake")?;
        self.candidates.clear();
        self.others = self.user.ranked(self.lanes(), self.asked).await?;
        Ok(true)
    }

    /// `SNO` or `ETH`, which the job pays in.
    pub fn token_name(&self) -> &'static str {
        if self.args.token == Token::Sno { "SNO" } else { "ETH" }
    }

    /// The price of each lane's unit by the candidates' adverts, in the order of lanes (`replica · stages + stage`):
    /// `price` of a stage at a price per billion multiply-adds.
    pub fn prices(&mut self, price: impl Fn(usize, u128) -> Option<u128>) -> Result<Vec<u128>> {
        let stages = usize::from(self.stages).max(1);
        let of_other = |other: &Candidate| (0..stages).map(|stage| price(stage, other.price_per_gmac)).collect();
        self.other_prices = self.others.iter().map(of_other).collect();
        let of = |(index, candidate): (usize, &Candidate)| {
            let asked = price(index % stages, candidate.price_per_gmac);
            asked.with_context(|| format!("{} advertises a price beyond what an offer can hold", candidate.address))
        };
        self.candidates.iter().enumerate().map(of).collect()
    }
}
