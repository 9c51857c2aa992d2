//! A serving job of a small model, its workers over in-memory streams, and the user's pipeline to them.

use std::path::Path;
use std::sync::Arc;

use tensorlink_model::{Plan, StageRunner, tokens};
use tensorlink_node::ports::Clock;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::serving::ServingShard;
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_types::Lane;
use tensorlink_user::serving::{Agreement, Boundaries, LaneFault, OpenError, Pipeline, TextError};

use crate::serving::worker::Worker;
use crate::support::serving::{plans, serving_view};
use crate::support::{self, Hasty, Hub, JOB, MemoryChain, identity};

pub(crate) const STAGES: u16 = 2;
pub(crate) const TEXT: [u32; 4] = [3, 1, 4, 1];

pub(crate) struct World {
    pub(crate) hub: Arc<Hub>,
    pub(crate) chain: Arc<MemoryChain>,
    pub(crate) view: JobView,
    pub(crate) stages: Vec<(Plan, Vec<Tensor>)>,
    /// In the order of lanes.
    pub(crate) workers: Vec<Arc<Worker>>,
    pub(crate) folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new(stages: Vec<(Plan, Vec<Tensor>)>, replicas: u16) -> Self {
        let hub = Arc::new(Hub::default());
        // A job's texts are one token shorter than the model's context.
        let longest = stages.first().unwrap().0.architecture().context - 1;
        let view = JobView { replicas, steps_per_interval: longest, ..serving_view(STAGES) };
        let shard = |(plan, constants): &(Plan, Vec<Tensor>)| {
            Arc::new(ServingShard::new(plan.clone(), constants.clone().into(), longest).unwrap())
        };
        let shards: Vec<_> = stages.iter().map(shard).collect();
        let mut workers = Vec::new();
        for replica in 0..replicas {
            for stage in 0..STAGES {
                let (lane, key) = (Lane { job: JOB, stage, replica }, (1 + replica * STAGES + stage) as u8);
                workers.push(Worker::start(lane, key, shards[usize::from(stage)].clone(), &hub).await);
            }
        }
        let addresses: Vec<_> = (1..=workers.len()).map(|key| identity(key as u8).address()).collect();
        let chain = MemoryChain::serving(view.clone(), &addresses, &shards);
        Self { hub, chain, view, stages, workers, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn encoder(replicas: u16) -> Self {
        Self::new(plans(), replicas).await
    }

    pub(crate) async fn open_as(&self, key: u8, folder: &Path, view: &JobView) -> Result<Pipeline, OpenError> {
        self.open_at(Arc::new(Hasty), (key, folder, view)).await
    }

    pub(crate) async fn open_at(
        &self,
        clock: Arc<dyn Clock>,
        (key, folder, view): (u8, &Path, &JobView),
    ) -> Result<Pipeline, OpenError> {
        self.open_for(Agreement::of_one(), clock, (key, folder, view)).await
    }

    pub(crate) async fn open_for(
        &self,
        agreement: Agreement,
        clock: Arc<dyn Clock>,
        (key, folder, view): (u8, &Path, &JobView),
    ) -> Result<Pipeline, OpenError> {
        let mut ports = support::ports(key, self.chain.clone(), Arc::default(), self.hub.clone(), folder);
        ports.clock = clock;
        let plans: Vec<Plan> = self.stages.iter().map(|(plan, _)| plan.clone()).collect();
        Pipeline::open(ports, view, Boundaries::new(&plans).unwrap(), agreement).await
    }

    pub(crate) async fn open(&self) -> Pipeline {
        self.open_as(0x55, self.folder.path(), &self.view).await.unwrap()
    }

    /// What the model gives for a text.
    pub(crate) fn due(&self, text: &[u32]) -> Tensor {
        self.stages.iter().fold(tokens(text).unwrap(), |x, (plan, constants)| {
            StageRunner::new(Reference, plan.clone(), constants).unwrap().run(&x).unwrap()
        })
    }

    pub(crate) fn paid(&self) -> Vec<u32> {
        self.workers.iter().map(|worker| worker.paid()).collect()
    }
}

pub(crate) async fn compute(pipeline: &Pipeline, text: &[u32]) -> Result<Tensor, TextError> {
    let number = pipeline.reserve(1).unwrap().start;
    pipeline.compute(number, text).await.map(|(output, _)| output)
}

/// The fault of the only lane of a stage.
pub(crate) fn fault(error: TextError) -> (u16, LaneFault) {
    match error {
        TextError::Stage { stage, mut faults } => (stage, faults.pop().unwrap().1),
        other => panic!("{other}"),
    }
}
