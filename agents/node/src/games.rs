//! The challenges that a node plays in, as confirmed events tell them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tensorlink_proof::challenge::{Game, Turn};
use tensorlink_types::{Address, ClaimId, U256};
use tokio::sync::watch;

use crate::ports::Event;

/// Ended challenges that are remembered.
const ENDED: usize = 256;
/// Claims remembered of which a challenge was sent.
const OPENED: usize = 4096;

/// The challenges in which this node is the worker or the challenger. Folded from events, so a restart finds them again.
#[derive(Debug)]
pub struct Games {
    own: Address,
    games: Mutex<BTreeMap<U256, Game>>,
    /// Claims in whose challenge somebody here makes the moves.
    playing: Mutex<BTreeSet<ClaimId>>,
    /// Claims of which a challenge was sent, the latest last.
    opened: Mutex<VecDeque<ClaimId>>,
    /// Counts the events.
    version: watch::Sender<u64>,
}

impl Games {
    /// Of the node with this account.
    pub fn new(own: Address) -> Self {
        Self {
            own,
            games: Mutex::default(),
            playing: Mutex::default(),
            opened: Mutex::default(),
            version: watch::Sender::new(0),
        }
    }

    /// Takes in an event, if it is about a challenge of this node.
    pub fn apply(&self, event: &Event) {
        let mut games = self.games.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::ChallengeOpened { challenge, id, claim, challenger, worker } => {
                if *challenger != self.own && *worker != self.own {
                    return;
                }
                games.insert(*challenge, Game::new(*id, claim.clone(), *challenger, *worker));
                forget(&mut games);
            }
            Event::Challenge { challenge, told } => match games.get_mut(challenge) {
                Some(game) => game.apply(told),
                None => return,
            },
            _ => return,
        }
        drop(games);
        self.version.send_modify(|version| *version += 1);
    }

    /// The right to make the challenger's moves about a claim; one at a time has it.
    pub fn seat(self: &Arc<Self>, claim: ClaimId) -> Option<Seat> {
        let free = self.playing.lock().unwrap_or_else(PoisonError::into_inner).insert(claim);
        free.then(|| Seat { games: self.clone(), claim })
    }

    /// Remembers that a challenge of a claim was sent, whether or not its event ever comes.
    pub fn opened(&self, claim: ClaimId) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.len() >= OPENED {
            opened.pop_front();
        }
        opened.push_back(claim);
    }

    /// Whether a challenge of a claim was sent since this node started.
    pub fn was_opened(&self, claim: ClaimId) -> bool {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).contains(&claim)
    }

    /// A challenge of this node.
    pub fn get(&self, challenge: U256) -> Option<Game> {
        self.games.lock().unwrap_or_else(PoisonError::into_inner).get(&challenge).cloned()
    }

    /// The last challenge that this node opened on a claim and that is not over.
    pub fn on(&self, claim: ClaimId) -> Option<U256> {
        let games = self.games.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = games.iter().rev().find(|(_, g)| g.claim_id == claim && g.challenger == self.own && is_open(g.turn));
        ours.map(|(challenge, _)| *challenge)
    }

    /// Those in which this node is to answer.
    pub fn to_answer(&self) -> Vec<(U256, Game)> {
        let games = self.games.lock().unwrap_or_else(PoisonError::into_inner);
        let ours =
            games.iter().filter(|(_, g)| g.worker == self.own && g.turn == Turn::Answering && g.subject().is_some());
        ours.map(|(challenge, game)| (*challenge, game.clone())).collect()
    }

    /// Those against this node whose challenger is to move, with the time by which it must, seconds.
    pub fn to_collect(&self) -> Vec<(U256, u64)> {
        let games = self.games.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = games.iter().filter(|(_, g)| g.worker == self.own && g.turn == Turn::Asking);
        ours.map(|(challenge, game)| (*challenge, game.deadline)).collect()
    }

    /// Tells of every change from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}

/// Held while somebody plays; given back when it is dropped.
#[derive(Debug)]
pub struct Seat {
    games: Arc<Games>,
    claim: ClaimId,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.games.playing.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.claim);
    }
}

const fn is_open(turn: Turn) -> bool {
    matches!(turn, Turn::Asking | Turn::Answering)
}

/// Forgets the oldest of those that are over.
fn forget(games: &mut BTreeMap<U256, Game>) {
    let over: Vec<U256> = games.iter().filter(|(_, game)| !is_open(game.turn)).map(|(id, _)| *id).collect();
    for id in over.iter().take(over.len().saturating_sub(ENDED)) {
        games.remove(id);
    }
}
