//! Decoders token by token: the bits of the whole programs, texts together, receipts that a repetition bears out.

use std::ops::Range;
use std::sync::Arc;

use cid::Cid;
use tensorlink_model::choice::controls;
use tensorlink_model::decode::{CacheEngine, Layout, bytes_per_token};
use tensorlink_model::{SamplingParams, StageRunner, tokens};
use tensorlink_node::interval::{Span, inputs_len};
use tensorlink_node::ports::{Store, SystemClock};
use tensorlink_node::replay::Replay;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::wire::rpc::{Advance, IntervalRecord, Receipt, Request, Response};
use tensorlink_num::Tensor;
use tensorlink_program::{Engine, EngineError, Reference, StepContext};
use tensorlink_proof::commit::tensor_root;
use tensorlink_proof::merkle::list_root;
use tensorlink_types::Operator;
use tensorlink_worker::serving::runner::{Cached, Runner, RunnerError, Turn};
use tensorlink_worker::serving::texts::Step;
use tensorlink_worker::serving::thread::{Done, LaneThread, StartError};

use crate::serving::world::{World, ids, voucher};
use crate::support::serving::{choosing_plans, decoder_plans, shards};
use crate::support::{KEY, identity, lane};

const MEMORY: u64 = 1 << 30;

/// A text in one stage: what it receives and what its whole program gives.
struct Text {
    shard: Arc<ServingShard>,
    rows: Vec<u8>,
    controls: Vec<u8>,
    given: Vec<u8>,
    tokens: u32,
}

/// Bytes of the tokens of a range.
fn part(all: &[u8], tokens: u32, range: &Range<u32>) -> Vec<u8> {
    let row = all.len() / tokens as usize;
    all[row * range.start as usize..row * range.end as usize].to_vec()
}

impl Text {
    fn step(&self, number: u32, range: Range<u32>, last: bool) -> Step {
        let [rows, controls] = [&self.rows, &self.controls].map(|all| part(all, self.tokens, &range));
        Step { text: number, position: range.start, rows, controls, tokens: range.end - range.start, last }
    }

    fn inputs(&self, range: Range<u32>) -> Vec<Vec<u8>> {
        let step = self.step(0, range, false);
        if self.controls.is_empty() { vec![step.rows] } else { vec![step.rows, step.controls] }
    }

    fn given(&self, range: Range<u32>) -> Vec<u8> {
        part(&self.given, self.tokens, &range)
    }

    fn turn(&self, text: u32, range: Range<u32>) -> Turn<'_> {
        let until = |all: &'_ [u8]| all.len() / self.tokens as usize * range.end as usize;
        Turn {
            text,
            received: &self.rows[..until(&self.rows)],
            controls: &self.controls[..until(&self.controls)],
            tokens: range.end,
            position: range.start,
            last: false,
        }
    }
}

/// A text in every stage, its tokens chosen at some temperature from the second on.
fn through(stages: &[Arc<ServingShard>], text: &[u32], seed: u64) -> Vec<Text> {
    let warm = SamplingParams { temperature: 0.8, top_k: 12, top_p: 0.95, min_p: 0.01, repetition_penalty: 1.5, seed };
    let choices: Vec<_> = (0..).zip(text).map(|(i, id)| (*id, (i > 0).then_some(warm))).collect();
    let steer = controls(0, &choices).unwrap();
    let mut x = tokens(text).unwrap();
    let mut all = Vec::new();
    for shard in stages {
        let runner = StageRunner::new(Reference, (*shard.plan).clone(), &shard.constants).unwrap();
        let chooses = shard.plan.chooses();
        let y: Tensor = if chooses { runner.choose(&x, &steer) } else { runner.run(&x) }.unwrap();
        let controls = if chooses { steer.to_bytes() } else { vec![] };
        let (rows, given, tokens) = (x.to_bytes(), y.to_bytes(), text.len() as u32);
        all.push(Text { shard: shard.clone(), rows, controls, given, tokens });
        x = y;
    }
    all
}

async fn start(shard: &Arc<ServingShard>, memory: u64) -> Result<LaneThread, StartError> {
    let make = move |shard| Cached::new(Reference, shard, memory).map_err(|e| e.to_string());
    LaneThread::start(lane(0), shard.clone(), Arc::new(SystemClock), make).await
}

#[tokio::test]
async fn token_by_token_gives_the_bits_of_the_whole_program() {
    for stages in [shards(choosing_plans()), shards(decoder_plans())] {
        for text in through(&stages, &[3, 7, 19, 0, 4], 9) {
            let thread = start(&text.shard, MEMORY).await.unwrap();
            for cut in [vec![5], vec![1, 2, 3, 4, 5], vec![3, 4, 5], vec![2, 5]] {
                let mut position = 0;
                for end in cut {
                    let done = thread.advance(text.step(1, position..end, false)).await;
                    assert_eq!(done, Done::Rows(text.given(position..end)));
                    position = end;
                }
                // It ends when its last token turns out to be the last.
                let Done::Ended(none, ended) = thread.advance(text.step(1, 5..5, true)).await else { panic!() };
                assert_eq!((none.len(), ended.tokens), (0, 5));
                assert_eq!((&ended.received, &ended.controls, &ended.given), (&text.rows, &text.controls, &text.given));
            }
            assert_eq!((thread.open(), thread.lost()), (0, 0));
        }
    }
}

#[tokio::test]
async fn a_text_that_is_cut_back_goes_on_from_there() {
    let stages = shards(choosing_plans());
    let (first, second) = (through(&stages, &[3, 7, 19, 0, 4], 1), through(&stages, &[3, 7, 2, 11, 8], 1));
    for (old, new) in first.iter().zip(&second) {
        let thread = start(&old.shard, MEMORY).await.unwrap();
        assert_eq!(thread.advance(old.step(1, 2..3, false)).await, Done::Rewind(0));
        assert_eq!(thread.advance(old.step(1, 0..4, false)).await, Done::Rows(old.given(0..4)));
        assert_eq!((thread.open(), thread.lost()), (4, 0));
        // Other tokens after the second.
        assert_eq!(thread.advance(new.step(1, 2..4, false)).await, Done::Rows(new.given(2..4)));
        assert_eq!(thread.advance(old.step(1, 5..5, true)).await, Done::Rewind(4));
        assert_eq!((thread.open(), thread.lost()), (4, 2));
        let Done::Ended(rows, text) = thread.advance(new.step(1, 4..5, true)).await else { panic!() };
        assert_eq!((rows, text.given), (new.given(4..5), new.given.clone()));
        thread.advance(new.step(2, 0..3, false)).await;
        thread.forget(2);
        assert_eq!(thread.advance(new.step(2, 3..4, false)).await, Done::Rewind(0));
        assert_eq!((thread.open(), thread.lost()), (0, 5));
    }
}

#[test]
fn texts_are_computed_together_and_one_that_fails_takes_no_other_with_it() {
    let stages = shards(choosing_plans());
    for stage in 0..2 {
        let all: Vec<Text> =
            (0..4u32).map(|n| through(&stages, &[n, 7, 2 * n, 5, 1], n.into()).remove(stage)).collect();
        let mut runner = Cached::new(Reference, all[0].shard.clone(), MEMORY).unwrap();
        let ok =
            |results: Vec<Result<Vec<u8>, RunnerError>>| results.into_iter().map(Result::unwrap).collect::<Vec<_>>();
        // A prompt, a text that ends with nothing to compute, one token.
        let turns = [all[0].turn(0, 0..3), all[1].turn(1, 0..1), all[2].turn(2, 0..4)];
        assert_eq!(ok(runner.run(&turns)), [all[0].given(0..3), all[1].given(0..1), all[2].given(0..4)]);
        let turns = [all[3].turn(3, 0..5), all[0].turn(0, 3..3), all[1].turn(1, 1..2), all[2].turn(2, 4..5)];
        assert_eq!(ok(runner.run(&turns)), [all[3].given(0..5), vec![], all[1].given(1..2), all[2].given(4..5)]);

        // Rows that are none, between two texts that are well.
        let bad = Turn { received: &[0x80; 3], ..all[2].turn(4, 0..2) };
        let results = runner.run(&[all[0].turn(0, 3..4), bad, all[1].turn(1, 2..3)]);
        assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(
            (results[0].as_ref().unwrap(), results[2].as_ref().unwrap()),
            (&all[0].given(3..4), &all[1].given(2..3))
        );
        // A session that was lost begins anew from the rows that are here, and gives only what is new.
        runner.forget(0);
        assert_eq!(
            ok(runner.run(&[all[0].turn(0, 4..5), all[1].turn(1, 3..5)])),
            [all[0].given(4..5), all[1].given(3..5)]
        );
    }
}

/// An engine that fails at rows that begin with a certain number.
struct Frail(i64);

impl Engine for Frail {
    type Tensor = <Reference as Engine>::Tensor;

    fn describe(&self) -> String {
        "frail".into()
    }

    fn import(&self, tensor: &Tensor) -> Result<Self::Tensor, EngineError> {
        let fails = tensor.mantissas().to_vec().first() == Some(&self.0);
        if fails { Err(EngineError::Device("these rows".into())) } else { Reference.import(tensor) }
    }

    fn export(&self, tensor: &Self::Tensor) -> Result<Tensor, EngineError> {
        Reference.export(tensor)
    }

    fn execute(
        &self,
        operator: &Operator,
        operands: &[&Self::Tensor],
        context: &StepContext,
    ) -> Result<Self::Tensor, EngineError> {
        Reference.execute(operator, operands, context)
    }
}

impl CacheEngine for Frail {
    type Room = <Reference as CacheEngine>::Room;

    fn room(&self, layout: &Layout) -> Result<Self::Room, EngineError> {
        Reference.room(layout)
    }

    fn write(&self, room: &mut Self::Room, at: u32, rows: &Self::Tensor) -> Result<(), EngineError> {
        Reference.write(room, at, rows)
    }

    fn read(&self, room: &Self::Room, rows: Range<u32>) -> Result<Self::Tensor, EngineError> {
        Reference.read(room, rows)
    }

    fn part(&self, tensor: &Self::Tensor, rows: Range<u32>) -> Result<Self::Tensor, EngineError> {
        Reference.part(tensor, rows)
    }

    fn pick(&self, tensor: &Self::Tensor, rows: &[u32]) -> Result<Self::Tensor, EngineError> {
        Reference.pick(tensor, rows)
    }

    fn stack(&self, tensors: &[Self::Tensor]) -> Result<Self::Tensor, EngineError> {
        Reference.stack(tensors)
    }
}

#[test]
fn when_a_pass_fails_its_texts_are_computed_one_by_one() {
    let stages = shards(choosing_plans());
    let all: Vec<Text> = [3, 5, 17].iter().map(|n| through(&stages, &[*n, 7, 17, 5, 1], 2).remove(0)).collect();
    let mut runner = Cached::new(Frail(17), all[0].shard.clone(), MEMORY).unwrap();
    let results = runner.run(&[all[0].turn(0, 0..2), all[2].turn(2, 0..2), all[1].turn(1, 0..3)]);
    assert_eq!(results[0].as_ref().unwrap(), &all[0].given(0..2));
    assert!(matches!(&results[1], Err(RunnerError::Decode(_))));
    assert_eq!(results[2].as_ref().unwrap(), &all[1].given(0..3));
    // One that fails later begins anew.
    assert!(runner.run(&[all[0].turn(0, 2..3)]).remove(0).is_err());
    assert_eq!(runner.run(&[all[0].turn(0, 2..5)]).remove(0).unwrap(), all[0].given(2..5));
}

#[tokio::test]
async fn memory_bounds_the_texts_that_are_open() {
    let text = through(&shards(choosing_plans()), &[3, 7, 19, 0, 4], 1).remove(0);
    let token = bytes_per_token(&text.shard.plan).unwrap();
    let most = |more| Cached::new(Reference, text.shard.clone(), more).unwrap().most_tokens().unwrap();
    // A text of five tokens may take memory for ten.
    assert_eq!((most(0), most(10 * token - 1), most(10 * token)), (10, 19, 20));
    let thread = start(&text.shard, 10 * token).await.unwrap();
    for number in [1, 2] {
        assert!(matches!(thread.advance(text.step(number, 0..2, false)).await, Done::Rows(_)));
    }
    assert_eq!(thread.advance(text.step(3, 0..2, false)).await, Done::Busy);
    thread.forget(1);
    assert!(matches!(thread.advance(text.step(3, 0..2, false)).await, Done::Rows(_)));
}

impl World {
    async fn go_on(&self, stage: u16, text: (u32, u32), inputs: Vec<Vec<u8>>, last: bool) -> Response {
        let (lane, (text, position)) = (lane(stage), text);
        self.ask(stage, Request::Advance(Advance { lane, text, position, inputs, last })).await
    }

    /// Sends a text token by token, and then its end.
    async fn generate(&self, stage: u16, number: u32, text: &Text) -> Receipt {
        for token in 0..text.tokens {
            let response = self.go_on(stage, (number, token), text.inputs(token..token + 1), false).await;
            let output = text.given(token..token + 1);
            assert_eq!(response, Response::Advanced { output, receipt: None });
        }
        match self.go_on(stage, (number, text.tokens), vec![], true).await {
            Response::Advanced { output, receipt: Some(receipt) } if output.is_empty() => receipt,
            other => panic!("{other:?}"),
        }
    }
}

fn declined(response: Response) -> String {
    match response {
        Response::Declined(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn receipts_of_generated_texts_are_borne_out_by_a_repetition() {
    let world = World::of(shards(choosing_plans())).await;
    let processes = [world.start(0).await, world.start(1).await];
    let auditor = identity(0x66);
    let texts = through(&world.shards, &[3, 7, 19, 0], 4);
    for (stage, text) in (0..2u16).zip(&texts) {
        let receipt = world.generate(stage, 8, text).await;
        assert_eq!(receipt.tokens, 4);
        // Sent again as a whole, it gets the same.
        let response = world.go_on(stage, (8, 0), text.inputs(0..4), true).await;
        assert_eq!(response, Response::Advanced { output: text.given.clone(), receipt: Some(receipt.clone()) });
        let root = |ty, bytes: &[u8]| list_root([tensor_root(&Tensor::from_bytes(ty, bytes).unwrap())]);
        assert_eq!(receipt.logs.toNext, root(text.shard.given(4).unwrap(), &text.given));
        assert_eq!(receipt.logs.fromPrevious, root(text.shard.received(4).unwrap(), &text.rows));
        if let Some(ty) = text.shard.controls(4).unwrap() {
            assert_eq!(receipt.logs.fromNext, root(ty, &text.controls));
        }

        let claim = ids(std::slice::from_ref(&receipt))[0];
        assert_eq!(world.pay(stage, voucher(stage, 1, 4, std::slice::from_ref(&receipt))).await, Response::Done);
        let ask = |request| world.ask_as(auditor.clone(), stage, request);
        let Response::Interval(IntervalRecord { inputs, logs, .. }) = ask(Request::Interval(claim)).await else {
            panic!("no record")
        };
        assert_eq!(logs, receipt.logs);
        let shard = Arc::new(text.shard.shard(4).unwrap());
        let limit = inputs_len(&shard.program, 1);
        let inputs = world.store.get(&Cid::try_from(inputs).unwrap(), &[], limit).await.unwrap();
        assert_eq!(inputs, [text.rows.clone(), text.controls.clone()].concat());
        let span = Span { first_step: 4, steps: 1 };
        let roots = Replay { shard, lineage: KEY.into(), span, state: vec![], inputs }.roots(Reference).unwrap();
        assert_eq!(roots.logs.roots(), receipt.logs);
        assert_eq!(ask(Request::Trace { claim, step: 4 }).await, Response::Roots(roots.traces[0].clone()));
    }

    let (last, step) = (&texts[1], |inputs, last| world.go_on(1, (9, 0), inputs, last));
    assert!(declined(step(vec![last.rows.clone()], true).await).contains("controls of each"));
    let mut short = last.inputs(0..4);
    short[1].pop();
    assert!(declined(step(short, false).await).contains("send 176"));
    let least = [vec![0, 0, 0, 0x80], vec![0; 40]].concat();
    assert!(declined(step(vec![last.inputs(0..1).remove(0), least], false).await).contains("rows of text 9"));
    assert!(declined(step(vec![], true).await).contains("0 tensors"), "a text without tokens has no end");
    assert!(declined(step(vec![vec![], vec![]], true).await).contains("end a text"));
    let open = world.go_on(1, (9, 0), last.inputs(0..2), false).await;
    assert_eq!(open, Response::Advanced { output: last.given(0..2), receipt: None });
    assert!(declined(world.go_on(1, (9, 2), vec![vec![], vec![]], false).await).contains("end a text"));
    for process in processes {
        process.stop().await;
    }
}

#[tokio::test]
async fn rows_of_texts_that_never_end_use_up_the_credit() {
    let mut world = World::of(shards(choosing_plans())).await;
    world.credit = Some(5);
    let process = world.start(0).await;
    let text = through(&world.shards, &[3, 7, 19, 0, 4], 4).remove(0);
    let rows = |position: u32, end: u32| Response::Advanced { output: text.given(position..end), receipt: None };
    let send = |number, range: Range<u32>| world.go_on(0, (number, range.start), text.inputs(range), false);
    assert_eq!(send(1, 0..3).await, rows(0, 3));
    assert_eq!(send(2, 0..3).await, rows(0, 3));
    assert_eq!(send(3, 0..1).await, Response::Unpaid { tokens: 6 }, "no new text");
    assert_eq!(send(1, 3..5).await, rows(3, 5), "those that are open come to their end");
    // Six tokens are computed again; then it is enough.
    assert_eq!(send(1, 2..5).await, rows(2, 5));
    assert_eq!(send(1, 2..5).await, rows(2, 5));
    assert_eq!(send(1, 2..5).await, Response::Unpaid { tokens: 6 });
    let Response::Advanced { receipt: Some(receipt), .. } = world.go_on(0, (1, 5), vec![], true).await else {
        panic!("it cannot be ended")
    };
    assert_eq!(send(2, 3..4).await, Response::Unpaid { tokens: 11 });
    assert_eq!(world.pay(0, voucher(0, 1, 5, &[receipt])).await, Response::Done);
    assert_eq!(send(2, 3..4).await, rows(3, 4), "as many may be lost as were paid, and the credit");
    assert_eq!(send(3, 0..1).await, rows(0, 1), "1 lost and 4 open");
    assert_eq!(send(4, 0..1).await, Response::Unpaid { tokens: 6 });
    process.stop().await;
}
