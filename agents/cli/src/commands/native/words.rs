//! What happens in a native training, in words.

use tensorlink_native::driver::Check;
use tensorlink_native::{Entry, NOTICE, Report};
use tensorlink_types::Address;

use crate::output;

/// A line of the journal, of a training of so many steps.
pub(super) fn say(entry: &Entry, steps: u32) -> String {
    match entry {
        Entry::Begun { precision, .. } => format!("not provable: {steps} steps in {precision}"),
        Entry::Taken { first, worker, losses, check, .. } => {
            let loss = losses.last().copied().unwrap_or_default();
            let end = losses.len().saturating_add(*first as usize);
            let check = check.as_ref().map(|check| format!("; checked {}", against(check))).unwrap_or_default();
            format!("step {end} of {steps}, loss {loss:.4}, by {}{check}", name(*worker))
        }
        Entry::PassedOver { worker, why, .. } => format!("{worker} is passed over: {why}"),
        Entry::GivenUp { worker } => format!("{worker} failed too often in a row, and is not asked again"),
        Entry::Differ { first, worker, check } => {
            format!("from step {first} on, {worker} has another result: {}; this machine repeats it", against(check))
        }
        Entry::Off { worker, first, class, check } => format!(
            "{worker} ({class}) is off from step {first} on: {}. It is not asked again; nobody is slashed, as nothing of this is provable",
            against(check)
        ),
        Entry::Back { to } => format!("back to step {to}, the last that two machines agreed on"),
    }
}

fn against(Check { by, class, distance, allowed }: &Check) -> String {
    format!("{distance:.2e} from {} ({class}), {allowed:.2e} allowed", name(*by))
}

fn name(worker: Option<Address>) -> String {
    worker.map_or_else(|| "this machine".to_owned(), |worker| worker.to_string())
}

/// What a training came to.
pub(super) fn summary(report: &Report) -> String {
    let loss = |loss: Option<f64>| loss.map_or_else(String::new, |loss| format!("{loss:.4}"));
    let off: Vec<String> = report.off.iter().map(|entry| say(entry, report.steps)).collect();
    let table = output::table(&[
        ("steps", format!("{} in {}", report.steps, report.precision)),
        ("loss", format!("{} at first, {} at the end", loss(report.first_loss), loss(report.last_loss))),
        ("intervals", format!("{}, {} of them checked", report.intervals, report.checked)),
        ("left out", report.left_out.len().to_string()),
        ("state", report.state.clone()),
    ]);
    [vec![NOTICE.to_owned(), table], off].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use tensorlink_native::{Capability, DeviceClass, Threads};

    use super::*;

    #[test]
    fn who_is_off_by_how_much_and_what_is_allowed_is_said() {
        let class = DeviceClass::Cpu { capability: Capability::Avx2, threads: Threads::One };
        let check = Check { by: None, class, distance: 0.5, allowed: 0.001 };
        let text = say(&Entry::Off { worker: Address::repeat_byte(7), first: 8, class, check }, 20);
        for part in ["0x0707", "avx2", "step 8", "5.00e-1", "1.00e-3", "nobody is slashed", "provable"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
