//! A worker's side: one interval at a time, for users on its list.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use cid::Cid;
use tensorlink_node::blocking;
use tensorlink_node::ports::{Gate, Incoming, Net, NetError, Protocol, Store, StoreError};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_types::Address;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::floats::{Floats, FloatsError};
use crate::task::{MAX_STATE, MAX_TASK, Task, TaskError, state_bytes};
use crate::wire::{Answer, Done, Interval, MAX_STEPS};

/// Intervals whose answers are remembered: their users may ask again.
const ANSWERS: usize = 4;
/// States that are kept on disk: of each remembered interval that before and that after it.
const STATES: usize = 2 * ANSWERS;

/// Peers that may use native mode with us, and have our blocks. Nobody else gets anything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed(pub BTreeSet<Address>);

impl Gate for Listed {
    fn allows(&self, peer: Address, protocol: Protocol) -> bool {
        matches!(protocol, Protocol::Native | Protocol::Block) && self.0.contains(&peer)
    }
}

/// Why an interval is declined. Its text goes to the user.
#[derive(Debug, Error)]
enum HostError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the device failed: {0}")]
    Floats(#[from] FloatsError),
    #[error("{0} steps from step {1} on: an interval has 1 to {MAX_STEPS} steps, before step 2^32")]
    Span(u32, u32),
}

/// A worker.
pub struct Host {
    /// Files.
    store: Arc<dyn Store>,
    /// Who computes.
    floats: Arc<dyn Floats>,
    /// Whom it works for.
    users: Listed,
    /// The last task, read.
    task: Mutex<Option<(Cid, Arc<Task>)>>,
    /// States on disk, oldest first.
    states: Mutex<VecDeque<Cid>>,
}

/// What it is at, and what it was.
#[derive(Default)]
struct Desk {
    current: Option<(Address, Interval, JoinHandle<Answer>)>,
    /// Oldest first.
    ended: VecDeque<(Address, Interval, Answer)>,
}

impl Host {
    /// A worker for these users.
    pub fn new(store: Arc<dyn Store>, floats: Arc<dyn Floats>, users: Listed) -> Arc<Self> {
        Arc::new(Self { store, floats, users, task: Mutex::default(), states: Mutex::default() })
    }

    /// Lets its users in, and answers them until `shutdown`.
    ///
    /// # Errors
    /// [`NetError`] if the net is gone.
    pub async fn serve(self: &Arc<Self>, net: &dyn Net, shutdown: CancellationToken) -> Result<(), NetError> {
        net.set_gate(Arc::new(self.users.clone()));
        let mut requests = net.serve(Protocol::Native).await?;
        let mut desk = Desk::default();
        loop {
            let Incoming { peer, body, reply } = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                request = requests.recv() => match request { Some(request) => request, None => return Err(NetError::Closed) },
            };
            if !self.users.allows(peer, Protocol::Native) {
                continue;
            }
            let answer = match decode::<Interval>("interval", &body) {
                Ok(interval) => self.answer(&mut desk, peer, interval).await,
                Err(malformed) => Answer::Declined(malformed.to_string()),
            };
            if let Ok(answer) = encode("answer", &answer) {
                // The user may have given up.
                let _ = reply.send(answer);
            }
        }
    }

    async fn answer(self: &Arc<Self>, desk: &mut Desk, user: Address, interval: Interval) -> Answer {
        if let Some((by, of, running)) = desk.current.take_if(|(_, _, running)| running.is_finished()) {
            let answer = running.await.unwrap_or_else(|error| Answer::Declined(format!("the run broke off: {error}")));
            desk.ended.push_back((by, of, answer));
            while desk.ended.len() > ANSWERS {
                desk.ended.pop_front();
            }
        }
        let asked = |(by, of): (&Address, &Interval)| *by == user && *of == interval;
        match &desk.current {
            Some((by, of, _)) if asked((by, of)) => return Answer::Working,
            Some(_) => return Answer::Busy,
            None => {}
        }
        if let Some((_, _, answer)) = desk.ended.iter().find(|(by, of, _)| asked((by, of))) {
            // What was declined may go well another time: then it begins anew.
            let answer = answer.clone();
            if matches!(answer, Answer::Declined(_)) {
                desk.ended.retain(|(by, of, _)| !asked((by, of)));
            }
            return answer;
        }
        let (host, of) = (self.clone(), interval.clone());
        let run = tokio::spawn(async move {
            match host.run(user, &of).await {
                Ok(done) => Answer::Done(done),
                Err(error) => Answer::Declined(error.to_string()),
            }
        });
        desk.current = Some((user, interval, run));
        Answer::Working
    }

    async fn run(&self, user: Address, interval: &Interval) -> Result<Done, HostError> {
        let Interval { first, steps, precision, .. } = *interval;
        let end = first.checked_add(steps).filter(|_| (1..=MAX_STEPS).contains(&steps));
        let end = end.ok_or(HostError::Span(steps, first))?;
        let task = self.task(user, interval.task).await?;
        let before = self.store.get(&interval.state, &[user], MAX_STATE).await?;
        self.keep(interval.state).await?;
        let floats = self.floats.clone();
        let (after, losses) = blocking(move || {
            let before = task.state(&before)?;
            let (after, losses) = floats.run(&task, &before, first..end, precision)?;
            Ok::<_, HostError>((state_bytes(&after)?, losses))
        })
        .await?;
        let state = self.store.put(after).await?;
        self.keep(state).await?;
        Ok(Done { state, losses, class: self.floats.class() })
    }

    /// The task, read once as long as no other comes between.
    async fn task(&self, user: Address, cid: Cid) -> Result<Arc<Task>, HostError> {
        let mut last = self.task.lock().await;
        if let Some((of, task)) = &*last
            && *of == cid
        {
            return Ok(task.clone());
        }
        let bytes = self.store.get(&cid, &[user], MAX_TASK).await?;
        let task = Arc::new(blocking(move || Task::from_bytes(&bytes)).await?);
        if let Some((other, _)) = last.replace((cid, task.clone())) {
            self.store.unpin(&other).await?;
        }
        Ok(task)
    }

    /// Remembers that a state is on disk, and drops the oldest.
    async fn keep(&self, state: Cid) -> Result<(), StoreError> {
        let mut states = self.states.lock().await;
        states.retain(|other| *other != state);
        states.push_back(state);
        while states.len() > STATES {
            if let Some(oldest) = states.pop_front() {
                self.store.unpin(&oldest).await?;
            }
        }
        Ok(())
    }
}
