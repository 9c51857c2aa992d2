//! The digits model cut into stages that are connected in memory or by nodes on the loopback interface.

use std::fmt;
use std::io::Read;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tensorlink_node::Identity;
use tensorlink_node::interval::Boundaries;
use tensorlink_num::Tensor;
use tensorlink_program::CheckedProgram;
use tensorlink_proof::commit::{Boundary, tensor_root};
use tensorlink_training::calibrate::{calibrate, float_state, job_key};
use tensorlink_training::{Margins, Model, StageInfo, Table, compile, init};
use tensorlink_types::{JobId, JobKey, Lane};
use tensorlink_worker::training::boundary::{Neighbour, Neighbours};
use tensorlink_worker::training::link::{Link, LinkError};
use tokio_util::sync::CancellationToken;

use crate::Result;
use crate::support::nodes::{Nodes, limit, secret};

/// How neighbours are connected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// By pipes in memory: the least a step can take, so the most that commitments can add to it.
    Memory,
    /// By encrypted streams of the worker's own network on the loopback interface, as in `script/demo`.
    Loopback,
}

impl fmt::Display for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::Loopback => "loopback",
        })
    }
}

/// Neighbours, and the time spent waiting for them.
pub(crate) struct Timed {
    pub(crate) neighbours: Neighbours,
    pub(crate) waiting: Duration,
}

impl Boundaries for Timed {
    type Error = LinkError;

    fn receive(&mut self, boundary: Boundary, step: u32, micro_batch: u32) -> std::result::Result<Bytes, LinkError> {
        let start = Instant::now();
        let data = self.neighbours.receive(boundary, step, micro_batch);
        self.waiting += start.elapsed();
        data
    }

    fn must_wait(&self, boundary: Boundary) -> bool {
        self.neighbours.must_wait(boundary)
    }

    fn send(
        &mut self,
        boundary: Boundary,
        step: u32,
        micro_batch: u32,
        data: Bytes,
    ) -> std::result::Result<(), LinkError> {
        let start = Instant::now();
        let sent = self.neighbours.send(boundary, step, micro_batch, data);
        self.waiting += start.elapsed();
        sent
    }
}

/// What a worker of one stage has.
pub(crate) struct Stage {
    pub(crate) lane: Lane,
    pub(crate) stages: u16,
    pub(crate) program: CheckedProgram,
    pub(crate) info: StageInfo,
    pub(crate) constants: Vec<Tensor>,
    pub(crate) state: Vec<Tensor>,
    pub(crate) key: JobKey,
    pub(crate) identity: Identity,
    pub(crate) boundaries: Timed,
}

/// A file of the examples.
pub(crate) fn example(name: &str) -> Result<Vec<u8>> {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    Ok(std::fs::read(&path).map_err(|e| format!("{path}: {e}"))?)
}

/// Cuts the example into stages and connects them. Within a runtime.
pub(crate) async fn pipeline(model: &Model, links: Links, stop: &CancellationToken) -> Result<(Vec<Stage>, Nodes)> {
    let mut csv = Vec::new();
    flate2::read::GzDecoder::new(example("digits.csv.gz")?.as_slice()).read_to_end(&mut csv)?;
    let data = Table::parse(&csv)?.split(model.operand_bits(), model.seed())?;
    let network = model.network(u32::try_from(data.scales.len())?, u32::try_from(data.classes.len())?)?;
    let weights = init::gaussian(&network, model.seed());
    let margins = Margins::for_operands(model.operand_bits());
    let calibration = calibrate(&network, &weights, &data.training, model.steps(), model.seed(), margins)?;
    let cuts: Vec<_> = (0..network.layers.len()).map(|layer| layer..layer + 1).collect();
    let compiled = compile(&network, &calibration.exponents, &data.training, &cuts, tensor_root)?;

    let count = u16::try_from(compiled.len())?;
    let mut stages: Vec<Stage> = Vec::new();
    let nodes = Nodes::new(if links == Links::Loopback { count } else { 0 }, None).await?;
    for (number, stage) in (0..count).zip(compiled) {
        let state = init::state(&stage.program, &float_state(&weights))?;
        let identity = Identity::new(&secret(number)?)?;
        let mut neighbours = Neighbours::default();
        if let Some(previous) = stages.last_mut() {
            let (before, after) = nodes.connect(usize::from(number)).await?;
            let link = Link::new(before, limit(&previous.program.from_next)?, stop);
            previous.boundaries.neighbours.next = Some(Neighbour { address: identity.address(), link });
            let link = Link::new(after, limit(&stage.program.from_previous)?, stop);
            neighbours.previous = Some(Neighbour { address: previous.identity.address(), link });
        }
        stages.push(Stage {
            lane: Lane { job: JobId(1), stage: number, replica: 0 },
            stages: count,
            program: CheckedProgram::new(stage.program)?,
            info: stage.info,
            constants: stage.constants,
            state,
            key: job_key(model.seed()),
            identity,
            boundaries: Timed { neighbours, waiting: Duration::ZERO },
        });
    }
    Ok((stages, nodes))
}
