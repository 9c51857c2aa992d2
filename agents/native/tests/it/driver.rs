//! The user's side with workers in the same process.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tensorlink_native::driver::Around;
use tensorlink_native::{
    DriveError, Driver, Entry, Floats, Order, Precision, Report, State, Tolerances, Worker, distance,
};
use tensorlink_node::Journal;
use tensorlink_node::ports::Store;
use tensorlink_types::Address;
use tokio_util::sync::CancellationToken;

use crate::ports::MemoryStore;
use crate::support::{Character, Machine, Near, task};

const ORDER: Order = Order {
    steps: 20,
    per_interval: 4,
    precision: Precision::F32,
    checks: 1.0,
    tolerances: Tolerances { all: None },
    patience: Duration::from_secs(60),
};

type Seen = Arc<Mutex<Vec<Entry>>>;

struct World {
    store: Arc<dyn Store>,
    folder: tempfile::TempDir,
    workers: Vec<Arc<Near>>,
    seen: Seen,
}

impl World {
    fn new(characters: Vec<Character>) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let task = Arc::new(task().0);
        let near = |(number, character)| {
            let (task, store) = (task.clone(), store.clone());
            Arc::new(Near { number, character, task, store, asked: Default::default() })
        };
        let workers = (1..).zip(characters).map(near).collect();
        Self { store, folder: tempfile::tempdir().unwrap(), workers, seen: Seen::default() }
    }

    async fn driver(&self, order: Order) -> Result<Driver, DriveError> {
        let (task, start) = task();
        let workers = self.workers.iter().map(|worker| worker.clone() as Arc<dyn Worker>).collect();
        let journal = Journal::open(self.folder.path()).unwrap();
        let seen = self.seen.clone();
        let watch = Box::new(move |entry: &Entry| seen.lock().unwrap().push(entry.clone()));
        let (store, own) = (self.store.clone(), Machine::honest(9));
        let around = Around { store, own, workers, draw: Box::new(|| 0.5), watch };
        Driver::begin(order, (task, &start), around, &journal).await
    }

    async fn run(&self, order: Order) -> Result<(State, Report), DriveError> {
        self.driver(order).await?.run(&CancellationToken::new()).await
    }

    fn asked(&self, worker: usize) -> u32 {
        self.workers[worker].asked.load(Ordering::Relaxed)
    }
}

fn computes(n: u8) -> Character {
    Character::Computes(Machine::honest(n))
}

/// How far a state is from what this machine comes to by itself.
fn from_own(state: &State, steps: u32) -> f64 {
    let (task, start) = task();
    let (own, _) = Machine::honest(9).run(&task, &start, 0..steps, Precision::F32).unwrap();
    distance(&start, state, &own)
}

#[tokio::test]
async fn honest_workers_come_to_what_one_machine_comes_to() {
    for checks in [0.0, 1.0] {
        let world = World::new(vec![computes(1), computes(2), computes(3)]);
        let (state, report) = world.run(Order { checks, ..ORDER }).await.unwrap();
        assert!(from_own(&state, 20) < 1e-5, "{}", from_own(&state, 20));
        assert_eq!((report.provable, report.steps, report.intervals), (false, 20, 5));
        assert_eq!(report.checked, if checks > 0.0 { 5 } else { 0 });
        assert!(report.left_out.is_empty() && report.last_loss < report.first_loss);
        assert_eq!(report.by.values().sum::<u32>(), 5);
    }
}

#[tokio::test]
async fn who_leaves_out_a_step_is_named_and_left_out() {
    let world = World::new(vec![computes(1), Character::Computes(Machine::lazy()), computes(3)]);
    let (state, report) = world.run(ORDER).await.unwrap();
    assert!(from_own(&state, 20) < 1e-5, "nothing of it is left");
    let liar = Address::repeat_byte(2);
    assert_eq!(report.left_out, [liar].into());
    let [Entry::Off { worker, check, .. }] = report.off.as_slice() else { panic!("{:?}", report.off) };
    assert!(*worker == liar && check.by.is_none() && check.distance > check.allowed, "{check:?}");
    let seen = world.seen.lock().unwrap();
    assert!(seen.iter().any(|entry| matches!(entry, Entry::Differ { .. })));
    assert!(seen.iter().any(|entry| matches!(entry, Entry::Back { .. })));
}

#[tokio::test]
async fn with_one_worker_the_own_machine_looks() {
    let world = World::new(vec![Character::Computes(Machine::lazy())]);
    let error = world.run(ORDER).await.unwrap_err();
    assert!(matches!(error, DriveError::Nobody(1)), "{error}");
    let world = World::new(vec![computes(1)]);
    let (_, report) = world.run(ORDER).await.unwrap();
    assert_eq!(report.checked, 5);
}

#[tokio::test]
async fn unchecked_work_after_the_last_agreement_is_taken_back() {
    let world = World::new(vec![Character::Computes(Machine::lazy()), computes(2)]);
    world.run(Order { checks: 0.0, steps: 8, ..ORDER }).await.unwrap();
    let (state, report) = world.run(ORDER).await.unwrap();
    assert_eq!(report.left_out, [Address::repeat_byte(1)].into());
    assert!(world.seen.lock().unwrap().contains(&Entry::Back { to: 0 }), "nothing was agreed on before");
    assert!(from_own(&state, 20) < 1e-5);
}

#[tokio::test]
async fn the_mute_and_those_who_give_something_else_are_passed_over() {
    let world = World::new(vec![Character::Mute, Character::Garbage, computes(3)]);
    let order = Order { checks: 0.0, patience: Duration::from_millis(500), ..ORDER };
    let (state, report) = world.run(order).await.unwrap();
    assert!(from_own(&state, 20) < 1e-5);
    assert_eq!(report.left_out, [1, 2].map(Address::repeat_byte).into());
    assert_eq!((world.asked(0), world.asked(1)), (3, 3), "three times in a row is enough");
    let seen = world.seen.lock().unwrap();
    let why = |worker| {
        let of = |entry: &Entry| match entry {
            Entry::PassedOver { worker: w, why, .. } if *w == Address::repeat_byte(worker) => Some(why.clone()),
            _ => None,
        };
        seen.iter().find_map(of).unwrap()
    };
    assert!(why(1).contains("no result within") && why(2).contains("another task"), "{} {}", why(1), why(2));
}

#[tokio::test]
async fn a_restart_goes_on_from_the_journal() {
    let world = World::new(vec![computes(1), computes(2)]);
    world.run(Order { steps: 12, checks: 0.0, ..ORDER }).await.unwrap();
    assert_eq!(world.asked(0) + world.asked(1), 3);
    let (state, report) = world.run(Order { checks: 0.0, ..ORDER }).await.unwrap();
    assert_eq!(world.asked(0) + world.asked(1), 5, "only what was left");
    assert_eq!((report.steps, report.intervals), (20, 5));
    assert!(from_own(&state, 20) < 1e-5);
    let other = world.run(Order { precision: Precision::Bf16, ..ORDER }).await.unwrap_err();
    assert!(matches!(other, DriveError::Journal), "{other}");
}

#[tokio::test]
async fn an_order_out_of_range_is_refused() {
    let world = World::new(vec![computes(1)]);
    for order in
        [Order { per_interval: 0, ..ORDER }, Order { per_interval: 17, ..ORDER }, Order { checks: 1.5, ..ORDER }]
    {
        assert!(matches!(world.run(order).await, Err(DriveError::Order(_))));
    }
}
