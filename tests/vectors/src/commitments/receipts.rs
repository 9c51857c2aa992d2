//! Receipts: claims about texts.

use alloy_primitives::{B256, Bytes};
use alloy_sol_types::SolValue;
use serde::{Deserialize, Serialize};
use tensorlink_proof::commit::{Crossed, receipt};
use tensorlink_types::abi::Claim;
use tensorlink_types::{JobId, Lane, TensorRoot};

use super::{check_rule, malformed};
use crate::file::{VectorError, compare};

/// What crossed a stage's boundaries for a text, and the claim about it. `from_next` is zero where the stage receives
/// nothing from there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ReceiptCase {
    rule: String,
    name: String,
    from_previous: B256,
    from_next: B256,
    to_next: B256,
    logs: Bytes,
    claim: Bytes,
}

pub(super) fn receipts() -> Vec<ReceiptCase> {
    let case = |name: &str, stage, text, from_next: u8| {
        let root = B256::repeat_byte;
        let (from_previous, from_next, to_next) = (root(1), root(from_next), root(3));
        let lane = Lane { job: JobId(0x0102_0304_0506), stage, replica: 1 };
        let (claim, logs) = receipt(lane, text, &crossed(from_previous, from_next, to_next));
        let (logs, claim) = (logs.roots().abi_encode().into(), claim.abi_encode().into());
        ReceiptCase { rule: "C-12".into(), name: name.into(), from_previous, from_next, to_next, logs, claim }
    };
    vec![
        case("the first text of the first stage", 0, 0, 0),
        case("a stage that receives from both sides", 7, u32::MAX, 2),
    ]
}

fn crossed(from_previous: B256, from_next: B256, to_next: B256) -> Crossed {
    let from_next = (!from_next.is_zero()).then_some(TensorRoot(from_next));
    Crossed { from_previous: TensorRoot(from_previous), from_next, to_next: TensorRoot(to_next) }
}

impl ReceiptCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-12"])?;
        let name = &self.name;
        let claim = Claim::abi_decode(&self.claim).map_err(malformed(name, "claim"))?;
        let crossed = crossed(self.from_previous, self.from_next, self.to_next);
        let (expected, lists) = receipt(claim.lane(), claim.interval, &crossed);
        compare(name, "claim", &self.claim, &expected.abi_encode().into())?;
        compare(name, "logs", &self.logs, &lists.roots().abi_encode().into())?;
        Ok(&self.rule)
    }
}
