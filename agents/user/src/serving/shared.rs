//! What all texts of a job share: its lanes, its numbers, its receipts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_node::Ports;
use tensorlink_types::{Address, JobId};

use super::agreement::Agreement;
use super::archive::Archive;
use super::boundaries::Boundaries;
use super::fault::LaneFault;
use super::lane::LaneClient;
use super::numbers::Numbers;
use super::pace::Paces;
use crate::placing::Reach;

/// Seconds in which a lane that failed is the last to be tried.
const DOWN: u64 = 30;
/// Seconds between two faults of a lane after which the first is no sign of the second.
const APART: u64 = 120;

/// When a lane failed that has not answered since, seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Down {
    /// First by a fault of its own; none where it had too much to do, or could not be paid.
    first: Option<u64>,
    last: u64,
    /// Whether it answers all the same: only a text that is delivered shows that it is well.
    answers: bool,
}

/// Whether a stage has as many lanes left as must agree on a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Others {
    Enough,
    TooFew,
}

/// What all texts of a job share.
pub(super) struct Shared {
    pub(super) ports: Ports,
    pub(super) job: JobId,
    pub(super) boundaries: Boundaries,
    pub(super) agreement: Agreement,
    pub(super) longest: u32,
    /// Tokens that the job pays a lane.
    pub(super) most: u32,
    /// By stage: those that could be taken up, in the order of replicas.
    pub(super) lanes: Vec<Vec<Arc<LaneClient>>>,
    /// By stage and replica.
    pub(super) down: Mutex<HashMap<(usize, usize), Down>>,
    /// When each lane answered last, seconds, by the same.
    pub(super) up: Mutex<HashMap<(usize, usize), u64>>,
    /// Lanes that gave something else than their programs, by the same.
    pub(super) wrong: Mutex<BTreeSet<(usize, usize)>>,
    /// How long each lane takes.
    pub(super) paces: Paces,
    pub(super) numbers: Mutex<Numbers>,
    pub(super) archive: Mutex<Archive>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("job", &self.job).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn lane(&self, stage: usize, replica: usize) -> Option<&LaneClient> {
        self.lanes.get(stage)?.get(replica).map(Arc::as_ref)
    }

    pub(super) fn replicas(&self, stage: usize) -> usize {
        self.lanes.get(stage).map_or(0, Vec::len)
    }

    /// Lanes of each stage that must agree on a text.
    pub(super) fn agreeing(&self) -> usize {
        self.agreement.lanes().into()
    }

    /// The replicas that get a text first, as many as must agree: texts take turns among those that neither failed
    /// lately nor have become slow, and after those among the slow. Fewer where the others compute wrongly.
    pub(super) fn first_replicas(&self, stage: usize, text: u32) -> Vec<usize> {
        let replicas = self.replicas(stage);
        let in_turn = |offset: usize| (text as usize).wrapping_add(offset) % replicas;
        let mut order: Vec<usize> =
            (0..replicas).map(in_turn).filter(|replica| !self.is_wrong(stage, *replica)).collect();
        let now = self.ports.clock.now();
        order.sort_by_key(|replica| (self.is_down(stage, *replica), self.paces.lags((stage, *replica), now)));
        order.truncate(self.agreeing());
        order
    }

    /// Whether every stage has as many lanes that did not fail lately as must agree.
    pub(super) fn alive(&self) -> bool {
        let up = |stage: usize| (0..self.replicas(stage)).filter(|replica| !self.is_down(stage, *replica)).count();
        (0..self.lanes.len()).all(|stage| up(stage) >= self.agreeing())
    }

    fn is_down(&self, stage: usize, replica: usize) -> bool {
        let now = self.ports.clock.now();
        self.is_wrong(stage, replica)
            || self.down().get(&(stage, replica)).is_some_and(|down| now < down.last.saturating_add(DOWN))
    }

    /// Whether a lane computes wrongly.
    pub(super) fn is_wrong(&self, stage: usize, replica: usize) -> bool {
        self.wrong().contains(&(stage, replica))
    }

    /// Workers that compute wrongly.
    pub(super) fn liars(&self) -> Vec<Address> {
        (0..self.lanes.len()).flat_map(|stage| self.liars_of(stage)).collect()
    }

    /// Those of a stage.
    pub(super) fn liars_of(&self, stage: usize) -> Vec<Address> {
        let wrong = |(replica, lane): (usize, &Arc<LaneClient>)| self.is_wrong(stage, replica).then_some(lane.worker);
        self.lanes.get(stage).into_iter().flatten().enumerate().filter_map(wrong).collect()
    }

    /// The workers that are lost, of the stages that have not as many others as must agree: those who compute wrongly,
    /// whose worker is `gone` and answered no text for more than `borne` seconds, or that have failed every text for as
    /// long, what failed before `since` apart.
    pub(super) fn lost(&self, gone: impl Fn(Address) -> bool, times: (u64, u64)) -> Vec<Address> {
        self.missed(self.out_of_reach(gone, times), Others::TooFew)
    }

    /// The same of the stages that have as many others.
    pub(super) fn spare(&self, gone: impl Fn(Address) -> bool, times: (u64, u64)) -> Vec<Address> {
        self.missed(self.out_of_reach(gone, times), Others::Enough)
    }

    /// The workers that have become slow, and have been for more than `borne` seconds, of the stages that have not as
    /// many others as must agree.
    pub(super) fn slow(&self, borne: u64) -> Vec<Address> {
        self.missed(|place, _| self.paces.is_slow(place, borne), Others::TooFew)
    }

    /// The workers of lanes, each with its lane's place.
    pub(super) fn workers(&self) -> impl Iterator<Item = ((usize, usize), Address)> {
        let of_stage = |(stage, lanes): (usize, &Vec<Arc<LaneClient>>)| {
            let lanes = lanes.iter().enumerate();
            lanes.map(|(replica, lane)| ((stage, replica), lane.worker)).collect::<Vec<_>>()
        };
        self.lanes.iter().enumerate().flat_map(of_stage)
    }

    /// The workers of whom enough answers to long prompts are known, and when the newest came.
    pub(super) fn timed(&self) -> BTreeMap<Address, u64> {
        let mut timed = BTreeMap::new();
        for (place, worker) in self.workers() {
            if let Some(at) = self.paces.timed(place) {
                let newest: &mut u64 = timed.entry(worker).or_insert(at);
                *newest = at.max(*newest);
            }
        }
        timed
    }

    /// Multiply-adds a second of each of these workers, who are reached so, and when the newest answer came: of several
    /// lanes, the most.
    pub(super) fn rates(&self, reach: impl Fn(Address) -> Option<Reach>) -> BTreeMap<Address, (f64, u64)> {
        let mut rates = BTreeMap::new();
        for (place, worker) in self.workers() {
            if let Some(rate) = self.paces.rate(place, reach(worker)) {
                let most: &mut (f64, u64) = rates.entry(worker).or_insert(rate);
                *most = (most.0.max(rate.0), most.1.max(rate.1));
            }
        }
        rates
    }

    /// Which lanes give nothing right.
    fn out_of_reach(
        &self,
        gone: impl Fn(Address) -> bool,
        (since, borne): (u64, u64),
    ) -> impl Fn((usize, usize), &LaneClient) -> bool {
        let (down, up, wrong, now) = (self.down(), self.up(), self.wrong(), self.ports.clock.now());
        let fails =
            move |down: &Down| down.first.is_some_and(|first| down.last.saturating_sub(first.max(since)) > borne);
        let answered = move |at: &u64| now.saturating_sub(*at) <= borne;
        move |place, lane| {
            wrong.contains(&place)
                || gone(lane.worker) && !up.get(&place).is_some_and(answered)
                || down.get(&place).is_some_and(fails)
        }
    }

    /// The workers of lanes that are out, of the stages that have enough others, or too few.
    fn missed(&self, is_out: impl Fn((usize, usize), &LaneClient) -> bool, others: Others) -> Vec<Address> {
        let of_stage = |(stage, lanes): (usize, &Vec<Arc<LaneClient>>)| {
            let out = lanes.iter().enumerate().filter(|(replica, lane)| is_out((stage, *replica), lane));
            let out: Vec<Address> = out.map(|(_, lane)| lane.worker).collect();
            let left = lanes.len().saturating_sub(out.len());
            let has = if left < self.agreeing() { Others::TooFew } else { Others::Enough };
            if has == others { out } else { Vec::new() }
        };
        self.lanes.iter().enumerate().flat_map(of_stage).collect()
    }

    pub(super) fn failed(&self, stage: usize, replica: usize, fault: &LaneFault) {
        let now = self.ports.clock.now();
        let mut all = self.down();
        let down = all.entry((stage, replica)).or_insert(Down { first: None, last: now, answers: false });
        if now.saturating_sub(down.last) > APART {
            down.first = None;
        }
        down.last = now;
        down.answers |= matches!(fault, LaneFault::Receipt(_) | LaneFault::Differs);
        if fault.is_its_own() {
            down.first.get_or_insert(now);
        }
    }

    /// A lane gave what others gave, or is believed.
    pub(super) fn answered(&self, stage: usize, replica: usize) {
        let mut down = self.down();
        if down.get(&(stage, replica)).is_some_and(|down| !down.answers) {
            down.remove(&(stage, replica));
        }
        drop(down);
        self.heard(stage, replica);
    }

    /// A lane has signed for a text that was delivered.
    pub(super) fn delivered(&self, stage: usize, replica: usize) {
        self.down().remove(&(stage, replica));
    }

    /// A lane's worker is there.
    pub(super) fn heard(&self, stage: usize, replica: usize) {
        self.up().insert((stage, replica), self.ports.clock.now());
    }

    /// A lane computes wrongly: it gets no more texts.
    pub(super) fn found_wrong(&self, stage: usize, replica: usize) {
        self.wrong().insert((stage, replica));
    }

    fn wrong(&self) -> MutexGuard<'_, BTreeSet<(usize, usize)>> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn up(&self) -> MutexGuard<'_, HashMap<(usize, usize), u64>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn down(&self) -> MutexGuard<'_, HashMap<(usize, usize), Down>> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn archive(&self) -> MutexGuard<'_, Archive> {
        self.archive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
