//! The lanes that serve, as long as their jobs are not settled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_types::Lane;
use tokio_util::sync::CancellationToken;

use super::book::Book;
use super::lane::ServingLane;

struct Open {
    /// Its receipts and vouchers.
    book: Arc<Book>,
    /// What answers its user, once its stage is loaded.
    serving: Option<Arc<ServingLane>>,
}

/// The lanes that serve.
#[derive(Default)]
pub(super) struct Served(Mutex<HashMap<Lane, Open>>);

impl Served {
    fn lanes(&self) -> MutexGuard<'_, HashMap<Lane, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job of a lane has started.
    pub(super) fn open(&self, book: Arc<Book>) {
        self.lanes().insert(book.payer().lane, Open { book, serving: None });
    }

    /// Its stage is loaded. One that comes when the lane was stopped (`stop`) answers nobody.
    pub(super) fn load(&self, lane: Lane, serving: &Arc<ServingLane>, stop: &CancellationToken) {
        // Asked while it is locked: a lane is stopped, then closed.
        if let Some(open) = self.lanes().get_mut(&lane).filter(|_| !stop.is_cancelled()) {
            open.serving = Some(serving.clone());
        }
    }

    pub(super) fn book(&self, lane: Lane) -> Option<Arc<Book>> {
        self.lanes().get(&lane).map(|open| open.book.clone())
    }

    pub(super) fn books(&self) -> Vec<Arc<Book>> {
        self.lanes().values().map(|open| open.book.clone()).collect()
    }

    pub(super) fn serving(&self, lane: Lane) -> Option<Arc<ServingLane>> {
        self.lanes().get(&lane).and_then(|open| open.serving.clone())
    }

    /// A lane serves no more: its book.
    pub(super) fn close(&self, lane: Lane) -> Option<Arc<Book>> {
        self.lanes().remove(&lane).map(|open| open.book)
    }
}
