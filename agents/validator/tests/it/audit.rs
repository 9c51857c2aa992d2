//! An audit finds an honest record right, and convicts a lie by the liar's own answers.

use tensorlink_node::files;
use tensorlink_node::ports::{Call, Chain, Owner};
use tensorlink_program::Reference;
use tensorlink_proof::fraud::verify::verify_element_proof;
use tensorlink_proof::fraud::{Case, Work};
use tensorlink_validator::Finding;

use crate::support::{CONTRACTS, KEY, STEPS, identity, lane, shards};
use crate::world::{INTERVAL, Manner, liar, world};

#[tokio::test]
async fn an_honest_claim_is_right() {
    let world = world(Reference, Manner::Answers).await;
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
}

/// The state before a replica's interval is the same file as that before our own.
#[tokio::test]
async fn what_this_node_needs_besides_is_not_let_go_of() {
    for needed in [false, true] {
        let world = world(Reference, Manner::Answers).await;
        let store = &world.ports.store;
        let state = store.put(files::join(&shards(1)[0].initial_state.to_vec()).into()).await.unwrap();
        if needed {
            assert!(store.of(Owner::Lane(lane(0))).own(&state).await.unwrap());
        }
        assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
        assert_eq!(store.has(&state).await.unwrap(), needed);
    }
}

#[tokio::test]
async fn one_wrong_element_gives_a_proof_that_verifies() {
    let lie = INTERVAL * STEPS + 1;
    let world = world(liar(lie), Manner::Answers).await;
    let finding = world.auditor.audit(&world.target).await.unwrap();
    let Finding::Wrong { call, fault } = finding else { panic!("{finding:?}") };
    let Call::Prove(proof) = *call else { panic!("{call:?}") };
    let case = Case {
        contracts: CONTRACTS,
        worker: identity(1).address(),
        lineage: KEY.into(),
        work: Work::Training {
            steps_per_interval: STEPS,
            program: world.program,
            record: world.chain.record(lane(0), INTERVAL).await.unwrap(),
        },
    };
    let conviction = verify_element_proof(&case, &proof).unwrap();
    assert!(fault.starts_with(&format!("step {lie}, operator")), "{fault}");
    assert!(fault.contains("element 3:"), "{fault}");
    assert!(format!("{conviction:?}").contains(&format!("step: {lie}")), "{conviction:?}");
}

#[tokio::test]
async fn a_worker_that_declines_is_not_convicted_and_not_right() {
    for manner in [Manner::Declines, Manner::Withholds, Manner::Crumbles] {
        let world = world(liar(INTERVAL * STEPS), manner).await;
        let finding = world.auditor.audit(&world.target).await.unwrap();
        assert!(matches!(finding, Finding::Unproven(_)), "{finding:?}");
    }
}

#[tokio::test]
async fn a_record_of_another_interval_is_not_taken_for_the_claimed_one() {
    let mut world = world(Reference, Manner::Answers).await;
    world.target.claim.io.0[0] ^= 1;
    assert!(matches!(world.auditor.audit(&world.target).await.unwrap(), Finding::Unproven(_)));
    world.target.claim.io.0[0] ^= 1;
    world.target.claim.parentState.0[0] ^= 1;
    assert!(matches!(world.auditor.audit(&world.target).await.unwrap(), Finding::Unproven(_)));
}
