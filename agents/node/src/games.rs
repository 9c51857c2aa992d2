//! The challenges that a node plays in, as confirmed events tell them.
//!
//! A reorganisation may undo even what was confirmed, and nothing tells of what is not there any more: so each open
//! challenge is compared with the chain from time to time, and folded anew where it is another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_proof::challenge::{Game, Told, Turn};
use tensorlink_types::{Address, ClaimId, U256};
use tokio::sync::watch;

use crate::ports::{Chain, ChainError, Event, EventAt, Place};

/// Ended challenges that are remembered.
const ENDED: usize = 256;
/// Claims remembered of which a challenge was sent.
const OPENED: usize = 4096;
/// Seconds between two comparisons of an open challenge with the chain.
const CHECK: u64 = 20;

/// A challenge as it stands after an event.
#[derive(Clone, Debug)]
struct Followed {
    game: Game,
    /// Block that it was opened in.
    opened: u64,
    /// Of the last event taken in.
    last: Place,
    /// When it was compared with the chain last, seconds; 0: it is due.
    checked: u64,
}

impl Followed {
    /// A challenge that an event opens.
    fn opened(at: &EventAt) -> Option<(U256, Self)> {
        let Event::ChallengeOpened { challenge, id, claim, challenger, worker } = &at.event else { return None };
        let game = Game::new(*id, claim.clone(), *challenger, *worker);
        Some((*challenge, Self { game, opened: at.block, last: at.place(), checked: 0 }))
    }

    /// Takes in an event of this challenge. One that belongs before what is known already tells that the chain
    /// is another.
    fn apply(&mut self, told: &Told, place: Place) {
        if place > self.last {
            self.game.apply(told);
            self.last = place;
        } else {
            self.checked = 0;
        }
    }
}

/// The challenges in which this node is the worker or the challenger. Folded from events, so a restart finds
/// them again.
#[derive(Debug)]
pub struct Games {
    own: Address,
    games: Mutex<BTreeMap<U256, Followed>>,
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
    pub fn apply(&self, at: &EventAt) {
        let mut games = self.games();
        match &at.event {
            Event::ChallengeOpened { .. } => {
                let ours = |game: &Game| game.challenger == self.own || game.worker == self.own;
                let Some((challenge, followed)) = Followed::opened(at).filter(|(_, f)| ours(&f.game)) else { return };
                games.insert(challenge, followed);
                forget(&mut games);
            }
            Event::Challenge { challenge, told } => match games.get_mut(challenge) {
                Some(followed) => followed.apply(told, at.place()),
                None => return,
            },
            _ => return,
        }
        drop(games);
        self.version.send_modify(|version| *version += 1);
    }

    /// Compares an open challenge with the chain, if it was not for a while: a reorganisation may have undone what
    /// events told. Whether it has, and the challenge is another now.
    ///
    /// # Errors
    /// [`ChainError`]: the chain cannot be asked now.
    pub async fn check(&self, chain: &dyn Chain, challenge: U256, now: u64) -> Result<bool, ChainError> {
        let before = {
            let mut games = self.games();
            let Some(followed) = games.get_mut(&challenge).filter(|followed| followed.game.turn.is_open()) else {
                return Ok(false);
            };
            if now < followed.checked.saturating_add(CHECK) {
                return Ok(false);
            }
            followed.checked = now;
            followed.clone()
        };
        let events = chain.past_events(before.opened, u64::MAX).await?;
        let mut found: Option<Followed> = None;
        for at in &events {
            match (&at.event, &mut found) {
                (Event::ChallengeOpened { challenge: opened, .. }, _) if *opened == challenge => {
                    found = Followed::opened(at).map(|(_, followed)| Followed { checked: now, ..followed });
                }
                (Event::Challenge { challenge: other, told }, Some(found)) if *other == challenge => {
                    found.apply(told, at.place());
                }
                _ => {}
            }
        }
        let mut games = self.games();
        let same = |followed: &Followed| found.as_ref().is_some_and(|found| found.game == followed.game);
        match games.get(&challenge) {
            // Told something meanwhile, or as it was.
            Some(followed) if followed.last != before.last || same(followed) => return Ok(false),
            None => return Ok(false),
            Some(_) => {}
        }
        tracing::warn!(%challenge, "a reorganisation has undone moves: it is taken up where the chain has it");
        match found {
            Some(found) => drop(games.insert(challenge, found)),
            None => drop(games.remove(&challenge)),
        }
        drop(games);
        self.version.send_modify(|version| *version += 1);
        Ok(true)
    }

    fn games(&self) -> MutexGuard<'_, BTreeMap<U256, Followed>> {
        self.games.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.games().get(&challenge).map(|followed| followed.game.clone())
    }

    /// The last challenge that this node opened on a claim and that is not over.
    pub fn on(&self, claim: ClaimId) -> Option<U256> {
        let games = self.games();
        let ours = |game: &Game| game.claim_id == claim && game.challenger == self.own && game.turn.is_open();
        let ours = games.iter().rev().find(|(_, followed)| ours(&followed.game));
        ours.map(|(challenge, _)| *challenge)
    }

    /// Those in which this node is to answer.
    pub fn to_answer(&self) -> Vec<(U256, Game)> {
        let games = self.games();
        let asked = |game: &Game| game.worker == self.own && game.turn == Turn::Answering && game.subject().is_some();
        let ours = games.iter().filter(|(_, followed)| asked(&followed.game));
        ours.map(|(challenge, followed)| (*challenge, followed.game.clone())).collect()
    }

    /// Those that are not over.
    pub fn open(&self) -> Vec<U256> {
        let games = self.games();
        let open = games.iter().filter(|(_, followed)| followed.game.turn.is_open());
        open.map(|(challenge, _)| *challenge).collect()
    }

    /// Those against this node whose challenger is to move, with the time by which it must, seconds; 0 where what it
    /// put up is spent.
    pub fn to_collect(&self) -> Vec<(U256, u64)> {
        let games = self.games();
        let left = |game: &Game| game.worker == self.own && matches!(game.turn, Turn::Asking | Turn::Spent);
        let ours = games.iter().filter(|(_, followed)| left(&followed.game));
        ours.map(|(challenge, followed)| (*challenge, followed.game.deadline)).collect()
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

/// Forgets the oldest of those that are over.
fn forget(games: &mut BTreeMap<U256, Followed>) {
    let over = games.iter().filter(|(_, followed)| !followed.game.turn.is_open());
    let over: Vec<U256> = over.map(|(id, _)| *id).collect();
    for id in over.iter().take(over.len().saturating_sub(ENDED)) {
        games.remove(id);
    }
}
