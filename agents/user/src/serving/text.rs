//! One text on its way through all stages, until all of its lanes have signed for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::{join, join_all};
use tokio::task::JoinSet;

use super::archive::StageReceipt;
use super::fault::TextError;
use super::stage::{OfLane, OfStage};
use super::state::{Fresh, Gone, State};

impl State {
    /// Sends the next tokens through all stages, if any; what came out for them, or for the whole text where that is
    /// one row. `gone` says that nobody waits for it any more.
    pub(super) async fn advance(&mut self, fresh: &Fresh, last: bool, gone: Gone<'_>) -> Result<Vec<u8>, TextError> {
        let shared = Arc::clone(&self.shared);
        let count = fresh.tokens.len().checked_div(shared.boundaries.row(0)).unwrap_or(0);
        self.tokens = self.tokens.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.crossed(0, &fresh.tokens);
        self.controls.extend_from_slice(&fresh.controls);
        let (mut receipts, mut sent) = (BTreeMap::new(), None);
        let mut output = Vec::new();
        for stage in 0..shared.boundaries.stages() {
            // Who ends a text has no rows for a stage that has given all of its own.
            let apart = shared.boundaries.receipt_apart(stage);
            if apart && count == 0 {
                continue;
            }
            let root = if last && !apart { Some(sent.map_or_else(|| self.root(stage), Ok)?) } else { None };
            let OfStage { rows, signed } = self.stage(stage, (root, BTreeMap::new()), gone).await?;
            self.crossed(stage.saturating_add(1), &rows);
            output = rows;
            sent = signed.map(|(signed, got)| {
                receipts.insert(stage, signed);
                got
            });
        }
        if last {
            self.sign(&mut receipts, gone).await?;
            // It may go on elsewhere, and is paid there.
            if gone() {
                return Err(TextError::Left);
            }
            self.deliver(receipts.into_values().flatten().collect()).await?;
        }
        Ok(output)
    }

    /// Asks the lanes of the stages that have not signed for the text, all at once, and checks what they sign.
    async fn sign(
        &mut self,
        receipts: &mut BTreeMap<usize, Vec<StageReceipt>>,
        gone: Gone<'_>,
    ) -> Result<(), TextError> {
        let missing: Vec<usize> =
            (0..self.shared.boundaries.stages()).filter(|stage| !receipts.contains_key(stage)).collect();
        let asked = join_all(missing.iter().map(|stage| self.endings(*stage)));
        // Hashed here while they hash there.
        let roots = |stage: &usize| Ok((self.root(*stage)?, self.root(stage.saturating_add(1))?));
        let hashed = async { missing.iter().map(roots).collect::<Result<Vec<_>, TextError>>() };
        let (answers, roots) = join(asked, hashed).await;
        let signed = missing.into_iter().zip(answers).zip(roots?).map(|((stage, answers), roots)| {
            let receipts = answers.into_iter().map(|answer| self.signed(stage, answer?, roots)).collect::<Vec<_>>();
            (stage, roots, receipts)
        });
        for (stage, (sent, got), signed) in signed.collect::<Vec<_>>() {
            let mut given = BTreeMap::new();
            for (index, signed) in signed.into_iter().enumerate() {
                match signed {
                    Ok(receipt) => {
                        let replica = self.replica(stage, index).ok_or(TextError::Closed)?;
                        let (rows, signed) = (Vec::new(), Some((receipt, got)));
                        given.insert(index, OfLane { replica, rows, signed, took: None });
                    }
                    Err(fault) => _ = self.fails((stage, index), &fault, &BTreeSet::new()),
                }
            }
            let signed = self.stage(stage, (Some(sent), given), gone).await?.signed;
            receipts.insert(stage, signed.ok_or(TextError::Closed)?.0);
        }
        Ok(())
    }

    /// The text is whole: its lanes are owed for it. All of that is on disk when this returns, written side by side.
    async fn deliver(&mut self, stages: Vec<StageReceipt>) -> Result<(), TextError> {
        let receipts = self.receipts(stages);
        let mut writing = JoinSet::new();
        let (shared, kept, known_as) = (Arc::clone(&self.shared), receipts.clone(), self.known_as);
        writing.spawn_blocking(move || shared.archive().keep(&kept, known_as));
        for (stage, seat) in self.seated().collect::<Vec<_>>() {
            let (shared, text, replica) = (Arc::clone(&self.shared), self.number, seat.replica);
            if let Some(lane) = shared.lane(stage, replica) {
                lane.account().finish(text);
                shared.delivered(stage, replica);
                self.touched.remove(&(stage, replica));
            }
            writing.spawn_blocking(move || {
                let Some(lane) = shared.lane(stage, replica) else { return Ok(()) };
                let saved = lane.save(&shared.ports);
                lane.wake.notify_one();
                saved
            });
        }
        while let Some(written) = writing.join_next().await {
            written.map_err(|_| TextError::Closed)??;
        }
        self.delivered = Some(receipts);
        Ok(())
    }
}
