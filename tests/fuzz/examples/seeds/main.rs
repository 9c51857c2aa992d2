//! `cargo run -p tensorlink-fuzz --example seeds` writes the corpus that fuzzers start from, beside this crate. What
//! fuzzers found lies there too and stays.

mod published;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use alloy_sol_types::SolValue;
use bytes::Bytes;
use cid::Cid;
use cid::multihash::Multihash;
use futures::FutureExt;
use tensorlink_fuzz::wire_bytes;
use tensorlink_model::fixture::{FAMILIES, Folder, Stored, gguf};
use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{Architecture, Family, Head, Magnitudes, Quantized, Setting};
use tensorlink_native::wire::Answer;
use tensorlink_native::{Capability, DeviceClass, Done, Interval, Precision, Task, Threads};
use tensorlink_node::Speed;
use tensorlink_node::bounds::Excess;
use tensorlink_node::ports::Event;
use tensorlink_node::ports::chain::EventAt;
use tensorlink_node::price::Prices;
use tensorlink_node::wire::frame::{self, Frame, Hello, SignedLog};
use tensorlink_node::wire::gossip::{Progress, WorkerAdvert};
use tensorlink_node::wire::rpc::{Advance, IntervalRecord, Receipt, Request, Response};
use tensorlink_proof::challenge::{Row, Told};
use tensorlink_proof::commit::SenderSignatures;
use tensorlink_training::calibrate::float_data;
use tensorlink_training::{Model, Table, Training, init};
use tensorlink_types::abi::{
    self, BoundaryLogs, Claim, EdgeLog, Facts, JobTerms, Offer, Position, StepStatement, Voucher,
};
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{
    Address, B256, ClaimId, JobId, JobKey, Lane, Opcode, Operand, Operator, Program, Segment, Source, StateSlot,
    TensorRoot, TensorType, U256,
};
use tensorlink_user::serving::archive::{Receipts, StageReceipt, TextReceipts};

type Seed = (String, Vec<u8>);

const LANE: Lane = Lane { job: JobId(7), stage: 1, replica: 0 };

fn main() -> ExitCode {
    let targets: [(&str, Vec<Seed>); 23] = [
        ("config", configs()),
        ("events", vec![("challenge".into(), events())]),
        ("files", vec![("two-tensors".into(), files())]),
        ("folder", published::folders()),
        ("frame", frames()),
        ("game", games()),
        ("gguf", gguf_files()),
        ("gguf_tokenizer", published::gguf_tokenizers()),
        ("gossip", gossip()),
        ("known", known()),
        ("manifest", manifests()),
        ("native", native()),
        ("openings", openings()),
        ("operator", operators()),
        ("plan", plans()),
        ("program", program().iter().map(|program| ("linear".into(), wire_bytes(program))).collect()),
        ("proof", proofs()),
        ("receipts", vec![("text".into(), receipts())]),
        ("rpc", messages()),
        ("sentencepiece", published::sentencepiece()),
        ("table", vec![("header".into(), b"a,b,class\n1,2.5,x\n-3,1e2,y\n0,0,x\n".to_vec())]),
        ("template", published::templates()),
        ("weights", weights()),
    ];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (target, seeds) in targets {
        let folder = corpus.join(target);
        let written = fs::create_dir_all(&folder)
            .and_then(|()| seeds.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes)));
        if let Err(error) = written {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
        println!(
            "{target}: {} seeds, {} bytes",
            seeds.len(),
            seeds.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
        );
    }
    ExitCode::SUCCESS
}

fn named<T>(name: &str, values: impl IntoIterator<Item = T>, bytes: impl Fn(T) -> Vec<u8>) -> Vec<Seed> {
    values.into_iter().enumerate().map(|(at, value)| (format!("{name}-{at}"), bytes(value))).collect()
}

fn word(n: u8) -> B256 {
    B256::repeat_byte(n)
}

fn claim() -> Claim {
    Claim { job: 7, stage: 1, replica: 0, interval: 3, parentState: word(1), newState: word(2), io: word(3) }
}

fn logs() -> BoundaryLogs {
    BoundaryLogs { fromPrevious: word(4), toPrevious: word(0), fromNext: word(0), toNext: word(5) }
}

fn offer() -> Offer {
    let worker = Address::repeat_byte(6);
    Offer {
        job: 7,
        terms: B256::repeat_byte(9),
        stage: 1,
        replica: 0,
        worker,
        pricePerInterval: 1_000_000,
        expires: U256::from(9).to(),
    }
}

fn frames() -> Vec<Seed> {
    let log = EdgeLog { job: 7, replica: 0, fromStage: 0, toStage: 1, interval: 3, root: word(1) };
    let all = [
        Frame::Hello(Hello { job: JobId(7), replica: 0, stage: 1, next_interval: 3 }),
        Frame::Tensor { step: 9, micro_batch: 2, data: Bytes::from_static(&[1, 2, 3, 255]) },
        Frame::Tensor { step: 9, micro_batch: 3, data: Bytes::from_static(&[5; 600]) },
        Frame::SignedLog(SignedLog { log, signature: vec![27; 65] }),
    ];
    let mut stream = Vec::new();
    for frame in &all {
        let _ = frame::write(&mut stream, frame).now_or_never();
    }
    vec![("stream".into(), stream)]
}

fn messages() -> Vec<Seed> {
    let id = ClaimId(word(8));
    let voucher = Voucher { job: 7, stage: 1, replica: 0, epoch: 2, before: 200, tokens: 300, receipts: word(9) };
    let advance = Advance { lane: LANE, text: 4, position: 0, inputs: vec![vec![1, 0, 0, 0], vec![]], last: true };
    let requests = [
        Request::Quote(LANE),
        Request::Interval(id),
        Request::Output { claim: id, step: 12, operator: 300, from: 1 << 26 },
        Request::Advance(advance),
        Request::Pay { voucher, signature: vec![27; 65] },
        Request::Receipts { lane: LANE, epoch: 1 },
        Request::Keep { claim: claim(), committed_at: 1_800_000_000, state: vec![1, 2, 3] },
        Request::EndState(id),
    ];
    let statement = StepStatement {
        claimId: word(8),
        auditor: Address::repeat_byte(1),
        step: 12,
        preState: word(1),
        postState: word(2),
        trace: word(3),
    };
    let receipt = Receipt { claim: claim(), logs: logs(), tokens: 5, signature: vec![28; 65] };
    let roots = vec![TensorRoot(word(1)), TensorRoot(word(2))];
    let responses = [
        Response::Offer { offer: offer(), signature: vec![27; 65] },
        Response::Interval(IntervalRecord {
            state: vec![1],
            inputs: vec![2],
            logs: logs(),
            signatures: SenderSignatures { previous: vec![3; 65].into(), next: Default::default() },
            holder: Default::default(),
        }),
        Response::Statements(vec![(statement, vec![27; 65])]),
        Response::SentLogs { to_previous: vec![], to_next: roots.clone() },
        Response::Roots(roots),
        Response::Advanced { output: vec![1, 2], receipt: Some(receipt) },
        Response::Receipts(vec![claim()]),
        Response::Declined("busy".into()),
        Response::Holding(vec![27; 65]),
        Response::EndState(vec![1, 2, 3]),
    ];
    let mut seeds = named("request", requests, |request| wire_bytes(&request));
    seeds.extend(named("response", responses, |response| wire_bytes(&response)));
    seeds
}

fn gossip() -> Vec<Seed> {
    let advert = WorkerAdvert {
        memory: 1 << 33,
        disk: 10 << 30,
        speed: Speed::LEAST,
        free_lanes: 2,
        prices: Prices { sno: 1 << 70, eth: Some(1) },
        engine: "cpu".into(),
    };
    let progress = Progress {
        lane: LANE,
        step: 40,
        loss: Some(1.5),
        accuracy: None,
        saturation: Some(0.001),
        steps_per_second: 3.0,
        bytes_moved: 1 << 20,
        commitment_share: 0.01,
        halted: Some(Excess::Saturated { share: 0.25, most: 0.05 }),
    };
    vec![("advert".into(), wire_bytes(&advert)), ("progress".into(), wire_bytes(&progress))]
}

/// An interval of a small network on a small table, and what is said of it.
fn native() -> Vec<Seed> {
    let file = Cid::new_v1(0x55, Multihash::wrap(0x12, &[7; 32]).unwrap_or_default());
    let class = DeviceClass::Cpu { capability: Capability::Avx2, threads: Threads::One };
    let interval = Interval { task: file, state: file, first: 8, steps: 8, precision: Precision::Bf16 };
    let done = Done { state: file, losses: vec![1.5, 1.25], class };
    let answers = [Answer::Working, Answer::Busy, Answer::Done(done), Answer::Declined("no room".into())];
    let mut seeds = vec![("interval".into(), wire_bytes(&interval))];
    seeds.extend(named("answer", answers, |answer| wire_bytes(&answer)));
    seeds.extend(task().map(|task| ("task".into(), task)));
    seeds
}

fn task() -> Option<Vec<u8>> {
    let model = r#"{ "name": "small", "layers": [{ "kind": "linear", "out": 2 }, { "kind": "relu" }],
        "optimizer": { "learning_rate": 0.05, "momentum": 0.9 },
        "batch_size": 2, "micro_batches": 1, "steps": 4, "operand_bits": 8, "seed": 3 }"#;
    let network = Model::parse("small.json", model.as_bytes()).ok()?.network(2, 2).ok()?;
    let rows: String = (0..8).map(|i| format!("{},{},{}\n", i % 3, i % 5, ["a", "b"][i % 2])).collect();
    let data = Table::parse(rows.as_bytes()).ok()?.split(8, 3).ok()?.training;
    let rows = data.features.ty().dims().first().copied()?;
    let graph = Training::of_network(&network, &init::gaussian(&network, 3), rows).graph;
    let task = Task { graph, data: float_data(&data), key: JobKey(word(3)) };
    Some(task.to_bytes().ok()?.into())
}

fn manifests() -> Vec<Seed> {
    let cid = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";
    let stages = [
        ("training", format!(r#"{{"program":"{cid}","state":"{cid}","constants":["{cid}"],"notes":"n"}}"#)),
        ("serving", format!(r#"{{"plan":"{cid}","constants":["{cid}","b"]}}"#)),
    ];
    let text = |stage: &str| format!(r#"{{"version":1,"name":"m","stages":[{stage}]}}"#).into_bytes();
    let bounded = r#"{"version":1,"name":"m","stages":[],"bounds":{"max_saturation":0.05,"max_loss":1.5}}"#;
    let bounded = ("bounded".into(), bounded.into());
    stages.iter().map(|(name, stage)| ((*name).into(), text(stage))).chain([bounded]).collect()
}

fn receipts() -> Vec<u8> {
    let signed = Receipt { claim: claim(), logs: logs(), tokens: 5, signature: vec![28; 65] };
    let stage = StageReceipt::new(Address::repeat_byte(1), ClaimId(word(8)), signed);
    let text = TextReceipts { job: JobId(7), text: 4, tokens: 5, terms: None, stages: vec![stage] };
    serde_json::to_vec(&Receipts { texts: vec![text] }).unwrap_or_default()
}

fn events() -> Vec<u8> {
    let (challenger, worker) = (Address::repeat_byte(1), Address::repeat_byte(2));
    let challenge = U256::from(5);
    let position = Position { subject: 1, levels: 2, height: 2, count: 4, node: word(1), ..Position::default() };
    let row = Row { position: position.clone(), siblings: vec![word(2)], data: vec![7; 128].into() };
    let told = [
        Told::Asked { deadline: 9, position: position.clone(), hints: vec![7; 10].into() },
        Told::Answered { deadline: 10, row },
        Told::Established { facts: Facts { step: 3, ..Facts::default() } },
        Told::Stated { signature: vec![27; 65].into() },
        Told::LogsGiven { logs: logs(), signatures: SenderSignatures::default() },
        Told::Funded { amount: U256::from(900) },
        Told::Charged { gas: 100, owed: U256::from(300), spent: false },
        Told::Asked { deadline: 11, position, hints: Default::default() },
    ];
    let terms = JobTerms {
        kind: 0,
        token: Address::ZERO,
        stages: 2,
        replicas: 1,
        intervals: 3,
        stepsPerInterval: 4,
        acceptBy: U256::from(9).to(),
        duration: U256::from(99).to(),
        challengeWindow: 8,
        workerStake: 10,
        continues: 0,
        firstStep: 0,
        programs: vec![word(1), word(2)],
        initialStates: vec![word(3), word(4)],
        manifest: vec![1, 85].into(),
    };
    let mut events = vec![
        Event::JobPosted { job: JobId(7), user: challenger, deposit: U256::from(1), terms },
        Event::JobAccepted { job: JobId(7), offers: vec![offer()] },
        Event::JobStarted { job: JobId(7), job_key: JobKey(word(1)), deadline: 99 },
        Event::ClaimCommitted { id: ClaimId(word(8)), claim: claim(), committed_at: 5 },
        Event::ChallengeOpened { challenge, id: ClaimId(word(8)), claim: claim(), challenger, worker },
    ];
    events.extend(told.into_iter().map(|told| Event::Challenge { challenge, told }));
    let at = |(block, event)| EventAt {
        block,
        block_hash: word(1),
        timestamp: 2,
        log_index: 0,
        transaction: word(2),
        event,
    };
    let lines = (1..).zip(events).map(at).map(|at| serde_json::to_vec(&at).unwrap_or_default());
    lines.collect::<Vec<_>>().join(&b'\n')
}

fn ty(bits: u8, dims: &[u32]) -> Option<TensorType> {
    TensorType::new(bits, 0, dims).ok()
}

fn files() -> Vec<u8> {
    let types: Vec<TensorType> = [ty(8, &[3]), ty(26, &[2, 2])].into_iter().flatten().collect();
    let mut bytes = wire_bytes(&types);
    bytes.extend([1, 255, 127]);
    bytes.extend([1i32 << 24, 0, -5, 7].iter().flat_map(|m| m.to_le_bytes()));
    bytes
}

/// A linear layer and its update, in one stage.
fn program() -> Option<Program> {
    let (x, w, y) = (ty(8, &[2, 3])?, ty(8, &[4, 3])?, ty(8, &[2, 4])?);
    let operand = |source, ty: &TensorType| Operand { source, ty: ty.clone() };
    let product = Operator {
        opcode: Opcode::MatMul,
        operands: vec![operand(Source::FromPrevious(0), &x), operand(Source::State(0), &w)],
        attributes: vec![0],
        output: y.clone(),
    };
    let relu = Operator {
        opcode: Opcode::Relu,
        operands: vec![operand(Source::Output(0), &y)],
        attributes: vec![],
        output: y,
    };
    let update = Operator {
        opcode: Opcode::Combine,
        operands: vec![operand(Source::State(0), &w), operand(Source::Constant(0), &w)],
        attributes: vec![1, 1, 0],
        output: w.clone(),
    };
    Some(Program {
        operators: vec![product, relu, update],
        constants: vec![ConstantSlot { name: "c".into(), ty: w.clone(), root: TensorRoot(word(1)) }],
        state: vec![StateSlot { name: "w".into(), ty: w, producer: 2 }],
        micro_batches: 1,
        to_next: vec![1],
        to_previous: vec![],
        from_previous: vec![x],
        from_next: vec![],
        segments: vec![Segment::Forward { micro_batch: 0, operators: 0..2 }, Segment::Update { operators: 2..3 }],
        names: vec!["a".into(), "b".into(), "c".into()],
    })
}

fn operators() -> Vec<Seed> {
    let operators = program().map(|program| program.operators).unwrap_or_default();
    let shown = |operator: &Operator| [vec![1, 2], abi::Operator::from(operator).abi_encode()].concat();
    operators.iter().map(|operator| (operator.opcode.name().to_lowercase(), shown(operator))).collect()
}

fn folders() -> impl Iterator<Item = (String, Folder)> {
    FAMILIES.into_iter().map(|family| (format!("{family:?}").to_lowercase(), Folder::new(family)))
}

fn configs() -> Vec<Seed> {
    let index = br#"{"metadata":{},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}}"#;
    let mut seeds: Vec<Seed> = folders().map(|(name, folder)| (name, folder.config_json())).collect();
    seeds.push(("model".into(), include_bytes!("../../../../examples/digits.json").to_vec()));
    seeds.push(("index".into(), index.to_vec()));
    seeds
}

fn weights() -> Vec<Seed> {
    let seed = |(name, folder): (String, Folder)| {
        let config = folder.config_json();
        let length = u16::try_from(config.len()).unwrap_or(u16::MAX).to_le_bytes();
        (name, [length.to_vec(), config, folder.safetensors(Stored::F16)].concat())
    };
    folders().map(seed).collect()
}

fn gguf_files() -> Vec<Seed> {
    let families =
        [("llama", Family::Llama), ("gemma3", Family::Gemma3), ("gpt2", Family::Gpt2), ("bert", Family::Bert)];
    families.into_iter().map(|(name, family)| (name.into(), gguf::File::of(&Folder::new(family)).bytes())).collect()
}

fn plans() -> Vec<Seed> {
    const SIZE: Dimensions =
        Dimensions { vocabulary: 10, width: 8, layers: 1, heads: 2, kv_heads: 1, hidden: 8, context: 4 };
    let architectures = [
        ("gpt2", random::gpt2(SIZE)),
        ("llama", random::llama(SIZE)),
        ("gemma3", random::gemma3(SIZE)),
        ("bert", random::bert(SIZE)),
    ];
    architectures.into_iter().filter_map(|(name, architecture)| Some((name.into(), plan(architecture)?))).collect()
}

fn plan(architecture: Architecture) -> Option<Vec<u8>> {
    let mut seen = Magnitudes::default();
    let parts = "query query.projected key key.projected value rotated_query rotated_key mixed output output_norm sum \
                 norm scores";
    let attention = parts.split(' ').map(|part| format!("layers.0.attention.{part}"));
    let mlp =
        "up gate activated product down output_norm sum norm".split(' ').map(|part| format!("layers.0.mlp.{part}"));
    let ends = ["embedding", "embedding.norm", "final.norm", "logits"].map(str::to_owned);
    for site in attention.chain(mlp).chain(ends) {
        seen.see(&site, 6.0);
        seen.see(&format!("{site}.unbiased"), 6.0);
    }
    let head = Head::served(architecture.output);
    let weights = random::weights(&architecture, 5).ok()?;
    let model = Quantized::new(architecture, Setting::default(), &weights, &seen).ok()?;
    Some(wire_bytes(&model.plan(0..1, head, |_| TensorRoot(word(1))).ok()?))
}

/// Events by the numbers that `tensorlink_fuzz::games` reads them from: the opening question, an answer, facts, the
/// next question.
fn games() -> Vec<Seed> {
    let steps = |node| [0, 9, 1, 2, 2, 0, 4, node];
    let answered = |subject, node| [2, subject, 2, 2, 0, 4, node, 16];
    let facts = |step| [4, 1, step, 2, 3, 7, 3, 1];
    let statement = [0, 9, 2, 1, 1, 0, 2, 0];
    let trace = [0, 9, 3, 1, 1, 0, 2, 7];
    let output = [0, 9, 7, 2, 2, 0, 4, 24];
    let opening = steps(0).to_vec();
    let row = [steps(0), answered(1, 1)].concat();
    let walk = [&row[..], &[9; 128], &facts(0), &statement, &[5], &[27; 65], &trace, &output].concat();
    vec![("opening".into(), opening), ("row".into(), row), ("walk".into(), walk)]
}

fn known() -> Vec<Seed> {
    let list = [vec![0, 1, 8], vec![0, 0, 1, 0, 0, 1, 0, 0, 0], vec![2, 4, 0, 2, 2, 0, 2, 2, 1, 2, 4, 0]].concat();
    let tensor = [vec![1, 1, 4], vec![0, 1, 0, 0, 0], vec![1, 3, 0, 2, 2, 0, 2, 2, 1]].concat();
    let wild = [vec![0, 0, 8], vec![0; 9], vec![2, 4, 0, 1, 3, 255, 1], vec![7; 200]].concat();
    vec![("list".into(), list), ("tensor".into(), tensor), ("wild".into(), wild)]
}

fn openings() -> Vec<Seed> {
    named("change", 0..6, |change: u8| vec![9, 3, change, 1, 1, 1, 11, 2, 1, change, 1, 3, 5])
}

fn proofs() -> Vec<Seed> {
    let mut seeds = named("element", 0..27, |at: u8| vec![0, at]);
    seeds.extend(named("wiring", 0..4, |at: u8| vec![1, at, 0x5f, 2, 1]));
    seeds.extend(named("contradiction", 0..4, |at: u8| vec![2, at, 0x20, 1, 1]));
    seeds
}
