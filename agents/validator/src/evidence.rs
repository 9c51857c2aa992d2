//! The files that this node's answers rest on: they stay as long as it may have to show that an answer is right. All
//! else that audits fetch is nobody's, and makes room for what comes next.

use std::collections::HashSet;

use bytes::Bytes;
use cid::Cid;
use tensorlink_node::Ports;
use tensorlink_node::ports::{Owner, StoreError};
use tensorlink_node::retry::{Failure, retry};
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_types::{Address, ClaimId};

use crate::answers::Answers;
use crate::ask::PATIENCE;
use crate::finding::Gap;
use crate::target::Target;

/// The files of a record that has any.
fn files(record: &IntervalRecord) -> impl Iterator<Item = Cid> {
    [&record.state, &record.inputs].into_iter().filter_map(|bytes| Cid::try_from(bytes.as_slice()).ok())
}

/// The files of claims that are looked into.
#[derive(Clone, Copy)]
pub(crate) struct Evidence<'a> {
    ports: &'a Ports,
    answers: &'a Answers,
}

impl<'a> Evidence<'a> {
    /// What these answers rest on, in the node's store.
    pub(crate) const fn new(ports: &'a Ports, answers: &'a Answers) -> Self {
        Self { ports, answers }
    }

    /// Fetches a file of what a claim's worker recorded. Where we are drawn for the claim, it stays from now on: what
    /// an answer will rest on must not make room for others while it is worked out.
    pub(crate) async fn fetch(
        &self,
        target: &Target,
        cid: &[u8],
        (worker, limit): (Address, u64),
    ) -> Result<Bytes, Gap> {
        let cid = Cid::try_from(cid)?;
        let owner = if self.answers.is_due(target.id) { Owner::Audit(target.id) } else { Owner::Nobody };
        let get = async |owner| self.ports.store.of(owner).get(&cid, &[worker], limit).await;
        let fetched = retry(self.ports.clock.as_ref(), PATIENCE, || async {
            let got = match get(owner).await {
                // That our disk is full is not the worker's fault, who is audited all the same.
                Err(StoreError::Full { .. }) => get(Owner::Nobody).await,
                got => got,
            };
            got.map_err(Failure::Transient)
        });
        Ok(fetched.await?)
    }

    /// Lets go of what was fetched for a claim of which no answer came.
    pub(crate) async fn drop_unanswered(&self, claim: ClaimId) {
        if self.answers.is_due(claim)
            && let Err(error) = self.ports.store.of(Owner::Audit(claim)).release().await
        {
            tracing::debug!(%claim, %error, "files of an audit keep their place until this node starts again");
        }
    }

    /// Keeps what an answer rests on. Whether all of it is here: without room beside what running jobs need it is not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) async fn keep(&self, claim: ClaimId, record: &IntervalRecord) -> Result<bool, StoreError> {
        let store = self.ports.store.of(Owner::Audit(claim));
        for cid in files(record) {
            if !store.own(&cid).await? {
                self.drop_of(claim, record).await;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets go of what an answer rested on.
    pub(crate) async fn drop_of(&self, claim: ClaimId, record: &IntervalRecord) {
        self.let_go(Owner::Audit(claim), record).await;
    }

    /// Lets go of the files that an execution took, unless something on this node needs them: a worker's state is that
    /// of its replica, and an answer about one replica rests on the file that the other's is about.
    pub(crate) async fn forget(&self, record: &IntervalRecord) {
        self.let_go(Owner::Nobody, record).await;
    }

    async fn let_go(&self, owner: Owner, record: &IntervalRecord) {
        let store = self.ports.store.of(owner);
        for cid in files(record) {
            if let Err(error) = store.unpin(&cid).await {
                tracing::debug!(%cid, %error, "not unpinned");
            }
        }
    }

    /// At the start: what the answers on disk rest on is kept, and no other evidence.
    pub(crate) async fn take_stock(&self) {
        let given = self.answers.all();
        for answer in &given {
            let store = self.ports.store.of(Owner::Audit(answer.id));
            // What is left of it stays, whatever is gone.
            for cid in files(&answer.record) {
                match store.own(&cid).await {
                    Ok(true) => {}
                    Ok(false) => tracing::error!(claim = %answer.id, %cid, "a file that an answer rests on is gone"),
                    Err(error) => tracing::warn!(claim = %answer.id, %cid, %error, "it may make room for others"),
                }
            }
        }
        let known: HashSet<ClaimId> = given.iter().map(|answer| answer.id).collect();
        let owners = match self.ports.store.owners().await {
            Ok(owners) => owners,
            Err(error) => return tracing::warn!(%error, "it is not known who owns files: they keep their place"),
        };
        for owner in owners {
            if let Owner::Audit(claim) = owner
                && !known.contains(&claim)
                && let Err(error) = self.ports.store.of(owner).release().await
            {
                tracing::warn!(%claim, %error, "files of an old audit keep their place");
            }
        }
    }
}
