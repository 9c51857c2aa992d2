//! Where lanes of a stage give different things for the same: each is asked to sign for what it gave, and computing the
//! text again tells who lies. No majority decides.

use futures::future::join_all;
use tensorlink_types::Address;
use tokio::task::JoinSet;

use super::agreement::Verdict;
use super::archive::StageReceipt;
use super::fault::LaneFault;
use super::stage::OfLane;
use super::state::State;

impl State {
    /// The lanes to blame where those of a stage gave different rows for the newest tokens. Those that compute wrongly
    /// get no more texts. The text cannot go on with any of them: all have signed for it.
    pub(super) async fn differ(&self, stage: usize, given: Vec<OfLane>) -> Vec<(Address, LaneFault)> {
        let worker = |replica| self.shared.lane(stage, replica).map(|lane| lane.worker);
        let known = given.iter().filter(|lane| self.shared.is_wrong(stage, lane.replica));
        let known: Vec<_> = known.filter_map(|lane| Some((worker(lane.replica)?, LaneFault::Wrong))).collect();
        if !known.is_empty() {
            return known;
        }
        // Other texts go to other lanes meanwhile, if there are any.
        given.iter().for_each(|lane| self.shared.failed(stage, lane.replica, &LaneFault::Differs));
        let receipts = self.receipts_of(stage, &given).await;
        let verdicts = self.verdicts(receipts).await;
        let judged = || given.iter().zip(&verdicts);
        let right = judged().find(|(_, verdict)| **verdict == Verdict::Right).map(|(lane, _)| &lane.rows);
        let found = judged().filter_map(|(lane, verdict)| {
            let fault = match right {
                Some(right) if *right == lane.rows => {
                    self.shared.delivered(stage, lane.replica);
                    return None;
                }
                Some(_) => LaneFault::Wrong,
                None if *verdict == Verdict::Wrong => LaneFault::Wrong,
                None => LaneFault::Differs,
            };
            let worker = worker(lane.replica)?;
            tracing::error!(stage, %worker, job = %self.shared.job, text = self.number, %fault, "lanes differ");
            if matches!(fault, LaneFault::Wrong) {
                self.shared.found_wrong(stage, lane.replica);
            }
            Some((worker, fault))
        });
        found.collect()
    }

    /// What is known of receipts, up to the first that is right: what the program gives is known then, and nobody waits
    /// for the others.
    async fn verdicts(&self, receipts: Vec<Option<StageReceipt>>) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Unknown; receipts.len()];
        let mut judging = JoinSet::new();
        for (index, receipt) in receipts.into_iter().enumerate() {
            let (Some(receipt), agreement) = (receipt, self.shared.agreement.clone()) else { continue };
            let signed = self.receipts(vec![receipt]);
            judging.spawn(async move { (index, agreement.judge(&signed).await) });
        }
        while let Some(Ok((index, found))) = judging.join_next().await {
            verdicts.get_mut(index).into_iter().for_each(|verdict| *verdict = found);
            if found == Verdict::Right {
                break;
            }
        }
        judging.detach_all();
        verdicts
    }

    /// Each lane's receipt for what it gave; none if it does not sign.
    async fn receipts_of(&self, stage: usize, given: &[OfLane]) -> Vec<Option<StageReceipt>> {
        let Ok(sent) = self.root(stage) else { return vec![None; given.len()] };
        let asked = given.iter().map(async |lane| match &lane.signed {
            Some((receipt, _)) => Some(receipt.clone()),
            None => match self.signed_so_far((stage, sent), lane.replica, &lane.rows).await {
                Ok(receipt) => Some(receipt),
                Err(fault) => {
                    let (replica, text) = (lane.replica, self.number);
                    tracing::warn!(stage, replica, text, %fault, "a lane does not sign for what it gave");
                    None
                }
            },
        });
        join_all(asked).await
    }
}
