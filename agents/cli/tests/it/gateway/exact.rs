//! An exact transformer behind the gateway.

use std::sync::Arc;

use serde_json::{Value, json};
use tensorlink_gateway::backend::{Before, Makes, Model, TokenizeError};
use tensorlink_gateway::exact::Exact;
use tensorlink_gateway::local::Local;
use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{Architecture, Quantized, Setting, StageRunner, tokens};
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_tensor::{Device, TorchEngine, calibrate};
use tensorlink_types::TensorRoot;

use crate::served::{limits, start};

const SIZE: Dimensions =
    Dimensions { vocabulary: 50, width: 24, layers: 3, heads: 4, kv_heads: 2, hidden: 40, context: 16 };

fn quantized(architecture: Architecture) -> Quantized {
    let weights = random::weights(&architecture, 5).unwrap();
    let float = FloatModel::new(&architecture, &weights, Device::Cpu, Precision::F32).unwrap();
    let texts = [letters("exact", &Before::Default).unwrap(), letters("other", &Before::Default).unwrap()];
    let largest = calibrate(&float, texts.iter().map(Vec::as_slice)).unwrap();
    Quantized::new(architecture, Setting::default(), &weights, &largest).unwrap()
}

fn stage(model: &Quantized, layers: std::ops::Range<u32>) -> StageRunner<TorchEngine> {
    let (plan, constants) = model.stage(layers, |_| TensorRoot::default()).unwrap();
    StageRunner::new(TorchEngine::new(Device::Cpu).unwrap(), plan, &constants).unwrap()
}

fn letters(text: &str, _: &Before) -> Result<Vec<u32>, TokenizeError> {
    Ok(text.bytes().map(|byte| u32::from(byte) % SIZE.vocabulary).collect())
}

#[tokio::test]
async fn an_exact_model_in_two_stages_answers_with_its_own_vectors() {
    let model = quantized(random::bert(SIZE));
    let whole = stage(&model, 0..3).run(&tokens(&letters("exact", &Before::Default).unwrap()).unwrap()).unwrap();
    let expected: Vec<f32> = whole.to_f64().into_iter().map(|value| value as f32).collect();

    let exact = Exact::new(vec![stage(&model, 0..1), stage(&model, 1..3)], Arc::new(letters)).unwrap();
    let makes = Makes::Vectors { dimensions: 24 };
    let shape = Model { id: "tiny".into(), created: 0, context: 16, vocabulary: 50, makes };
    let mut local = Local::new();
    local.add(shape, exact, 4).unwrap();
    let server = start(Arc::new(local), limits()).await;
    let request = server.post(&json!({"model": "tiny", "input": ["exact", "other"]}));
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let vector =
        |index: usize| -> Vec<f32> { serde_json::from_value(answer["data"][index]["embedding"].clone()).unwrap() };
    assert_eq!(vector(0), expected);
    assert_ne!(vector(1), expected);
    // The model gives unit vectors.
    let length: f32 = expected.iter().map(|element| element * element).sum();
    assert!((length - 1.0).abs() < 0.01, "{length}");
    assert_eq!(answer["usage"]["prompt_tokens"], 10);
}

#[test]
fn stages_that_are_no_whole_embedding_model_are_refused() {
    let bert = quantized(random::bert(SIZE));
    let refused = |stages| Exact::<TorchEngine>::new(stages, Arc::new(letters)).err().unwrap().to_string();
    assert!(refused(vec![]).contains("without stages"));
    assert!(refused(vec![stage(&bert, 1..3)]).contains("begins with layer 1, expected 0"));
    assert!(refused(vec![stage(&bert, 0..2)]).contains("2 layers, the model 3"));
}
