//! Workers' reports of their progress, for whoever listens.

use std::sync::Arc;

use tensorlink_node::Roster;
use tensorlink_node::wire::decode;
use tensorlink_node::wire::gossip::Progress;
use tensorlink_types::Address;
use tokio::sync::broadcast;

/// Progress reports that wait for a slow reader.
const BACKLOG: usize = 4096;

/// Passes reports on.
pub(crate) struct Reports {
    roster: Arc<Roster>,
    progress: broadcast::Sender<Progress>,
}

impl Reports {
    /// Of the jobs that the roster knows.
    pub(crate) fn new(roster: Arc<Roster>) -> Self {
        Self { roster, progress: broadcast::Sender::new(BACKLOG) }
    }

    /// Reports from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Only the lane's own worker can report on it.
    pub(crate) fn hear(&self, peer: Address, bytes: &[u8]) {
        match decode::<Progress>("progress", bytes) {
            Ok(report) => {
                let members = self.roster.members(report.lane.job);
                if members.is_some_and(|members| members.workers.contains(&peer)) {
                    let _ = self.progress.send(report);
                }
            }
            Err(error) => tracing::debug!(%peer, %error, "a malformed report"),
        }
    }
}
