//! Verdicts known before gas is paid.

use tensorlink_node::ports::chain::Role;
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_proof::challenge::Move;
use tensorlink_types::U256;
use tensorlink_types::abi::{Holder, Question};

use crate::world::{OTHER, USER, WORKER, World, claim, commit_first, first_link, sno};

fn name(error: ChainError) -> String {
    match error {
        ChainError::Reverted { name, .. } => name,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn foretells_what_the_chain_says() {
    let world = World::new().await;
    let (user, worker, other) = (world.chain(USER).await, world.chain(WORKER).await, world.chain(OTHER).await);
    let stake = Call::Stake { role: Role::Worker, amount: sno("3") };
    let gas = other.simulate(&stake).await.unwrap();
    assert_eq!(other.send(stake).await.unwrap().gas, gas);

    let job = world.running_job(&user, &worker).await;
    let commit = Call::Commit { claim: claim(job, 0), previous: first_link() };
    assert_eq!(name(other.simulate(&commit).await.unwrap_err()), "NotWorker");
    let gas = worker.simulate(&commit).await.unwrap();
    let (claim, committed_at, receipt) = commit_first(&worker, job).await;
    assert_eq!(receipt.gas, gas);
    assert_eq!(name(worker.simulate(&commit).await.unwrap_err()), "AlreadyCommitted");

    let finalize = Call::Finalize { claims: vec![(claim.clone(), committed_at)], holder: Holder::default() };
    assert_eq!(name(user.simulate(&finalize).await.unwrap_err()), "WindowOpen");
    // The bond's approval is executed before, in the same simulation, and nothing of it stays.
    let step = Box::new(Move::Open { claim, committed_at, question: Question { levels: 1, ..Question::default() } });
    let open = Call::Challenge { challenge: U256::ZERO, step };
    let gas = other.simulate(&open).await.unwrap();
    assert!(gas > 50_000, "{gas}");
    let before = other.head().await.unwrap();
    other.simulate(&open).await.unwrap();
    assert_eq!(other.head().await.unwrap(), before);
    world.wait(60).await;
    user.simulate(&finalize).await.unwrap();
    assert_eq!(user.credit(worker.account(), tensorlink_types::Address::ZERO).await.unwrap(), U256::ZERO);
}
