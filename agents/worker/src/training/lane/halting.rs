//! A lane whose training leaves the bounds that its user has set: what it has computed it claims, and it computes no
//! more, for nobody wants to pay for that. Its neighbours wait for it, and claim no more either; its user, whom it
//! tells, closes the job, or else the deadline does.

use std::time::{Duration, Instant};

use super::report::Reporter;
use crate::record::Halt;
use crate::training::boundary::Neighbours;
use crate::training::link::LinkError;

/// Time between two reports of it: whoever follows the job may have missed the first, or begin only later.
const REPORT: Duration = Duration::from_secs(5);

/// Stays with the neighbours, and tells the user, until a neighbour leaves: who crashed may need the others to repeat
/// an interval. Why it left. A step has so many micro-batches.
pub(super) async fn halt(
    halt: &Halt,
    (neighbours, micro_batches): (&mut Neighbours, u32),
    reporter: &mut Reporter,
) -> LinkError {
    let (lane, Halt { intervals, excess, .. }) = (reporter.lane(), halt);
    tracing::warn!(
        %lane, intervals, bound = %excess,
        "the training has left the bounds of its job, and goes no further here: its user is told, who can cancel it with `tensorlink job cancel`"
    );
    // Nobody is waited for: what they keep is not owed to us.
    neighbours.awaited.pause(Instant::now());
    // A neighbour can begin one step without us, and end none.
    let leaves = neighbours.until_one_leaves(micro_batches);
    tokio::pin!(leaves);
    loop {
        tokio::select! {
            error = &mut leaves => return error,
            () = reporter.sleep(REPORT) => {}
        }
        reporter.publish(*intervals).await;
    }
}
