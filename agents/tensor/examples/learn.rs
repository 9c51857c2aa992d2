//! Loss of exact training against libtorch's floats, same weights, sequences and schedule.
use std::io::Read;
use tensorlink_graph::calibrate::job_key;
use tensorlink_graph::data::text::Text;
use tensorlink_graph::*;
use tensorlink_num::{StepContext, Tensor, philox};
use tensorlink_tensor::float::{FloatTraining, Precision};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_types::TensorRoot;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let steps: u32 = args[1].parse()?;
    let bits: Vec<u8> = args[2].split(',').filter_map(|b| b.parse().ok()).collect();
    let shape = &args[3];
    tch::set_num_threads(1);
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open("examples/kjv-1100k.txt.gz")?).read_to_end(&mut text)?;
    let sequences: u32 = args[4].parse()?;
    let model = |bits: u8| {
        let json = format!(
            r#"{{ "name": "kjv", "decoder": {shape}, "optimizer": {{ "learning_rate": 0.003, "warmup": 50, "weight_decay": 0.1, "clip": 1.0 }},
            "sequences": {sequences}, "steps": {steps}, "operand_bits": {bits}, "seed": 1 }}"#
        );
        LanguageModel::parse("m", json.as_bytes())
    };
    let m = model(8)?;
    let data = Text::parse(&text)?.split(m.context())?;
    let rows = data.training.features.ty().dims()[0];
    let key = job_key(9);
    let t = m.context() as usize;
    let (x, y) = (data.training.features.mantissas().to_vec(), data.training.labels.mantissas().to_vec());
    let held = |n: usize| {
        let (hx, hy) = (data.held_out.features.mantissas().to_vec(), data.held_out.labels.mantissas().to_vec());
        (hx[..n * t].to_vec(), hy[..n * t].to_vec())
    };
    let (hx, hy) = held(64);
    let training = Training::of_language(&m, data.classes.len() as u32, rows)?;
    let batch = |step: u32| {
        let (mut bx, mut by) = (Vec::new(), Vec::new());
        for s in 0..sequences {
            let row = philox::draw_below(&key, s, step, rows.into()) as usize;
            bx.extend_from_slice(&x[row * t..(row + 1) * t]);
            by.extend_from_slice(&y[row * t..(row + 1) * t]);
        }
        (bx, by)
    };
    println!("{} parameters, {} rows", training.parameters(), rows);
    for precision in [Precision::F32, Precision::Bf16] {
        let architecture = m.architecture(data.classes.len() as u32);
        let mut float =
            FloatTraining::new(&architecture, &m.recipe(sequences), &training.state, (Device::Cpu, precision))?;
        let started = std::time::Instant::now();
        let mut sum = 0.0;
        for step in 0..steps {
            let (bx, by) = batch(step);
            sum += float.step(&bx, &by, t, step)?;
            if step % 50 == 49 {
                println!(
                    "{precision:?} {} train {:.4} held {:.4} {:.0}s",
                    step + 1,
                    sum / 50.0,
                    float.loss(&hx, &hy, t)?,
                    started.elapsed().as_secs_f64()
                );
                sum = 0.0;
            }
        }
    }
    for bits in bits {
        let m = model(bits)?;
        let training = Training::of_language(&m, data.classes.len() as u32, rows)?;
        let started = std::time::Instant::now();
        let calibration = training.calibrate(&data.training, 12, 2)?;
        println!("calibrated in {:.0}s", started.elapsed().as_secs_f64());
        let layers = training.layers.len();
        let stage =
            training.compile(&calibration, &data.training, &[0..layers], |_: &Tensor| TensorRoot::default())?.remove(0);
        let state = init::state(&stage.program, &training.state)?;
        let program = CheckedProgram::new(stage.program)?;
        println!("{} operators", program.operators.len());
        let engine = TorchEngine::new(Device::Cpu)?;
        let stages = [Stage { program: &program, info: &stage.info, constants: &stage.constants, state: &state }];
        let mut pipeline = LocalPipeline::new(&stages, key, || engine.clone())?;
        let started = std::time::Instant::now();
        let mut sum = 0.0;
        for step in 0..steps {
            sum += pipeline.step(step, Schedule::OneByOne)?.loss();
            if step % 50 == 49 {
                let state = pipeline.state()?.remove(0);
                let stages =
                    [Stage { program: &program, info: &stage.info, constants: &stage.constants, state: &state }];
                let ty =
                    |n: u32, w: &Tensor| tensorlink_types::TensorType::new(w.ty().bits(), 0, &[n, t as u32]).unwrap();
                let set = TrainingSet {
                    features: Tensor::from_wide(ty(64, &data.held_out.features), &hx)?,
                    labels: Tensor::from_wide(ty(64, &data.held_out.labels), &hy)?,
                };
                let held = evaluate(&engine, &stages, &set)?;
                println!(
                    "{bits} bits {} train {:.4} held {:.4} {:.0}s",
                    step + 1,
                    sum / 50.0,
                    held.loss(),
                    started.elapsed().as_secs_f64()
                );
                sum = 0.0;
            }
        }
    }
    let _ = StepContext::default();
    Ok(())
}
