//! What the chain of a network says, and what happens to it.

use std::collections::BTreeSet;
use std::time::Duration;

use alloy::providers::Provider;
use alloy::rpc::types::Filter;
use alloy::sol_types::SolEvent;
use tensorlink_bindings::jobs::Jobs::Collected;
use tensorlink_chain::AlloyChain;
use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::{Event, EventAt, Role, StakeView};
use tensorlink_types::{Address, U256};

use super::{Network, VALIDATOR, address, worker_address};
use crate::harness::job::Job;
use crate::harness::{chain, eventually};

/// Until what an event tells is in a purse.
const OWNED: Duration = Duration::from_secs(20);

impl Network {
    /// Keeps the chain from answering for a while, as an endpoint that hangs does.
    pub(crate) async fn hang_chain(&self, duration: Duration) {
        self.anvil.as_ref().unwrap().hang(duration).await;
    }

    /// Ends the chain's process, and starts another on the same state and port.
    pub(crate) async fn restart_chain(&mut self) {
        self.anvil.take().unwrap().stop();
        let (anvil, _) = chain::start_anvil(self.folder.path(), self.port).await;
        self.anvil = Some(anvil);
    }

    /// Replaces the newest blocks by as many empty ones.
    pub(crate) async fn reorganise(&self, depth: u64) {
        let () = self.provider().client().request("anvil_reorg", (depth, Vec::<()>::new())).await.unwrap();
    }

    /// What gas costs in the next block, wei.
    pub(crate) async fn set_base_fee(&self, fee: u64) {
        let () = self.provider().client().request("anvil_setNextBlockBaseFeePerGas", (fee,)).await.unwrap();
    }

    /// Replaces a block and all after it. Another may be mined after a look at the head, so that the reorganisation
    /// stops short of the first.
    pub(crate) async fn reorganise_from(&self, block: u64) {
        let provider = self.provider();
        let hash = async || provider.get_block_by_number(block.into()).await.unwrap().unwrap().header.hash;
        let undone = hash().await;
        while hash().await == undone {
            let head = provider.get_block_number().await.unwrap();
            self.reorganise(head - block + 1).await;
        }
    }

    /// All events so far, if the chain answers.
    pub(crate) async fn events(&self) -> Vec<EventAt> {
        let head = self.observer.head().await.unwrap().number;
        self.observer.past_events(0, head).await.unwrap()
    }

    /// Waits for an event.
    pub(crate) async fn await_event<T>(&self, what: &str, limit: Duration, pick: impl Fn(&Event) -> Option<T>) -> T {
        eventually(what, limit, async || self.events().await.iter().find_map(|at| pick(&at.event))).await
    }

    /// Waits for so many events.
    pub(crate) async fn await_events<T>(
        &self,
        what: &str,
        limit: Duration,
        pick: impl Fn(&Event) -> Option<T>,
        count: usize,
    ) -> Vec<T> {
        eventually(what, limit, async || {
            let found: Vec<T> = self.events().await.iter().filter_map(|at| pick(&at.event)).collect();
            (found.len() >= count).then_some(found)
        })
        .await
    }

    /// Waits for a claim of every lane.
    pub(crate) async fn await_claim_of_each(&self, job: &Job, limit: Duration) {
        eventually("every lane has a claim", limit, async || {
            let claims = self.events().await.into_iter().filter_map(|at| match at.event {
                Event::ClaimCommitted { claim, .. } => Some(claim.lane()),
                _ => None,
            });
            let lanes: BTreeSet<_> = claims.collect();
            (lanes.len() == job.lanes()).then_some(())
        })
        .await;
    }

    /// SNO that an account has, or can collect: when nodes collect is their business.
    pub(crate) async fn owned(&self, account: Address) -> U256 {
        let (token, provider) = (self.deployment().sno, self.provider());
        // Of one block: what is collected between two looks would be counted twice, or not at all.
        loop {
            let block = provider.get_block_number().await.unwrap();
            let has = self.observer.balance(account, token).await.unwrap() + self.credit(account, token).await;
            if provider.get_block_number().await.unwrap() == block {
                return has;
            }
        }
    }

    /// What an auditor has been paid so far for its answers, and as its share of bounties. How many it gives before a
    /// job ends depends on the machine.
    async fn fees_and_shares_of(&self, account: Address) -> U256 {
        let paid = self.events().await.into_iter().filter_map(|at| match at.event {
            Event::AuditRevealed { auditor, fee: amount, .. } | Event::AuditorShared { auditor, amount, .. } => {
                (auditor == account).then_some(amount)
            }
            _ => None,
        });
        paid.sum()
    }

    /// Waits until an auditor owns `sum` beside what it is paid for answers and as its share of bounties: both may come
    /// after the job's end.
    pub(crate) async fn await_auditor_owns(&self, auditor: Address, sum: U256, what: &str) {
        let mut last = None;
        eventually(what, OWNED, async || {
            let now = (self.owned(auditor).await, sum + self.fees_and_shares_of(auditor).await);
            if last != Some(now) {
                eprintln!("{what}: has {}, should have {}", now.0, now.1);
            }
            last = Some(now);
            (now.0 == now.1).then_some(())
        })
        .await;
    }

    pub(crate) async fn stake(&self, worker: usize) -> StakeView {
        self.observer.stake(worker_address(worker), Role::Worker).await.unwrap()
    }

    pub(crate) async fn stake_of_validator(&self) -> U256 {
        let stake = self.observer.stake(address(VALIDATOR), Role::Validator).await.unwrap();
        U256::from(stake.bonded)
    }

    pub(crate) async fn credit(&self, account: Address, token: Address) -> U256 {
        self.observer.credit(account, token).await.unwrap()
    }

    /// What an account has collected of a token so far.
    pub(crate) async fn collected(&self, account: Address, token: Address) -> U256 {
        let filter =
            Filter::new().address(self.deployment().jobs).from_block(0).event_signature(Collected::SIGNATURE_HASH);
        let logs = self.provider().get_logs(&filter).await.unwrap();
        let collected = logs.iter().map(|log| Collected::decode_log(&log.inner).unwrap());
        let its = collected.filter(|log| (log.account, log.token) == (account, token));
        its.map(|log| log.amount).sum()
    }

    pub(crate) fn chain(&self) -> &AlloyChain {
        &self.observer
    }
}
