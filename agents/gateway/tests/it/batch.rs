//! Texts side by side, without HTTP.

use std::sync::Arc;

use async_trait::async_trait;
use tensorlink_gateway::backend::{Backend, BackendError};
use tensorlink_gateway::generation::batch::Capacity;
use tensorlink_gateway::generation::decoder::{Decoder, Turn};
use tensorlink_gateway::generation::sequence::{Step, tasks};
use tensorlink_gateway::generation::stages::{Stages, drive};
use tensorlink_gateway::generation::{Ask, Finish, Generation, Prompt, SamplingParams};
use tensorlink_gateway::local::Local;

use crate::served::{MODEL, until};
use crate::speaker::{Bytes, Gate, HfTokenizer, SPEAKER, Speaker, shape, speaking};

fn ask(prompts: &[&str]) -> Ask {
    let prompts = prompts.iter().map(|prompt| Prompt::Text((*prompt).to_owned())).collect();
    Ask { prompts, most: 32, sampling: SamplingParams::default().into(), stops: vec![] }
}

async fn begin(local: &Local, prompt: &str) -> Generation {
    local.generate(SPEAKER, ask(&[prompt])).await.unwrap().generations.pop().unwrap()
}

async fn text(mut generation: Generation) -> (String, Option<Finish>) {
    let (mut text, mut finish) = (String::new(), None);
    while let Some(piece) = generation.pieces.recv().await {
        let piece = piece.unwrap();
        text.push_str(&piece.text);
        finish = piece.finish;
    }
    (text, finish)
}

fn gated(capacity: Capacity) -> (Arc<Local>, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    (speaking(Speaker { gate: Some(gate.clone()) }, capacity), gate)
}

/// Lets batches pass until so many have been begun.
async fn pass_to(gate: &Gate, batches: usize) {
    let begun = gate.reached().len();
    gate.let_pass(batches - begun);
    until(|| gate.reached().len() >= batches).await;
}

#[tokio::test]
async fn texts_join_and_leave_at_every_token() {
    let (local, gate) = gated(Capacity { queue: 8, texts: 2 });
    let first = begin(&local, "say abcd").await;
    until(|| gate.reached().len() == 1).await;
    let second = begin(&local, "say x").await;
    let third = begin(&local, "say y").await;
    gate.let_pass(20);
    assert_eq!(text(first).await, ("abcd".into(), Some(Finish::Stop)));
    assert_eq!(text(second).await.0 + &text(third).await.0, "xy");
    // Two at once; the third as soon as the second has left. A word and its end are two tokens.
    let batches = gate.reached();
    let expected = [&["abcd"][..], &["abcd", "x"], &["abcd", "x"], &["abcd", "y"], &["abcd", "y"]];
    assert_eq!(batches, expected);
}

#[tokio::test]
async fn a_full_queue_refuses_and_takes_more_later() {
    let (local, gate) = gated(Capacity { queue: 2, texts: 1 });
    let first = begin(&local, "say a").await;
    until(|| gate.reached().len() == 1).await;
    let waiting = [begin(&local, "say b").await, begin(&local, "say c").await];
    let refused = local.generate(SPEAKER, ask(&["say d"])).await.unwrap_err();
    assert!(matches!(refused, BackendError::Busy { .. }), "{refused}");
    gate.let_pass(100);
    assert_eq!(text(first).await.0, "a");
    for (generation, expected) in waiting.into_iter().zip(["b", "c"]) {
        assert_eq!(text(generation).await.0, expected);
    }
    assert_eq!(text(begin(&local, "say d").await).await.0, "d");
}

#[tokio::test]
async fn nothing_is_computed_for_who_left_while_waiting() {
    let (local, gate) = gated(Capacity { queue: 4, texts: 1 });
    let first = begin(&local, "say a").await;
    until(|| gate.reached().len() == 1).await;
    drop(begin(&local, "say b").await);
    let third = begin(&local, "say c").await;
    gate.let_pass(100);
    assert_eq!((text(first).await.0, text(third).await.0), ("a".into(), "c".into()));
    assert!(!gate.reached().contains(&vec!["b".to_owned()]), "{:?}", gate.reached());
}

#[tokio::test]
async fn dropping_a_text_ends_it_at_its_next_token() {
    let (local, gate) = gated(Capacity { queue: 4, texts: 4 });
    let mut leaving = begin(&local, "repeat a").await;
    let staying = begin(&local, "say bcd").await;
    pass_to(&gate, 2).await;
    assert!(leaving.pieces.recv().await.is_some());
    drop(leaving);
    gate.let_pass(100);
    assert_eq!(text(staying).await.0, "bcd");
    let last = gate.reached().pop().unwrap();
    assert_eq!(last, ["bcd"]);
    assert!(gate.reached().iter().filter(|batch| batch.contains(&"a".to_owned())).count() <= 3);
}

#[tokio::test]
async fn one_bad_prompt_refuses_them_all_before_any_is_begun() {
    let (local, gate) = gated(Capacity { queue: 4, texts: 4 });
    let long = "x".repeat(70);
    let refused = local.generate(SPEAKER, ask(&["say a", &long])).await.unwrap_err();
    assert_eq!(refused, BackendError::TooLong { index: 1, tokens: 70, context: 64 });
    let refused = local.generate(SPEAKER, ask(&["say a", ""])).await.unwrap_err();
    assert_eq!(refused, BackendError::Empty { index: 1 });
    assert!(gate.reached().is_empty());
    assert_eq!(local.generate(MODEL, ask(&["a"])).await.unwrap_err(), BackendError::OtherKind(MODEL.into()));
    assert_eq!(local.generate("other", ask(&["a"])).await.unwrap_err(), BackendError::UnknownModel("other".into()));
    assert_eq!(local.embed(SPEAKER, vec![].into()).await.unwrap_err(), BackendError::OtherKind(SPEAKER.into()));
}

#[tokio::test]
async fn the_end_of_a_backend_waits_for_no_reader() {
    let (local, gate) = gated(Capacity { queue: 4, texts: 4 });
    let generation = begin(&local, "repeat a").await;
    gate.let_pass(100);
    let local = Arc::into_inner(local).unwrap();
    // The text goes on to its length, though nobody reads meanwhile: there is room for all of it.
    tokio::task::spawn_blocking(move || drop(local)).await.unwrap();
    assert_eq!(text(generation).await, ("a".repeat(32), Some(Finish::Length)));
}

#[tokio::test]
async fn prompts_join_in_order_and_only_so_many_tokens_at_once() {
    let (local, gate) = gated(Capacity { queue: 4, texts: 16 });
    let prompts: Vec<String> = (0..10).map(|number| format!("say {number}{:1$}", "", 55)).collect();
    let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let ask = Ask { most: 1, ..ask(&prompts) };
    let generations = local.generate(SPEAKER, ask).await.unwrap().generations;
    gate.let_pass(2);
    for (number, generation) in generations.into_iter().enumerate() {
        assert_eq!(text(generation).await, (number.to_string(), Some(Finish::Length)));
    }
    // 60 tokens each, 512 at once.
    assert_eq!(gate.reached().iter().map(Vec::len).collect::<Vec<_>>(), [8, 2]);
}

/// The made-up model for one text, as if its stages were elsewhere. Tells when it is abandoned.
struct Elsewhere(Speaker, HfTokenizer, #[expect(dead_code, reason = "counted")] Arc<()>);

#[async_trait]
impl Stages for Elsewhere {
    async fn advance(&mut self, step: Step) -> Result<u32, BackendError> {
        tokio::task::yield_now().await;
        let chosen = self.0.advance(&mut [Turn { text: &mut self.1, step }]).pop().unwrap();
        chosen.map_err(|_| BackendError::Stopped)
    }
}

/// What a text comes to whose stages are elsewhere, and whether they were let go.
async fn driven(prompt: &str, read: usize) -> (Vec<Result<String, BackendError>>, bool) {
    let task = tasks(&shape(), &Bytes, ask(&[prompt])).unwrap().pop().unwrap();
    let (pieces, mut reader) = tokio::sync::mpsc::channel(1);
    let held = Arc::new(());
    let stages = Elsewhere(Speaker::default(), HfTokenizer::default(), held.clone());
    let driving = tokio::spawn(async move { drive(&Bytes, task, stages, pieces).await });
    let mut texts = vec![];
    while texts.len() < read {
        match reader.recv().await {
            Some(piece) => texts.push(piece.map(|piece| piece.text)),
            None => break,
        }
    }
    drop(reader);
    driving.await.unwrap();
    (texts, Arc::strong_count(&held) == 1)
}

#[tokio::test]
async fn stages_elsewhere_are_driven_to_the_end_a_failure_or_the_last_reader() {
    let ok = |text: &str| Ok(text.to_owned());
    assert_eq!(driven("say hi", 99).await, (vec![ok("h"), ok("i"), ok("")], true));
    assert_eq!(driven("fail a", 99).await, (vec![ok("a"), Err(BackendError::Stopped)], true));
    assert_eq!(driven("repeat ab", 3).await, (vec![ok("a"), ok("b"), ok("a")], true));
}
