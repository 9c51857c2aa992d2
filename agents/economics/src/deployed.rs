//! A parameter file, read for comparison with what is recommended.

use serde::Deserialize;

use crate::rules::Rules;

/// What `deploy/parameters.toml` says of the [`Rules`]. Keys that are no business of this crate are passed over. Units
/// as in [`Rules`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[expect(missing_docs, reason = "they are the fields of `Rules`")]
pub struct Deployed {
    pub bounty_bps: u32,
    pub harm_bps: u32,
    pub dispute_bond_sno: u32,
    pub validator_collateral_sno: u32,
    pub unbonding_delay_seconds: u32,
    pub dispute_clock_seconds: u32,
    pub move_grace_seconds: u32,
    pub max_challenge_window_seconds: u32,
    pub min_stake_intervals: u32,
    pub audits_per_claim_bps: u32,
    pub audit_fee_bps: u32,
    pub audit_penalty_bps: u32,
    pub beacon_period_seconds: u32,
}

/// One parameter: its key in the file, what the file has, what is recommended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compared {
    /// Key of the file; its end is the unit.
    pub key: &'static str,
    /// Value in the file.
    pub deployed: u32,
    /// Value in [`Rules`].
    pub recommended: u32,
}

impl Deployed {
    /// Reads the text of a parameter file. Fails if it is no TOML, or lacks a key that the contracts need.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Every parameter beside the value that `rules` have for it.
    pub fn compare(&self, rules: &Rules) -> [Compared; 13] {
        let row = |key, deployed, recommended| Compared { key, deployed, recommended };
        [
            row("bounty_bps", self.bounty_bps, rules.bounty_bps),
            row("harm_bps", self.harm_bps, rules.harm_bps),
            row("dispute_bond_sno", self.dispute_bond_sno, rules.dispute_bond_sno),
            row("validator_collateral_sno", self.validator_collateral_sno, rules.validator_collateral_sno),
            row("unbonding_delay_seconds", self.unbonding_delay_seconds, rules.unbonding_delay_seconds),
            row("dispute_clock_seconds", self.dispute_clock_seconds, rules.dispute_clock_seconds),
            row("move_grace_seconds", self.move_grace_seconds, rules.move_grace_seconds),
            row("max_challenge_window_seconds", self.max_challenge_window_seconds, rules.max_challenge_window_seconds),
            row("min_stake_intervals", self.min_stake_intervals, rules.min_stake_intervals),
            row("audits_per_claim_bps", self.audits_per_claim_bps, rules.audits_per_claim_bps),
            row("audit_fee_bps", self.audit_fee_bps, rules.audit_fee_bps),
            row("audit_penalty_bps", self.audit_penalty_bps, rules.audit_penalty_bps),
            row("beacon_period_seconds", self.beacon_period_seconds, rules.beacon_period_seconds),
        ]
    }
}

impl Compared {
    /// Whether the file has the value recommended.
    pub fn agrees(&self) -> bool {
        self.deployed == self.recommended
    }
}
