//! A challenge in which anything is told: what both players make of it.

use std::sync::LazyLock;

use alloy_primitives::{Address, B256, Bytes, U256};
use tensorlink_num::Tensor;
use tensorlink_num::tensor::Mantissas;
use tensorlink_proof::challenge::next::Tensors;
use tensorlink_proof::challenge::position::{MAX_LEVELS, is_bottom, row_len};
use tensorlink_proof::challenge::way::levels_of;
use tensorlink_proof::challenge::{Answerer, Challenger, Game, Lacking, Move, Next, Row, Subject, Told, Turn};
use tensorlink_proof::commit::program::ProgramCommitment;
use tensorlink_proof::commit::{
    Boundary, BoundaryLists, Contracts, LogBuilder, SenderSignatures, record_hash, state_root, tensor_root, trace_root,
};
use tensorlink_proof::fraud::{Case, Work};
use tensorlink_proof::merkle::{LEAF_BYTES, list_root};
use tensorlink_types::abi::{BoundaryLogs, Claim, Facts, Position, Question};
use tensorlink_types::{
    ClaimId, Lineage, Opcode, Operand, Operator, Program, Segment, Source, StateSlot, TensorRoot, TensorType,
};

use crate::feed::Feed;
use crate::trees::hashes_to;

/// Steps of the claim.
const STEPS: u32 = 4;
/// When it was committed.
const COMMITTED_AT: u64 = 7;
/// Most events of a game here.
const MAX_EVENTS: usize = 24;
/// Elements of every tensor: four leaves.
const ELEMENTS: u32 = 1000;

/// A claim with all that was computed for it: the same for both players.
struct Record {
    program: Program,
    commitment: ProgramCommitment,
    case: Case,
    claim: Claim,
    states: Vec<Vec<TensorRoot>>,
    traces: Vec<Vec<TensorRoot>>,
    logs: BoundaryLists,
    /// Every digest that a question may be about.
    digests: Vec<B256>,
}

static RECORD: LazyLock<Record> = LazyLock::new(Record::new);

/// What anybody computes at a step: tensor 0 is received, the others are the operators' outputs.
fn tensor(step: u32, at: u32) -> Tensor {
    let value = (step * 7 + at.max(1)) as i8;
    Tensor::new(ty(), Mantissas::I8(vec![value; ELEMENTS as usize])).expect("small numbers")
}

fn ty() -> TensorType {
    TensorType::new(8, 0, &[ELEMENTS]).expect("a vector")
}

/// Three times the positive part, one after another.
fn program() -> Program {
    let relu = |source| Operator {
        opcode: Opcode::Relu,
        operands: vec![Operand { source, ty: ty() }],
        attributes: vec![],
        output: ty(),
    };
    Program {
        operators: vec![relu(Source::FromPrevious(0)), relu(Source::Output(0)), relu(Source::Output(1))],
        constants: vec![],
        state: vec![StateSlot { name: "kept".into(), ty: ty(), producer: 1 }],
        micro_batches: 1,
        to_next: vec![2],
        to_previous: vec![],
        from_previous: vec![ty()],
        from_next: vec![],
        segments: vec![Segment::Forward { micro_batch: 0, operators: 0..3 }],
        names: vec!["a".into(), "b".into(), "c".into()],
    }
}

impl Record {
    fn new() -> Self {
        let program = program();
        let commitment = ProgramCommitment::new(&program).expect("a small program");
        let roots = |step: u32| (0..=3).map(|at| tensor_root(&tensor(step, at))).collect::<Vec<_>>();
        let mut logs = LogBuilder::new(&program, STEPS).expect("a small log");
        let (mut states, mut traces) = (vec![vec![tensor_root(&tensor(9, 1))]], Vec::new());
        for step in 0..STEPS {
            let roots = roots(step);
            logs.record(Boundary::FromPrevious, step, 0, roots[0]).expect("a place in the log");
            logs.record(Boundary::ToNext, step, 0, roots[3]).expect("a place in the log");
            states.push(vec![roots[2]]);
            traces.push(roots[1..].to_vec());
        }
        let logs = logs.finish().expect("a whole log");
        let ends = states.iter().map(|state| state_root(state)).collect::<Vec<_>>();
        let claim = Claim {
            job: 1,
            stage: 0,
            replica: 0,
            interval: 0,
            parentState: ends[0],
            newState: ends[STEPS as usize],
            io: tensorlink_proof::commit::io_root(&logs.roots()),
        };
        let address = Address::repeat_byte;
        let contracts = Contracts {
            chain_id: 1,
            jobs: address(1),
            checkpoints: address(2),
            channels: address(3),
            disputes: address(4),
            custody: address(6),
        };
        let record = record_hash(&claim, COMMITTED_AT);
        let work = Work::Training { steps_per_interval: STEPS, program: commitment.root(), record };
        let case = Case { contracts, worker: address(5), lineage: Lineage::default(), work };
        let mut digests = vec![B256::ZERO, list_root(ends.iter().skip(1).copied())];
        digests.extend(&ends);
        digests.extend(traces.iter().map(|trace| trace_root(trace)));
        digests.extend(traces.iter().flatten().map(|root| root.0));
        digests.extend((1..=3).map(|at| tensorlink_proof::merkle::data_root(&tensor(0, at).to_bytes())));
        let roots = logs.roots();
        digests.extend([roots.fromPrevious, roots.toNext]);
        Self { program, commitment, case, claim, states, traces, logs, digests }
    }

    fn id(&self) -> ClaimId {
        self.case.contracts.claim_id(&self.claim)
    }
}

/// Events of a challenge in any order, with anything in them.
///
/// # Panics
/// Where a rule is broken.
pub fn game(bytes: &[u8]) {
    let record = &*RECORD;
    let mut feed = Feed::new(bytes);
    let mut game = Game::new(record.id(), record.claim.clone(), Address::repeat_byte(6), record.case.worker);
    let mut asked = 0;
    for _ in 0..MAX_EVENTS {
        if feed.is_over() {
            break;
        }
        let told = told(&mut feed, record);
        asked += u64::from(matches!(told, Told::Asked { .. }));
        game.apply(&told);
        assert_eq!(game.asked, asked);
        answers(record, &game);
        asks(record, &game);
    }
    let text = serde_json::to_string(&game).expect("a game is written");
    assert_eq!(serde_json::from_str::<Game>(&text).expect("and read"), game);
}

fn told(feed: &mut Feed<'_>, record: &Record) -> Told {
    match feed.below(8) {
        0 | 1 => {
            let position = position(feed, record);
            let hints = feed.below(3) * feed.below(300);
            Told::Asked { deadline: feed.number(), position, hints: Bytes::copy_from_slice(feed.take(hints)) }
        }
        2 | 3 => {
            let position = position(feed, record);
            let count = feed.below(256) * 8;
            let siblings = (0..feed.below(4)).map(|_| feed.digest(&record.digests)).collect();
            let data = Bytes::copy_from_slice(feed.take(count));
            Told::Answered { deadline: 9, row: Row { position, siblings, data } }
        }
        4 => Told::Established { facts: facts(feed, record) },
        5 => Told::Stated { signature: Bytes::copy_from_slice(feed.take(65)) },
        6 => {
            let mut digest = || feed.digest(&record.digests);
            let logs =
                BoundaryLogs { fromPrevious: digest(), toPrevious: digest(), fromNext: digest(), toNext: digest() };
            let signatures = SenderSignatures { previous: Bytes::copy_from_slice(feed.take(65)), next: Bytes::new() };
            Told::LogsGiven { logs, signatures }
        }
        _ => match feed.below(5) {
            0 => Told::Won { silence: feed.below(2) == 0 },
            1 => Told::Funded { amount: U256::from(feed.number()) },
            2 => {
                let (gas, owed) = (feed.number(), U256::from(feed.number()));
                Told::Charged { gas, owed, spent: feed.below(2) == 0 }
            }
            _ => Told::Lost,
        },
    }
}

fn position(feed: &mut Feed<'_>, record: &Record) -> Position {
    Position {
        subject: feed.byte() % 9,
        levels: feed.byte(),
        guided: if feed.below(2) == 0 { 0 } else { feed.byte() },
        height: feed.byte(),
        index: feed.number(),
        count: feed.number(),
        node: feed.digest(&record.digests),
        ..Position::default()
    }
}

fn facts(feed: &mut Feed<'_>, record: &Record) -> Facts {
    Facts {
        steps: feed.digest(&record.digests),
        step: feed.number() as u32,
        preState: feed.digest(&record.digests),
        postState: feed.digest(&record.digests),
        trace: feed.digest(&record.digests),
        operators: record.commitment.header.operators,
        operatorCount: feed.number() as u32,
        stateCount: feed.number() as u32,
        microBatches: 1,
        tensorType: ty().to_word(),
    }
}

/// The worker answers only with what hashes up to the node that it was asked about, and signs only what it computed.
fn answers(record: &Record, game: &Game) {
    let answerer = Answerer {
        contracts: &record.case.contracts,
        claim: &record.claim,
        program: &record.commitment.header,
        first_step: 0,
        states: &record.states,
        traces: &record.traces,
        logs: &record.logs,
        signatures: &SenderSignatures::default(),
    };
    let sign = |_| {
        let ends = |step: usize| record.states.get(step).map(|state| state_root(state));
        let step = game.facts.step as usize;
        assert_eq!((ends(step), ends(step + 1)), (Some(game.facts.preState), Some(game.facts.postState)));
        Ok(Bytes::from(vec![0; 65]))
    };
    let mut answer = answerer.answer(game, None, sign);
    if let Err(Lacking::Output { step, operator }) = answer {
        answer = answerer.answer(game, Some(&tensor(step, operator + 1)), sign);
    }
    if let Ok(Move::Answer { position, way, data }) = &answer {
        assert_eq!(position, &game.position);
        assert_eq!((way.siblings.len(), &way.hints), (position.guided.into(), &game.hints));
        // Where its hints lead.
        let height = position.height - position.guided;
        let index = (position.index << position.guided) + u64::from(way.child);
        let node = if position.guided > 0 { way.node } else { position.node };
        let position = &Position { height, index, node, guided: 0, ..position.clone() };
        let leaves = game.subject() == Some(Subject::Output) && is_bottom(position);
        let unit = if leaves { LEAF_BYTES } else { 32 };
        assert_eq!(data.len() as u64, row_len(position) * unit as u64);
        assert!(hashes_to(position, data, !leaves), "an answer leads to the node that was asked for");
    }
}

/// The challenger asks for what can be asked for, and convicts nobody who has not signed.
fn asks(record: &Record, game: &Game) {
    let challenger = Challenger {
        case: &record.case,
        program: &record.program,
        committed_at: COMMITTED_AT,
        first_step: 0,
        states: &record.states,
        traces: &record.traces,
        logs: &record.logs,
        accusation: None,
        salt: B256::repeat_byte(3),
    };
    let mut next = challenger.next(game, None);
    if let Ok(Next::Tensors { step, operator }) = next {
        assert!(step < STEPS && operator < 3);
        let (output, operands) = (tensor(step, operator + 1), vec![tensor(step, operator)]);
        next = challenger.next(game, Some(&Tensors { step, operator, output, operands }));
    }
    let Ok(next) = next else { return };
    assert_eq!(game.turn, Turn::Asking);
    let question = match next {
        Next::Ask(question) => match *question {
            Move::Ask { question, .. }
            | Move::AskTree { question, .. }
            | Move::AskStatement { question, .. }
            | Move::AskOutput { question, .. }
            | Move::AskLog { question, .. } => question,
            Move::AskLogs { .. } => Question::default(),
            other => panic!("{other:?} is no question"),
        },
        Next::Tensors { .. } => Question::default(),
        // Whether its sender signed it the contract has looked at.
        Next::Equivocation { boundary, root, .. } => {
            assert_ne!(root, boundary.root(&record.logs.roots()));
            assert_eq!(Some(root), game.logs.as_ref().map(|(logs, _)| boundary.root(logs)));
            Question::default()
        }
        Next::Element(_) | Next::Wiring(_) | Next::Contradiction(_) => panic!("a conviction without a signature"),
    };
    assert!(question.levels <= MAX_LEVELS && levels_of(&question.hints).is_some());
}
