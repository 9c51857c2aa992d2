//! Why a serving job was closed, by the chain's events.

use std::time::Duration;

use tensorlink_node::ports::{Event, EventAt};
use tensorlink_types::{Address, JobId};
use tensorlink_user::User;

use super::record::Record;
use crate::watch::{convicted, convicts};

/// Until events that are confirmed are told.
const EVENTS: Duration = Duration::from_secs(30);

/// Whether a job that runs no more was closed because workers were lost, so that another takes its place.
pub(super) async fn is_lost(user: &User, (job, record): (JobId, &Record)) -> bool {
    if record.lost.is_some() {
        return true;
    }
    let mut events = user.events();
    let told = events.wait_for(|events| ended(events, job).is_some());
    match tokio::time::timeout(EVENTS, told).await {
        Ok(Ok(events)) => ended(&events, job).is_some_and(|convicts| !convicts.is_empty()),
        _ => false,
    }
}

/// Of a job that was closed, whose workers were convicted in it.
pub(super) fn ended(events: &[EventAt], of: JobId) -> Option<Vec<Address>> {
    let is_closed = |at: &EventAt| matches!(&at.event, Event::JobClosing { job, .. } if *job == of);
    let workers = || if convicted(events, of) { convicts(events, of, &[]) } else { Vec::new() };
    events.iter().any(is_closed).then(workers)
}

#[cfg(test)]
mod tests {
    use tensorlink_node::ports::chain::Fault;
    use tensorlink_types::{B256, ClaimId, Lane};

    use super::*;

    fn at(event: Event) -> EventAt {
        EventAt { block: 1, block_hash: B256::ZERO, timestamp: 1, log_index: 0, transaction: B256::ZERO, event }
    }

    #[test]
    fn only_a_job_that_a_conviction_closed_is_gone_on_with() {
        let closing = |job, convicted| at(Event::JobClosing { job: JobId(job), convicted });
        assert_eq!(ended(&[closing(2, true)], JobId(1)), None);
        assert_eq!(ended(&[closing(1, false)], JobId(1)), Some(Vec::new()), "its user closed it, or its time was up");
        let worker = Address::repeat_byte(7);
        let convicted = |job| {
            let (lane, none) = (Lane { job: JobId(job), stage: 0, replica: 0 }, String::new());
            at(Event::Convicted {
                lane,
                claim: ClaimId(B256::ZERO),
                worker,
                auditor: Address::ZERO,
                fault: Fault::Silence,
                step: 0,
                operator: 0,
                element: 0,
                claimed: none.clone(),
                recomputed: none,
            })
        };
        assert_eq!(ended(&[convicted(1), convicted(2), closing(1, true)], JobId(1)), Some(vec![worker]));
    }
}
