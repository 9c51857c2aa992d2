//! What a worker keeps in its store, and until when: what its lanes need, until their jobs are settled. After that
//! nobody can ask for it (rules P-20, P-35), and it stays only while there is room.

use std::sync::Arc;

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Owner;
use tensorlink_node::{Keeper, Ports};
use tensorlink_types::Lane;

use crate::record::LaneLog;
use crate::state::Lanes;

/// Files of lanes in the store.
pub(crate) struct Files {
    ports: Ports,
    lanes: Arc<Lanes>,
}

impl Files {
    pub(crate) const fn new(ports: Ports, lanes: Arc<Lanes>) -> Self {
        Self { ports, lanes }
    }

    /// For whom files of a lane are fetched: for the lane, until its job is settled.
    pub(crate) fn owner_for(&self, lane: Lane) -> Owner {
        if self.lanes.is_open(lane) { Owner::Lane(lane) } else { Owner::Nobody }
    }

    /// Lets go of a lane's files if its job is settled. Whatever fetched some for it calls this when it has: the job
    /// may have been settled meanwhile.
    pub(crate) async fn let_go_if_settled(&self, lane: Lane) {
        if self.owner_for(lane).keeps() {
            return;
        }
        for owner in [Owner::Lane(lane), Owner::Ward(lane)] {
            // The next start hears of the settlement again.
            if let Err(error) = self.ports.store.of(owner).release().await {
                tracing::warn!(%lane, %error, "files of a settled job keep their place until this node starts again");
            }
        }
    }

    /// At the start, before any event: what the records of lanes name is theirs, and lanes without a record have
    /// nothing. Jobs that were settled while this node was away are among the events that it hears of next.
    ///
    /// # Errors
    /// [`JournalError`] if the records cannot be read.
    pub(crate) async fn take_stock(&self, keeper: &Keeper) -> Result<(), JournalError> {
        let records: Vec<_> = LaneLog::open_all(&self.ports.journal)?.iter().map(LaneLog::get).collect();
        for record in records.iter().filter(|record| !record.over) {
            self.own(record.lane, record.files().into_iter().map(str::to_owned).collect()).await;
        }
        let left = match self.ports.store.owners().await {
            Ok(owners) => owners,
            Err(error) => {
                tracing::warn!(%error, "it is not known who owns files: what nobody needs may keep its place");
                return Ok(());
            }
        };
        for owner in left {
            let (Owner::Lane(lane) | Owner::Ward(lane)) = owner else { continue };
            if records.iter().all(|record| record.lane != lane)
                && let Err(error) = self.ports.store.of(owner).release().await
            {
                tracing::warn!(%lane, %error, "files of a lane that is not recorded keep their place");
            }
        }
        keeper.take_stock().await;
        Ok(())
    }

    /// What a lane's records name is the lane's.
    pub(crate) async fn own(&self, lane: Lane, files: Vec<String>) {
        let store = self.ports.store.of(Owner::Lane(lane));
        for name in files {
            let Ok(cid) = name.parse() else { continue };
            match store.own(&cid).await {
                Ok(true) => {}
                Ok(false) => tracing::error!(%lane, %cid, "a file that the lane's record names is gone"),
                Err(error) => tracing::warn!(%lane, %cid, %error, "a file of the lane may make room for others"),
            }
        }
    }
}
