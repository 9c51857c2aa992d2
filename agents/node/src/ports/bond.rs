//! What follows from a deployment's parameters.

use tensorlink_types::U256;

use super::parameters::Parameters;

impl Parameters {
    /// Bond of a challenge of a claim that was challenged so often before, wei of SNO (P-44); `stake`: the lane's.
    pub fn bond(&self, stake: u128, before: u32) -> U256 {
        let grown = U256::from(self.dispute_bond) << before.min(16);
        grown.min(self.bounty(stake)).max(U256::from(self.dispute_bond))
    }

    /// What is paid out of a slashed stake to who had it slashed, wei of SNO: half of the bounty (P-45).
    pub fn bounty(&self, stake: u128) -> U256 {
        let whole = U256::from(stake) * U256::from(self.bounty_bps) / U256::from(10_000);
        whole - whole / U256::from(2)
    }
}
