//! Plans as they were published before texts came in pairs and vectors went through dense layers: jobs that are under
//! way, and folders of integers, have them.

use std::ops::Range;

use serde::Deserialize;
use tensorlink_types::program::ConstantSlot;

use super::super::architecture::{Activation, Architecture, Local, Norm, Output, Placement, Positions};
use super::super::family::Family;
use super::super::setting::Setting;
use super::super::sites::Sites;
use super::{Head, Plan};

/// A plan of a model without either. Forms without names of fields are read by their order.
#[derive(Deserialize, Debug)]
pub struct OlderPlan {
    architecture: OlderArchitecture,
    setting: Setting,
    sites: Sites,
    layers: Range<u32>,
    head: Head,
    constants: Vec<ConstantSlot>,
}

#[derive(Deserialize, Debug)]
struct OlderArchitecture {
    family: Family,
    vocabulary: u32,
    width: u32,
    layers: u32,
    heads: u32,
    kv_heads: u32,
    head_width: u32,
    hidden: u32,
    context: u32,
    norm: Norm,
    epsilon: f64,
    placement: Placement,
    activation: Activation,
    gated: bool,
    positions: Positions,
    local: Option<Local>,
    embedding_scale: Option<f64>,
    score_scale: Option<f64>,
    token_types: bool,
    attention_bias: bool,
    output_bias: bool,
    mlp_bias: bool,
    query_key_norm: bool,
    causal: bool,
    output: Output,
}

impl From<OlderPlan> for Plan {
    fn from(plan: OlderPlan) -> Self {
        let a = plan.architecture;
        Self {
            architecture: Architecture {
                family: a.family,
                vocabulary: a.vocabulary,
                width: a.width,
                layers: a.layers,
                heads: a.heads,
                kv_heads: a.kv_heads,
                head_width: a.head_width,
                hidden: a.hidden,
                context: a.context,
                norm: a.norm,
                epsilon: a.epsilon,
                placement: a.placement,
                activation: a.activation,
                gated: a.gated,
                positions: a.positions,
                local: a.local,
                embedding_scale: a.embedding_scale,
                score_scale: a.score_scale,
                token_types: a.token_types,
                attention_bias: a.attention_bias,
                output_bias: a.output_bias,
                mlp_bias: a.mlp_bias,
                query_key_norm: a.query_key_norm,
                causal: a.causal,
                output: a.output,
                dense: Vec::new(),
                pairs: false,
            },
            setting: plan.setting,
            sites: plan.sites,
            layers: plan.layers,
            head: plan.head,
            constants: plan.constants,
        }
    }
}
