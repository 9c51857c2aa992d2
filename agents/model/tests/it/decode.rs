//! Token by token, in any parts and any company: the bits of the program of the whole text.

use tensorlink_model::decode::{CachedRunner, DecodeError, MAX_ROWS, Session, Turn};
use tensorlink_model::random;
use tensorlink_model::{Architecture, Family, Quantized, StageRunner, tokens};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_types::{TensorRoot, TensorType};

use crate::transformer::{SIZE, TEXT, quantized, run};

const OTHER: [u32; 7] = [14, 2, 33, 33, 5, 41, 20];

fn decoders() -> [Architecture; 4] {
    [
        random::gpt2(SIZE),
        random::llama(SIZE),
        random::gemma3(SIZE),
        Architecture { query_key_norm: true, family: Family::Qwen3, ..random::llama(SIZE) },
    ]
}

fn stages(model: &Quantized, cuts: &[u32]) -> Vec<CachedRunner<Reference>> {
    let ends = cuts.iter().copied().chain([model.architecture().layers]);
    let mut start = 0;
    let mut stage = |end| {
        let (plan, constants) = model.stage(start..end, |_| TensorRoot::default()).unwrap();
        start = end;
        CachedRunner::new(Reference, plan, &constants).unwrap()
    };
    ends.map(&mut stage).collect()
}

/// A text in every stage.
fn begin(stages: &[CachedRunner<Reference>]) -> Vec<Session<Reference>> {
    stages.iter().map(|stage| stage.session().unwrap()).collect()
}

/// Takes the next tokens of some texts through all stages; the logits of each.
fn advance(
    stages: &mut [CachedRunner<Reference>],
    texts: &mut [&mut Vec<Session<Reference>>],
    next: &[&[u32]],
) -> Vec<Tensor> {
    let mut rows: Vec<Tensor> = next.iter().map(|ids| tokens(ids).unwrap()).collect();
    for (number, stage) in stages.iter_mut().enumerate() {
        let mut turns: Vec<_> = texts
            .iter_mut()
            .zip(&rows)
            .map(|(text, rows)| Turn { session: &mut text[number], rows, controls: None })
            .collect();
        rows = stage.advance(&mut turns).unwrap();
    }
    rows
}

fn bytes(rows: &[Tensor]) -> Vec<u8> {
    rows.iter().flat_map(Tensor::to_bytes).collect()
}

#[test]
fn every_split_into_parts_gives_the_rows_of_the_whole_text() {
    for architecture in decoders() {
        let model = quantized(architecture);
        let text = &TEXT[..6];
        let whole = run(&model, &[], text).to_bytes();
        let mut stages = stages(&model, &[]);
        // Bit i says whether a part ends after token i.
        for ends in 0u32..1 << (text.len() - 1) {
            let mut sessions = begin(&stages);
            let (mut rows, mut start) = (Vec::new(), 0);
            for end in 1..=text.len() {
                if end == text.len() || ends >> (end - 1) & 1 == 1 {
                    rows.extend(advance(&mut stages, &mut [&mut sessions], &[&text[start..end]]));
                    start = end;
                }
            }
            assert_eq!(sessions[0].position(), 6);
            assert_eq!(bytes(&rows), whole, "ends {ends:b}");
        }
    }
}

#[test]
fn company_and_stages_change_nothing() {
    for architecture in decoders() {
        let model = quantized(architecture);
        let (due, other) = (run(&model, &[], &TEXT).to_bytes(), run(&model, &[], &OTHER).to_bytes());
        for cuts in [&[][..], &[1], &[1, 2]] {
            let mut stages = stages(&model, cuts);
            let (mut a, mut b, mut c) = (begin(&stages), begin(&stages), begin(&stages));
            let mut rows = [vec![], vec![], vec![]];
            // A prompt alone; a prompt beside a next token; next tokens and a part of two beside another prompt.
            rows[0].extend(advance(&mut stages, &mut [&mut a], &[&TEXT[..4]]));
            let two = advance(&mut stages, &mut [&mut b, &mut a], &[&OTHER[..3], &TEXT[4..5]]);
            rows[1].push(two[0].clone());
            rows[0].push(two[1].clone());
            let three = advance(&mut stages, &mut [&mut a, &mut c, &mut b], &[&TEXT[5..7], &TEXT[..1], &OTHER[3..4]]);
            rows.iter_mut().zip([0, 2, 1]).for_each(|(rows, i)| rows.push(three[i].clone()));
            let three = advance(&mut stages, &mut [&mut c, &mut b, &mut a], &[&TEXT[1..9], &OTHER[4..7], &TEXT[7..9]]);
            rows.iter_mut().zip([2, 1, 0]).for_each(|(rows, i)| rows.push(three[i].clone()));
            assert_eq!(
                [&rows[0], &rows[1], &rows[2]].map(|rows| bytes(rows)),
                [due.clone(), other.clone(), due.clone()]
            );
        }
    }
}

#[test]
fn texts_are_cut_back_and_go_on() {
    for architecture in decoders() {
        let model = quantized(architecture);
        let mut stages = stages(&model, &[1]);
        let mut sessions = begin(&stages);
        let mut first = advance(&mut stages, &mut [&mut sessions], &[&TEXT[..3]]);
        advance(&mut stages, &mut [&mut sessions], &[&OTHER]);
        sessions.iter_mut().for_each(|session| session.cut_back(3).unwrap());
        first.extend(advance(&mut stages, &mut [&mut sessions], &[&TEXT[3..4]]));
        first.extend(advance(&mut stages, &mut [&mut sessions], &[&TEXT[4..]]));
        assert_eq!(bytes(&first), run(&model, &[], &TEXT).to_bytes());
        let refused = sessions[0].cut_back(10);
        assert!(matches!(refused, Err(DecodeError::Position { position: 10, tokens: 9 })), "{refused:?}");
        sessions.iter_mut().for_each(|session| session.cut_back(0).unwrap());
        let again = advance(&mut stages, &mut [&mut sessions], &[&OTHER]);
        assert_eq!(bytes(&again), run(&model, &[], &OTHER).to_bytes());
    }
}

#[test]
fn what_cannot_go_on_is_refused_and_leaves_sessions_as_they_were() {
    let model = quantized(random::llama(SIZE));
    let mut stages = stages(&model, &[1]);
    // Three layers of keys and values of 12 elements in two bytes.
    assert_eq!(stages.iter().map(CachedRunner::bytes_per_token).collect::<Vec<_>>(), [48, 96]);
    let [first, second] = stages.as_mut_slice() else { panic!("two stages") };
    assert!(first.advance(&mut []).unwrap().is_empty());

    let (mut session, mut foreign) = (first.session().unwrap(), second.session().unwrap());
    let mut turn =
        |session: &mut Session<Reference>, rows: &Tensor| first.advance(&mut [Turn { session, rows, controls: None }]);
    let text = tokens(&TEXT).unwrap();
    turn(&mut session, &text).unwrap();
    assert!(matches!(turn(&mut foreign, &text), Err(DecodeError::ForeignSession(0))));
    let error = turn(&mut session, &text).unwrap_err();
    assert!(matches!(error, DecodeError::Context { position: 9, rows: 9, context: 16 }), "{error}");
    let wide = Tensor::zeros(TensorType::new(16, 0, &[2, 24]).unwrap());
    assert!(matches!(turn(&mut session, &wide), Err(DecodeError::Execute(_))));
    assert_eq!((session.position(), foreign.position()), (9, 0));

    let mut sessions: Vec<_> = (0..=MAX_ROWS / 16).map(|_| first.session().unwrap()).collect();
    let rows = tokens(&[1; 16]).unwrap();
    let mut turns: Vec<_> = sessions.iter_mut().map(|session| Turn { session, rows: &rows, controls: None }).collect();
    assert!(matches!(first.advance(&mut turns), Err(DecodeError::Rows(_))));

    let encoder = quantized(random::bert(SIZE));
    let (plan, constants) = encoder.stage(0..3, |_| TensorRoot::default()).unwrap();
    let runner = StageRunner::new(Reference, plan, &constants).unwrap();
    assert!(matches!(CachedRunner::sharing(runner), Err(DecodeError::NotADecoder)));
}
