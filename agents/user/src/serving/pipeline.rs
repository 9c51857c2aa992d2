//! A running serving job as its user sees it: texts in, what the last stage gives out, a receipt from every stage.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::{JobState, JobView, RedeemedView};
use tensorlink_num::Tensor;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, JobId, Lane};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agreement::Agreement;
use super::archive::{Archive, KEPT, TextReceipts};
use super::boundaries::Boundaries;
use super::courier;
use super::fault::{OpenError, TextError};
use super::lane::LaneClient;
use super::numbers::Numbers;
use super::pace::Paces;
use super::sending::{Step, Text};
use super::shared::Shared;
use crate::placing::Reach;

/// Texts under way at once; others wait. Bounds the rows that are kept in memory.
pub const TEXTS: usize = 32;
/// Longest wait for workers to take their last vouchers.
const LAST: Duration = Duration::from_secs(10);

/// A client of a running serving job.
#[derive(Debug)]
pub struct Pipeline {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    couriers: TaskTracker,
    shutdown: CancellationToken,
}

impl Pipeline {
    /// Takes up a running job of ours, whose stages have these `boundaries`, for texts on which lanes are to agree.
    /// Workers are told what they may have missed. A lane whose account cannot be taken up is left out, with a warning,
    /// while its stage has enough others.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(
        ports: Ports,
        job: &JobView,
        boundaries: Boundaries,
        agreement: Agreement,
    ) -> Result<Self, OpenError> {
        if job.state != JobState::Running {
            return Err(OpenError::State { job: job.id, state: job.state });
        }
        if agreement.lanes() > job.replicas {
            return Err(OpenError::Replicas { job: job.id, replicas: job.replicas, asked: agreement.lanes() });
        }
        Self::take_up(ports, job, boundaries, agreement).await
    }

    /// The same of a job that is closed, or about to be, and takes no texts: its workers are paid what they are owed.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_to_pay(ports: Ports, job: &JobView, boundaries: Boundaries) -> Result<Self, OpenError> {
        if !matches!(job.state, JobState::Running | JobState::Closing | JobState::Settled) {
            return Err(OpenError::State { job: job.id, state: job.state });
        }
        let pipeline = Self::take_up(ports, job, boundaries, Agreement::of_one()).await?;
        pipeline.retire();
        Ok(pipeline)
    }

    async fn take_up(
        ports: Ports,
        job: &JobView,
        boundaries: Boundaries,
        agreement: Agreement,
    ) -> Result<Self, OpenError> {
        let id = job.id;
        if job.kind != JobKind::Serving {
            return Err(OpenError::Training(id));
        }
        if job.user != ports.identity.address() {
            return Err(OpenError::NotOurs { job: id, user: job.user });
        }
        if boundaries.stages() != usize::from(job.stages) {
            return Err(OpenError::Stages { job: id, stages: job.stages, files: boundaries.stages() });
        }
        let archive = Archive::open(&ports.journal, id, KEPT)?;
        let numbers = Numbers::open(&ports.journal, id)?;
        let mut lanes = Vec::new();
        for stage in 0..job.stages {
            lanes.push(open_stage(&ports, job, stage, agreement.lanes().into()).await?);
        }
        let (couriers, shutdown) = (TaskTracker::new(), CancellationToken::new());
        for lane in lanes.iter().flatten() {
            couriers.spawn(courier::run(Arc::clone(lane), ports.clone(), shutdown.clone()));
        }
        couriers.close();
        let shared = Shared {
            ports,
            job: id,
            boundaries,
            agreement,
            longest: job.steps_per_interval,
            most: job.intervals,
            lanes,
            down: Mutex::default(),
            up: Mutex::default(),
            wrong: Mutex::default(),
            paces: Paces::default(),
            numbers: Mutex::new(numbers),
            archive: Mutex::new(archive),
        };
        Ok(Self { shared: Arc::new(shared), places: Arc::new(Semaphore::new(TEXTS)), couriers, shutdown })
    }

    /// The job.
    pub fn job(&self) -> JobId {
        self.shared.job
    }

    /// Most tokens of a text.
    pub fn longest(&self) -> u32 {
        self.shared.longest
    }

    /// Tokens that the model knows: ids are below this.
    pub fn vocabulary(&self) -> u32 {
        self.shared.boundaries.vocabulary()
    }

    /// Whether every stage has as many workers that did not fail lately as must agree.
    pub fn alive(&self) -> bool {
        self.shared.alive()
    }

    /// The workers that are lost, of the stages that have not as many others as must agree: those that compute wrongly,
    /// that are `gone` and answered no text for more than `borne` seconds, or that have failed every text for as long,
    /// what failed before `since` apart.
    pub fn lost(&self, gone: impl Fn(Address) -> bool, (since, borne): (u64, u64)) -> Vec<Address> {
        self.shared.lost(gone, (since, borne))
    }

    /// The same of the stages that have as many others: texts go by those.
    pub fn spare(&self, gone: impl Fn(Address) -> bool, (since, borne): (u64, u64)) -> Vec<Address> {
        self.shared.spare(gone, (since, borne))
    }

    /// The workers that take much longer than they did, and have for more than `borne` seconds, while others do not; of
    /// the stages that have not as many others as must agree.
    pub fn slow(&self, borne: u64) -> Vec<Address> {
        self.shared.slow(borne)
    }

    /// The workers, in the order of lanes (`replica · stages + stage`).
    pub fn workers(&self) -> Vec<Address> {
        let mut workers: Vec<_> = self.shared.workers().collect();
        workers.sort_unstable_by_key(|((stage, replica), _)| (*replica, *stage));
        workers.into_iter().map(|(_, worker)| worker).collect()
    }

    /// The workers of whom enough answers to long prompts are known to say how fast they are, and when the newest came.
    pub fn timed(&self) -> BTreeMap<Address, u64> {
        self.shared.timed()
    }

    /// Multiply-adds a second of those workers, who are reached so, and when the newest answer came.
    pub fn rates(&self, reach: impl Fn(Address) -> Option<Reach>) -> BTreeMap<Address, (f64, u64)> {
        self.shared.rates(reach)
    }

    /// What crosses between the stages.
    pub fn boundaries(&self) -> &Boundaries {
        &self.shared.boundaries
    }

    /// Whether several lanes of a stage must agree on a text.
    pub(super) fn compares(&self) -> bool {
        self.shared.agreeing() > 1
    }

    /// Workers that compute wrongly, as texts have shown.
    pub fn liars(&self) -> Vec<Address> {
        self.shared.liars()
    }

    /// Most tokens that any lane was paid since the job began, or is owed, those of texts under way among them.
    pub fn tokens(&self) -> u32 {
        self.shared.lanes.iter().flatten().map(|lane| lane.account().tokens()).max().unwrap_or_default()
    }

    /// The text of the job that was delivered last.
    pub fn last_delivered(&self) -> Option<u32> {
        self.shared.archive().last()
    }

    /// Asks workers that were not heard of. Those that answer are there.
    pub async fn ask(&self, workers: &[Address]) {
        let places = (0..).zip(&self.shared.lanes).flat_map(|(stage, lanes)| {
            (0..).zip(lanes).filter(|(_, lane)| workers.contains(&lane.worker)).map(move |lane| (stage, lane))
        });
        let asked = places.map(async |(stage, (replica, lane))| {
            if lane.answers(&self.shared.ports).await {
                self.shared.heard(stage, replica);
            }
        });
        futures::future::join_all(asked).await;
    }

    /// Whether as many workers of a stage answer as must agree, those that compute wrongly apart.
    pub(super) async fn answers(&self, stage: u16) -> bool {
        let stage = usize::from(stage);
        let lanes = self.shared.lanes.get(stage).map(Vec::as_slice).unwrap_or_default();
        let right = lanes.iter().enumerate().filter(|(replica, _)| !self.shared.is_wrong(stage, *replica));
        let answers = right.map(|(_, lane)| lane.answers(&self.shared.ports));
        let answers = futures::future::join_all(answers).await;
        answers.into_iter().filter(|answers| *answers).count() >= self.shared.agreeing()
    }

    pub(super) fn ports(&self) -> &Ports {
        &self.shared.ports
    }

    /// Numbers for `count` texts, one after another, never used before.
    ///
    /// # Errors
    /// [`TextError::Number`].
    pub fn reserve(&self, count: u32) -> Result<Range<u32>, TextError> {
        Ok(self.shared.numbers().take(count)?)
    }

    /// Begins the text of a number that was reserved, once, as soon as there is a place for it.
    ///
    /// # Errors
    /// [`TextError::Closed`].
    pub async fn begin(&self, number: u32) -> Result<Text, TextError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| TextError::Closed)?;
        Ok(Text::new(Arc::clone(&self.shared), number, place))
    }

    /// Whether the last stage chooses tokens, by controls that come with each.
    pub fn chooses(&self) -> bool {
        self.shared.boundaries.chooses()
    }

    /// Computes a whole text of a model that chooses no tokens.
    ///
    /// # Errors
    /// [`TextError`]; the text then costs nothing.
    pub async fn compute(&self, number: u32, tokens: &[u32]) -> Result<(Tensor, TextReceipts), TextError> {
        let Step { output, receipts } = self.begin(number).await?.advance(tokens, None, true).await?;
        receipts.map(|receipts| (output, receipts)).ok_or(TextError::Closed)
    }

    /// The receipts of a text that was delivered, if they are still kept.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn receipts(&self, text: u32) -> Result<Option<TextReceipts>, JournalError> {
        self.shared.archive().get(text)
    }

    /// Takes no more texts. Those under way come to their end, and workers are paid until [`Self::close`].
    pub fn retire(&self) {
        self.places.close();
    }

    /// Whether no text is under way.
    pub fn is_idle(&self) -> bool {
        self.places.available_permits() == TEXTS
    }

    /// Takes no more texts, and gives workers some time to take what they are owed. The job stays open.
    pub async fn close(&self) {
        self.retire();
        self.pay().await;
        self.shutdown.cancel();
        self.couriers.wait().await;
    }

    /// Gives workers some time to take what they are owed.
    pub async fn pay(&self) {
        let told = self.shared.lanes.iter().flatten().map(|lane| async {
            if let Err(error) = lane.tell(&self.shared.ports, false).await {
                tracing::warn!(lane = %lane.lane, %error, "the worker is paid at the next start");
            }
        });
        let _ = tokio::time::timeout(LAST, futures::future::join_all(told)).await;
    }
}

/// The lanes of a stage whose accounts can be taken up; at least so many.
async fn open_stage(ports: &Ports, job: &JobView, stage: u16, least: usize) -> Result<Vec<Arc<LaneClient>>, OpenError> {
    let (mut lanes, mut first) = (Vec::new(), None);
    for replica in 0..job.replicas {
        let lane = Lane { job: job.id, stage, replica };
        let (worker, _) = ports.chain.assignment(lane).await?;
        let redeemed = ports.chain.redeemed(lane).await?;
        match open_lane(ports, lane, worker, redeemed, job.steps_per_interval) {
            Ok(client) => lanes.push(Arc::new(client)),
            Err(error) => {
                tracing::warn!(%lane, %worker, %error, "the lane is down until the next start: it gets no texts and no vouchers");
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if lanes.len() < least => Err(error),
        _ => Ok(lanes),
    }
}

fn open_lane(
    ports: &Ports,
    lane: Lane,
    worker: Address,
    redeemed: RedeemedView,
    longest: u32,
) -> Result<LaneClient, OpenError> {
    let client = LaneClient::open(ports, lane, worker, longest)?;
    client.redeemed(redeemed).map_err(|source| OpenError::Account { lane, source })?;
    Ok(client)
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
