//! Trains a model on the reference engine, in one process, and prints held-out accuracy as it goes.
//!
//! ```text
//! cargo run --release -p tensorlink-training --example train -- examples/digits.json examples/digits.csv.gz
//! ```

use std::error::Error;
use std::io::Read;
use std::slice::from_ref;
use std::time::Instant;

use tensorlink_program::{CheckedProgram, Reference};
use tensorlink_training::calibrate::{calibrate, float_state, job_key};
use tensorlink_training::{LocalPipeline, Margins, Model, Schedule, Stage, Table, compile, evaluate, init};
use tensorlink_types::TensorRoot;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, data] = arguments.as_slice() else {
        return Err("usage: train MODEL.json DATA.csv[.gz]".into());
    };
    let model = Model::parse(model, &std::fs::read(model)?)?;
    let dataset = Table::parse(&read(data)?)?.split(model.operand_bits(), model.seed())?;
    let width = u32::try_from(dataset.scales.len())?;
    let network = model.network(width, u32::try_from(dataset.classes.len())?)?;
    let weights = init::gaussian(&network, model.seed());
    let begun = Instant::now();
    let margins = Margins::for_operands(model.operand_bits());
    let steps = model.steps().min(200);
    let calibration = calibrate(&network, &weights, &dataset.training, steps, model.seed(), margins)?;
    println!("{steps} float steps in {:.2?}, loss {:.4}", begun.elapsed(), calibration.last_loss);

    // Commitments are of no use here: nothing is claimed.
    let whole = 0..network.layers.len();
    let stages =
        compile(&network, &calibration.exponents, &dataset.training, from_ref(&whole), |_| TensorRoot::default())?;
    let [stage] = stages.try_into().map_err(|_| "one range of layers gives one stage")?;
    let state = init::state(&stage.program, &float_state(&weights))?;
    let program = CheckedProgram::new(stage.program)?;
    let stage = Stage { program: &program, info: &stage.info, constants: &stage.constants, state: &state };
    let mut pipeline = LocalPipeline::new(&[stage], job_key(model.seed()), || Reference)?;
    let begun = Instant::now();
    for step in 0..model.steps() {
        let metrics = pipeline.step(step, Schedule::OneByOne)?;
        let done = step + 1;
        if done % 50 == 0 || done == model.steps() {
            let state = pipeline.state()?.concat();
            let held_out = evaluate(&Reference, &[Stage { state: &state, ..stage }], &dataset.held_out)?;
            println!(
                "step {done}: loss {:.4}, held-out accuracy {:.2} % of {}, {:.1} steps/s",
                metrics.loss(),
                100.0 * held_out.accuracy(),
                held_out.rows,
                f64::from(done) / begun.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}

/// A file's bytes, unpacked if they are gzip.
fn read(path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).take(1 << 30).read_to_end(&mut plain)?;
    Ok(plain)
}
