//! Demands that are not over, in the order in which something is done about them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_node::ports::CustodyMove;
use tensorlink_proof::custody::sent_over;
use tensorlink_types::abi::Demand;
use tensorlink_types::{Address, JobId, U256};
use tokio::sync::Notify;

/// A demand that is not over.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) demand: Demand,
    /// What shows it, once it was worked out.
    pub(super) answer: Option<CustodyMove>,
    /// When something is done about it next, seconds.
    again: u64,
}

/// Demands in jobs of ours that are not over.
#[derive(Debug, Default)]
pub(super) struct OpenDemands {
    all: Mutex<HashMap<U256, Open>>,
    changed: Notify,
}

impl OpenDemands {
    fn all(&self) -> MutexGuard<'_, HashMap<U256, Open>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is another.
    pub(super) async fn more(&self) {
        self.changed.notified().await;
    }

    pub(super) fn open(&self, id: U256, demand: Demand) {
        self.all().insert(id, Open { demand, answer: None, again: 0 });
        self.changed.notify_one();
    }

    pub(super) fn get(&self, id: U256) -> Option<Demand> {
        self.all().get(&id).map(|open| open.demand.clone())
    }

    pub(super) fn end(&self, id: U256) {
        self.all().remove(&id);
    }

    /// A job is over: what was demanded in it is owed by nobody.
    pub(super) fn forget(&self, job: JobId) {
        self.all().retain(|_, open| open.demand.job != job.0);
    }

    /// What can be done something about now: what is demanded of us first, about one claim together, the most urgent
    /// claim first.
    pub(super) fn due(&self, now: u64, own: Address) -> Option<(U256, Open)> {
        let all = self.all();
        let urgency = |(id, open): &(&U256, &Open)| {
            let demand = &open.demand;
            let same = |other: &&Open| other.demand.holder == demand.holder && other.demand.claimId == demand.claimId;
            let first = all.values().filter(same).map(|other| other.demand.deadline).min();
            (demand.holder != own, first, demand.claimId, demand.kind, demand.deadline, **id)
        };
        let due = all.iter().filter(|(_, open)| open.again <= now).min_by_key(urgency)?;
        Some((*due.0, due.1.clone()))
    }

    /// Whether anything that was sent is demanded of us.
    pub(super) fn ask_for_sent(&self, own: Address) -> bool {
        self.all().values().any(|open| open.demand.holder == own && sent_over(&open.demand).is_some())
    }

    pub(super) fn put_off(&self, id: U256, again: u64, answer: Option<CustodyMove>) {
        if let Some(open) = self.all().get_mut(&id) {
            open.again = again;
            if answer.is_some() {
                open.answer = answer;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::B256;
    use tensorlink_types::abi::DemandKind;

    use super::*;

    const OWN: Address = Address::repeat_byte(1);
    const OTHER: Address = Address::repeat_byte(2);

    fn demand(holder: Address, claim: u8, deadline: u64) -> Demand {
        let claim_id = B256::with_last_byte(claim);
        let kind = DemandKind::SentToNext as u8;
        Demand { kind, holder, claimId: claim_id, deadline: deadline.try_into().unwrap(), ..Demand::default() }
    }

    #[test]
    fn ours_come_first_and_those_about_one_claim_together() {
        let demands = OpenDemands::default();
        let opened =
            [demand(OTHER, 1, 10), demand(OWN, 2, 40), demand(OWN, 3, 30), demand(OWN, 2, 20), demand(OWN, 3, 50)];
        for (id, demand) in opened.into_iter().enumerate() {
            demands.open(U256::from(id), demand);
        }
        let mut order = Vec::new();
        while let Some((id, _)) = demands.due(1, OWN) {
            order.push(id.to::<u64>());
            demands.put_off(id, 2, None);
        }
        assert_eq!(order, [3, 1, 2, 4, 0]);
    }

    #[test]
    fn what_was_worked_out_is_kept_until_the_demand_is_over() {
        let demands = OpenDemands::default();
        demands.open(U256::ZERO, demand(OWN, 1, 10));
        assert!(demands.ask_for_sent(OWN) && !demands.ask_for_sent(OTHER));
        let answer = CustodyMove::Expire { id: U256::ZERO, demand: demand(OWN, 1, 10) };
        demands.put_off(U256::ZERO, 0, Some(answer.clone()));
        demands.put_off(U256::ZERO, 5, None);
        assert!(demands.due(4, OWN).is_none());
        assert_eq!(demands.due(5, OWN).unwrap().1.answer, Some(answer));
        demands.end(U256::ZERO);
        assert!(demands.due(9, OWN).is_none() && !demands.ask_for_sent(OWN));
    }
}
