//! What an auditor knows of claims and of its challenges, which follows from the chain's events alone: so a restart
//! finds it again.

use tensorlink_node::ports::{ChainError, EventAt, Place};

use crate::auditor::Auditor;

impl<E> Auditor<E> {
    /// Takes in an event.
    pub fn apply(&self, at: &EventAt) {
        self.games.apply(at);
        self.claims.apply(&at.event);
    }

    /// Takes in the events behind `known`, in order, and says where the last one is. All up to `known` were taken in
    /// before: a challenge that is told again would begin anew.
    pub fn apply_after(&self, known: Option<Place>, events: &[EventAt]) -> Option<Place> {
        let behind = |at: &&EventAt| Some(at.place()) > known;
        events.iter().filter(behind).fold(known, |_, at| {
            self.apply(at);
            Some(at.place())
        })
    }

    /// Takes in the events behind `known` as they are confirmed, until the chain can be followed no more.
    ///
    /// # Errors
    /// [`ChainError`]: they cannot be had from the start.
    pub async fn follow(&self, known: Option<Place>) -> Result<(), ChainError> {
        let chain = &self.ports.chain;
        // From the first on: what is remembered on disk must have no gap.
        let mut events = chain.events(chain.deployment().block).await?;
        while let Some(at) = events.recv().await {
            // Not behind the last one taken in: a reorganisation brings others of the same blocks.
            self.apply_after(known, &[at]);
        }
        Ok(())
    }
}
