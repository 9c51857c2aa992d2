//! How far a view has folded the events that the user's node heard: those of undone blocks are not among them any more.

use tensorlink_node::ports::EventAt;

/// Events taken in.
#[derive(Default)]
pub(super) struct Told {
    number: usize,
    last: Option<EventAt>,
}

impl Told {
    /// Of all events those that are new, and whether a reorganisation has undone some that were taken in: then they are
    /// all, and what was folded before is void.
    pub(super) fn fresh<'a>(&mut self, events: &'a [EventAt]) -> (bool, &'a [EventAt]) {
        let before = self.number.checked_sub(1).and_then(|last| events.get(last));
        let anew = before != self.last.as_ref();
        let from = if anew { 0 } else { self.number };
        (self.number, self.last) = (events.len(), events.last().cloned());
        (anew, events.get(from..).unwrap_or_default())
    }
}
