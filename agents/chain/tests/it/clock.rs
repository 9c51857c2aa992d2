//! Deadlines are the chain's, however wrong the machine's clock is.

use alloy::providers::Provider;
use tensorlink_node::ports::chain::Role;
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_proof::challenge::Move;
use tensorlink_types::U256;
use tensorlink_types::abi::{Holder, Question};

use crate::world::{OTHER, USER, WINDOW, WORKER, World, commit_first, sno};

/// Seconds.
const DAY: u64 = 86_400;

/// What may be done about a fresh claim, and what only after its window, foretold and then done.
async fn windows_are_the_chains(world: World) {
    let (user, worker, other) = (world.chain(USER).await, world.chain(WORKER).await, world.chain(OTHER).await);
    let job = world.running_job(&user, &worker).await;
    let (claim, committed_at, _) = commit_first(&worker, job).await;
    assert!(committed_at.abs_diff(user.head().await.unwrap().timestamp) <= 1);

    let finalize = Call::Finalize { claims: vec![(claim.clone(), committed_at)], holder: Holder::default() };
    let early = user.simulate(&finalize).await.unwrap_err();
    assert!(matches!(&early, ChainError::Reverted { name, .. } if name == "WindowOpen"), "{early}");
    let step = Box::new(Move::Open {
        claim: claim.clone(),
        committed_at,
        question: Question { levels: 1, ..Question::default() },
    });
    let open = Call::Challenge { challenge: U256::ZERO, step };
    other.simulate(&open).await.unwrap();

    world.wait(2 * u64::from(WINDOW)).await;
    let late = other.simulate(&open).await.unwrap_err();
    assert!(matches!(&late, ChainError::Reverted { .. }), "{late}");
    user.simulate(&finalize).await.unwrap();
    user.send(finalize).await.unwrap();
    assert_eq!(user.lane(claim.lane()).await.unwrap().finalized, 1);
    // The permit of a stake has a deadline, too.
    worker.send(Call::Stake { role: Role::Worker, amount: sno("1") }).await.unwrap();
}

#[tokio::test]
async fn windows_are_the_chains_where_the_machine_is_a_day_ahead() {
    windows_are_the_chains(World::behind(DAY).await).await;
}

#[tokio::test]
async fn windows_are_the_chains_where_the_machine_is_a_day_behind() {
    let world = World::new().await;
    world.wait(DAY).await;
    windows_are_the_chains(world).await;
}

/// A chain that makes a block only for a transaction: the last one is old, and the next one will not be.
#[tokio::test]
async fn time_passes_between_blocks() {
    let world = World::behind(DAY).await;
    let (user, worker) = (world.chain(USER).await, world.chain(WORKER).await);
    let job = world.running_job(&user, &worker).await;
    let (claim, committed_at, _) = commit_first(&worker, job).await;
    let seconds = 2 * u64::from(WINDOW);
    let _: serde_json::Value = world.provider.client().request("evm_increaseTime", (seconds,)).await.unwrap();
    user.simulate(&Call::Finalize { claims: vec![(claim, committed_at)], holder: Holder::default() }).await.unwrap();
    assert!(user.head().await.unwrap().timestamp < committed_at + seconds, "no block was made meanwhile");
}
