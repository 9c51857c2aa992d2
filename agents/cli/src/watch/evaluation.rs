//! Tests of a job while it runs, on rows that no worker saw: by the states that its workers claim, and not by
//! their word.

use std::future::pending;

use anyhow::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use tensorlink_node::ports::chain::JobView;
use tensorlink_user::{Claims, JobNote, User};

use super::model;

/// What a model knew of held-out rows after some steps.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Tested {
    /// Steps that it had learned from.
    pub(super) steps: u32,
    /// Mean cross entropy in nats.
    pub(super) loss: f64,
    /// Per cent of labels predicted right.
    pub(super) percent: f64,
}

/// Tests one after another, each of the newest states that are due.
pub(super) struct Evaluation<'a> {
    user: &'a User,
    view: &'a JobView,
    note: &'a JobNote,
    /// Intervals between two tests.
    every: Option<u32>,
    /// Intervals that were tested last.
    last: u32,
    running: Option<BoxFuture<'a, Result<Tested>>>,
    /// What came of them, oldest first.
    pub(super) done: Vec<Tested>,
}

impl<'a> Evaluation<'a> {
    /// Of a job that is tested after each so many intervals, `tested` of which were tested before.
    pub(super) const fn new(
        user: &'a User,
        (view, note): (&'a JobView, &'a JobNote),
        every: Option<u32>,
        tested: u32,
    ) -> Self {
        Self { user, view, note, every, last: tested, running: None, done: Vec::new() }
    }

    /// Begins a test if one is due, now that all stages have claimed so many intervals. What the last one leaves is
    /// tested in any case.
    pub(super) fn begin(&mut self, claimed: u32) {
        let Some(every) = self.every.filter(|_| self.running.is_none()) else { return };
        let due = claimed.saturating_sub(claimed.checked_rem(every).unwrap_or(claimed));
        if due <= self.last || due >= self.view.intervals {
            return;
        }
        self.last = due;
        self.running = Some(tested(self.user, (self.view, self.note), due).boxed());
    }

    /// Waits for the test that runs, be there one; the intervals that were tested, and what came of it.
    pub(super) async fn next(&mut self) -> (u32, Result<Tested>) {
        let Some(running) = &mut self.running else { return pending().await };
        let tested = running.await;
        self.running = None;
        if let Ok(tested) = &tested {
            self.done.push(*tested);
        }
        (self.last, tested)
    }
}

async fn tested(user: &User, (view, note): (&JobView, &JobNote), intervals: u32) -> Result<Tested> {
    let stages = user.trained(view, note, (intervals.saturating_sub(1), Claims::Committed)).await?;
    let metrics = model::tested(stages, user.held_out(note).await?).await?;
    let steps = intervals.saturating_mul(view.steps_per_interval);
    Ok(Tested { steps, loss: metrics.loss(), percent: metrics.accuracy() * 100.0 })
}
