//! A user's node: knows the market and the chain's events, posts jobs, hires workers, follows jobs. It puts its
//! components together, starts their tasks, and passes on what they are asked.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{ChainError, EventAt, Protocol};
use tensorlink_node::wire::gossip::{PROGRESS, Progress, SPEEDS, WORKERS};
use tensorlink_node::{Ports, Roster, blocking};
use tensorlink_placement::measured::Observation;
use tensorlink_training::TrainingSet;
use tensorlink_types::abi::Offer;
use tensorlink_types::{Address, B256, Bytes, JobId};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::dispatch::Dispatch;
use crate::fetching::Fetching;
use crate::heard::Heard;
use crate::hire::{Asked, Candidate, HireError, Wanted};
use crate::keeping::Keeping;
use crate::offers::Offers;
use crate::placing::{Reach, Reaches};
use crate::publish::JobNote;
use crate::recut::Uncut;
use crate::reports::Reports;
use crate::result::{Claims, ResultError, TrainedStage};
use crate::resume::{ResumeError, Resumption, resume};
use crate::serving::Pipeline;
use crate::settlement::Settlement;
use crate::speeds::{Speed, Speeds};
use crate::told::Telling;
use crate::workers::Workers;

/// Seconds for which what was seen of a worker here is all that counts, whatever others say.
const FRESH: f64 = 7.0 * 86_400.0;

/// A user's node.
pub struct User {
    /// Its world.
    pub ports: Ports,
    events: watch::Receiver<Vec<EventAt>>,
    workers: Arc<Workers>,
    reports: Arc<Reports>,
    offers: Offers,
    settlement: Settlement,
    fetching: Fetching,
    reaches: Reaches,
    speeds: Speeds,
    heard: Arc<Heard>,
}

impl User {
    /// Starts listening to the chain and to gossip, until `shutdown`.
    ///
    /// # Errors
    /// When chain or net cannot be listened to.
    pub async fn start(ports: Ports, shutdown: CancellationToken) -> Result<Arc<Self>, HireError> {
        let own = ports.identity.address();
        let roster = Arc::new(Roster::new(own));
        ports.net.set_gate(roster.clone());
        let (telling, events) = Telling::new(own);
        let keeping = Arc::new(Keeping::open(ports.clone(), events.clone())?);
        keeping.take_back(ports.chain.times_undone()?).await?;
        let mut chain_events = ports.chain.events(ports.chain.deployment().block).await?;
        let mut adverts = ports.net.subscribe(WORKERS).await?;
        let mut progress = ports.net.subscribe(PROGRESS).await?;
        let mut speeds = ports.net.subscribe(SPEEDS).await?;
        let requests = ports.net.serve(Protocol::Rpc).await?;
        keeping.take_stock().await;
        let workers = Arc::new(Workers::new(ports.clone(), roster.clone()));
        let reports = Arc::new(Reports::new(roster.clone()));
        let heard = Arc::new(Heard::new(ports.clone(), roster.clone()));
        let user = Arc::new(Self {
            events: events.clone(),
            workers: workers.clone(),
            reports: reports.clone(),
            offers: Offers::new(ports.clone()),
            settlement: Settlement::new(ports.clone(), events.clone()),
            fetching: Fetching::new(ports.clone(), events, keeping.clone()),
            reaches: Reaches::default(),
            speeds: Speeds::open(ports.journal.clone())?,
            heard: heard.clone(),
            ports: ports.clone(),
        });
        let (answering, end) = (keeping.clone().answer_all(requests), shutdown.clone());
        tokio::spawn(async move { end.run_until_cancelled(answering).await });
        let (hearing, end) = (heard.clone(), shutdown.clone());
        let hearing = async move {
            while let Some((_, message)) = speeds.recv().await {
                hearing.hear(&message).await;
            }
        };
        tokio::spawn(async move { end.run_until_cancelled(hearing).await });
        let mut dispatch = Dispatch { ports, roster, workers: workers.clone(), keeping, heard, telling };
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    event = chain_events.recv() => match event {
                        Some(event) => dispatch.take_in(event).await,
                        None => match dispatch.begin_anew().await {
                            Some(anew) if !shutdown.is_cancelled() => chain_events = anew,
                            // What tells whoever watches is dropped here.
                            _ => return,
                        },
                    },
                    Some((peer, bytes)) = adverts.recv() => {
                        workers.note(peer);
                        workers.hear(peer, &bytes);
                    }
                    Some((peer, bytes)) = progress.recv() => {
                        workers.note(peer);
                        reports.hear(peer, &bytes);
                    }
                }
            }
        });
        Ok(user)
    }

    /// Confirmed events so far of the jobs that this account posted, and convictions and slashes, in order; closed when
    /// the chain is not followed any more.
    pub fn events(&self) -> watch::Receiver<Vec<EventAt>> {
        self.events.clone()
    }

    /// Progress reports from now on.
    pub fn progress(&self) -> broadcast::Receiver<Progress> {
        self.reports.listen()
    }

    /// When a worker said something to its peers last that came here, seconds of this machine's clock.
    pub fn last_message(&self, worker: Address) -> Option<u64> {
        self.workers.last_message(worker)
    }

    /// When any staked worker said something last that came here, seconds of this machine's clock.
    pub fn last_heard(&self) -> Option<u64> {
        self.workers.last_heard()
    }

    /// From now on these workers are not hired, until [`Self::forgive`].
    pub fn avoid(&self, workers: impl IntoIterator<Item = Address>) {
        self.workers.avoid(workers);
    }

    /// These workers may be hired again.
    pub fn forgive(&self, workers: &[Address]) {
        self.workers.forgive(workers);
    }

    /// Workers of whom what is asked holds, cheapest first, waiting up to `patience` for `count` of them.
    ///
    /// # Errors
    /// [`HireError::TooFew`] when patience is over.
    pub async fn find_workers(
        &self,
        count: usize,
        asked: Asked,
        patience: Duration,
    ) -> Result<Vec<Candidate>, HireError> {
        self.workers.find_workers(count, asked, patience).await
    }

    /// Workers that answer now, of whom what is asked holds, cheapest first; at least `count`.
    ///
    /// # Errors
    /// [`HireError::TooFew`], or when the chain fails.
    pub async fn ranked(&self, count: usize, asked: Asked) -> Result<Vec<Candidate>, HireError> {
        self.workers.ranked(count, asked).await
    }

    /// These workers by what each advertised last, whether it takes more work or not; none where one is not known, or
    /// does not take the token.
    pub fn known(&self, workers: &[Address], token: Address) -> Option<Vec<Candidate>> {
        self.workers.known(workers, token)
    }

    /// How each of these workers is reached. Where it is to be `measured`, the bandwidth of the nearest is, if it was
    /// not lately.
    pub async fn reaches(&self, candidates: &[Candidate], measured: bool) -> Vec<Reach> {
        let workers: Vec<Address> = candidates.iter().map(|candidate| candidate.address).collect();
        self.reaches.of(self.ports.net.as_ref(), &workers, measured).await
    }

    /// What was seen of each worker's speed in jobs of this user, or else what others say of it who paid it in `token`,
    /// against what it says.
    pub async fn observed(&self, candidates: &[Candidate], token: Address) -> Vec<Vec<Observation>> {
        self.heard.ask(candidates).await;
        let seen = self.speeds.of(candidates, self.ports.clock.now());
        let told = self.heard.of(candidates, token);
        let is_fresh = |seen: &[Observation]| seen.iter().any(|observation| observation.age < FRESH);
        let both = |(seen, told): (Vec<_>, Vec<_>)| if is_fresh(&seen) { seen } else { [seen, told].concat() };
        seen.into_iter().zip(told).map(both).collect()
    }

    /// Tells others how fast workers were in jobs of this user that it has paid them in.
    pub async fn publish_speeds(&self) {
        self.heard.publish(self.speeds.worth(self.ports.clock.now())).await;
    }

    /// Writes down how fast the workers of a pipeline are, as far as long prompts have told: for whom to hire next.
    /// What the links to them take is left out.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails.
    pub async fn remember_speeds(self: &Arc<Self>, pipeline: &Pipeline) -> Result<(), JournalError> {
        let job = pipeline.job();
        let timed = pipeline.timed().into_iter();
        let news = timed.filter(|(worker, at)| !self.speeds.knows((job, *worker), *at));
        let workers: Vec<Address> = news.map(|(worker, _)| worker).collect();
        if workers.is_empty() {
            return Ok(());
        }
        let reaches = self.reaches.of(self.ports.net.as_ref(), &workers, true).await;
        let reaches: HashMap<Address, Reach> = workers.iter().copied().zip(reaches).collect();
        let mut rates = pipeline.rates(|worker| reaches.get(&worker).copied());
        rates.retain(|worker, _| reaches.contains_key(worker));
        let (shape, setting) = (pipeline.boundaries().shape(), pipeline.boundaries().setting());
        let speed = |(worker, (rate, at))| {
            let said = self.workers.fastest(worker)?.multiply_adds(setting) as f64;
            tracing::debug!(%worker, rate, said, reach = ?reaches.get(&worker), "multiply-adds a second");
            Some(Speed { job, worker, shape, setting, rate, said, at })
        };
        let speeds = rates.into_iter().filter_map(speed).collect();
        let user = Arc::clone(self);
        blocking(move || user.speeds.see(speeds)).await
    }

    /// Asks each worker for a binding offer on its lane; lanes in order (`replica · stages + stage`). Where one does
    /// not offer, `instead` names the next to ask for its lane, if there is one. Returns who offered, in the order
    /// of lanes. `terms`: the hash that the job was posted with (P-40).
    ///
    /// # Errors
    /// [`HireError`] of a worker that does not offer, and whom nobody replaces.
    pub async fn collect_offers(
        &self,
        terms: B256,
        lanes: &[Wanted],
        instead: impl FnMut(&Wanted, &HireError) -> Option<Wanted>,
    ) -> Result<Vec<(Wanted, Offer, Bytes)>, HireError> {
        self.offers.collect(terms, lanes, instead).await
    }

    /// Waits until all workers of an accepted job are ready to run it.
    ///
    /// # Errors
    /// [`HireError`] if one does not become ready in time.
    pub async fn wait_until_ready(&self, job: JobId, lanes: &[Wanted]) -> Result<(), HireError> {
        self.offers.wait_until_ready(job, lanes).await
    }

    /// Moves a job towards settlement as far as it goes now: finalises claims whose window is over, of whatever
    /// lane, and settles it once none is pending. No worker can hold the user's escrow back by leaving. Whether the
    /// job is settled.
    ///
    /// # Errors
    /// [`ChainError`] when the chain fails; what is refused for now is tried at the next call.
    pub async fn wind_up(&self, job: JobId) -> Result<bool, ChainError> {
        self.settlement.wind_up(job).await
    }

    /// Intervals, from the first on, that are final in every stage: all of a finished job's. What the stages end the
    /// last of them in belongs together, as neighbours agree on all they sent each other in an interval before any of
    /// them claims it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn final_everywhere(&self, job: &JobView) -> Result<u32, ChainError> {
        self.fetching.final_everywhere(job).await
    }

    /// The replica that has come furthest, and after how many intervals each of its stages has made a claim that can be
    /// gone on from, though it may still turn out to be wrong. Of a convicted lane those are the final ones alone: who
    /// lied once may have lied before.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn furthest(&self, job: &JobView) -> Result<(u16, u32), ChainError> {
        self.fetching.furthest(job).await
    }

    /// The most intervals of a replica, of so many, after which somebody says that it has each stage's state; none if
    /// nobody has any, and 0 if there are none.
    ///
    /// # Errors
    /// [`ResultError`] when the chain fails.
    pub async fn newest_kept(&self, job: &JobView, of: (u16, u32)) -> Result<Option<u32>, ResultError> {
        self.fetching.newest_kept(job, of).await
    }

    /// Fetches the stages as they are after an interval, each equal to a claim on chain, of those confirmed here.
    ///
    /// # Errors
    /// [`ResultError`].
    pub async fn trained(
        &self,
        job: &JobView,
        note: &JobNote,
        of: (u32, Claims),
    ) -> Result<Vec<TrainedStage>, ResultError> {
        self.fetching.trained(job, note, of).await
    }

    /// The rows that no worker saw.
    ///
    /// # Errors
    /// [`ResultError`].
    pub async fn held_out(&self, note: &JobNote) -> Result<TrainingSet, ResultError> {
        self.fetching.held_out(note).await
    }

    /// Publishes what is left of a training after so many intervals of a job, which end in such claims: its files, with
    /// the state after them in place of the first. None of them is to repeat it from the beginning.
    ///
    /// # Errors
    /// [`ResumeError`].
    pub async fn resume(&self, job: &JobView, note: &JobNote, after: (u32, Claims)) -> Result<Resumption, ResumeError> {
        resume(&self.ports, &self.fetching, job, note, after).await
    }

    /// What is left of a training, to be cut into other stages; none where nobody wrote down how it was cut.
    ///
    /// # Errors
    /// [`ResumeError`].
    pub async fn uncut(&self, rest: &Resumption) -> Result<Option<Uncut>, ResumeError> {
        Uncut::of(&self.fetching, rest).await
    }

    /// Publishes what is left of a training in one stage for each range of layers.
    ///
    /// # Errors
    /// [`ResumeError`].
    pub async fn recut(
        &self,
        rest: &Resumption,
        uncut: &Uncut,
        stages: &[Range<usize>],
    ) -> Result<Resumption, ResumeError> {
        uncut.cut((&self.ports, &self.fetching), rest, stages).await
    }
}
