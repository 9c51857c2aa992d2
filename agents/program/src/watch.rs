//! Who sees every output of a step, as soon as it is there: auditors and tests.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use tensorlink_num::Tensor;

/// Takes the output of an operator, by its place in the program, on the host.
pub type Watch = Box<dyn FnMut(u32, Tensor) + Send>;

/// Keeps whatever it watches: for programs whose outputs all fit into memory.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<BTreeMap<u32, Tensor>>>);

impl Trace {
    /// What an executor is to be given.
    pub fn watch(&self) -> Watch {
        let kept = Arc::clone(&self.0);
        Box::new(move |operator, output| {
            kept.lock().unwrap_or_else(PoisonError::into_inner).insert(operator, output);
        })
    }

    /// All outputs since it was asked last, in the program's order.
    pub fn take(&self) -> Vec<Tensor> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_values().collect()
    }
}
