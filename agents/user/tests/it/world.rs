//! A user on a chain that is played.

use std::sync::Arc;

use tensorlink_node::ports::{Clock, Event, SystemClock};
use tensorlink_types::{Address, U256};
use tensorlink_user::User;
use tokio_util::sync::CancellationToken;

use crate::support::{self, Hasty, Hub, MemoryChain, job_view};

/// Number of the user's key.
pub(crate) const USER_KEY: u8 = 9;

/// A user, its chain, and what it hears.
pub(crate) struct World {
    pub(crate) user: Arc<User>,
    pub(crate) hub: Arc<Hub>,
    chain: Arc<MemoryChain>,
    _folder: tempfile::TempDir,
}

impl World {
    /// Of a user whose records were there before.
    pub(crate) async fn of(folder: tempfile::TempDir) -> Self {
        let (hub, chain) = (Arc::<Hub>::default(), MemoryChain::new(job_view(1, 2), &[], &[]));
        chain.with(|ledger| {
            ledger.now = SystemClock.now();
            ledger.follows = true;
            ledger.told = Some(Vec::new());
        });
        let mut ports = support::ports(USER_KEY, chain.clone(), Arc::default(), hub.clone(), folder.path());
        ports.clock = Arc::new(Hasty);
        let user = User::start(ports, CancellationToken::new()).await.unwrap();
        Self { user, hub, chain, _folder: folder }
    }

    /// Of a new user.
    pub(crate) async fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap()).await
    }

    /// Tells events of the chain, until the user has heard them: a slash of nobody, which it remembers, is the last.
    pub(crate) async fn tell(&self, events: Vec<Event>) {
        let mut heard = self.user.events();
        let last = slashed(Address::ZERO, heard.borrow().len() as u64);
        self.chain.with(|ledger| events.into_iter().chain([last.clone()]).for_each(|event| ledger.tell(event)));
        heard.wait_for(|events| events.last().is_some_and(|at| at.event == last)).await.unwrap();
    }
}

/// A worker has lost this much, wei.
pub(crate) fn slashed(account: Address, amount: u64) -> Event {
    let part = U256::ZERO;
    Event::Slashed { account, amount: U256::from(amount), bounty: part, shared: part, harm: part, burned: part }
}
