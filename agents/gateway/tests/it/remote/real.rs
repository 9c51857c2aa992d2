//! The same over workers as they are.

use std::sync::Arc;

use tensorlink_gateway::backend::Backend;
use tensorlink_gateway::generation::{Finish, Prompt};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_user::serving::Pipelines;

use crate::remote::processes::World;
use crate::remote::{COMPUTED, MODEL, PROMPT, ask, due, pipeline, remote};
use crate::support::serving::{choosing_plans, serving_view, shards};
use crate::support::{lane, ports};

#[tokio::test]
async fn workers_continue_texts_sign_for_them_and_are_paid() {
    let mut world = World::of(shards(choosing_plans())).await;
    // A text that is not paid stops the next.
    world.credit = Some(COMPUTED - 1);
    let processes = [world.start(0).await, world.start(1).await];
    let folder = tempfile::tempdir().unwrap();
    let ports = ports(0x55, world.chain.clone(), world.store.clone(), world.hub.clone(), folder.path());
    let remote = remote(Arc::new(Pipelines::new(pipeline(ports, &serving_view(2)).await, [])));
    for text in 0..3u32 {
        let prompt = [PROMPT[0], text];
        let mut generated = remote.generate(MODEL, ask(vec![Prompt::Tokens(prompt.into())])).await.unwrap();
        let (mut said, mut finish) = (String::new(), None);
        while let Some(piece) = generated.generations[0].pieces.recv().await {
            let piece = piece.unwrap();
            said.push_str(&piece.text);
            finish = piece.finish;
        }
        assert_eq!((said, finish), (due(&prompt), Some(Finish::Length)));
    }
    remote.close().await;
    for stage in 0..2 {
        let answer = world.ask(stage, Request::Receipts { lane: lane(stage), epoch: 1 }).await;
        let Response::Receipts(claims) = answer else { panic!("{answer:?}") };
        assert_eq!(claims.iter().map(|claim| claim.interval).collect::<Vec<_>>(), [0, 1, 2]);
    }
    for process in processes {
        process.stop().await;
    }
}
