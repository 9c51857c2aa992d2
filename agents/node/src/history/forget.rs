//! What the file need not hold any more: events of jobs that were settled long ago and are not this node's own, and
//! single changes of stakes, of which the sum is left. Two passes over the file, none of which holds it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::Path;

use tensorlink_types::{Address, ClaimId, JobId, U256};

use super::log::{Line, Lines, Rewriting, Scanned};
use crate::ports::chain::Role;
use crate::ports::{Event, EventAt, Place};

/// Kinds of events that the first pass reads. Most are others, whose lines it need not understand.
const READ: [&[u8]; 8] = [
    b"job_posted",
    b"job_accepted",
    b"job_settled",
    b"staked",
    b"unstake_requested",
    b"slashed",
    b"auditor_accused",
    b"auditor_penalised",
];
/// What is before an event's kind in its line.
const KIND: &[u8] = b"\"event\":{\"";

/// When a history is shortened, and what is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thrift {
    /// With so many events, and twice as many as were left the last time.
    pub events: u64,
    /// Of jobs that were settled so many blocks ago: no auditor is paid or penalised over them any more.
    pub depth: u64,
    /// Jobs of this node's own lanes of which everything is left, the last that were settled: their users may still
    /// ask. Of jobs that this node has posted everything is left.
    pub own: usize,
}

impl Default for Thrift {
    fn default() -> Self {
        Self { events: 1 << 16, depth: Self::DEPTH, own: 64 }
    }
}

impl Thrift {
    /// Blocks after which a settled job is past, unless told otherwise: a week of blocks of 12 s.
    pub const DEPTH: u64 = 50_400;

    /// Whether a file is to be shortened.
    pub(super) const fn is_due(&self, scanned: &Scanned) -> bool {
        scanned.events >= self.events && scanned.events >= scanned.left.saturating_mul(2)
    }
}

/// What one account has bonded in one role.
#[derive(Default)]
struct Stake {
    sum: U256,
    /// The last event but slashes, whose place the sum takes, and the sum then. Slashes stay: those before find
    /// nothing, those after take from it.
    last: Option<(Place, U256)>,
}

impl Stake {
    fn changes(&mut self, sum: U256, place: Place) {
        (self.sum, self.last) = (sum, Some((place, sum)));
    }
}

/// What a first pass finds.
#[derive(Default)]
struct Found {
    /// Jobs that are forgotten.
    past: HashSet<JobId>,
    stakes: HashMap<(Address, Role), Stake>,
    /// How often stakes changed, but for slashes.
    changes: usize,
    /// Claims of which something is told that does not name their job.
    named: HashSet<ClaimId>,
}

/// Shortens a file for the node of an account. Whether there was something to forget.
///
/// # Errors
/// When the disk fails; the file is as it was, then.
pub(super) fn forget(path: &Path, scanned: &Scanned, (own, thrift): (Address, Thrift)) -> io::Result<bool> {
    let Some(until) = scanned.until() else { return Ok(false) };
    let Some(horizon) = until.block.checked_sub(thrift.depth) else { return Ok(false) };
    let found = find(path, scanned.bytes, (own, thrift.own, horizon))?;
    let sums = found.stakes.values().filter(|stake| stake.last.is_some()).count();
    if found.past.is_empty() && found.changes == sums {
        return Ok(false);
    }
    let mut anew = Rewriting::forgetting(path, scanned, horizon)?;
    let mut subjects = Subjects::default();
    each(
        path,
        scanned.bytes,
        |_| true,
        |at, line| {
            let job = subjects.of(&at.event, &found.named);
            if job.is_some_and(|job| found.past.contains(&job)) {
                return Ok(());
            }
            match &at.event {
                Event::Staked { account, role, .. } | Event::UnstakeRequested { account, role, .. }
                    if at.block <= horizon =>
                {
                    match found.stakes.get(&(*account, *role)).and_then(|stake| stake.last) {
                        Some((place, amount)) if place == at.place() && !amount.is_zero() => {
                            let event = Event::Staked { account: *account, role: *role, amount };
                            let mut line = serde_json::to_vec(&EventAt { event, ..at })?;
                            line.push(b'\n');
                            anew.event(&line)
                        }
                        _ => Ok(()),
                    }
                }
                // Nobody is told of it: the stake was bonded no more.
                Event::StakeWithdrawn { .. } if at.block <= horizon => Ok(()),
                _ => anew.event(line),
            }
        },
    )?;
    anew.finish(Some(until), true)?;
    Ok(true)
}

fn find(path: &Path, bytes: u64, (own, most, horizon): (Address, usize, u64)) -> io::Result<Found> {
    let mut found = Found::default();
    let (mut posted, mut worked, mut last) = (HashSet::new(), HashSet::new(), VecDeque::new());
    each(path, bytes, is_read, |at, _| {
        let place = at.place();
        match at.event {
            Event::JobPosted { job, user, .. } if user == own => drop(posted.insert(job)),
            Event::JobAccepted { job, offers } if offers.iter().any(|offer| offer.worker == own) => {
                worked.insert(job);
            }
            Event::JobSettled { job, .. } if at.block <= horizon && !posted.contains(&job) => {
                if worked.contains(&job) {
                    last.push_back(job);
                    if last.len() <= most {
                        return Ok(());
                    }
                    found.past.extend(last.pop_front());
                } else {
                    found.past.insert(job);
                }
            }
            // As the roster counts.
            Event::Staked { account, role, amount } if at.block <= horizon => {
                let stake = found.stakes.entry((account, role)).or_default();
                stake.changes(stake.sum.saturating_add(amount), place);
                found.changes += 1;
            }
            Event::UnstakeRequested { account, role, amount, .. } if at.block <= horizon => {
                let stake = found.stakes.entry((account, role)).or_default();
                stake.changes(stake.sum.saturating_sub(amount), place);
                found.changes += 1;
            }
            Event::Slashed { account, amount, .. } if at.block <= horizon => {
                let stake = found.stakes.entry((account, Role::Worker)).or_default();
                stake.sum = stake.sum.saturating_sub(amount);
            }
            Event::AuditorAccused { claim, .. } | Event::AuditorPenalised { claim, .. } => {
                found.named.insert(claim);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// Whether the first pass reads a line.
fn is_read(line: &[u8]) -> bool {
    let kind = line.windows(KIND.len()).position(|part| part == KIND).and_then(|at| line.get(at + KIND.len()..));
    kind.is_none_or(|kind| READ.iter().any(|read| kind.starts_with(read)))
}

/// Reads each event of some up to so many bytes, with its line.
fn each(
    path: &Path,
    bytes: u64,
    some: impl Fn(&[u8]) -> bool,
    mut of: impl FnMut(EventAt, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let Some(mut lines) = Lines::open(path, bytes)? else { return Ok(()) };
    while let Some(line) = lines.next()? {
        if let Line::Event(text) = line
            && some(text)
        {
            of(serde_json::from_slice(text)?, text)?;
        }
    }
    Ok(())
}

/// Which job an event is about, where another has to be known for that.
#[derive(Default)]
struct Subjects {
    challenges: HashMap<U256, JobId>,
    demands: HashMap<U256, JobId>,
    claims: HashMap<ClaimId, JobId>,
}

impl Subjects {
    /// The job; none of what is about none, or not known.
    fn of(&mut self, event: &Event, named: &HashSet<ClaimId>) -> Option<JobId> {
        match event {
            Event::ClaimCommitted { id, claim, .. } if named.contains(id) => {
                self.claims.insert(*id, JobId(claim.job));
            }
            Event::ChallengeOpened { challenge, claim, .. } => {
                self.challenges.insert(*challenge, JobId(claim.job));
            }
            Event::Demanded { id, demand } => drop(self.demands.insert(*id, JobId(demand.job))),
            _ => {}
        }
        match event {
            Event::Challenge { challenge, .. } => self.challenges.get(challenge).copied(),
            Event::AttestationGiven { id, .. } | Event::DemandEnded { id, .. } => self.demands.get(id).copied(),
            Event::AuditorAccused { claim, .. } | Event::AuditorPenalised { claim, .. } => {
                self.claims.get(claim).copied()
            }
            _ => event.job(),
        }
    }
}
