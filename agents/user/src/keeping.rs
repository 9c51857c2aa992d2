//! What workers ask of their user: to keep a state of its own job, where no other worker does.

use std::sync::Arc;

use cid::Cid;
use tensorlink_node::budget::Budget;
use tensorlink_node::custody::Asked;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{Event, EventAt, Incoming};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_node::{Keeper, Ports};
use tensorlink_types::abi::Claim;
use tensorlink_types::{ClaimId, JobId};
use tokio::sync::{Semaphore, mpsc, watch};

/// Requests answered at once; the keeper fetches fewer states at a time.
const ANSWERS: usize = 8;

/// Keeps states, and answers who asks for them.
pub(crate) struct Keeping {
    ports: Ports,
    keeper: Keeper,
    events: watch::Receiver<Vec<EventAt>>,
}

impl Keeping {
    /// Takes up what is on disk; these events tell which jobs are ours.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn open(ports: Ports, events: watch::Receiver<Vec<EventAt>>) -> Result<Self, JournalError> {
        let keeper = Keeper::open(ports.clone(), Budget::new(u64::MAX))?;
        Ok(Self { ports, keeper, events })
    }

    /// Before events are told anew, which were taken back so many times.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) async fn take_back(&self, times: u64) -> Result<(), JournalError> {
        self.keeper.take_back(times).await
    }

    /// At the start: what is on record is kept, and nothing else.
    pub(crate) async fn take_stock(&self) {
        self.keeper.take_stock().await;
    }

    /// Takes in an event.
    pub(crate) async fn apply(&self, event: &Event) {
        if let Err(error) = self.keeper.apply(event).await {
            tracing::error!(%error, "the record of kept states cannot be written");
        }
    }

    /// CID of the state that a claim ends in, if it is kept here.
    pub(crate) fn file_of(&self, claim: ClaimId) -> Option<Cid> {
        self.keeper.file_of(claim)
    }

    /// Answers workers until the net closes.
    pub(crate) async fn answer_all(self: Arc<Self>, mut requests: mpsc::Receiver<Incoming>) {
        let answers = Arc::new(Semaphore::new(ANSWERS));
        while let Ok(slot) = answers.clone().acquire_owned().await
            && let Some(request) = requests.recv().await
        {
            let keeping = self.clone();
            tokio::spawn(async move {
                keeping.answer(request).await;
                drop(slot);
            });
        }
    }

    async fn answer(&self, Incoming { peer, body, reply }: Incoming) {
        let response = match decode("request", &body) {
            Ok(Request::Keep { claim, committed_at, state }) => {
                self.keeper.answer_keep(self.asked((claim, committed_at, state)), peer).await
            }
            Ok(Request::Mirror { claim, committed_at, state }) => {
                self.keeper.answer_mirror(self.asked((claim, committed_at, state)), peer).await
            }
            Ok(Request::EndState(claim)) => self.keeper.answer_end_state(claim),
            Ok(_) => Response::Declined("a user keeps states of its jobs and answers nothing else".into()),
            Err(error) => Response::Declined(error.to_string()),
        };
        match encode("response", &response) {
            // The peer may be gone; that is its business.
            Ok(body) => drop(reply.send(body)),
            Err(error) => tracing::warn!(%peer, %error, "no answer"),
        }
    }

    /// What is asked of the user of a job, if we are it.
    fn asked(&self, (claim, committed_at, state): (Claim, u64, Vec<u8>)) -> Result<Asked, String> {
        match (self.own_manifest(claim.lane().job), Cid::try_from(state)) {
            (Some(manifest), Ok(state)) => Ok(Asked { claim, committed_at, state, manifest }),
            (None, _) => Err("not a job of this user".into()),
            (_, Err(error)) => Err(format!("the state has no CID: {error}")),
        }
    }

    /// CID of the manifest of a job that we posted.
    fn own_manifest(&self, of: JobId) -> Option<Cid> {
        self.events.borrow().iter().find_map(|at| match &at.event {
            Event::JobPosted { job, user, terms, .. } if *job == of && *user == self.ports.identity.address() => {
                Cid::try_from(terms.manifest.as_ref()).ok()
            }
            _ => None,
        })
    }
}
