//! A lane whose training leaves the bounds that its user has set: what it has computed it claims, and it computes no
//! more, for nobody wants to pay for that. Its neighbours wait for it, and claim no more either; its user, whom it
//! tells, closes the job, or else the deadline does.

use std::time::Duration;

use tensorlink_node::bounds::Readings;
use tensorlink_program::engine::Engine;

use super::LaneTask;
use crate::boundary::Neighbours;
use crate::link::LinkError;
use crate::metrics::Meter;
use crate::record::Halt;

/// Time between two reports of it: whoever follows the job may have missed the first, or begin only later.
const REPORT: Duration = Duration::from_secs(5);

impl<E: Engine + Send + 'static> LaneTask<E>
where
    E::Tensor: Send + 'static,
{
    /// Whether what an interval told makes it the last one, before it is on disk.
    pub(super) fn exceeds(&self, readings: Readings) -> bool {
        Halt::of(&self.shard.bounds, readings, &self.log.get()).is_some()
    }

    /// Whether the lane goes no further than to the interval `next`.
    pub(super) fn halted_before(&self, next: u32) -> Option<Halt> {
        self.log.get().halted.filter(|halt| halt.intervals == next)
    }

    /// Stays with the neighbours, and tells the user, until a neighbour leaves: who crashed may need the others to
    /// repeat an interval. Why it left.
    pub(super) async fn halt(&self, halt: &Halt, neighbours: &mut Neighbours, meter: &mut Meter) -> LinkError {
        let (lane, Halt { intervals, excess, .. }) = (self.log.get().lane, halt);
        tracing::warn!(
            %lane, intervals, bound = %excess,
            "the training has left the bounds of its job, and goes no further here: its user is told, who can cancel it with `tensorlink job cancel`"
        );
        // Nobody is waited for: what they keep is not owed to us.
        self.awaited.pause(std::time::Instant::now());
        // A neighbour can begin one step without us, and end none.
        let leaves = neighbours.until_one_leaves(self.shard.program.micro_batches);
        tokio::pin!(leaves);
        loop {
            tokio::select! {
                error = &mut leaves => return error,
                () = self.context.ports.clock.sleep(REPORT) => {}
            }
            self.publish(meter, *intervals).await;
        }
    }
}
