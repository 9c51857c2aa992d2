//! Which language models are trained, in how many stages at most, and what they begin with.

use tensorlink_model::partition::partition;
use tensorlink_model::random::{Dimensions, bert, gpt2, llama, weights};
use tensorlink_model::{Architecture, Output};
use tensorlink_num::{StepContext, Tensor};
use tensorlink_training::calibrate::{float_data, job_key};
use tensorlink_training::data::text::Tokens;
use tensorlink_training::model::language::Origin;
use tensorlink_training::step::StepGraph;
use tensorlink_training::step::float::Values;
use tensorlink_training::{LanguageModel, Training};
use tensorlink_types::TensorRoot;

use super::{GPT2, TINY, floats_of, king_james, recipe};

#[test]
fn a_tied_model_is_one_stage() {
    let (_, training, _) = king_james(GPT2, 8);
    let bytes: Vec<u64> = training.layers.iter().map(|layer| layer.bytes).collect();
    assert_eq!(partition(&bytes, &[u64::MAX]).unwrap(), [0..1]);
    let refused = partition(&bytes, &[u64::MAX; 2]).unwrap_err().to_string();
    assert!(refused.contains(r#"write `"tied": false`"#) && refused.contains("untie"), "{refused}");
}

/// What was trained elsewhere begins where it ended, with a head of its own or without.
#[test]
fn imported_models_begin_as_they_are() {
    let (folder, rows) = (gpt2(TINY), 5);
    let weights = weights(&folder, 4).unwrap();
    let ids: Vec<u32> = (0..rows * 6 + 6).map(|i| i * 7 % 11).collect();
    let data = Tokens { ids, vocabulary: folder.vocabulary }.split(6).unwrap().training;
    let floats = float_data(&data);
    let begun = |untie: bool| {
        let json = format!(
            r#"{{ "name": "tune", "from": {{ "folder": "gpt2", "context": 6, "untie": {untie} }},
                "optimizer": {{ "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 }},
                "sequences": 2, "steps": 3, "operand_bits": 16, "seed": 1 }}"#
        );
        let model = LanguageModel::parse("tune.json", json.as_bytes()).unwrap();
        let Origin::From(imported) = model.origin() else { panic!("{:?}", model.origin()) };
        let training = Training::of_imported(&model, imported, (&folder, &weights), rows).unwrap();
        let cut = if untie { vec![0..2, 2..4] } else { vec![0..1] };
        let calibration = training.calibrate(&data, 3, 1).unwrap();
        let commit = |_: &Tensor| TensorRoot::default();
        assert_eq!(training.compile(&calibration, &data, &cut, commit).unwrap().len(), cut.len());
        let context = StepContext { job_key: job_key(3), step: 0 };
        let values = Values::compute(&training.graph, &floats, &training.state, &context);
        assert_eq!(training.state["embedding.tokens"], floats_of(weights.get("embedding.tokens").unwrap()));
        values.loss()
    };
    assert_eq!(begun(false), begun(true));
}

#[test]
fn other_architectures_are_refused() {
    let both_ways = Architecture { causal: false, ..gpt2(TINY) };
    let classes = Architecture { output: Output::Classes(3), ..gpt2(TINY) };
    for (architecture, what) in [
        (bert(TINY), "an embedding is not trained yet"),
        (both_ways, "an encoder with a logit for each word"),
        (classes, "a decoder with classes"),
        (llama(Dimensions { vocabulary: 4099, ..TINY }), "a vocabulary of 4099"),
        (llama(Dimensions { context: 5, ..TINY }), "at most 5"),
        (llama(Dimensions { width: 4104, ..TINY }), "a width of 4104"),
    ] {
        let refused = StepGraph::language(&architecture, &recipe(6, 1, 8, 1), 2).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}
