//! A worker at the other end of the net.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tensorlink_node::ports::{Clock, Net, NetError, Protocol};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::Address;

use crate::wire::{Answer, Done, Interval};
use crate::worker::{Worker, WorkerError};

/// First and longest wait before it is asked again how far it is.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// A worker that is asked by messages.
pub struct Remote {
    /// Who it is.
    pub address: Address,
    /// The net.
    pub net: Arc<dyn Net>,
    /// Paces the questions.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Worker for Remote {
    fn address(&self) -> Address {
        self.address
    }

    async fn run(&self, interval: &Interval) -> Result<Done, WorkerError> {
        let question = encode("interval", interval)?;
        let ask = || async {
            let asked = self.net.request(self.address, Protocol::Native, question.clone()).await;
            asked.map_err(|error| match error {
                NetError::Unknown(_) | NetError::Unreachable { .. } | NetError::Timeout { .. } => {
                    Failure::Transient(error)
                }
                error => Failure::Permanent(error),
            })
        };
        let mut pause = PAUSE.0;
        loop {
            match decode("answer", &retry(self.clock.as_ref(), Policy::PEER, ask).await?)? {
                Answer::Done(done) => return Ok(done),
                Answer::Declined(why) => return Err(WorkerError::Declined(why)),
                Answer::Working | Answer::Busy => self.clock.sleep(pause).await,
            }
            pause = pause.saturating_mul(2).min(PAUSE.1);
        }
    }
}
