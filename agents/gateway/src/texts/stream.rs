//! Answers in parts, as server-sent events: `data: JSON`, at the end `data: [DONE]`. What goes wrong later than the
//! answer's head comes as a part with OpenAI's error, after which there is nothing more.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, BoxStream, SelectAll, StreamExt};

use super::reply::{Choice, Reply, Usage};
use crate::asked::Asked;
use crate::backend::BackendError;
use crate::error::ApiError;
use crate::generation::{Generation, Piece};
use crate::guard::Progress;

/// Between comments that keep a silent connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const DONE: &str = "[DONE]";

/// A text's piece, by the number of the text.
type Numbered = (usize, Result<Piece, BackendError>);

/// An answer on its way. Dropping it, as when the client leaves, ends its texts.
struct Live {
    asked: Asked,
    reply: Reply,
    field: &'static str,
    pieces: SelectAll<BoxStream<'static, Numbered>>,
    /// Texts that have not ended.
    left: usize,
    usage: Usage,
    /// Whether the client wants tokens counted.
    counted: bool,
    /// Events to send before the next piece is waited for.
    events: VecDeque<String>,
    progress: Arc<Progress>,
}

/// The head of an answer in parts, which its parts follow.
pub(super) fn respond(
    asked: Asked,
    reply: Reply,
    field: &'static str,
    generations: Vec<Generation>,
    counted: bool,
) -> Response {
    let left = generations.len();
    let progress = Arc::new(Progress::new(left));
    let mut usage = Usage::default();
    generations.iter().for_each(|generation| usage.prompt(generation.prompt_tokens));
    let pieces = stream::select_all(generations.into_iter().enumerate().map(numbered));
    let none = counted.then_some(None);
    let first = |index| Choice::first(reply.kind(), index).map(|choice| reply.part(Some(choice), none));
    let events = (0..left).filter_map(first).collect();
    let live = Live { asked, reply, field, pieces, left, usage, counted, events, progress: Arc::clone(&progress) };
    let events = stream::unfold(live, |mut live| async move {
        let event = live.next().await?;
        Some((Ok::<_, Infallible>(Event::default().data(event)), live))
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.extensions_mut().insert(progress);
    response
}

/// A text's pieces, and after them that it stopped, which only counts if it had not ended.
fn numbered((index, generation): (usize, Generation)) -> BoxStream<'static, Numbered> {
    let mut pieces = generation.pieces;
    let stopped = stream::once(std::future::ready((index, Err(BackendError::Stopped))));
    let mut ended = false;
    let pieces = stream::poll_fn(move |context| pieces.poll_recv(context)).chain(stopped.map(|(_, error)| error));
    let until_end = pieces.take_while(move |piece| {
        let more = !ended;
        ended = !matches!(piece, Ok(Piece { finish: None, .. }));
        std::future::ready(more)
    });
    until_end.map(move |piece| (index, piece)).boxed()
}

impl Live {
    /// The next event; none after the last.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.left == 0 {
                self.progress.end();
                return None;
            }
            let limit = self.asked.gateway.limits.time;
            match tokio::time::timeout(limit, self.pieces.next()).await {
                Ok(Some((index, Ok(piece)))) => self.take(index, piece),
                Ok(Some((_, Err(error)))) => {
                    let refusal = self.asked.gateway.refusal(self.reply.model(), &error, self.field);
                    self.fail(&refusal);
                }
                Ok(None) => self.fail(&ApiError::stopped()),
                Err(_) => self.fail(&ApiError::slow_text(limit)),
            }
        }
    }

    fn take(&mut self, index: usize, piece: Piece) {
        self.usage.completion();
        self.progress.count(self.usage.total_tokens);
        let (kind, none) = (self.reply.kind(), self.counted.then_some(None));
        if !piece.text.is_empty() {
            self.events.push_back(self.reply.part(Some(Choice::more(kind, index, piece.text)), none));
        }
        let Some(finish) = piece.finish else { return };
        self.events.push_back(self.reply.part(Some(Choice::last(kind, index, finish)), none));
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            if self.counted {
                self.events.push_back(self.reply.part(None, Some(Some(self.usage))));
            }
            self.events.push_back(DONE.to_owned());
        }
    }

    /// Ends the whole answer, the other texts with it.
    fn fail(&mut self, error: &ApiError) {
        self.left = 0;
        self.pieces.clear();
        self.events.push_back(error.to_json());
    }
}
