//! A serving job on this machine, for rows about the network: the user in this process, each worker in one of its own,
//! on the loopback interface. Everything is as it is in production but the chain, of which the workers are told what it
//! would say.
//!
//! | module | what lives there |
//! |---|---|
//! | `job` | what all know of the job; written down for the workers' processes |
//! | `ledger` | the chain port: what a job that runs looks like |
//! | `worker` | a worker's process |
//! | `cluster` | the user's side: starts workers, opens the pipeline |
//! | `process` | memory and processor time of processes, as the kernel tells them |

mod cluster;
mod job;
mod ledger;
mod process;
mod worker;

pub(super) use self::cluster::{Cluster, step};
pub(super) use self::worker::run as worker;
