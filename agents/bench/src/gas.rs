//! Gas, as the contracts' tests measured it when this program was built: the same on every machine.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::Row;
use super::figure::{Figure, Goal, Unit};

/// Gas by name, as forge writes it: numbers in strings.
type Snapshot = BTreeMap<String, String>;

const STEPS: &str = include_str!("../../../tests/contracts/snapshots/StepVerifier.json");
const CONVICTIONS: &str = include_str!("../../../tests/contracts/snapshots/conviction.json");
const PROTOCOL: &str = include_str!("../../../tests/contracts/snapshots/protocol.json");
/// Most gas of recomputing one element of any operator over 4,096 elements.
const GOAL: f64 = 600_000.0;
/// Calls of the protocol that are made over and over.
const CALLS: [&str; 4] = ["commit", "redeem", "finalize, 1 claim", "accept, 4 offers"];
/// What names the calldata of a conviction and not its gas.
const BYTES: &str = "calldata bytes";

pub(super) fn measure() -> Result<Vec<Figure>> {
    let steps: Snapshot = serde_json::from_str(STEPS)?;
    let mut worst = ("", 0.0);
    for (name, gas) in &steps {
        let gas = gas.parse()?;
        if gas > worst.1 {
            worst = (name, gas);
        }
    }
    let what = "gas of one recomputed element of 4,096, the worst operator";
    let figure = Figure::new(Row::Gas, what, (worst.1, Unit::Gas), Some(Goal::AtMost(GOAL)));
    let mut figures = vec![figure.from(format!("{}, of {} operators", worst.0, steps.len()))];
    let protocol: Snapshot = serde_json::from_str(PROTOCOL)?;
    for name in CALLS {
        let gas = protocol.get(name).with_context(|| format!("no gas of {name}"))?;
        figures.push(Figure::new(Row::Gas, format!("gas: {name}"), (gas.parse()?, Unit::Gas), None));
    }
    let convictions: Snapshot = serde_json::from_str(CONVICTIONS)?;
    for (name, gas) in convictions.iter().filter(|(name, _)| !name.ends_with(BYTES)) {
        let what = format!("gas of a conviction: {name}");
        figures.push(Figure::new(Row::Gas, what, (gas.parse()?, Unit::Gas), None));
    }
    Ok(figures)
}
