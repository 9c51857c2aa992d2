//! Transactions: each once, in time, and with a reason where they cannot be.

use std::sync::Arc;
use std::time::Duration;

use alloy::providers::Provider;
use alloy::sol_types::SolCall;
use tensorlink_bindings::jobs::Jobs;
use tensorlink_chain::{AlloyChain, Pace};
use tensorlink_node::Identity;
use tensorlink_node::ports::chain::{Event, JobState, Role, StakeView};
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_proof::challenge::{Game, Move, OwnTree, Subject, Told, Turn};
use tensorlink_types::abi::{Holder, JobTerms, Position, Question, Way};
use tensorlink_types::{Address, B256, ClaimId, JobId, U256};
use tokio_util::sync::CancellationToken;

use crate::world::{OTHER, QUICK, STEPS, USER, WORKER, World, commit_first, sno};

#[tokio::test]
async fn stake_is_bonded_unbonded_and_withdrawn() {
    let world = World::new().await;
    let worker = world.chain(WORKER).await;
    let staked = worker.send(Call::Stake { role: Role::Validator, amount: sno("1000") }).await.unwrap();
    assert_eq!(
        staked.events,
        [Event::Staked { account: worker.account(), role: Role::Validator, amount: sno("1000") }]
    );
    assert!(worker.is_validator(worker.account()).await.unwrap());
    // By permit: no allowance is left behind, and no transaction came before.
    assert_eq!(world.provider.get_transaction_count(worker.account()).await.unwrap(), 1);

    worker.send(Call::RequestUnstake { role: Role::Validator, amount: sno("400") }).await.unwrap();
    let view = worker.stake(worker.account(), Role::Validator).await.unwrap();
    assert_eq!((view.bonded, view.unbonding), (sno("600").to(), sno("400").to()));
    let early = worker.send(Call::WithdrawStake { role: Role::Validator }).await.unwrap_err();
    assert!(
        matches!(&early, ChainError::Reverted { name, arguments }
        if name == "StillUnbonding" && *arguments == format!("({})", view.release_at)),
        "{early}"
    );
    world.wait(311).await;
    worker.send(Call::WithdrawStake { role: Role::Validator }).await.unwrap();
    let left = worker.stake(worker.account(), Role::Validator).await.unwrap();
    assert_eq!(left, StakeView { bonded: sno("600").to(), release_at: view.release_at, ..StakeView::default() });
    assert!(!worker.is_validator(worker.account()).await.unwrap());
}

#[tokio::test]
async fn a_job_is_paid_in_sno_by_an_allowance_of_just_its_deposit() {
    let world = World::new().await;
    let user = world.chain(USER).await;
    let now = user.head().await.unwrap().timestamp;
    let terms = JobTerms { token: world.deployment.sno, ..world.terms(now) };
    let before = user.balance(user.account(), world.deployment.sno).await.unwrap();
    let posted = user.send(Call::Post { terms, deposit: sno("7") }).await.unwrap();
    let [Event::JobPosted { job, deposit, .. }] = posted.events[..] else { panic!("{:?}", posted.events) };
    assert_eq!(deposit, sno("7"));
    let view = user.job(job).await.unwrap().unwrap();
    assert_eq!((view.state, view.escrow, view.token), (JobState::Posted, sno("7").to(), world.deployment.sno));
    assert_eq!(user.job_count().await.unwrap(), 1);
    user.send(Call::Cancel { job }).await.unwrap();
    assert_eq!(user.credit(user.account(), world.deployment.sno).await.unwrap(), sno("7"));
    user.send(Call::Collect { token: world.deployment.sno }).await.unwrap();
    assert_eq!(user.balance(user.account(), world.deployment.sno).await.unwrap(), before);
    assert_eq!(user.job(JobId(2)).await.unwrap(), None);
    let mined = user.mined(posted.transaction).await.unwrap().unwrap();
    assert_eq!((mined.sender, mined.gas, mined.proof), (user.account(), posted.gas, None));
    assert_eq!(user.mined(B256::repeat_byte(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_claim_is_challenged_answered_and_left_alone() {
    let world = World::new().await;
    let (user, worker, other) = (world.chain(USER).await, world.chain(WORKER).await, world.chain(OTHER).await);
    let job = world.running_job(&user, &worker).await;
    let (claim, committed_at, _) = commit_first(&worker, job).await;
    let id = world.contracts().claim_id(&claim);
    let open =
        Move::Open { claim: claim.clone(), committed_at, question: Question { levels: 1, ..Question::default() } };
    let opened = other.send(Call::Challenge { challenge: U256::ZERO, step: Box::new(open) }).await.unwrap();
    let [Event::ChallengeOpened { challenge, id: about, challenger, worker: asked, .. }, ref told @ ..] =
        opened.events[..]
    else {
        panic!("{:?}", opened.events)
    };
    assert_eq!((about, challenger, asked), (id, other.account(), worker.account()));
    let open_challenge = async |of: &AlloyChain| of.open_challenge(id).await.unwrap();
    assert_eq!(open_challenge(&other).await, Some(challenge));
    assert_eq!((open_challenge(&user).await, open_challenge(&worker).await), (None, None), "it is another's");
    assert_eq!(other.open_challenge(ClaimId::default()).await.unwrap(), None, "on another claim");
    let mut game = Game::new(id, claim.clone(), challenger, asked);
    follow(&mut game, told);
    assert_eq!((game.turn, game.subject()), (Turn::Answering, Some(Subject::Steps)));

    // States that nothing computed, but for the last.
    let states: Vec<B256> = (0..STEPS - 1).map(|i| B256::repeat_byte(i as u8)).chain([claim.newState]).collect();
    let tree = OwnTree::list(states);
    let position = game.position.clone();
    let data = tree.row(&Position { node: tree.root(), ..position.clone() }).unwrap().into();
    let siblings = tree.prove(u64::from(STEPS) - 1);
    let answer =
        Move::AnswerSteps { position, claim: claim.clone(), steps: tree.root(), siblings, way: Way::default(), data };
    let answered = worker.send(Call::Challenge { challenge, step: Box::new(answer) }).await.unwrap();
    follow(&mut game, &answered.events);
    assert_eq!((game.turn, game.facts.steps), (Turn::Asking, tree.root()));
    // What the contract takes the answer to cost is what its transaction cost, and hardly more.
    let charged = answered.events.iter().find_map(|event| match event {
        Event::Challenge { told: Told::Charged { gas, spent, .. }, .. } => Some((*gas, *spent)),
        _ => None,
    });
    let (charged, spent) = charged.unwrap();
    assert!(!spent && charged >= answered.gas && charged <= answered.gas * 9 / 8, "{charged}, {}", answered.gas);
    assert!(game.deposit > game.owed && !game.owed.is_zero(), "{} of {}", game.owed, game.deposit);
    let funded = other.send(Call::Challenge { challenge, step: Box::new(Move::Fund { amount: sno("0.01") }) }).await;
    follow(&mut game, &funded.unwrap().events);
    assert_eq!(other.deposit_left(challenge).await.unwrap(), game.left());

    world.wait(61).await;
    let finalize = Call::Finalize { claims: vec![(claim.clone(), committed_at)], holder: Holder::default() };
    let held = user.send(finalize.clone()).await.unwrap_err();
    assert!(matches!(&held, ChainError::Reverted { name, .. } if name == "Challenged"), "{held}");
    let lost = user.send(Call::Challenge { challenge, step: Box::new(Move::Timeout) }).await.unwrap();
    assert!(lost.events.contains(&Event::Challenge { challenge, told: Told::Lost }), "{:?}", lost.events);
    assert_eq!(open_challenge(&other).await, None, "it is over");
    for (chain, credit) in [(&worker, game.owed), (&other, game.left())] {
        assert_eq!(chain.gas_credit(chain.account()).await.unwrap(), credit);
        chain.send(Call::CollectGas).await.unwrap();
        assert_eq!(chain.gas_credit(chain.account()).await.unwrap(), U256::ZERO);
    }
    let done = user.send(finalize).await.unwrap();
    assert!(
        done.events.iter().any(|event| matches!(event, Event::Paid { amount, .. } if *amount == U256::from(1_000)))
    );
    assert_eq!(user.lane(claim.lane()).await.unwrap().finalized, 1);
    assert_eq!(user.assignment(claim.lane()).await.unwrap(), (worker.account(), 1_000));
    assert_eq!(user.credit(worker.account(), Address::ZERO).await.unwrap(), U256::from(1_000));
}

#[tokio::test]
async fn poverty_is_found_before_anything_is_sent() {
    let world = World::new().await;
    let poor = Identity::new(&[9; 32]).unwrap();
    let mut config = world.config(USER, world.anvil.endpoint(), 0);
    config.identity = poor.clone();
    let chain = AlloyChain::connect(config).await.unwrap();
    let no_sno = chain.send(Call::Stake { role: Role::Worker, amount: sno("1") }).await.unwrap_err();
    assert!(
        matches!(no_sno, ChainError::InsufficientFunds { account, asset: "SNO", needed, .. }
        if account == poor.address() && needed == sno("1")),
        "{no_sno:?}"
    );
    let now = chain.head().await.unwrap().timestamp;
    let no_eth = chain.send(Call::Post { terms: world.terms(now), deposit: U256::from(5) }).await.unwrap_err();
    assert!(matches!(no_eth, ChainError::InsufficientFunds { asset: "ETH", .. }), "{no_eth:?}");
    // Enough for the deposit, not for the gas.
    let () = world.provider.client().request("anvil_setBalance", (poor.address(), U256::from(5))).await.unwrap();
    let no_gas = chain.send(Call::Post { terms: world.terms(now), deposit: U256::from(5) }).await.unwrap_err();
    assert!(matches!(no_gas, ChainError::InsufficientFunds { asset: "ETH", needed, .. } if needed > U256::from(5)));
}

#[tokio::test]
async fn reverts_have_names_and_arguments() {
    let world = World::new().await;
    let user = world.chain(USER).await;
    let now = user.head().await.unwrap().timestamp;
    let terms = JobTerms { stages: 0, ..world.terms(now) };
    let refused = user.send(Call::Post { terms, deposit: U256::from(5) }).await.unwrap_err();
    assert_eq!(refused.to_string(), "the contract refuses: InvalidTerms(stages)");
    let refused = user.send(Call::Settle { job: JobId(9) }).await.unwrap_err();
    assert_eq!(refused.to_string(), "the contract refuses: WrongState(9, 0)");
}

/// Anybody may cancel what nobody accepted in time, and the other one pays more: on the state before their block both
/// pass.
#[tokio::test]
async fn who_is_forestalled_within_a_block_hears_what_the_other_one_left() {
    let world = World::new().await;
    let user = world.chain(USER).await;
    let now = user.head().await.unwrap().timestamp;
    let terms = world.terms(now);
    let late = u64::try_from(terms.acceptBy).unwrap() - now + 1;
    user.send(Call::Post { terms, deposit: U256::from(5) }).await.unwrap();
    world.wait(late).await;
    world.automine(false).await;
    let rival = async {
        while world.pending().await == 0 {
            tokio::time::sleep(QUICK.poll).await;
        }
        let data = Jobs::cancelCall { job: 1 }.abi_encode();
        let cancel = serde_json::json!({
            "from": world.address(OTHER), "to": user.deployment().jobs, "gas": "0x100000",
            "data": alloy::hex::encode_prefixed(data),
            "maxFeePerGas": "0x174876e800", "maxPriorityFeePerGas": "0x174876e800",
        });
        let _: serde_json::Value = world.provider.client().request("eth_sendTransaction", (cancel,)).await.unwrap();
        world.mine(1).await;
    };
    let (refused, ()) = tokio::join!(user.send(Call::Cancel { job: JobId(1) }), rival);
    assert_eq!(refused.unwrap_err().to_string(), "the contract refuses: WrongState(1, 5)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_send_at_once_and_no_nonce_collides() {
    let world = World::new().await;
    let user = Arc::new(world.chain(USER).await);
    world.provider.client().request::<_, serde_json::Value>("evm_setIntervalMining", (1,)).await.unwrap();
    let now = user.head().await.unwrap().timestamp;
    let tasks: Vec<_> = (1..=12u64)
        .map(|deposit| {
            let (user, terms) = (user.clone(), world.terms(now));
            tokio::spawn(async move { user.send(Call::Post { terms, deposit: U256::from(deposit) }).await })
        })
        .collect();
    let mut blocks = Vec::new();
    for task in tasks {
        blocks.push(task.await.unwrap().unwrap().block);
    }
    assert_eq!(user.job_count().await.unwrap(), 12);
    assert_eq!(world.provider.get_transaction_count(user.account()).await.unwrap(), 12);
    // They need not wait for each other's receipts.
    blocks.sort_unstable();
    blocks.dedup();
    assert!(blocks.len() < 12, "{blocks:?}");
}

#[tokio::test]
async fn a_transaction_that_is_not_mined_is_raised_and_mined_once() {
    let world = World::new().await;
    let user = world.chain(USER).await;
    world.automine(false).await;
    let now = user.head().await.unwrap().timestamp;
    let call = Call::Post { terms: world.terms(now), deposit: U256::from(5) };
    let mining = async {
        tokio::time::sleep(QUICK.bump_after * 3).await;
        let pool: serde_json::Value = world.provider.client().request("txpool_content", ()).await.unwrap();
        world.automine(true).await;
        world.mine(1).await;
        pool
    };
    let (sent, pool) = tokio::join!(user.send(call), mining);
    let sent = sent.unwrap();
    assert_eq!(user.job_count().await.unwrap(), 1);
    // What was mined is a replacement: the pool held one transaction only, and it paid more than the first offer.
    let mined = world.provider.get_transaction_by_hash(sent.transaction).await.unwrap().unwrap();
    let base = world.provider.estimate_eip1559_fees().await.unwrap();
    let held = pool["pending"].as_object().unwrap().values().next().unwrap().as_object().unwrap().len();
    assert_eq!(held, 1, "{pool}");
    assert!(alloy::consensus::Transaction::max_priority_fee_per_gas(&mined).unwrap() > base.max_priority_fee_per_gas);
}

#[tokio::test]
async fn a_transaction_that_is_never_mined_is_pending() {
    let world = World::new().await;
    let pace = Pace { bump_after: Duration::from_millis(50), bumps: 2, ..QUICK };
    let user = AlloyChain::connect_at(world.config(USER, world.anvil.endpoint(), 0), pace).await.unwrap();
    world.automine(false).await;
    let now = user.head().await.unwrap().timestamp;
    let call = Call::Post { terms: world.terms(now), deposit: U256::from(5) };
    let pending = user.send(call).await.unwrap_err();
    let ChainError::Pending(hash) = pending else { panic!("{pending}") };
    world.mine(1).await;
    // As the error says, it may still be mined.
    assert!(user.mined(hash).await.unwrap().is_some());
}

#[tokio::test]
async fn who_is_interrupted_is_told_what_was_sent() {
    let world = World::new().await;
    let mut config = world.config(USER, world.anvil.endpoint(), 0);
    config.shutdown = CancellationToken::new();
    let shutdown = config.shutdown.clone();
    let user = AlloyChain::connect_at(config, QUICK).await.unwrap();
    world.automine(false).await;
    let now = user.head().await.unwrap().timestamp;
    let call = Call::Post { terms: world.terms(now), deposit: U256::from(5) };
    let interrupt = async {
        while world.pending().await == 0 {
            tokio::time::sleep(QUICK.poll).await;
        }
        shutdown.cancel();
    };
    let (sent, ()) = tokio::join!(user.send(call), interrupt);
    let ChainError::Interrupted(hash) = sent.unwrap_err() else { panic!("its hash is lost") };
    world.mine(1).await;
    let receipt = world.provider.get_transaction_receipt(hash).await.unwrap();
    assert!(receipt.is_some_and(|receipt| receipt.status()));
}

#[tokio::test]
async fn a_nonce_taken_by_another_process_is_noticed_and_the_call_made_again() {
    let world = World::new().await;
    // Too patient to replace what replaced it.
    let pace = Pace { bump_after: Duration::from_secs(60), ..QUICK };
    let user = AlloyChain::connect_at(world.config(USER, world.anvil.endpoint(), 0), pace).await.unwrap();
    world.automine(false).await;
    let now = user.head().await.unwrap().timestamp;
    let call = Call::Post { terms: world.terms(now), deposit: U256::from(5) };
    let rival = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        // The same key elsewhere: a transfer of the same nonce for a higher fee.
        let transfer = serde_json::json!({
            "from": user.account(), "to": world.address(OTHER), "value": "0x1", "nonce": "0x0",
            "maxFeePerGas": "0x174876e800", "maxPriorityFeePerGas": "0x174876e800",
        });
        let _: serde_json::Value = world.provider.client().request("eth_sendTransaction", (transfer,)).await.unwrap();
        world.automine(true).await;
        world.mine(1).await;
    };
    let (sent, ()) = tokio::join!(user.send(call), rival);
    sent.unwrap();
    assert_eq!(user.job_count().await.unwrap(), 1);
    assert_eq!(world.provider.get_transaction_count(user.account()).await.unwrap(), 2);
}

/// Its sender has seen the others mined and goes on; the last waits for nonces that nobody is going to use any more.
#[tokio::test]
async fn a_transaction_is_mined_although_a_reorganisation_undid_those_before_it() {
    let world = World::new().await;
    let user = world.chain(USER).await;
    let now = user.head().await.unwrap().timestamp;
    let post = |deposit| Call::Post { terms: world.terms(now), deposit: U256::from(deposit) };
    for deposit in 1..=8 {
        user.send(post(deposit)).await.unwrap();
    }
    world.automine(false).await;
    let undone = async {
        while world.pending().await == 0 {
            tokio::time::sleep(QUICK.poll).await;
        }
        world.reorg(8).await;
        assert_eq!(world.provider.get_transaction_count(user.account()).await.unwrap(), 0);
        world.automine(true).await;
    };
    // All gaps are filled at the first raise.
    let (last, ()) = tokio::join!(tokio::time::timeout(QUICK.bump_after * 3, user.send(post(9))), undone);
    let last = last.expect("it is mined in time").unwrap();
    assert!(matches!(last.events[..], [Event::JobPosted { deposit, .. }] if deposit == U256::from(9)));
    assert_eq!(user.job_count().await.unwrap(), 1, "the others are gone, nothing stands in their place");
    assert_eq!(world.provider.get_transaction_count(user.account()).await.unwrap(), 9);
    // What comes next finds its nonce.
    user.send(post(10)).await.unwrap();
    assert_eq!(user.job_count().await.unwrap(), 2);
}

/// Takes in what a transaction told of a challenge.
fn follow(game: &mut Game, events: &[Event]) {
    for event in events {
        if let Event::Challenge { told, .. } = event {
            game.apply(told);
        }
    }
}
