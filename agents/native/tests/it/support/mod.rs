//! A small task, machines that compute it by the plain interpretation, and workers of several characters.
#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use tensorlink_native::task::state_bytes;
use tensorlink_native::{
    Capability, DeviceClass, Done, Floats, FloatsError, Interval, Precision, State, Task, Threads, Worker, WorkerError,
};
use tensorlink_node::ports::Store;
use tensorlink_training::step::float::{FloatState, Values};
use tensorlink_training::{Model, Table, Training, init};
use tensorlink_types::Address;

pub(crate) fn class(threads: Threads) -> DeviceClass {
    DeviceClass::Cpu { capability: Capability::Avx2, threads }
}

/// A network on a table, and its initial state.
pub(crate) fn task() -> (Task, State) {
    let json = r#"{ "name": "small", "layers": [{ "kind": "linear", "out": 6 }, { "kind": "relu" }],
        "optimizer": { "learning_rate": 0.05, "momentum": 0.9 },
        "batch_size": 8, "micro_batches": 2, "steps": 20, "operand_bits": 8, "seed": 3 }"#;
    let model = Model::parse("small.json", json.as_bytes()).unwrap();
    let row = |i: u32| format!("{},{},{},{}\n", i % 7, i * i % 11, i % 2, ["a", "b", "c"][i as usize % 3]);
    let table = Table::parse((0..60).map(row).collect::<String>().as_bytes()).unwrap();
    let data = table.split(8, 3).unwrap().training;
    let network = model.network(3, 3).unwrap();
    let rows = data.features.ty().dims()[0];
    let training = Training::of_network(&network, &init::gaussian(&network, 3), rows);
    Task::begin(&training, &data, 3)
}

fn narrow(state: &FloatState) -> State {
    state.iter().map(|(name, values)| (name.clone(), values.iter().map(|x| *x as f32).collect())).collect()
}

/// A machine: the plain interpretation, with rounding of its own.
pub(crate) struct Machine {
    pub(crate) class: DeviceClass,
    /// What each value is multiplied by after a step, less one: as far as roundings go.
    pub(crate) rounding: f64,
    /// Whether it leaves out the last step of an interval.
    pub(crate) lazy: bool,
}

impl Machine {
    pub(crate) fn honest(n: u8) -> Arc<Self> {
        let threads = if n.is_multiple_of(2) { Threads::One } else { Threads::Many };
        Arc::new(Self { class: class(threads), rounding: f64::from(n) * 1e-8, lazy: false })
    }

    pub(crate) fn lazy() -> Arc<Self> {
        Arc::new(Self { class: class(Threads::One), rounding: 0.0, lazy: true })
    }
}

impl Floats for Machine {
    fn class(&self) -> DeviceClass {
        self.class
    }

    fn run(
        &self,
        task: &Task,
        state: &State,
        steps: Range<u32>,
        _: Precision,
    ) -> Result<(State, Vec<f64>), FloatsError> {
        let widen =
            |(name, values): (&String, &Vec<f32>)| (name.clone(), values.iter().map(|x| f64::from(*x)).collect());
        let mut state: FloatState = state.iter().map(widen).collect();
        let mut losses = Vec::new();
        for step in steps.clone() {
            let values = Values::compute(&task.graph, &task.data, &state, &task.context(step));
            losses.push(values.loss());
            if self.lazy && step + 1 == steps.end {
                continue;
            }
            let next = values.next_state();
            drop(values);
            state = next;
            for (i, x) in state.values_mut().flatten().enumerate() {
                *x *= 1.0 + self.rounding * (i as f64).sin();
            }
        }
        Ok((narrow(&state), losses))
    }
}

/// What a worker in this process does when it is asked.
pub(crate) enum Character {
    Computes(Arc<Machine>),
    /// Never answers.
    Mute,
    /// Gives a file that is no state of the task.
    Garbage,
}

/// A worker in this process, on the user's own store.
pub(crate) struct Near {
    pub(crate) number: u8,
    pub(crate) character: Character,
    pub(crate) task: Arc<Task>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) asked: AtomicU32,
}

#[async_trait]
impl Worker for Near {
    fn address(&self) -> Address {
        Address::repeat_byte(self.number)
    }

    async fn run(&self, interval: &Interval) -> Result<Done, WorkerError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let machine = match &self.character {
            Character::Computes(machine) => machine,
            Character::Mute => std::future::pending().await,
            Character::Garbage => {
                let others = BTreeMap::from([("fc1.weight".to_owned(), vec![1.0f32; 3])]);
                let state = self.store.put(state_bytes(&others)?).await?;
                let losses = vec![1.0; interval.steps as usize];
                return Ok(Done { state, losses, class: class(Threads::One) });
            }
        };
        let before = self.task.state(&self.store.get(&interval.state, &[], u64::MAX).await?)?;
        let steps = interval.first..interval.first + interval.steps;
        let (after, losses) = machine.run(&self.task, &before, steps, interval.precision).unwrap();
        let state = self.store.put(state_bytes(&after)?).await?;
        Ok(Done { state, losses, class: machine.class })
    }
}
