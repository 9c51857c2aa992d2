//! A node that keeps statements for others: it hears them, answers whoever asks, and has them again after a restart.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::exchange::answer_all;
use super::statement::SignedSpeed;
use super::table::Observed;
use crate::blocking::blocking;
use crate::journal::JournalError;
use crate::ports::{NetError, Ports, Protocol};
use crate::wire::decode;
use crate::wire::gossip::SPEEDS;

const FILE: &str = "observed";
/// Wait between two looks whether there is anything to write down.
const WRITE: Duration = Duration::from_secs(60);
/// Such waits for which payments of what is on disk may still be unknown: the chain's events are told anew.
const LOOKS: u32 = 10;

/// Keeps statements for others.
pub struct Keeper {
    ports: Ports,
    observed: Arc<Observed>,
    /// What is on disk, and not known yet to be paid for.
    waiting: Vec<SignedSpeed>,
    looks: u32,
    is_changed: bool,
}

impl Keeper {
    /// Takes up what is on disk. What cannot be read is moved aside: it will be heard again.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails, or a newer version wrote it.
    pub fn open(ports: Ports, observed: Arc<Observed>) -> Result<Self, JournalError> {
        let waiting = ports.journal.read_or_move_aside(FILE)?.unwrap_or_default();
        Ok(Self { ports, observed, waiting, looks: 0, is_changed: false })
    }

    /// Runs until `end`.
    ///
    /// # Errors
    /// [`NetError`] if the net is down.
    pub async fn run(mut self, end: CancellationToken) -> Result<(), NetError> {
        let mut heard = self.ports.net.subscribe(SPEEDS).await?;
        let questions = self.ports.net.serve(Protocol::Observed).await?;
        let answering = answer_all(questions, self.observed.clone(), self.ports.clock.clone());
        let answering = tokio::spawn(answering);
        let mut look = interval(WRITE);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = end.cancelled() => break,
                Some((_, message)) = heard.recv() => self.hear(&message).await,
                _ = look.tick() => self.look().await,
            }
        }
        answering.abort();
        self.look().await;
        Ok(())
    }

    async fn hear(&mut self, message: &[u8]) {
        if let Ok(statements) = decode("speeds", message) {
            self.take(statements).await;
        }
    }

    /// Takes statements in; those come back that are not known to be paid for.
    async fn take(&mut self, statements: Vec<SignedSpeed>) -> Vec<SignedSpeed> {
        let (observed, now) = (self.observed.clone(), self.ports.clock.now());
        let (taken, unpaid) = blocking(move || observed.take_all(statements, now)).await;
        self.is_changed |= taken > 0;
        unpaid
    }

    /// Takes in what waits, and writes down what is known.
    async fn look(&mut self) {
        if !self.waiting.is_empty() {
            let waiting = std::mem::take(&mut self.waiting);
            let unpaid = self.take(waiting).await;
            self.looks = self.looks.saturating_add(1);
            if self.looks < LOOKS {
                self.waiting = unpaid;
            }
        }
        if !self.is_changed {
            return;
        }
        let (journal, mut all) = (self.ports.journal.clone(), self.observed.all());
        all.extend(self.waiting.iter().cloned());
        match blocking(move || journal.write(FILE, &all)).await {
            Ok(()) => self.is_changed = false,
            Err(error) => tracing::warn!("what users saw of workers is not written down: {error}"),
        }
    }
}
