//! What the rules do not fix: prices, costs, gas. The reference values are assumptions, to be replaced by what a
//! chain shows.

/// Gas of a conviction by signed answers, one transaction, rounded up from what is measured of an int8 product
/// of 4,096.
pub const CONVICTION_GAS: u32 = 500_000;
/// Gas of the answers of the worst game: by a challenger that asks for all it may, 32 questions and 48 KiB. Rounded up
/// like what follows from what is measured (`tests/contracts/snapshots`).
pub const WORST_ANSWERS_GAS: u32 = 3_700_000;
/// Gas by which a worker ends a game that it has won, and collects what it is owed, in a slot that was empty.
pub const ENDING_GAS: u32 = 170_000;
/// Of a game by hints, both sides' moves together, with the proof that ends it where the worker is wrong.
pub const WON_GAME_GAS: u32 = 1_200_000 + CONVICTION_GAS;
/// Gas of committing a claim where none was.
pub const CLAIM_GAS: u32 = 62_000;
/// Gas of an audit, of an interval or a receipt: commitment, reveal, and a share of recording the beacon.
pub const AUDIT_GAS: u32 = 280_000;
/// Gas of an accusation and of its penalty.
pub const ACCUSATION_GAS: u32 = 230_000;

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
    /// Steps of an interval. Who compares an answer computes and hashes the last one again.
    pub steps: f64,
    /// Right claims whose worker compares the answers revealed with its own and accuses, share of all.
    pub checking: f64,
    /// What a proposer forgoes that withholds its block, ETH.
    pub block_reward_eth: f64,
    /// Length of an interval, seconds.
    pub interval_seconds: f64,
    /// What locked money would have earned elsewhere, share a year.
    pub yearly_interest: f64,
}

impl Market {
    /// Where the tables are computed unless they say otherwise: intervals of ten minutes, on a chain with cheap gas.
    /// That only one worker in twenty checks is assumed low on purpose: the client does it by itself, by executing the
    /// claim again, for [`crate::Rules::jackpot`]; so nineteen of twenty run something else, are away in that quarter
    /// of the window, or hush it up.
    pub const REFERENCE: Self = Self {
        price: 10.0,
        cost_share: 0.7,
        audit_factor: 1.2,
        gwei: 0.1,
        sno_per_eth: 100_000.0,
        steps: 100.0,
        checking: 0.05,
        block_reward_eth: 0.02,
        interval_seconds: 600.0,
        yearly_interest: 0.1,
    };

    /// Honest cost of an interval, SNO.
    pub fn cost(&self) -> f64 {
        self.cost_share * self.price
    }

    /// Cost of computing an interval again, SNO: what is spared by an answer that is made up or copied.
    pub fn audit_work(&self) -> f64 {
        self.audit_factor * self.cost()
    }

    /// Cost of an audit with its gas, SNO.
    pub fn audit_cost(&self) -> f64 {
        self.audit_work() + self.gas(AUDIT_GAS)
    }

    /// Cost for the worker of comparing an answer with its own, SNO.
    pub fn check_cost(&self) -> f64 {
        self.cost() / self.steps
    }

    /// What a proposer forgoes that withholds its block, SNO.
    pub fn block_reward(&self) -> f64 {
        self.block_reward_eth * self.sno_per_eth
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
