//! How workers are asked and calls are sent, by whoever looks into claims.

use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::ports::{Call, ChainError, NetError, Protocol};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::Address;

use crate::finding::Gap;

/// Attempts to get an answer or a file from a worker; it may be restarting.
pub(crate) const PATIENCE: Policy =
    Policy { attempts: 5, first: Duration::from_millis(500), longest: Duration::from_secs(4) };

/// Asks a worker; what it declines is a gap.
pub(crate) async fn ask(ports: &Ports, worker: Address, question: &Request) -> Result<Response, Gap> {
    let body = encode("request", question)?;
    let result = retry(ports.clock.as_ref(), PATIENCE, || async {
        ports.net.request(worker, Protocol::Rpc, body.clone()).await.map_err(|error| match error {
            // A worker that let one long wait pass in silence is not given another.
            error @ (NetError::Timeout { .. } | NetError::Refused(_) | NetError::Protocol { .. }) => {
                Failure::Permanent(error)
            }
            error => Failure::Transient(error),
        })
    });
    match decode("response", &result.await?)? {
        Response::Declined(reason) => Err(Gap::Declined(reason)),
        response => Ok(response),
    }
}

/// Sends a call; the gas it took. It is not tried locally first, which takes as long as sending it: what the
/// contract refuses, the estimate of its gas tells as well.
pub(crate) async fn transact(ports: &Ports, call: Call) -> Result<u64, ChainError> {
    Ok(ports.chain.send(call).await?.gas)
}
