use safetensors::Dtype;
use safetensors::tensor::{TensorView, serialize};

use super::*;

const GOOD: &str = r#"{"name": "m", "layers": [{"kind": "linear", "out": 3}, {"kind": "relu"}],
    "optimizer": {"learning_rate": 0.1, "momentum": 0.9}, "batch_size": 8, "micro_batches": 2, "steps": 5,
    "operand_bits": 8, "seed": 1}"#;

fn parse(from: &str, to: &str) -> Result<Model, ModelError> {
    assert!(GOOD.contains(from), "{from}");
    Model::parse("m.json", GOOD.replace(from, to).as_bytes())
}

#[test]
fn network_appends_the_class_layer() {
    let network = parse("", "").unwrap().network(4, 10).unwrap();
    let relu = Some(Activation::Relu);
    assert_eq!(
        network.layers,
        [Linear { input: 4, output: 3, activation: relu }, Linear { input: 3, output: 10, activation: None }]
    );
    assert_eq!((network.micro_rows(), network.features(), network.classes()), (4, 4, 10));
}

#[test]
fn a_mark_before_the_text_is_passed_over() {
    let marked = |json: &str| format!("\u{feff}{json}").into_bytes();
    assert!(Model::parse("m.json", &marked(GOOD)).is_ok());
    assert!(LanguageModel::is_meant(&marked(r#"{"decoder": {}}"#)));
}

#[test]
fn rates_rise_and_fall_where_there_is_a_warmup() {
    let rates = |to| parse("0.9}", to).unwrap().network(4, 10).unwrap().rates;
    assert_eq!(rates("0.9}"), None);
    let rates = rates("0.9, \"warmup\": 2}").unwrap();
    assert_eq!((rates.len(), rates[0], rates[1], rates[2]), (5, 0.05, 0.1, 0.1));
    assert!(rates[2..].windows(2).all(|pair| pair[0] > pair[1]) && rates[4] > 0.01, "{rates:?}");
}

#[test]
fn refuses_unknown_and_missing_fields() {
    for (from, to) in [
        ("\"seed\": 1", "\"seed\": 1, \"dropout\": 0.1"),
        (", \"seed\": 1", ""),
        ("\"momentum\": 0.9", "\"momentum\": 0.9, \"nesterov\": true"),
        ("\"out\": 3", "\"out\": 3, \"bias\": false"),
        ("\"out\": 3", "\"out\": \"three\""),
        ("\"kind\": \"relu\"", "\"kind\": \"relu\", \"slope\": 0.1"),
        ("\"kind\": \"relu\"", "\"type\": \"relu\""),
        ("0.9}", "NaN}"),
        ("{\"name\"", "\"name\""),
    ] {
        let error = parse(from, to).unwrap_err();
        assert!(matches!(&error, ModelError::Syntax { file, .. } if file == "m.json"), "{to}: {error}");
    }
    let huge = vec![b' '; MAX_MODEL_FILE + 1];
    assert!(matches!(Model::parse("m.json", &huge), Err(ModelError::TooLarge { .. })));
}

#[test]
fn refuses_layers_it_cannot_compute() {
    let error = parse("\"relu\"", "\"conv2d\"").unwrap_err();
    assert!(matches!(&error, ModelError::UnknownLayer { layer: 1, kind, .. } if kind == "conv2d"), "{error}");
    let stray = ModelError::StrayActivation { file: "m.json".into(), layer: 0 };
    assert_eq!(parse("{\"kind\": \"linear\", \"out\": 3}", "{\"kind\": \"gelu\"}"), Err(stray));
    let error = parse("\"out\": 3", "\"out\": 4097").unwrap_err();
    assert!(error.to_string().contains("at most 4096 inputs"), "{error}");
    assert!(matches!(error, ModelError::TooWide { width: 4097, .. }));
    assert!(matches!(parse("\"out\": 3", "\"out\": 0"), Err(ModelError::OutOfRange { .. })));
    let model = parse("", "").unwrap();
    assert!(matches!(model.network(4097, 2), Err(ModelError::TooWide { width: 4097, .. })));
    assert!(matches!(model.network(4, 5000), Err(ModelError::TooWide { width: 5000, .. })));
}

/// A schedule is a constant of the program.
const TOO_LONG: &str = "0.9, \"warmup\": 5}, \"batch_size\": 8, \"micro_batches\": 2, \"steps\": 1000001";

#[test]
fn refuses_numbers_out_of_range() {
    for (from, to, name) in [
        ("\"learning_rate\": 0.1", "\"learning_rate\": 0", "learning_rate"),
        ("\"momentum\": 0.9", "\"momentum\": 1.0", "momentum"),
        ("\"momentum\": 0.9", "\"momentum\": 0.9, \"warmup\": 5", "warmup"),
        ("0.9}, \"batch_size\": 8, \"micro_batches\": 2, \"steps\": 5", TOO_LONG, "steps"),
        ("\"batch_size\": 8", "\"batch_size\": 0", "batch_size"),
        ("\"batch_size\": 8", "\"batch_size\": 8192", "batch_size"),
        ("\"micro_batches\": 2", "\"micro_batches\": 3", "micro_batches"),
        ("\"steps\": 5", "\"steps\": 0", "steps"),
        ("\"operand_bits\": 8", "\"operand_bits\": 4", "operand_bits"),
        ("\"name\": \"m\"", "\"name\": \"\"", "name"),
    ] {
        let error = parse(from, to).unwrap_err();
        assert!(matches!(&error, ModelError::OutOfRange { field, .. } if field == name), "{to}: {error}");
    }
}

/// A weights file for `GOOD` on 2 features and 2 classes; `change` may spoil it.
fn weights(
    change: impl FnOnce(&mut Vec<(String, Dtype, Vec<usize>, Vec<u8>)>),
) -> Result<Vec<LayerWeights>, WeightsError> {
    let floats = |n: usize| (0..n).flat_map(|i| (i as f32 / 8.0).to_le_bytes()).collect::<Vec<_>>();
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = vec![
        ("layers.0.weight".into(), Dtype::F32, vec![3, 2], floats(6)),
        ("layers.0.bias".into(), Dtype::F32, vec![3], floats(3)),
        ("layers.1.weight".into(), Dtype::F32, vec![2, 3], floats(6)),
        ("layers.1.bias".into(), Dtype::F64, vec![2], [0.5f64, -0.25].iter().flat_map(|x| x.to_le_bytes()).collect()),
    ];
    change(&mut tensors);
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, data)| (name.as_str(), TensorView::new(*dtype, shape.clone(), data).unwrap()));
    let bytes = serialize(views, None).unwrap();
    weights::import("w.safetensors", &bytes, &parse("", "").unwrap().network(2, 2).unwrap())
}

#[test]
fn imports_both_float_types() {
    let layers = weights(|_| {}).unwrap();
    assert_eq!(layers[0].weight, [0.0, 0.125, 0.25, 0.375, 0.5, 0.625]);
    assert_eq!(layers[1].bias, [0.5, -0.25]);
}

#[test]
fn refuses_bad_weights() {
    use WeightsError::{Dtype as BadDtype, Missing, Shape, Syntax, Unknown, Value};
    assert!(matches!(weights(|t| drop(t.remove(1))), Err(Missing { tensor, .. }) if tensor == "layers.0.bias"));
    let extra = ("layers.2.weight".to_owned(), Dtype::F32, vec![1], vec![0; 4]);
    assert!(matches!(weights(|t| t.push(extra)), Err(Unknown { tensor, .. }) if tensor == "layers.2.weight"));
    let shape = weights(|t| t[0].2 = vec![2, 3]);
    assert!(matches!(shape, Err(Shape { expected, actual, .. }) if expected == [3, 2] && actual == [2, 3]));
    let half = weights(|t| (t[1].1, t[1].3) = (Dtype::F16, vec![0; 6]));
    assert!(matches!(half, Err(BadDtype { dtype, .. }) if dtype == "F16"));
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e9] {
        let spoiled = weights(|t| t[2].3[4..8].copy_from_slice(&value.to_le_bytes()));
        assert!(matches!(spoiled, Err(Value { index: 1, tensor, .. }) if tensor == "layers.1.weight"), "{value}");
    }
    let network = parse("", "").unwrap().network(2, 2).unwrap();
    let garbage = weights::import("w.safetensors", b"garbage", &network);
    assert!(matches!(garbage, Err(Syntax { file, .. }) if file == "w.safetensors"));
}
