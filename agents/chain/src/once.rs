//! Events for who cannot take anything back: what a reorganisation repeats unchanged is not told again.

use std::collections::VecDeque;

use tensorlink_node::ports::chain::{EventAt, News};
use tokio::sync::mpsc;

/// How many events back one that comes again is known.
const REMEMBERED: usize = 4_096;

/// Passes events on until nobody tells or nobody listens.
pub(crate) async fn tell(mut news: mpsc::Receiver<News>, events: mpsc::Sender<EventAt>) {
    let mut once = Once::default();
    loop {
        let told = tokio::select! {
            told = news.recv() => told,
            () = events.closed() => None,
        };
        match told {
            Some(News::Event(event)) => {
                if once.is_new(&event) && events.send(*event).await.is_err() {
                    return;
                }
            }
            Some(News::Undone { from }) => once.undo(from),
            Some(News::Until(_)) => {}
            None => return,
        }
    }
}

#[derive(Debug, Default)]
struct Once {
    /// The last events delivered, oldest first.
    delivered: VecDeque<EventAt>,
    /// Those of blocks that are not canonical any more: a transaction mined again causes them again.
    undone: Vec<EventAt>,
}

impl Once {
    /// Notes an event; false if it was delivered before a reorganisation undid and repeated it.
    fn is_new(&mut self, event: &EventAt) -> bool {
        let same = |old: &EventAt| old.transaction == event.transaction && old.event == event.event;
        let repeated = self.undone.iter().position(same).map(|position| self.undone.swap_remove(position));
        self.delivered.push_back(event.clone());
        if self.delivered.len() > REMEMBERED {
            self.delivered.pop_front();
        }
        repeated.is_none()
    }

    fn undo(&mut self, from: u64) {
        while self.delivered.back().is_some_and(|event| event.block >= from) {
            self.undone.extend(self.delivered.pop_back());
        }
        self.undone.truncate(REMEMBERED);
    }
}
