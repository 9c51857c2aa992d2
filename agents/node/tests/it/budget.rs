//! What the day's budget for gas holds back is sent once there is room, and what averts a loss is not held back.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_proof::challenge::Move;
use tensorlink_types::U256;
use tensorlink_types::abi::{Claim, Question};

use crate::support::{Hasty, JOB, MemoryChain, MemoryStore, identity, job_view, ports};

#[tokio::test]
async fn what_can_wait_is_tried_again_until_there_is_room() {
    let chain = MemoryChain::new(job_view(1, 1), &[identity(1).address()], &[]);
    let folder = tempfile::tempdir().unwrap();
    let ports = ports(1, chain.clone(), Arc::<MemoryStore>::default(), Arc::default(), folder.path());
    let ports = Ports { clock: Arc::new(Hasty), ..ports };
    chain.with(|ledger| ledger.held_back = 3);
    let refused = ports.chain.send(Call::Settle { job: JOB }).await.unwrap_err();
    assert!(matches!(refused, ChainError::OverBudget { .. }));
    ports.send_within_budget(Call::Settle { job: JOB }).await.unwrap();
    assert_eq!(chain.with(|ledger| (ledger.held_back, ledger.sent.clone())), (0, vec!["other"]));
    chain.with(|ledger| ledger.held_back = u32::MAX);
    let waits = ports.send_within_budget(Call::Settle { job: JOB });
    assert!(tokio::time::timeout(Duration::from_millis(50), waits).await.is_err(), "it can be dropped");
}

/// A claim is final once it was not challenged in time; who does not answer can be convicted on any later day.
#[test]
fn a_challenge_does_not_wait_and_its_end_does() {
    let step = |step| Call::Challenge { challenge: U256::ZERO, step: Box::new(step) };
    let question = Question::default();
    assert!(step(Move::Open { claim: Claim::default(), committed_at: 1, question }).averts_loss());
    assert!(!step(Move::Timeout).averts_loss());
    let penalise = AuditMove::Penalise { claim: Claim::default(), auditor: Default::default() };
    assert!(!Call::Audit(Box::new(penalise)).averts_loss());
}
