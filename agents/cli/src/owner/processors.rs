//! How much of a machine's processors other programs use, as Linux counts it in `/proc`.

use std::fs;

use anyhow::{Context, Result};

/// What the system counts of all processors together.
const MACHINE: &str = "/proc/stat";
/// What it counts of this process.
const OWN: &str = "/proc/self/stat";

/// Processor time since the machine started, in the system's ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Times {
    /// Of all processors, whatever they did.
    all: u64,
    /// Of that, the time in which they had work.
    busy: u64,
    /// Of this process, and of those that it started and that have ended.
    own: u64,
}

impl Times {
    /// Now.
    pub(super) fn now() -> Result<Self> {
        let read = |file| fs::read_to_string(file).with_context(|| format!("{file} is not readable"));
        let (all, busy) = machine(&read(MACHINE)?).with_context(|| format!("{MACHINE} is not as expected"))?;
        let own = own(&read(OWN)?).with_context(|| format!("{OWN} is not as expected"))?;
        Ok(Self { all, busy, own })
    }

    /// What part of the processors' time other programs used since then; none if no time has passed.
    pub(super) fn others_since(&self, then: &Self) -> Option<f64> {
        let all = self.all.checked_sub(then.all).filter(|all| *all > 0)?;
        let busy = self.busy.saturating_sub(then.busy);
        let others = busy.saturating_sub(self.own.saturating_sub(then.own)).min(all);
        Some(others as f64 / all as f64)
    }
}

/// The time of all processors, and that in which they had work, of the first line of `/proc/stat`: user, nice, system,
/// idle, iowait, irq, softirq, steal. The guests' time, which follows, is part of the users'. Stolen time is that of
/// other machines on the same hardware.
fn machine(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times = line.split_whitespace().take(8).map(|time| time.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let [user, nice, system, idle, iowait, irq, softirq, steal] = times.try_into().ok()?;
    let sum = |times: &[u64]| times.iter().try_fold(0, |sum: u64, time| sum.checked_add(*time));
    let busy = sum(&[user, nice, system, irq, softirq])?;
    Some((sum(&[busy, idle, iowait, steal])?, busy))
}

/// Fields of `/proc/self/stat` between the name, which may hold spaces and brackets, and the times.
const BEFORE_TIMES: usize = 11;

/// The time of this process: in its own code and in the system's, and that of children that have ended.
fn own(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(BEFORE_TIMES).take(4);
    let times: [u64; 4] = times.map(|time| time.parse().ok()).collect::<Option<Vec<u64>>>()?.try_into().ok()?;
    times.iter().try_fold(0, |sum: u64, time| sum.checked_add(*time))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two processors, as Linux 6 writes it.
    const STAT: &str = "cpu  1000 20 300 8000 50 6 7 80 900 10\ncpu0 500 10 150 4000 25 3 4 40 450 5\n\
                        cpu1 500 10 150 4000 25 3 3 40 450 5\nintr 5 0 9\nctxt 7\n";
    const SELF: &str =
        "71 (a (b) c) R 1 71 71 0 -1 4194304 500 600 7 8 400 50 6 7 20 0 3 0 900 10000 250 18446744073709551615";

    #[test]
    fn times_are_read_as_the_system_writes_them() {
        let busy = 1000 + 20 + 300 + 6 + 7;
        assert_eq!(machine(STAT), Some((busy + 8000 + 50 + 80, busy)), "without guests, who are users");
        assert_eq!(own(SELF), Some(400 + 50 + 6 + 7), "whatever the program is called");
    }

    #[test]
    fn what_is_something_else_is_not_read() {
        let beyond = "cpu  18446744073709551615 1 0 0 0 0 0 0";
        for wrong in ["", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3 4 5 6 7 -8", "intr 1", beyond] {
            assert_eq!(machine(wrong), None, "{wrong}");
        }
        for wrong in ["", "71 (a) R 1 71", "71 a R 1 71 71 0 -1 0 0 0 0 0 400 50 6 7", &SELF.replace("400", "x")] {
            assert_eq!(own(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_this_process_used_is_not_others() {
        let then = Times { all: 1_000, busy: 500, own: 100 };
        let share = |all, busy, own| Times { all, busy, own }.others_since(&then);
        assert_eq!(share(1_400, 800, 200), Some(0.5));
        assert_eq!(share(1_400, 800, 400), Some(0.0), "all of it was ours");
        assert_eq!(share(1_400, 800, 500), Some(0.0), "ticks are not counted at one moment");
        assert_eq!(share(1_400, 1_500, 100), Some(1.0));
        assert_eq!(share(1_000, 500, 100), None, "no time has passed");
        assert_eq!(share(900, 500, 100), None, "it has run backwards");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells_and_counts_what_this_process_does() {
        let then = Times::now().unwrap();
        let mut now = then;
        while now.own == then.own || now.all == then.all {
            now = Times::now().unwrap();
        }
        let share = now.others_since(&then).unwrap();
        assert!((0.0..=1.0).contains(&share), "{share}");
        assert!(now.busy > then.busy || share == 0.0);
    }
}
