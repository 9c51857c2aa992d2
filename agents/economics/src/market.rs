//! What the rules do not fix: prices, costs, gas. The reference values are assumptions, to be replaced by what a chain shows.

/// Gas of a conviction by signed answers, one transaction, rounded up from what is measured of an int8 product of 4,096.
pub const CONVICTION_GAS: u32 = 500_000;
/// Most gas of a whole game, both sides' moves together.
pub const GAME_GAS: u32 = 1_700_000;
/// Gas of committing a claim, as measured.
pub const CLAIM_GAS: u32 = 60_000;
/// Gas of an audit on chain, assumed: a salted commitment and its reveal.
pub const AUDIT_GAS: u32 = 120_000;

const SECONDS_PER_YEAR: f64 = 365.0 * 86_400.0;

/// Prices and costs of one kind of work on one chain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Market {
    /// A lane's price of an interval, SNO.
    pub price: f64,
    /// What an honest worker spends on an interval, share of the price.
    pub cost_share: f64,
    /// What re-executing an interval costs a validator, in costs of the worker: it fetches what the worker had at hand.
    pub audit_factor: f64,
    /// Price of gas, 10⁻⁹ ETH.
    pub gwei: f64,
    /// SNO that one ETH buys.
    pub sno_per_eth: f64,
    /// Length of an interval, seconds.
    pub interval_seconds: f64,
    /// What locked money would have earned elsewhere, share a year.
    pub yearly_interest: f64,
}

impl Market {
    /// Where the tables are computed unless they say otherwise: intervals of ten minutes on a rollup.
    pub const REFERENCE: Self = Self {
        price: 10.0,
        cost_share: 0.7,
        audit_factor: 1.2,
        gwei: 0.1,
        sno_per_eth: 100_000.0,
        interval_seconds: 600.0,
        yearly_interest: 0.1,
    };

    /// Honest cost of an interval, SNO.
    pub fn cost(&self) -> f64 {
        self.cost_share * self.price
    }

    /// Cost of an audit with its gas, SNO.
    pub fn audit_cost(&self) -> f64 {
        self.audit_factor * self.cost() + self.gas(AUDIT_GAS)
    }

    /// Price of an amount of gas, SNO.
    pub fn gas(&self, amount: u32) -> f64 {
        f64::from(amount) * self.gwei * 1e-9 * self.sno_per_eth
    }

    /// What having `amount` locked for a time costs, in the unit of `amount`.
    pub fn interest(&self, amount: f64, seconds: f64) -> f64 {
        amount * self.yearly_interest * seconds / SECONDS_PER_YEAR
    }
}
