//! Tells whoever follows a job how a lane gets on.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::bounds::Readings;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::gossip::{PROGRESS, Progress};
use tensorlink_types::Lane;

use crate::record::{Halt, LaneLog};
use crate::training::metrics::{Measured, Meter};

/// Reports of a lane.
pub(super) struct Reporter {
    ports: Ports,
    log: Arc<LaneLog>,
    steps_per_interval: u32,
    meter: Meter,
}

impl Reporter {
    pub(super) fn new(ports: Ports, log: Arc<LaneLog>, steps_per_interval: u32) -> Self {
        let meter = Meter::new(log.get().lane);
        Self { ports, log, steps_per_interval, meter }
    }

    pub(super) fn lane(&self) -> Lane {
        self.log.get().lane
    }

    /// Adds an interval: what it told, the time its commitments took, the time it took in all.
    pub(super) fn add(&mut self, measured: &Measured, commitments: Duration, elapsed: Duration) {
        self.meter.add(measured, commitments, elapsed);
    }

    pub(super) async fn sleep(&self, time: Duration) {
        self.ports.clock.sleep(time).await;
    }

    /// Tells how the lane gets on after so many intervals.
    pub(super) async fn publish(&mut self, intervals: u32) {
        let (sent, received) = self.ports.net.bytes_moved();
        let mut progress: Progress = self.meter.report(intervals * self.steps_per_interval, sent + received);
        if let Some(Halt { excess, readings, .. }) = self.log.get().halted_before(intervals) {
            let Readings { saturation, loss } = readings;
            progress = Progress { halted: Some(excess), saturation, loss, ..progress };
        }
        match encode("progress", &progress) {
            Ok(message) => {
                if let Err(error) = self.ports.net.publish(PROGRESS, message).await {
                    tracing::debug!(%error, "progress was not published");
                }
            }
            Err(error) => tracing::warn!(%error, "progress cannot be encoded"),
        }
    }
}
