//! What is printed.

use std::time::Instant;

use crate::Outcome;

/// Lines for each way of training.
const LINES: u32 = 8;

/// Prints a line now and then.
pub(crate) struct Progress<'a> {
    way: &'a str,
    steps: u32,
    sum: f64,
    started: Instant,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(way: &'a str, steps: u32) -> Self {
        Self { way, steps, sum: 0.0, started: Instant::now() }
    }

    pub(crate) fn take(&mut self, step: u32, loss: f64, held_out: impl FnOnce() -> Outcome<f64>) -> Outcome<()> {
        self.sum += loss;
        let every = (self.steps / LINES).max(1);
        if (step + 1).is_multiple_of(every) {
            let (mean, seconds) = (self.sum / f64::from(every), self.started.elapsed().as_secs_f64());
            println!(
                "{:>4} step {:>5}: loss {mean:.4}, held out {:.4}, {seconds:.0} s",
                self.way,
                step + 1,
                held_out()?
            );
            self.sum = 0.0;
        }
        Ok(())
    }
}
