//! A serving job of a tiny encoder in two stages.

use std::sync::Arc;

use cid::Cid;
use tensorlink_model::fixture::integers::quantized;
use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{Architecture, Head, Plan, Setting};
use tensorlink_node::Identity;
use tensorlink_node::ports::Store;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::manifest::{MANIFEST_VERSION, Manifest, ServingFiles, StageFiles};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_types::abi::JobKind;

use super::{MemoryStore, identity, job_view};

/// Most tokens of a text.
pub const LONGEST: u32 = 5;
/// Tokens that each lane may be paid for.
pub const TOKENS: u32 = 1000;

const SIZE: Dimensions =
    Dimensions { vocabulary: 20, width: 8, layers: 2, heads: 2, kv_heads: 1, hidden: 12, context: 6 };

/// Who pays for the job.
pub fn user() -> Identity {
    identity(0x55)
}

pub fn serving_view(stages: u16) -> JobView {
    let view = job_view(stages, TOKENS);
    JobView { kind: JobKind::Serving, user: user().address(), steps_per_interval: LONGEST, ..view }
}

/// Plan and constants of each stage of an encoder with `layers` layers in all, one a stage.
pub fn plans() -> Vec<(Plan, Vec<Tensor>)> {
    cut(random::bert(SIZE))
}

/// Tokens of a long prompt.
pub const LONG: u32 = 64;

/// As [`plans`], for texts of [`LONG`] tokens.
pub fn long_plans() -> Vec<(Plan, Vec<Tensor>)> {
    cut(random::bert(Dimensions { context: LONG + 1, ..SIZE }))
}

/// As [`plans`], of a decoder: a text's rows come token by token.
pub fn decoder_plans() -> Vec<(Plan, Vec<Tensor>)> {
    cut(random::gpt2(SIZE))
}

/// As [`decoder_plans`], of a tiny Llama whose last stage chooses tokens.
pub fn choosing_plans() -> Vec<(Plan, Vec<Tensor>)> {
    cut_with(random::llama(SIZE), Head::Choice)
}

fn cut(architecture: Architecture) -> Vec<(Plan, Vec<Tensor>)> {
    cut_with(architecture, Head::Output)
}

fn cut_with(architecture: Architecture, head: Head) -> Vec<(Plan, Vec<Tensor>)> {
    let weights = random::weights(&architecture, 5).unwrap();
    let layers = architecture.layers;
    let model = quantized(&architecture, Setting::default(), &weights).unwrap();
    (0..layers).map(|layer| model.stage_with(layer..layer + 1, head, tensor_root).unwrap()).collect()
}

pub fn serving_shards() -> Vec<Arc<ServingShard>> {
    shards(plans())
}

/// Shards of stages that serve texts of [`LONGEST`] tokens.
pub fn shards(stages: Vec<(Plan, Vec<Tensor>)>) -> Vec<Arc<ServingShard>> {
    let shard = |(plan, constants): (Plan, Vec<Tensor>)| ServingShard::new(plan, constants.into(), LONGEST).unwrap();
    stages.into_iter().map(|stage| Arc::new(shard(stage))).collect()
}

/// Puts the shards' files into a store; their manifest.
pub async fn publish_serving(store: &MemoryStore, shards: &[Arc<ServingShard>]) -> (Cid, Manifest) {
    let mut stages = Vec::new();
    for shard in shards {
        let mut constants = Vec::new();
        for constant in shard.constants.iter() {
            constants.push(store.put(constant.to_bytes().into()).await.unwrap().to_string());
        }
        let plan = store.put(encode("plan", &*shard.plan).unwrap()).await.unwrap().to_string();
        stages.push(StageFiles::Serving(ServingFiles { plan, constants }));
    }
    let manifest = Manifest { version: MANIFEST_VERSION, name: "test".into(), stages, bounds: Default::default() };
    (store.put(serde_json::to_vec(&manifest).unwrap().into()).await.unwrap(), manifest)
}
