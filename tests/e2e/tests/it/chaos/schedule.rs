//! What goes wrong and when: a pure function of the seed. What agents make of it depends on the machine's timing, too.

use std::fmt;
use std::time::Duration;

use super::dice::Dice;

/// Shortest time between two faults. The longest is that of as many blocks as are undone at most, of a second each:
/// what has to be confirmed comes through between two reorganisations of any depth.
const GAP: Duration = Duration::from_secs(2);
/// How long a killed agent stays away.
const AWAY: (Duration, Duration) = (Duration::ZERO, Duration::from_secs(8));
/// How long an endpoint or a wire is out of order: beyond all retries of one request, which take 2 s when it is refused
/// and a minute when it is not answered.
const OUT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));

/// Whom a fault hits: everybody, or the agent of this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whom {
    All,
    One(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// SIGKILL; started again after so long.
    Kill { agent: usize, away: Duration },
    /// Connections to the endpoint break and are refused.
    Refuse { whom: Whom, lasts: Duration },
    /// The endpoint takes requests and answers none.
    Hang { whom: Whom, lasts: Duration },
    /// Nothing passes between an agent and its peers.
    Isolate { agent: usize, lasts: Duration },
    /// The newest blocks are replaced by others.
    Reorganise { depth: u64 },
    /// Somebody challenges a new claim, whose worker has to answer, and asks no further.
    Challenge,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Planned {
    pub(super) at: Duration,
    pub(super) fault: Fault,
}

/// Cards of a deck that is dealt again and again, so that a short schedule has every kind of fault as well.
#[derive(Clone, Copy)]
enum Card {
    Kill,
    Refuse,
    Hang,
    Isolate,
    /// Of any depth.
    Reorganise,
    /// As deep as it gets.
    Deepest,
    Challenge,
}

const DECK: [Card; 10] = [
    Card::Kill,
    Card::Kill,
    Card::Kill,
    Card::Kill,
    Card::Refuse,
    Card::Hang,
    Card::Isolate,
    Card::Reorganise,
    Card::Deepest,
    Card::Challenge,
];

/// Faults of `agents` agents in so much time, in order, with reorganisations of up to `deepest` blocks.
pub(super) fn schedule(seed: u64, length: Duration, agents: usize, deepest: u64) -> Vec<Planned> {
    let mut dice = Dice::new(seed);
    let (mut planned, mut at, mut deck) = (Vec::new(), Duration::ZERO, Vec::new());
    loop {
        at += dice.between(GAP, Duration::from_secs(deepest));
        if at >= length {
            return planned;
        }
        if deck.is_empty() {
            deck.extend(DECK);
            dice.shuffle(&mut deck);
        }
        let agent = dice.below(agents as u64) as usize;
        let whom = if dice.percent(30) { Whom::All } else { Whom::One(agent) };
        let lasts = dice.between(OUT.0, OUT.1);
        let fault = match deck.pop().unwrap() {
            Card::Kill => Fault::Kill { agent, away: dice.between(AWAY.0, AWAY.1) },
            Card::Refuse => Fault::Refuse { whom, lasts },
            Card::Hang => Fault::Hang { whom, lasts },
            Card::Isolate => Fault::Isolate { agent, lasts },
            Card::Reorganise => Fault::Reorganise { depth: 1 + dice.below(deepest) },
            Card::Deepest => Fault::Reorganise { depth: deepest },
            Card::Challenge => Fault::Challenge,
        };
        planned.push(Planned { at, fault });
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill { agent, away } => write!(f, "agent {agent} is killed, and away for {away:?}"),
            Self::Refuse { whom, lasts } => write!(f, "the endpoint refuses {whom:?} for {lasts:?}"),
            Self::Hang { whom, lasts } => write!(f, "the endpoint hangs for {whom:?} for {lasts:?}"),
            Self::Isolate { agent, lasts } => write!(f, "agent {agent} and its peers hear nothing for {lasts:?}"),
            Self::Reorganise { depth } => write!(f, "the last {depth} blocks are replaced"),
            Self::Challenge => write!(f, "somebody challenges a new claim"),
        }
    }
}

#[test]
fn a_seed_fixes_the_schedule_and_every_kind_comes() {
    for (seed, deepest) in (0..100).flat_map(|seed| [(seed, 8), (seed, 64)]) {
        let length = Duration::from_secs(12 * deepest);
        let planned = schedule(seed, length, 6, deepest);
        assert_eq!(planned, schedule(seed, length, 6, deepest));
        assert!(planned.is_sorted_by_key(|planned| planned.at) && planned.last().unwrap().at < length);
        let depths = planned.iter().filter_map(|planned| match planned.fault {
            Fault::Reorganise { depth } => Some(depth),
            _ => None,
        });
        let has = |kind: fn(&Fault) -> bool| planned.iter().any(|planned| kind(&planned.fault));
        assert!(has(|fault| matches!(fault, Fault::Kill { agent: 0..6, .. })), "{seed}");
        assert!(has(|fault| matches!(fault, Fault::Refuse { .. })), "{seed}");
        assert!(has(|fault| matches!(fault, Fault::Hang { .. })), "{seed}");
        assert!(has(|fault| matches!(fault, Fault::Isolate { agent: 0..6, .. })), "{seed}");
        assert!(depths.clone().any(|depth| depth == deepest), "{seed}");
        assert!(has(|fault| *fault == Fault::Challenge), "{seed}");
        assert!(depths.into_iter().all(|depth| (1..=deepest).contains(&depth)), "{seed}");
    }
    let length = Duration::from_secs(90);
    assert_ne!(schedule(1, length, 6, 8), schedule(2, length, 6, 8));
}
