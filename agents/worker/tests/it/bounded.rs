//! What a stage is said to take is enough for it, by the bound of the system itself: a process that may have no more
//! data computes its intervals, writes their states, and repeats one for an auditor beside that. By this machine's
//! kernels, and by those of libtorch that every processor has.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::{env, fs, thread};

use bytes::Bytes;
use tensorlink_node::bounds::Bounds;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::interval::{Span, sequential};
use tensorlink_node::replay::Replay;
use tensorlink_node::shard::Shard;
use tensorlink_node::{files, interval, memory};
use tensorlink_program::CheckedProgram;
use tensorlink_proof::commit::tensor_root;
use tensorlink_tensor::{Device, ElementKernel, Int8Kernel, Int16Kernel, Kernels, TorchEngine};
use tensorlink_training::calibrate::{calibrate, float_state};
use tensorlink_training::{Margins, Model, StageInfo, Table, compile, init};
use tensorlink_types::{Lineage, Program};
use tensorlink_worker::training::metrics::observed;

use crate::support::KEY;

/// Where the process that is bounded finds its shard.
const SHARD: &str = "TENSORLINK_TEST_SHARD";
/// What it is to do.
const INTERVALS: &str = "TENSORLINK_TEST_INTERVALS";
/// Whether libtorch multiplies.
const BY_LIBTORCH: &str = "TENSORLINK_TEST_BY_LIBTORCH";
const STEPS: u32 = 2;
/// Stacks of threads, and what an allocator leaves between tensors, bytes.
const SLACK: u64 = 48 << 20;

/// A single stage of four million weights, in a folder.
fn write_shard(folder: &Path) -> Program {
    let csv: String = (0..256).map(|row| format!("{},{},{}\n", row % 7, row % 5, row % 3)).collect();
    let json = r#"{"name": "test", "layers": [{"kind": "linear", "out": 2000}, {"kind": "relu"},
        {"kind": "linear", "out": 2000}, {"kind": "relu"}], "optimizer": {"learning_rate": 0.05, "momentum": 0.9},
        "batch_size": 64, "micro_batches": 2, "steps": 10, "operand_bits": 8, "seed": 7}"#;
    let model = Model::parse("test.json", json.as_bytes()).unwrap();
    let data = Table::parse(csv.as_bytes()).unwrap().split(model.operand_bits(), model.seed()).unwrap();
    let network = model.network(2, data.classes.len() as u32).unwrap();
    let weights = init::gaussian(&network, model.seed());
    let margins = Margins::for_operands(model.operand_bits());
    let exponents = calibrate(&network, &weights, &data.training, 2, model.seed(), margins).unwrap().exponents;
    let whole = 0..network.layers.len();
    let stage = compile(&network, &exponents, &data.training, &[whole], tensor_root).unwrap().remove(0);
    let state = init::state(&stage.program, &float_state(&weights)).unwrap();
    fs::write(folder.join("program"), serde_json::to_vec(&(&stage.program, &stage.info)).unwrap()).unwrap();
    fs::write(folder.join("constants"), files::join(&stage.constants)).unwrap();
    fs::write(folder.join("state"), files::join(&state)).unwrap();
    stage.program
}

fn read_shard(folder: &Path) -> Shard {
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let (program, info): (Program, StageInfo) = serde_json::from_slice(&read("program")).unwrap();
    let constants = files::split(&read("constants"), program.constants.iter().map(|slot| &slot.ty)).unwrap();
    let state = files::split(&read("state"), program.state.iter().map(|slot| &slot.ty)).unwrap();
    Shard {
        program: Arc::new(CheckedProgram::new(program).unwrap()),
        constants: constants.into(),
        initial_state: state.into(),
        info,
        bounds: Bounds::default(),
        memory: None,
    }
}

/// Bytes of data that this process has.
fn data() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

fn engine() -> TorchEngine {
    let (int8, int16, elements) = (Int8Kernel::F32Chunks, Int16Kernel::F64, ElementKernel::Host);
    let kernels = env::var_os(BY_LIBTORCH).map(|_| Kernels { int8, int16, elements });
    kernels.map_or_else(|| TorchEngine::new(Device::Cpu), |of| TorchEngine::with_kernels(Device::Cpu, of)).unwrap()
}

/// Computes so many intervals as a worker does.
fn compute(shard: Arc<Shard>, intervals: u32) {
    let lineage = Lineage::from(KEY);
    let mut executor = tensorlink_program::StageExecutor::new(
        engine(),
        shard.program.as_ref().clone(),
        &shard.constants,
        &shard.initial_state,
        lineage,
        observed(&shard.info),
    )
    .unwrap();
    let mut repeating = None;
    let mut before: Option<Vec<u8>> = None;
    for number in 0..intervals {
        let span = Span { first_step: number * STEPS, steps: STEPS };
        let inputs = Bytes::new();
        let mut none = interval::Recorded::new(&shard.program, &inputs, span.first_step);
        let schedule = sequential(&shard.program);
        let outcome = interval::run(&mut executor, span, &schedule, &mut none, |_, _| Ok(())).unwrap();
        if number == 0 {
            // Somebody asks about the first while the others are computed.
            let (shard, span) = (shard.clone(), Span { first_step: 0, steps: STEPS });
            let (inputs, root) = (Bytes::new(), outcome.state_root);
            repeating = Some(thread::spawn(move || {
                let file = files::join(shard.initial_state.iter());
                let state = files::split(&file, shard.program.state.iter().map(|slot| &slot.ty)).unwrap();
                let replay = Replay { shard, lineage, span, state, inputs };
                assert_eq!(replay.outcome(engine()).unwrap().state_root, root);
            }));
        }
        let written = before.replace(files::join(&outcome.state));
        assert_eq!(written.is_some(), number > 0);
    }
    repeating.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Runs this very test in a process of its own that may have so much data.
fn bounded(folder: &Path, by_libtorch: bool, intervals: u32, data: Option<u64>) -> Output {
    let limit = data.map_or_else(|| "unlimited".to_owned(), |data| (data / 1024).to_string());
    Command::new("sh")
        .args([
            "-c",
            r#"ulimit -d "$1" && exec "$0" --exact bounded::a_lane_takes_no_more_memory_than_it_says --nocapture"#,
        ])
        .args([env::current_exe().unwrap().to_str().unwrap(), &limit])
        .env(SHARD, folder)
        .env(INTERVALS, intervals.to_string())
        // On Intel's processors, MKL would keep buffers of its own for each thread: tens of megabytes, which no
        // lane owns.
        .env("MKL_DISABLE_FAST_MM", "1")
        // Where memory is short, to name the frames of a panic takes more than there is, and Rust waits for ever for
        // the lock that it holds itself.
        .env("RUST_BACKTRACE", "0")
        .envs(by_libtorch.then_some((BY_LIBTORCH, "1")))
        .output()
        .unwrap()
}

#[test]
fn a_lane_takes_no_more_memory_than_it_says() {
    if let Some(folder) = env::var_os(SHARD) {
        memory::share();
        drop(engine());
        println!("data {}", data());
        let intervals = env::var(INTERVALS).unwrap().parse().unwrap();
        if intervals > 0 {
            compute(Arc::new(read_shard(Path::new(&folder))), intervals);
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = write_shard(folder.path());
    let takes = Footprint::training(&program, STEPS);
    for by_libtorch in [false, true] {
        let bounded = |intervals, data| bounded(folder.path(), by_libtorch, intervals, data);
        let told = String::from_utf8(bounded(0, None).stdout).unwrap();
        let begins: u64 = told.lines().find_map(|line| line.strip_prefix("data ")).expect(&told).parse().unwrap();
        let enough = bounded(4, Some(begins + takes.alone() + SLACK));
        assert!(enough.status.success(), "{takes:?}: {}", String::from_utf8_lossy(&enough.stderr));
        // The bound is one: half of what the lane takes is too little, though nobody asked anything while it computes.
        let short = bounded(4, Some(begins + takes.lane / 2));
        assert!(!short.status.success(), "half of the lane's is enough, too: {takes:?}");
    }
}
