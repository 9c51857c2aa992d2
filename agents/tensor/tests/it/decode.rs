//! Token by token on libtorch: the bits of the program of the whole text, computed by the reference.

use tensorlink_model::choice::{SamplingParams, controls};
use tensorlink_model::decode::{CacheEngine, CachedRunner, Layout, Session, Turn};
use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{Architecture, Family, Head, Quantized, Setting, StageRunner, tokens};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_program::{Engine, EngineError};
use tensorlink_tensor::calibrate;
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_types::{TensorRoot, TensorType};

use crate::device::{device, engines};

const SIZE: Dimensions =
    Dimensions { vocabulary: 200, width: 96, layers: 2, heads: 4, kv_heads: 2, hidden: 160, context: 200 };

fn text(count: u32) -> Vec<u32> {
    (0..count).map(|i| i.wrapping_mul(2_654_435_761).rotate_left(7) % SIZE.vocabulary).collect()
}

fn decoders() -> Vec<Quantized> {
    let qwen = Architecture { query_key_norm: true, family: Family::Qwen3, ..random::llama(SIZE) };
    let quantized = |architecture: Architecture| {
        let weights = random::weights(&architecture, 7).unwrap();
        let float = FloatModel::new(&architecture, &weights, device(), Precision::F32).unwrap();
        let known = text(40);
        let seen = calibrate(&float, [known.as_slice()]).unwrap();
        Quantized::new(architecture, Setting::default(), &weights, &seen).unwrap()
    };
    [random::gpt2(SIZE), random::llama(SIZE), random::gemma3(SIZE), qwen].map(quantized).into()
}

/// The next tokens of some texts, all of one stage.
fn advance<E: CacheEngine>(
    stage: &mut CachedRunner<E>,
    turns: &mut [(&mut Session<E>, &[u32])],
    choices: Option<&[Vec<Option<SamplingParams>>]>,
) -> Vec<Tensor> {
    let rows: Vec<Tensor> = turns.iter().map(|(_, ids)| tokens(ids).unwrap()).collect();
    let made = |(i, choices): (usize, &Vec<Option<SamplingParams>>)| {
        let rows: Vec<_> = turns[i].1.iter().copied().zip(choices.iter().copied()).collect();
        controls(turns[i].0.position(), &rows).unwrap()
    };
    let made: Option<Vec<Tensor>> = choices.map(|choices| choices.iter().enumerate().map(made).collect());
    let mut all = Vec::new();
    for (i, ((session, _), rows)) in turns.iter_mut().zip(&rows).enumerate() {
        all.push(Turn { session, rows, controls: made.as_ref().map(|made| &made[i]) });
    }
    stage.advance(&mut all).unwrap()
}

fn bytes(rows: &[Tensor]) -> Vec<u8> {
    rows.iter().flat_map(Tensor::to_bytes).collect()
}

#[test]
fn parts_and_company_change_no_bit() {
    // Past 64 and 128 tokens, memory grows.
    let (long, short) = (text(140), text(70));
    for model in decoders() {
        let (plan, constants) = model.stage(0..2, |_| TensorRoot::default()).unwrap();
        let reference = StageRunner::new(Reference, plan.clone(), &constants).unwrap();
        let due = |ids: &[u32]| reference.run(&tokens(ids).unwrap()).unwrap().to_bytes();
        let (due_long, due_short) = (due(&long), due(&short));
        for engine in engines() {
            let mut stage = CachedRunner::new(engine, plan.clone(), &constants).unwrap();
            let (mut a, mut b) = (stage.session().unwrap(), stage.session().unwrap());
            let mut rows = advance(&mut stage, &mut [(&mut a, &long[..61])], None);
            let mut others = vec![];
            for token in 61..70 {
                let mut turns = [(&mut b, &short[token - 61..token - 60]), (&mut a, &long[token..=token])];
                let [other, row] = advance(&mut stage, &mut turns, None).try_into().unwrap();
                rows.push(row);
                others.push(other);
            }
            // Something else meanwhile, taken back.
            advance(&mut stage, &mut [(&mut a, &short[..5])], None);
            a.cut_back(70).unwrap();
            let mut turns = [(&mut a, &long[70..]), (&mut b, &short[9..])];
            let [row, other] = advance(&mut stage, &mut turns, None).try_into().unwrap();
            rows.push(row);
            others.push(other);
            assert_eq!((bytes(&rows), bytes(&others)), (due_long.clone(), due_short.clone()));
        }
    }
}

#[test]
fn chosen_tokens_are_those_of_the_whole_text() {
    let ids = text(23);
    // Tokens of a text with a penalty for what it has, of one without, and the likeliest with and without.
    let choice = |i: u64| SamplingParams {
        temperature: if i < 19 { 1.3 } else { 0.0 },
        top_k: 30,
        top_p: 0.95,
        min_p: 0.02,
        repetition_penalty: [1.0, 1.4, 0.8][i as usize % 3],
        seed: 11,
    };
    let choices: Vec<_> = (0..23).map(|i| (i > 8 && i != 15).then_some(choice(i))).collect();
    let rows: Vec<_> = ids.iter().copied().zip(choices.iter().copied()).collect();
    for model in decoders() {
        let (plan, constants) = model.stage_with(0..2, Head::Choice, |_| TensorRoot::default()).unwrap();
        let reference = StageRunner::new(Reference, plan.clone(), &constants).unwrap();
        let (input, all) = (tokens(&ids).unwrap(), controls(0, &rows).unwrap());
        let traced = reference.trace_choice(&input, Some(&all)).unwrap();
        let due = traced.last().unwrap();
        for engine in engines() {
            let whole = StageRunner::new(engine.clone(), plan.clone(), &constants).unwrap();
            let names = plan.program(23).unwrap().into_inner().names;
            for ((due, got), name) in traced.iter().zip(whole.trace_choice(&input, Some(&all)).unwrap()).zip(names) {
                assert_eq!(*due, got, "{name}");
            }
            let mut stage = CachedRunner::sharing(whole).unwrap();
            let mut session = stage.session().unwrap();
            let mut rows = vec![];
            for part in [0..5, 5..13, 13..14, 14..15, 15..16, 16..19, 19..20, 20..21, 21..22, 22..23] {
                let own = choices[part.clone()].to_vec();
                rows.extend(advance(&mut stage, &mut [(&mut session, &ids[part])], Some(&[own])));
            }
            assert_eq!(bytes(&rows), due.to_bytes());
        }
    }
}

/// What was read keeps its values, whatever is written afterwards.
#[test]
fn memory_that_is_read_is_not_written() {
    let ty = |dims: &[u32]| TensorType::new(12, 3, dims).unwrap();
    let rows = |from: i64, count: i64| {
        Tensor::from_wide(ty(&[count as u32, 3]), &(from..from + 3 * count).collect::<Vec<_>>())
    };
    for (engine, columns) in engines().into_iter().flat_map(|engine| [(engine.clone(), false), (engine, true)]) {
        let layout = Layout { row: ty(&[1, 3]), columns, most: 100 };
        let (mut room, mut plain) = (engine.room(&layout).unwrap(), Reference.room(&layout).unwrap());
        let mut kept = vec![];
        for (at, from, count) in [(0, 0, 2), (2, 100, 1), (1, 200, 1), (2, 300, 63), (65, 500, 35), (0, 700, 1)] {
            let rows = rows(from, count).unwrap();
            engine.write(&mut room, at, &engine.import(&rows).unwrap()).unwrap();
            Reference.write(&mut plain, at, &Reference.import(&rows).unwrap()).unwrap();
            let end = at + count as u32;
            // All rows, and the last ones.
            for begin in [0, end / 2, end - 1] {
                kept.push((engine.read(&room, begin..end).unwrap(), Reference.read(&plain, begin..end).unwrap()));
            }
            for none in [0..end + 1, end..end, end..end + 1] {
                assert!(matches!(engine.read(&room, none.clone()), Err(EngineError::Malformed(_))));
                assert!(matches!(Reference.read(&plain, none), Err(EngineError::Malformed(_))));
            }
        }
        for (got, due) in &kept {
            assert_eq!(engine.export(got).unwrap(), **due);
            // Rows of what was read, in another order and together.
            let (part, same) = (engine.part(got, 0..1).unwrap(), Reference.part(due, 0..1).unwrap());
            let [got, due] = [
                engine.export(&engine.stack(&[part.clone(), engine.pick(&part, &[0, 0]).unwrap()]).unwrap()).unwrap(),
                (*Reference.stack(&[same.clone(), Reference.pick(&same, &[0, 0]).unwrap()]).unwrap()).clone(),
            ];
            assert_eq!(got, due);
        }
        let row = engine.import(&rows(0, 1).unwrap()).unwrap();
        for at in [2, 100] {
            assert!(matches!(engine.write(&mut room, at, &row), Err(EngineError::Malformed(_))), "after a gap: {at}");
        }
        assert!(
            engine.part(&row, 0..2).is_err() && engine.part(&row, 1..1).is_err() && engine.pick(&row, &[1]).is_err()
        );
        assert!(engine.stack(&[]).is_err());
        let wide = Layout { row: TensorType::new(40, 0, &[1, 3]).unwrap(), ..layout };
        assert!(engine.room(&wide).is_err());
    }
}
