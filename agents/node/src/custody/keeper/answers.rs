//! What a keeper answers over the network.

use tensorlink_types::{Address, ClaimId};

use super::{Asked, Keeper};
use crate::wire::rpc::Response;

impl Keeper {
    /// Answers a worker that asks for a state to be kept; `asked` says why not, where that is not up to this node.
    pub async fn answer_keep(&self, asked: Result<Asked, String>, worker: Address) -> Response {
        let kept = async { self.keep(&asked?, worker).await.map_err(|error| error.to_string()) };
        kept.await.map_or_else(Response::Declined, |signature| Response::Holding(signature.to_vec()))
    }

    /// Answers a worker that asks for a state to be at hand, likewise.
    pub async fn answer_mirror(&self, asked: Result<Asked, String>, worker: Address) -> Response {
        let mirrored = async { self.mirror(&asked?, worker).await.map_err(|error| error.to_string()) };
        mirrored.await.map_or_else(Response::Declined, |()| Response::Done)
    }

    /// Answers whoever asks where the state is that a claim ends in.
    pub fn answer_end_state(&self, claim: ClaimId) -> Response {
        let declined = || Response::Declined("that state is not kept here".into());
        self.file_of(claim).map_or_else(declined, |cid| Response::EndState(cid.to_bytes()))
    }
}
