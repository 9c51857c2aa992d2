//! The receipts of a redeemed epoch are listed, and drawn from.

use tensorlink_program::engine::Engine;

use crate::auditor::Auditor;
use crate::draw::Rate;
use crate::epoch::Epoch;
use crate::open::is_serving;
use crate::patience::{ATTEMPTS, Pauses};
use crate::target::Target;

/// Draws among an epoch's receipts, with bounded patience for its worker; none if it does not tell them.
pub(crate) async fn list<E: Engine + Send + 'static>(
    auditor: &Auditor<E>,
    epoch: &Epoch,
    rate: Rate,
) -> Option<(Vec<Target>, Vec<Target>)> {
    let lane = epoch.lane;
    let mut pauses = Pauses::new();
    for attempt in 1..=ATTEMPTS {
        match is_serving(&auditor.ports, lane.job).await {
            Ok(true) => match epoch.claims(auditor).await {
                Ok(targets) => match epoch.draw(auditor, &targets, rate) {
                    Ok(drawn) => {
                        tracing::info!(%lane, epoch = epoch.epoch, drawn = drawn.len(), "an epoch's receipts are listed");
                        return Some((targets, drawn));
                    }
                    Err(error) => tracing::error!(%lane, %error, "the lottery cannot be drawn"),
                },
                Err(error) => tracing::warn!(%lane, epoch = epoch.epoch, %error, attempt, "the receipts are not told"),
            },
            Ok(false) => return None,
            Err(error) => tracing::warn!(%lane, %error, "the chain cannot be asked"),
        }
        pauses.pause(&auditor.ports).await;
    }
    tracing::error!(%lane, epoch = epoch.epoch, "given up: the worker does not answer for receipts that it redeemed");
    None
}
