//! To whom an event goes.

use std::sync::Arc;

use tensorlink_node::ports::{ChainError, EventAt};
use tensorlink_node::{Ports, Roster};
use tokio::sync::mpsc;

use crate::heard::Heard;
use crate::hire::HireError;
use crate::keeping::Keeping;
use crate::told::Telling;
use crate::workers::Workers;

/// All components of a user that listen to the chain.
pub(crate) struct Dispatch {
    /// The chain that is listened to.
    pub(crate) ports: Ports,
    /// Who is who.
    pub(crate) roster: Arc<Roster>,
    /// Forgets what was offered by who has no stake any more.
    pub(crate) workers: Arc<Workers>,
    /// Lets go of states that nobody needs any more.
    pub(crate) keeping: Arc<Keeping>,
    /// Weighs what others say by what was paid.
    pub(crate) heard: Arc<Heard>,
    /// Tells whoever watches a job.
    pub(crate) telling: Telling,
}

impl Dispatch {
    /// Tells everybody of an event.
    pub(crate) async fn take_in(&mut self, at: EventAt) {
        self.roster.apply(&at.event);
        self.workers.apply(&at.event);
        self.keeping.apply(&at.event).await;
        self.heard.apply(&at);
        self.telling.apply(at);
    }

    /// The events anew, from the first on, where they have ended because a reorganisation has undone some; those are
    /// taken back.
    pub(crate) async fn begin_anew(&mut self) -> Option<mpsc::Receiver<EventAt>> {
        let chain = &self.ports.chain;
        let ChainError::Undone { from } = chain.ended() else { return None };
        tracing::warn!(from, "a reorganisation has undone what was confirmed: it is taken back");
        let anew = async {
            self.keeping.take_back(chain.times_undone()?).await?;
            self.keeping.take_stock().await;
            Ok::<_, HireError>(chain.events(chain.deployment().block).await?)
        };
        let anew = match anew.await {
            Ok(anew) => anew,
            Err(error) => {
                tracing::error!(%error, "the chain cannot be followed any more");
                return None;
            }
        };
        self.telling.take_back(from);
        self.roster.forget();
        self.heard.forget();
        Some(anew)
    }
}
