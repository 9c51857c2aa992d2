//! The stream to one neighbour: a reader and a writer task around bounded queues, and the handshake that agrees where
//! to resume.

use std::time::Duration;

use bytes::Bytes;
use tensorlink_node::ports::Duplex;
use tensorlink_node::wire::frame::{self, Frame, FrameError, Hello, SignedLog};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::evidence::awaited::Side;

/// Frames waiting in each direction: enough to overlap, few enough to bound memory.
pub(crate) const QUEUE: usize = 16;
/// Longest wait for a frame of the handshake. The neighbour may have to wait for its own neighbours first.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// Longest time for what is queued to get out once the link is closed.
const DRAIN: Duration = Duration::from_secs(3);

/// Why the neighbour cannot be worked with at the moment.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The stream ended. Reconnect.
    #[error("the neighbour is gone")]
    Gone,
    /// The neighbour did not finish the handshake in time. Reconnect.
    #[error("the neighbour did not finish the handshake within {HANDSHAKE:?}")]
    Handshake,
    /// The neighbour sent something other than what the protocol has next. Reconnect; the claim is not made.
    #[error("expected {expected}, got {got}")]
    Unexpected {
        /// What had to come.
        expected: String,
        /// What came.
        got: String,
    },
    /// A frame could not be written or read.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// An open stream to a neighbour.
#[derive(Debug)]
pub struct Link {
    inbox: mpsc::Receiver<Result<Frame, FrameError>>,
    outbox: mpsc::Sender<Frame>,
    closed: CancellationToken,
    /// Where its tasks run.
    runtime: Handle,
}

impl Drop for Link {
    fn drop(&mut self) {
        // The reader would otherwise hold the stream open until the neighbour writes.
        self.closed.cancel();
    }
}

impl Link {
    /// Takes over a stream until the link is dropped or `stop`, which also wakes a thread that is blocked on it.
    /// `max_tensor` is the size of the boundary tensors in bytes.
    pub fn new(stream: Box<dyn Duplex>, max_tensor: usize, stop: &CancellationToken) -> Self {
        let closed = stop.child_token();
        let (reader, writer) = tokio::io::split(stream);
        let (to_inbox, inbox) = mpsc::channel(QUEUE);
        let (outbox, from_outbox) = mpsc::channel(QUEUE);
        tokio::spawn(closed.clone().run_until_cancelled_owned(read_all(reader, max_tensor, to_inbox)));
        let closing = closed.clone();
        tokio::spawn(async move {
            let writing = write_all(writer, from_outbox);
            tokio::pin!(writing);
            tokio::select! {
                () = &mut writing => {}
                // Our last words, if the neighbour still listens. A thread that goes on sending ends with the drain at
                // the latest.
                () = closing.cancelled() => drop(timeout(DRAIN, writing).await),
            }
        });
        Self { inbox, outbox, closed, runtime: Handle::current() }
    }

    /// Sends a frame of the handshake.
    ///
    /// # Errors
    /// [`LinkError::Gone`].
    pub async fn send_hello(&self, hello: Hello) -> Result<(), LinkError> {
        self.outbox.send(Frame::Hello(hello)).await.map_err(|_| LinkError::Gone)
    }

    /// Waits for a frame of the handshake.
    ///
    /// # Errors
    /// Any of [`LinkError`].
    pub async fn receive_hello(&mut self) -> Result<Hello, LinkError> {
        let frame = timeout(HANDSHAKE, self.inbox.recv()).await.map_err(|_| LinkError::Handshake)?;
        match frame.ok_or(LinkError::Gone)?? {
            Frame::Hello(hello) => Ok(hello),
            other => Err(unexpected("a hello", &other)),
        }
    }

    /// Sends a boundary tensor. Blocks while the queue is full; only from a blocking thread.
    ///
    /// # Errors
    /// [`LinkError::Gone`].
    pub fn send_tensor(&self, step: u32, micro_batch: u32, data: Bytes) -> Result<(), LinkError> {
        self.outbox.blocking_send(Frame::Tensor { step, micro_batch, data }).map_err(|_| LinkError::Gone)
    }

    /// Waits for the boundary tensor of a micro-batch. Blocks; only from a blocking thread.
    ///
    /// # Errors
    /// Any of [`LinkError`].
    pub fn receive_tensor(&mut self, step: u32, micro_batch: u32) -> Result<Bytes, LinkError> {
        match self.inbox.blocking_recv().ok_or(LinkError::Gone)?? {
            Frame::Tensor { step: s, micro_batch: m, data } if (s, m) == (step, micro_batch) => Ok(data),
            other => Err(unexpected(&format!("the tensor of step {step}, micro-batch {micro_batch}"), &other)),
        }
    }

    /// Takes in and drops up to `most` tensors, until the stream ends or something else comes; why.
    pub async fn until_it_ends(&mut self, most: u32) -> LinkError {
        let mut left = most;
        loop {
            match self.inbox.recv().await {
                Some(Ok(Frame::Tensor { .. })) if left > 0 => left -= 1,
                Some(Ok(frame)) => return unexpected("nothing more", &frame),
                Some(Err(error)) => return error.into(),
                None => return LinkError::Gone,
            }
        }
    }

    /// Whether nothing has arrived that was not received yet.
    pub fn is_idle(&self) -> bool {
        self.inbox.is_empty()
    }

    /// Sends our signed log of the interval. Blocks; only from a blocking thread.
    ///
    /// # Errors
    /// [`LinkError::Gone`].
    pub fn send_log(&self, log: SignedLog) -> Result<(), LinkError> {
        self.outbox.blocking_send(Frame::SignedLog(log)).map_err(|_| LinkError::Gone)
    }

    /// Waits for the neighbour's signed log of the interval, or until it comes by `elsewhere`. Blocks; only from a
    /// blocking thread.
    ///
    /// # Errors
    /// Any of [`LinkError`].
    pub fn receive_log(&mut self, elsewhere: impl Future<Output = SignedLog>) -> Result<SignedLog, LinkError> {
        let inbox = &mut self.inbox;
        let frame = self.runtime.block_on(async {
            tokio::select! {
                biased;
                frame = inbox.recv() => frame.ok_or(LinkError::Gone)?.map_err(LinkError::from),
                log = elsewhere => Ok(Frame::SignedLog(log)),
            }
        });
        match frame? {
            Frame::SignedLog(log) => Ok(log),
            other => Err(unexpected("the signed log of the interval", &other)),
        }
    }
}

async fn read_all(
    reader: impl AsyncRead + Unpin,
    max_tensor: usize,
    to_inbox: mpsc::Sender<Result<Frame, FrameError>>,
) {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    loop {
        let frame = frame::read(&mut reader, max_tensor).await;
        let over = frame.is_err();
        if to_inbox.send(frame).await.is_err() || over {
            return;
        }
    }
}

async fn write_all(writer: impl AsyncWrite + Unpin, mut from_outbox: mpsc::Receiver<Frame>) {
    let mut writer = BufWriter::with_capacity(1 << 16, writer);
    while let Some(frame) = from_outbox.recv().await {
        let mut result = frame::write(&mut writer, &frame).await;
        // Flush only when nothing else is waiting: frames of a burst share packets.
        if result.is_ok() && from_outbox.is_empty() {
            result = writer.flush().await.map_err(FrameError::from);
        }
        if let Err(error) = result {
            tracing::debug!(%error, "link writer ends");
            return;
        }
    }
    if let Err(error) = writer.shutdown().await {
        tracing::debug!(%error, "link did not close cleanly");
    }
}

fn unexpected(expected: &str, got: &Frame) -> LinkError {
    let got = match got {
        Frame::Hello(hello) => format!("{hello:?}"),
        Frame::Tensor { step, micro_batch, data } => {
            format!("a tensor of step {step}, micro-batch {micro_batch} with {} bytes", data.len())
        }
        Frame::SignedLog(log) => format!("the log of interval {}", log.log.interval),
    };
    LinkError::Unexpected { expected: expected.to_owned(), got }
}

/// Agrees with all stages of the replica on the interval to resume from: the least that any stage has not finished.
///
/// The least so far travels from the last stage to the first, and the result back. `hello.next_interval` is our own.
/// `waits_for` is told for whom we wait from then on.
///
/// # Errors
/// Any of [`LinkError`], of whichever boundary failed.
pub async fn agree_on_interval(
    hello: Hello,
    previous: Option<&mut Link>,
    next: Option<&mut Link>,
    waits_for: impl Fn(Side),
) -> Result<u32, LinkError> {
    let mut least = hello.next_interval;
    let mut next = next;
    if let Some(next) = next.as_deref_mut() {
        waits_for(Side::Next);
        least = least.min(next.receive_hello().await?.next_interval);
    }
    let say = |next_interval| Hello { next_interval, ..hello.clone() };
    if let Some(previous) = previous {
        waits_for(Side::Previous);
        previous.send_hello(say(least)).await?;
        let agreed = previous.receive_hello().await?.next_interval;
        if agreed > least {
            return Err(LinkError::Unexpected {
                expected: format!("an interval of at most {least}"),
                got: format!("interval {agreed}"),
            });
        }
        least = agreed;
    }
    if let Some(next) = next {
        next.send_hello(say(least)).await?;
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tensorlink_types::JobId;

    use super::*;

    fn hello(stage: u16, next_interval: u32) -> Hello {
        Hello { job: JobId(1), replica: 0, stage, next_interval }
    }

    fn pair() -> (Link, Link) {
        let (a, b) = tokio::io::duplex(1 << 16);
        let stop = CancellationToken::new();
        (Link::new(Box::new(a), 1024, &stop), Link::new(Box::new(b), 1024, &stop))
    }

    #[tokio::test]
    async fn all_stages_resume_at_the_least_interval() {
        let ((mut a_next, mut b_prev), (mut b_next, mut c_prev)) = (pair(), pair());
        let waited = RefCell::new(Vec::new());
        let (a, b, c) = tokio::join!(
            agree_on_interval(hello(0, 5), None, Some(&mut a_next), |side| assert_eq!(side, Side::Next)),
            agree_on_interval(hello(1, 6), Some(&mut b_prev), Some(&mut b_next), |side| waited.borrow_mut().push(side)),
            agree_on_interval(hello(2, 3), Some(&mut c_prev), None, |side| assert_eq!(side, Side::Previous)),
        );
        assert_eq!((a.unwrap(), b.unwrap(), c.unwrap()), (3, 3, 3));
        assert_eq!(waited.into_inner(), [Side::Next, Side::Previous]);
    }

    #[tokio::test]
    async fn a_lost_neighbour_is_noticed() {
        let (mut a, b) = pair();
        drop(b);
        let lost = tokio::task::spawn_blocking(move || a.receive_tensor(0, 0)).await.unwrap();
        assert!(matches!(lost, Err(LinkError::Gone | LinkError::Frame(_))), "{lost:?}");
    }

    #[tokio::test]
    async fn a_stop_wakes_threads_that_wait_for_a_silent_neighbour() {
        let stop = CancellationToken::new();
        // Nobody reads or writes the other ends.
        let (a, _silent) = tokio::io::duplex(16);
        let (b, _deaf) = tokio::io::duplex(16);
        let mut receiving = Link::new(Box::new(a), 1024, &stop);
        let sending = Link::new(Box::new(b), 1024, &stop);
        let received = tokio::task::spawn_blocking(move || receiving.receive_tensor(0, 0));
        let sent = tokio::task::spawn_blocking(move || {
            loop {
                if let Err(error) = sending.send_tensor(0, 0, Bytes::from_static(&[0; 512])) {
                    return error;
                }
            }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        stop.cancel();
        assert!(matches!(received.await.unwrap(), Err(LinkError::Gone)));
        assert!(matches!(sent.await.unwrap(), LinkError::Gone));
    }

    #[tokio::test]
    async fn a_tensor_of_another_micro_batch_is_refused() {
        let (a, mut b) = pair();
        let result = tokio::task::spawn_blocking(move || {
            a.send_tensor(3, 1, Bytes::from_static(b"x")).unwrap();
            b.receive_tensor(3, 0)
        })
        .await
        .unwrap();
        assert!(matches!(result, Err(LinkError::Unexpected { .. })), "{result:?}");
    }
}
