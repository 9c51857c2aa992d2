//! What workers ask of their user: to keep a state of its own job, where no other worker does.

use std::sync::Arc;

use cid::Cid;
use tensorlink_node::custody::Asked;
use tensorlink_node::ports::{Event, Incoming};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, JobId};
use tokio::sync::mpsc;

use crate::role::User;

impl User {
    /// Answers workers, one after another, until the net closes: what they ask for is fetched from them, and is no hurry.
    pub(crate) async fn answer_all(self: Arc<Self>, mut requests: mpsc::Receiver<Incoming>) {
        while let Some(Incoming { peer, body, reply }) = requests.recv().await {
            let response = match decode("request", &body) {
                Ok(Request::Keep { claim, committed_at, state }) => self.keep(peer, (claim, committed_at, state)).await,
                Ok(Request::Kept(claim)) => {
                    let declined = || Response::Declined("that state is not kept here".into());
                    self.keeper.file_of(claim).map_or_else(declined, |cid| Response::Kept(cid.to_bytes()))
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
