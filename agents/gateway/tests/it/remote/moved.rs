//! Texts that go on in another job, or when their workers are back.

use std::sync::Arc;

use tensorlink_gateway::backend::{Backend, BackendError, Generated};
use tensorlink_gateway::generation::Prompt;
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::JobId;
use tensorlink_user::serving::Pipeline;

use crate::remote::worker::{Manner, Worker};
use crate::remote::{COMPUTED, MODEL, PROMPT, World, ask, due, pipeline, serve};
use crate::support::serving::{choosing_plans, serving_view, shards};
use crate::support::{MemoryChain, identity, ports};

/// The job that goes on, whose workers have the keys from here on.
const NEXT: JobId = JobId(2);
const KEYS: u8 = 3;

impl World {
    /// Another job, and its workers.
    async fn another(&self) -> (Pipeline, Vec<Arc<Worker>>) {
        let workers = serve(NEXT, KEYS, &self.hub).await;
        let view = JobView { id: NEXT, ..serving_view(2) };
        let keys = [KEYS, KEYS + 1].map(|key| identity(key).address());
        let chain = MemoryChain::serving(view.clone(), &keys, &shards(choosing_plans()));
        let ports = ports(0x55, chain, Arc::default(), self.hub.clone(), self.folder.path());
        (pipeline(ports, &view).await, workers)
    }

    async fn generate(&self, prompt: &[u32]) -> Generated {
        self.remote.generate(MODEL, ask(vec![Prompt::Tokens(prompt.into())])).await.unwrap()
    }
}

/// What a text adds from now on.
async fn said(generated: &mut Generated) -> Result<String, BackendError> {
    let mut said = String::new();
    while let Some(piece) = generated.generations[0].pieces.recv().await {
        said.push_str(&piece?.text);
    }
    Ok(said)
}

#[tokio::test]
async fn a_text_goes_on_in_the_next_job_word_for_word_and_is_paid_there_alone() {
    let world = World::new().await;
    world.pipelines.mend(true);
    let (pipeline, next) = world.another().await;
    world.workers[1].set(Manner::Dies(2));
    let mut generated = world.generate(&PROMPT).await;
    let first = generated.generations[0].pieces.recv().await.unwrap().unwrap().text;
    world.pipelines.replace(pipeline);
    let rest = said(&mut generated).await.unwrap();
    assert_eq!(first + &rest, due(&PROMPT));
    let receipt = generated.receipt.unwrap();
    assert_eq!((receipt.job, world.generate(&PROMPT).await.receipt.unwrap().job), (1, 2));
    world.remote.close().await;
    let receipts = world.remote.receipts(receipt).unwrap();
    assert_eq!((&receipts["texts"][0]["job"], &receipts["texts"][0]["tokens"]), (&2.into(), &COMPUTED.into()));
    assert_eq!(world.paid(), [0; 2]);
    assert!(next.iter().all(|worker| worker.paid() >= COMPUTED));
}

#[tokio::test]
async fn a_text_waits_for_a_worker_that_comes_back() {
    let world = World::new().await;
    world.pipelines.mend(true);
    // As often as it is asked the first time.
    world.workers[1].set(Manner::Loses(6));
    let mut generated = world.generate(&PROMPT).await;
    assert_eq!(said(&mut generated).await.unwrap(), due(&PROMPT));
    world.remote.close().await;
    let receipts = world.remote.receipts(generated.receipt.unwrap()).unwrap();
    assert_eq!((&receipts["texts"][0]["job"], &receipts["texts"][0]["text"]), (&1.into(), &1.into()));
    assert_eq!(world.paid(), [COMPUTED; 2], "once for both");
}

#[tokio::test]
async fn a_text_is_not_begun_without_end() {
    let world = World::new().await;
    world.pipelines.mend(true);
    world.workers[1].set(Manner::Declines);
    assert_eq!(said(&mut world.generate(&PROMPT).await).await, Err(BackendError::Stopped));
    let begun = world.workers[1].with(|inner| inner.advances.len());
    assert_eq!(begun, 24, "it answers each time, and declines");
    world.remote.close().await;
    assert_eq!(world.paid(), [0; 2]);
}

#[tokio::test]
async fn whoever_has_left_waits_for_no_other_worker() {
    let world = World::new().await;
    world.pipelines.mend(true);
    world.workers[1].set(Manner::Declines);
    drop(world.generate(&PROMPT).await);
    world.remote.close().await;
    assert!(world.workers[1].with(|inner| inner.advances.len()) <= 1);
}

#[tokio::test]
async fn workers_that_choose_other_tokens_than_those_before_end_the_text() {
    let world = World::new().await;
    world.pipelines.mend(true);
    let (pipeline, next) = world.another().await;
    world.workers[1].set(Manner::Dies(2));
    // About the first token of each answer.
    next[1].set(Manner::Lies);
    let mut generated = world.generate(&PROMPT[..1]).await;
    assert!(generated.generations[0].pieces.recv().await.unwrap().is_ok());
    world.pipelines.replace(pipeline);
    let error = said(&mut generated).await.unwrap_err();
    assert!(matches!(&error, BackendError::Failed(said) if said.contains("one of them computes wrongly")), "{error:?}");
    world.remote.close().await;
    assert!(next.iter().all(|worker| worker.paid() == 0), "what computes wrongly is not paid");
}
