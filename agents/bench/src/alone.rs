//! The engine alone, in this process: a decoder in one stage, which goes on with a text by the likeliest tokens.

use anyhow::{Context, Result};
use tensorlink_model::plan::Head;
use tensorlink_model::{CachedRunner, Quantized, Session, Turn, tokens};
use tensorlink_tensor::TorchEngine;
use tensorlink_types::TensorRoot;

use super::subject::{chosen, likeliest};

/// All layers of a decoder, and the choice of tokens.
pub(super) fn choosing(engine: TorchEngine, model: &Quantized) -> Result<CachedRunner<TorchEngine>> {
    let all = 0..model.architecture().layers;
    let (plan, constants) = model.stage_with(all, Head::Choice, |_| TensorRoot::default())?;
    Ok(CachedRunner::new(engine, plan, &constants)?)
}

/// The likeliest token after some more.
pub(super) fn choose(
    runner: &mut CachedRunner<TorchEngine>,
    session: &mut Session<TorchEngine>,
    ids: &[u32],
) -> Result<u32> {
    let (rows, controls) = (tokens(ids)?, likeliest(session.position(), ids)?);
    let outputs = runner.advance(&mut [Turn { session, rows: &rows, controls: Some(&controls) }])?;
    chosen(outputs.first().context("no output")?)
}
