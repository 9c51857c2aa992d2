//! Language models on held-out sequences of a text, against libtorch's autograd over the whole decoder.

use tensorlink_tensor::float::{FloatTraining, Precision};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_training::calibrate::job_key;
use tensorlink_training::data::text::Text;
use tensorlink_training::model::Decoder;
use tensorlink_training::model::language::Origin;
use tensorlink_training::{Dataset, LanguageModel, Training, evaluate};
use tensorlink_types::JobKey;

use crate::progress::Progress;
use crate::{Exact, Outcome, Subject};

/// Steps of calibration, as `job post` takes them.
const CALIBRATION: u32 = 12;

/// A decoder and its text.
pub(crate) struct Decoded {
    json: serde_json::Value,
    data: Dataset,
    key: JobKey,
}

impl Decoded {
    pub(crate) fn new(json: serde_json::Value, text: &[u8]) -> Outcome<Self> {
        let context = LanguageModel::parse("the model", json.to_string().as_bytes())?.context();
        Ok(Self { json, data: Text::parse(text)?.split(context)?, key: job_key(9) })
    }

    fn model(&self, bits: u8) -> Outcome<LanguageModel> {
        let mut json = self.json.clone();
        json["operand_bits"] = bits.into();
        Ok(LanguageModel::parse("the model", json.to_string().as_bytes())?)
    }

    fn rows(&self) -> u32 {
        self.data.training.features.ty().dims().first().copied().unwrap_or_default()
    }

    fn characters(&self) -> u32 {
        self.data.classes.len() as u32
    }

    fn training(&self, model: &LanguageModel) -> Outcome<Training> {
        Ok(Training::of_language(model, decoder(model)?, self.characters(), self.rows())?)
    }
}

impl Subject for Decoded {
    fn exact(&self, bits: u8) -> Outcome<Exact> {
        let (model, held_out, engine) = (self.model(bits)?, self.data.held_out.clone(), TorchEngine::new(Device::Cpu)?);
        Ok(Exact {
            training: self.training(&model)?,
            calibration: CALIBRATION,
            data: self.data.training.clone(),
            held_out: Box::new(move |stage| Ok(evaluate(&engine, &[stage], &held_out)?.loss())),
            key: self.key,
            seed: model.seed(),
            steps: model.steps(),
        })
    }

    fn floats(&self, way: &str, precision: Precision) -> Outcome<()> {
        let model = self.model(8)?;
        let (training, tokens) = (self.training(&model)?, model.context() as usize);
        let recipe = model.recipe(model.sequences());
        let architecture = decoder(&model)?.architecture(self.characters());
        let mut float = FloatTraining::new(&architecture, &recipe, &training.state, (Device::Cpu, precision))?;
        let held_out = [&self.data.held_out.features, &self.data.held_out.labels].map(|ids| ids.mantissas().to_vec());
        let mut progress = Progress::new(way, model.steps());
        for step in 0..model.steps() {
            let [features, labels] = self.data.training.drawn(&self.key, step, model.sequences());
            let loss = float.step(&features, &labels, tokens, step)?;
            progress.take(step, loss, || Ok(float.loss(&held_out[0], &held_out[1], tokens)?))?;
        }
        Ok(())
    }
}

fn decoder(model: &LanguageModel) -> Outcome<&Decoder> {
    match model.origin() {
        Origin::Decoder(decoder) => Ok(decoder),
        Origin::Encoder(_) | Origin::From(_) => Err("only models with a `decoder` are learnt by".into()),
    }
}
