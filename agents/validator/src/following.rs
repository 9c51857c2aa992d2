//! What an auditor knows of claims and of its challenges, which follows from the chain's events alone: so a restart finds it again.

use tensorlink_node::ports::{ChainError, Event, EventAt};

use crate::audit::Auditor;

/// Where an event is on the chain: its block, and its index there.
pub type Place = (u64, u64);

impl<E> Auditor<E> {
    /// Takes in an event.
    pub fn apply(&self, event: &Event) {
        self.games.apply(event);
        self.claims.apply(event);
    }

    /// Takes in the events behind `known`, in order, and says where the last one is. All up to `known` were taken in before: a challenge
    /// that is told again would begin anew.
    pub fn apply_after(&self, known: Option<Place>, events: &[EventAt]) -> Option<Place> {
        let behind = |at: &&EventAt| Some(place(at)) > known;
        events.iter().filter(behind).fold(known, |_, at| {
            self.apply(&at.event);
            Some(place(at))
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

const fn place(at: &EventAt) -> Place {
    (at.block, at.log_index)
}
