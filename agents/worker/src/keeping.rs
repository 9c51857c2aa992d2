//! What a worker keeps in its store, and until when: what its lanes need, until their jobs are settled. After that
//! nobody can ask for it (rules P-20, P-35), and it stays only while there is room.

use tensorlink_model::CacheEngine;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Owner;
use tensorlink_types::Lane;

use crate::record::LaneLog;
use crate::role::Worker;
use crate::serving::Book;

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// For whom files of a lane are fetched: for the lane, until its job is settled.
    pub(crate) fn owner_for(&self, lane: Lane) -> Owner {
        let needed = self.lanes().get(&lane).is_some_and(|running| !running.settled);
        if needed { Owner::Lane(lane) } else { Owner::Nobody }
    }

    /// Lets go of a lane's files if its job is settled. Whatever fetched some for it calls this when it has: the job
    /// may have been settled meanwhile.
    pub(crate) async fn let_go_if_settled(&self, lane: Lane) {
        if self.owner_for(lane).keeps() {
            return;
        }
        for owner in [Owner::Lane(lane), Owner::Ward(lane)] {
            // The next start hears of the settlement again.
            if let Err(error) = self.context.ports.store.of(owner).release().await {
                tracing::warn!(%lane, %error, "files of a settled job keep their place until this node starts again");
            }
        }
    }

    /// At the start, before any event: what the records of lanes name is theirs, and lanes without a record have
    /// nothing. Jobs that were settled while this node was away are among the events that it hears of next.
    ///
    /// # Errors
    /// [`JournalError`] if the records cannot be read.
    pub(crate) async fn take_stock(&self) -> Result<(), JournalError> {
        let records: Vec<_> = LaneLog::open_all(&self.context.ports.journal)?.iter().map(LaneLog::get).collect();
        for record in records.iter().filter(|record| !record.over) {
            self.own(record.lane, record.files().into_iter().map(str::to_owned).collect()).await;
        }
        let left = match self.context.ports.store.owners().await {
            Ok(owners) => owners,
            Err(error) => {
                tracing::warn!(%error, "it is not known who owns files: what nobody needs may keep its place");
                return Ok(());
            }
        };
        for owner in left {
            let (Owner::Lane(lane) | Owner::Ward(lane)) = owner else { continue };
            if records.iter().all(|record| record.lane != lane)
                && let Err(error) = self.context.ports.store.of(owner).release().await
            {
                tracing::warn!(%lane, %error, "files of a lane that is not recorded keep their place");
            }
        }
        self.keeper.take_stock().await;
        Ok(())
    }

    /// What the receipts of a serving lane name is the lane's.
    pub(crate) async fn own_inputs(&self, book: &Book) {
        self.own(book.payer().lane, book.inputs().into_iter().collect()).await;
    }

    async fn own(&self, lane: Lane, files: Vec<String>) {
        let store = self.context.ports.store.of(Owner::Lane(lane));
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
