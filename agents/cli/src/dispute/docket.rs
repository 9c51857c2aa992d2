//! All disputes of a deployment, folded from its events in order.

use std::collections::{BTreeMap, BTreeSet};

use tensorlink_node::ports::chain::{Fault, Parameters};
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_proof::challenge::position::{is_bottom, is_root, row_start};
use tensorlink_proof::challenge::{Game, Row, Subject, Told};
use tensorlink_types::abi::{Claim, JobKind, JobTerms};
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};

use super::aside::Aside;
use super::clocks;
use super::facts::{
    Challenge, Claimed, Clocks, Conviction, Deed, Move, Named, Question, Sent, Side, Slash, Standing, Terms,
};
use crate::amount::Wei;

/// A job, as far as disputes need it.
#[derive(Clone, Debug)]
pub struct Job {
    /// Who pays.
    pub user: Address,
    /// Its terms.
    pub terms: JobTerms,
    /// Who works on it.
    pub workers: Vec<Address>,
}

/// Everything that was ever claimed, challenged, demanded and convicted.
#[derive(Clone, Debug)]
pub struct Docket {
    parameters: Parameters,
    /// Block and time that count as now.
    now: (u64, u64),
    jobs: BTreeMap<JobId, Job>,
    claims: BTreeMap<ClaimId, (Claim, Option<Sent>)>,
    finalized: BTreeMap<Lane, u32>,
    void_from: BTreeMap<Lane, u32>,
    /// Stages and intervals of which replicas differ: their claims can be challenged twice as long.
    differ: BTreeSet<(JobId, u16, u32)>,
    played: BTreeMap<U256, Played>,
    convictions: Vec<Conviction>,
    aside: Aside,
}

/// A challenge while it is read.
#[derive(Clone, Debug)]
struct Played {
    game: Game,
    /// What the challenger put up for the delay, wei of SNO.
    bond: Wei,
    moves: Vec<Move>,
    clocks: Clocks,
    /// Block and time of the last move.
    last: (u64, u64),
    /// What was asked last.
    question: Option<Question>,
    /// Operators whose outputs' roots were answered last: the first of them, and the roots.
    row: (u64, Vec<B256>),
}

impl Docket {
    /// Reads all events. `now` is the block and the time.
    pub fn read(events: &[EventAt], parameters: Parameters, now: (u64, u64)) -> Self {
        let mut docket = Self {
            parameters,
            now,
            jobs: BTreeMap::new(),
            claims: BTreeMap::new(),
            finalized: BTreeMap::new(),
            void_from: BTreeMap::new(),
            differ: BTreeSet::new(),
            played: BTreeMap::new(),
            convictions: Vec::new(),
            aside: Aside::default(),
        };
        for at in events {
            docket.apply(at);
        }
        docket
    }

    fn apply(&mut self, at: &EventAt) {
        let sent = || Sent { transaction: at.transaction, block: at.block, time: at.timestamp, cost: None };
        match &at.event {
            Event::JobPosted { job, user, terms, .. } => {
                self.jobs.insert(*job, Job { user: *user, terms: terms.clone(), workers: Vec::new() });
            }
            Event::JobAccepted { job, offers } => {
                if let Some(job) = self.jobs.get_mut(job) {
                    job.workers = offers.iter().map(|offer| offer.worker).collect();
                }
            }
            Event::ClaimCommitted { id, claim, .. } => {
                self.claims.insert(*id, (claim.clone(), Some(sent())));
            }
            Event::ClaimsFinalized { lane, to, .. } => {
                self.finalized.insert(*lane, *to);
            }
            Event::ClaimsVoided { lane, from } => {
                let void = self.void_from.entry(*lane).or_insert(*from);
                *void = (*void).min(*from);
            }
            Event::ReplicasDiffer { job, stage, interval, .. } => {
                self.differ.insert((*job, *stage, *interval));
            }
            Event::ChallengeOpened { challenge, id, claim, challenger, worker } => {
                let before = self.played.values().filter(|played| played.game.claim_id == *id).count();
                let stake = self.jobs.get(&JobId(claim.job)).map_or(0, |job| job.terms.workerStake);
                let before = u32::try_from(before).unwrap_or(u32::MAX);
                let played = Played {
                    bond: Wei(self.parameters.bond(stake, before)),
                    game: Game::new(*id, claim.clone(), *challenger, *worker),
                    moves: Vec::new(),
                    clocks: clocks::full(&self.parameters),
                    last: (at.block, at.timestamp),
                    question: None,
                    row: (0, Vec::new()),
                };
                self.played.insert(*challenge, played);
            }
            Event::Challenge { challenge, told } => {
                if let Some(played) = self.played.get_mut(challenge) {
                    played.apply(told, sent());
                }
            }
            Event::Convicted {
                claim, worker, auditor, fault, step, operator, element, claimed, recomputed, ..
            } => {
                self.convictions.push(Conviction {
                    claim: *claim,
                    interval: self.claims.get(claim).map(|(claim, _)| claim.interval),
                    worker: *worker,
                    auditor: *auditor,
                    fault: *fault,
                    step: *step,
                    operator: *operator,
                    element: *element,
                    claimed: claimed.clone(),
                    recomputed: recomputed.clone(),
                    sent: sent(),
                    slash: None,
                    found: None,
                });
            }
            // A conviction's stake is taken in its transaction, before another conviction in it.
            Event::Slashed { amount, bounty, shared, harm, burned, .. } => {
                let last = self.convictions.last_mut().filter(|last| last.sent.transaction == at.transaction);
                if let Some(conviction) = last {
                    conviction.slash = Some(Slash {
                        amount: Wei(*amount),
                        bounty: Wei(*bounty),
                        shared: Wei(*shared),
                        harm: Wei(*harm),
                        burned: Wei(*burned),
                    });
                }
            }
            _ => self.aside.apply(at),
        }
    }

    /// Block and time that count as now.
    pub const fn now(&self) -> (u64, u64) {
        self.now
    }

    /// Demands and penalties.
    pub const fn aside(&self) -> &Aside {
        &self.aside
    }

    /// Takes in what the proof of a receipt says that it is: no event does.
    pub fn adopt(&mut self, id: ClaimId, claim: Claim) {
        for conviction in self.convictions.iter_mut().filter(|conviction| conviction.claim == id) {
            conviction.interval = Some(claim.interval);
        }
        self.claims.entry(id).or_insert((claim, None));
    }

    /// Transactions of convictions over claims that no event tells of.
    pub fn unknown(&self) -> Vec<B256> {
        let unknown = self.convictions.iter().filter(|conviction| !self.claims.contains_key(&conviction.claim));
        unknown.map(|conviction| conviction.sent.transaction).collect()
    }

    /// A job.
    pub fn job(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job)
    }

    /// Every challenge, oldest first, with the claim that it is about.
    pub fn challenges(&self) -> impl Iterator<Item = (ClaimId, Challenge)> + '_ {
        self.played.iter().map(|(number, played)| (played.game.claim_id, self.challenge(*number, played)))
    }

    /// Every conviction, oldest first.
    pub fn convictions(&self) -> &[Conviction] {
        &self.convictions
    }

    /// The conviction over a claim, or the first over an earlier one of its lane.
    pub fn conviction(&self, of: ClaimId) -> Option<&Conviction> {
        let own = self.convictions.iter().find(|conviction| conviction.claim == of);
        own.or_else(|| {
            let (claim, _) = self.claims.get(&of)?;
            self.convictions.iter().find(|conviction| match self.claims.get(&conviction.claim) {
                // Who does not show what it holds is convicted, and claims stand.
                Some((earlier, Some(_))) if conviction.fault != Fault::Withholding => {
                    earlier.lane() == claim.lane() && earlier.interval < claim.interval
                }
                _ => false,
            })
        })
    }

    /// The claim of an interval of a lane, or the receipt of a text that was convicted.
    pub fn claim_of(&self, lane: Lane, interval: u32) -> Option<ClaimId> {
        let found = self.claims.iter().find(|(_, (claim, _))| claim.lane() == lane && claim.interval == interval);
        found.map(|(id, _)| *id)
    }

    /// Everything about a claim that somebody has committed to, challenged or been convicted of.
    pub fn claimed(&self, id: ClaimId) -> Option<Claimed> {
        let (claim, committed) = self.claims.get(&id).cloned().unzip();
        let committed = committed.flatten();
        let challenged = self.played.values().find(|played| played.game.claim_id == id).map(|played| &played.game);
        let convicted = self.convictions.iter().find(|conviction| conviction.claim == id);
        let claim = claim.or_else(|| challenged.map(|game| game.claim.clone()));
        let worker = claim.as_ref().and_then(|claim| self.worker(claim.lane()));
        let worker = worker.or(challenged.map(|game| game.worker)).or(convicted.map(|c| c.worker))?;
        let mut terms = claim.as_ref().and_then(|claim| self.terms(JobId(claim.job)));
        if let (Some(claim), Some(terms)) = (&claim, &mut terms)
            && self.differ.contains(&(JobId(claim.job), claim.stage, claim.interval))
        {
            terms.challenge_window = terms.challenge_window.saturating_mul(2);
        }
        let standing = match &claim {
            Some(claim) if committed.is_some() => self.standing(claim),
            _ => Standing::Receipt,
        };
        Some(Claimed { id, worker, claim, terms, committed, standing })
    }

    /// Who works in a lane.
    pub fn worker(&self, lane: Lane) -> Option<Address> {
        let job = self.jobs.get(&lane.job)?;
        let place = usize::from(lane.replica) * usize::from(job.terms.stages) + usize::from(lane.stage);
        job.workers.get(place).copied()
    }

    fn terms(&self, job: JobId) -> Option<Terms> {
        let Job { user, terms, .. } = self.jobs.get(&job)?;
        Some(Terms {
            user: *user,
            kind: JobKind::from_number(terms.kind)?,
            steps_per_interval: terms.stepsPerInterval,
            challenge_window: terms.challengeWindow.into(),
            stake: terms.workerStake.into(),
        })
    }

    fn standing(&self, claim: &Claim) -> Standing {
        let beyond = |bounds: &BTreeMap<Lane, u32>| bounds.get(&claim.lane()).is_some_and(|n| claim.interval >= *n);
        if beyond(&self.void_from) {
            Standing::Void
        } else if self.finalized.contains_key(&claim.lane()) && !beyond(&self.finalized) {
            Standing::Final
        } else {
            Standing::Live
        }
    }

    fn challenge(&self, number: U256, played: &Played) -> Challenge {
        let Played { game, moves, last, question, .. } = played;
        let question = question.clone().map(|question| (question, last.0));
        let waiting = question.and_then(|asked| clocks::waiting(game, asked, self.now, &self.parameters));
        let void = self.standing(&game.claim) == Standing::Void;
        Challenge {
            number: number.saturating_to(),
            challenger: game.challenger,
            worker: game.worker,
            bond: played.bond,
            deposit: Wei(game.deposit),
            owed: Wei(game.owed),
            state: game.turn,
            questions: game.asked,
            waiting: waiting.map(|waiting| super::facts::Waiting { void, ..waiting }),
            moves: moves.clone(),
        }
    }
}

impl Played {
    fn apply(&mut self, told: &Told, sent: Sent) {
        let taken = sent.time.saturating_sub(self.last.1);
        let opening = self.moves.is_empty();
        let operator = self.operator(told);
        self.game.apply(told);
        let deed = match told {
            Told::Asked { deadline, position, .. } => {
                let subject = Subject::of(position);
                let Some(subject) = subject else { return };
                // What was established before says which step it is, but for questions about the whole claim.
                let of_step = !matches!(subject, Subject::Steps | Subject::Logs | Subject::Log);
                let step = of_step.then_some(self.game.facts.step);
                let operator = operator.map(|index| Named { index, name: None });
                let question = Question { subject, position: position.clone(), step, operator };
                self.question = Some(question.clone());
                if !opening {
                    self.clocks = clocks::after(self.clocks, Side::Challenger, taken);
                }
                Deed::Asked { question, deadline: *deadline }
            }
            Told::Answered { deadline, row: Row { position, data, .. } } => {
                let Some(question) = self.question.clone() else { return };
                self.row = (0, Vec::new());
                if Subject::of(position) == Some(Subject::Trace) && is_bottom(position) {
                    self.row = (row_start(position), data.chunks_exact(32).map(B256::from_slice).collect());
                }
                self.clocks = clocks::after(self.clocks, Side::Worker, taken);
                Deed::Answered { question, bytes: data.len() as u64, charged: None, deadline: *deadline }
            }
            Told::Won { silence } => {
                if *silence {
                    self.clocks = clocks::after(self.clocks, Side::Worker, taken);
                }
                Deed::Won { silence: *silence }
            }
            Told::Lost => {
                self.clocks = clocks::after(self.clocks, Side::Challenger, taken);
                Deed::Lost
            }
            Told::Charged { gas, .. } => {
                if let Some(Move { deed: Deed::Answered { charged, .. }, .. }) = self.moves.last_mut() {
                    *charged = Some(*gas);
                }
                return;
            }
            Told::Established { .. } | Told::Stated { .. } | Told::LogsGiven { .. } | Told::Funded { .. } => return,
        };
        self.last = (sent.block, sent.time);
        self.moves.push(Move { deed, sent, clocks: self.clocks });
    }

    /// The operator whose output is asked for: the place of its root in the row of the trace that was answered before.
    /// None where two outputs have one root.
    fn operator(&self, told: &Told) -> Option<u32> {
        let Told::Asked { position, .. } = told else { return None };
        if Subject::of(position) != Some(Subject::Output) {
            return None;
        }
        if !is_root(position) {
            // Further down in the same output.
            return self.question.as_ref().and_then(|last| last.operator.as_ref()).map(|operator| operator.index);
        }
        let mut places = (self.row.0..).zip(&self.row.1).filter(|(_, root)| **root == position.node);
        match (places.next(), places.next()) {
            (Some((place, _)), None) => u32::try_from(place).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
