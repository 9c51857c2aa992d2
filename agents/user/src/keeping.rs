//! What workers ask of their user: to keep a state of its own job, where no other worker does.

use std::collections::BTreeMap;
use std::sync::Arc;

use cid::Cid;
use tensorlink_node::custody::Asked;
use tensorlink_node::ports::{Call, ChainError, CustodyMove, Event, Incoming};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, JobId};
use tokio::sync::{Semaphore, mpsc};

use crate::role::{User, attempt};

/// Requests answered at once; the keeper fetches fewer states at a time.
const ANSWERS: usize = 8;

impl User {
    /// Answers workers until the net closes.
    pub(crate) async fn answer_all(self: Arc<Self>, mut requests: mpsc::Receiver<Incoming>) {
        let answers = Arc::new(Semaphore::new(ANSWERS));
        while let Ok(slot) = answers.clone().acquire_owned().await
            && let Some(request) = requests.recv().await
        {
            let user = self.clone();
            tokio::spawn(async move {
                user.answer(request).await;
                drop(slot);
            });
        }
    }

    async fn answer(&self, Incoming { peer, body, reply }: Incoming) {
        let response = match decode("request", &body) {
            Ok(Request::Keep { claim, committed_at, state }) => self.keep(peer, (claim, committed_at, state)).await,
            Ok(Request::EndState(claim)) => {
                let declined = || Response::Declined("that state is not kept here".into());
                self.keeper.file_of(claim).map_or_else(declined, |cid| Response::EndState(cid.to_bytes()))
            }
            Ok(_) => Response::Declined("a user keeps states of its jobs and answers nothing else".into()),
            Err(error) => Response::Declined(error.to_string()),
        };
        match encode("response", &response) {
            // The peer may be gone; that is its business.
            Ok(body) => drop(reply.send(body)),
            Err(error) => tracing::warn!(%peer, %error, "no answer"),
        }
    }

    async fn keep(&self, peer: Address, (claim, committed_at, state): (Claim, u64, Vec<u8>)) -> Response {
        let (Some(manifest), Ok(state)) = (self.own_manifest(claim.lane().job), Cid::try_from(state)) else {
            return Response::Declined("not a job of this user".into());
        };
        match self.keeper.keep(&Asked { claim, committed_at, state, manifest }, peer).await {
            Ok(signature) => Response::Holding(signature.to_vec()),
            Err(error) => Response::Declined(error.to_string()),
        }
    }

    /// Ends demands in a job that were not met in time: they hold back its claims. The chain's time is `now`.
    pub(crate) async fn end_demands(&self, of: JobId, now: u64) -> Result<(), ChainError> {
        let mut open = BTreeMap::new();
        for at in self.events.borrow().iter() {
            match &at.event {
                Event::Demanded { id, demand } if demand.job == of.0 => drop(open.insert(*id, demand.clone())),
                Event::DemandEnded { id, .. } => drop(open.remove(id)),
                _ => {}
            }
        }
        for (id, demand) in open.into_iter().filter(|(_, demand)| now > demand.deadline.to::<u64>()) {
            let call = Call::Custody(Box::new(CustodyMove::Expire { id, demand: *demand }));
            attempt(self.ports.chain.attempt(call).await)?;
        }
        Ok(())
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
