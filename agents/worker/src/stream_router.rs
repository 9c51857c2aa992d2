//! Hands the streams that peers open to the lanes they are meant for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tensorlink_node::ports::Duplex;
use tensorlink_node::wire::frame::{self, Frame, Hello};
use tensorlink_types::{Address, Lane};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::timeout;

/// Longest wait for the first frame of a stream.
const FIRST_FRAME: Duration = Duration::from_secs(5);
/// Streams whose first frame is awaited at once.
const WAITING: usize = 32;

/// A stream a peer opened for one of our lanes, its first frame read.
pub struct Visitor {
    /// Who opened it; proven by the transport.
    pub peer: Address,
    /// What it said.
    pub hello: Hello,
    /// The rest of the stream.
    pub stream: Box<dyn Duplex>,
}

/// Where the visitor of one lane waits: at most one, the newest, for older streams are of attempts that the neighbour
/// gave up.
#[derive(Default)]
struct Seat {
    visitor: Mutex<Option<Visitor>>,
    taken: Notify,
}

/// The visitors of a lane.
pub struct Visitors {
    seat: Arc<Seat>,
}

impl Visitors {
    /// Waits for a visitor.
    pub async fn next(&mut self) -> Visitor {
        loop {
            if let Some(visitor) = self.seat.visitor.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return visitor;
            }
            self.seat.taken.notified().await;
        }
    }
}

/// Each lane with the worker of its previous stage.
type Lanes = HashMap<Lane, (Address, Arc<Seat>)>;

/// Lanes that await their previous stage, each with that stage's worker.
#[derive(Clone, Default)]
pub struct StreamRouter {
    lanes: Arc<Mutex<Lanes>>,
}

impl StreamRouter {
    /// Registers a lane that only `previous` may visit; a later registration replaces it.
    pub fn register(&self, lane: Lane, previous: Address) -> Visitors {
        let seat = Arc::new(Seat::default());
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).insert(lane, (previous, seat.clone()));
        Visitors { seat }
    }

    /// Forgets a lane.
    pub fn unregister(&self, lane: Lane) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).remove(&lane);
    }

    /// Receives streams until the net closes. A peer that opens a stream and says nothing, or names a lane that is not
    /// its neighbour's, is dropped and delays nobody.
    pub async fn run(self, mut streams: mpsc::Receiver<(Address, Box<dyn Duplex>)>) {
        let slots = Arc::new(Semaphore::new(WAITING));
        while let Some((peer, mut stream)) = streams.recv().await {
            let Ok(slot) = slots.clone().try_acquire_owned() else {
                tracing::warn!(%peer, "too many streams wait for their first frame; dropping one");
                continue;
            };
            let router = self.clone();
            tokio::spawn(async move {
                let _slot = slot;
                match timeout(FIRST_FRAME, frame::read(&mut stream, 0)).await {
                    Ok(Ok(Frame::Hello(hello))) => router.pass_on(Visitor { peer, hello, stream }),
                    Ok(Ok(_)) => tracing::warn!(%peer, "a tensor stream begins without a hello"),
                    Ok(Err(error)) => tracing::warn!(%peer, %error, "a tensor stream begins badly"),
                    Err(_) => tracing::warn!(%peer, "a tensor stream says nothing"),
                }
            });
        }
    }

    fn pass_on(&self, visitor: Visitor) {
        let (peer, hello) = (visitor.peer, &visitor.hello);
        let Some(stage) = hello.stage.checked_add(1) else { return };
        let lane = Lane { job: hello.job, stage, replica: hello.replica };
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        match lanes.get(&lane) {
            Some((previous, seat)) if *previous == peer => {
                *seat.visitor.lock().unwrap_or_else(PoisonError::into_inner) = Some(visitor);
                seat.taken.notify_one();
            }
            Some(_) => {
                tracing::warn!(%peer, %lane, "a stream from somebody other than the worker of the previous stage");
            }
            None => tracing::warn!(%peer, %lane, "a stream for a lane that we do not hold"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::JobId;

    use super::*;

    const PREVIOUS: Address = Address::repeat_byte(1);

    async fn visit(router: &StreamRouter, peer: Address, frame: Frame) {
        let (streams, receiver) = mpsc::channel(1);
        let (mut theirs, ours) = tokio::io::duplex(1024);
        frame::write(&mut theirs, &frame).await.unwrap();
        streams.send((peer, Box::new(ours) as Box<dyn Duplex>)).await.unwrap();
        drop(streams);
        router.clone().run(receiver).await;
    }

    #[tokio::test]
    async fn a_stream_reaches_its_lane_and_no_other() {
        let router = StreamRouter::default();
        let lane = Lane { job: JobId(1), stage: 1, replica: 0 };
        let mut visitors = router.register(lane, PREVIOUS);
        let hello = Hello { job: JobId(1), replica: 0, stage: 0, next_interval: 0 };
        visit(&router, PREVIOUS, Frame::Hello(Hello { job: JobId(2), ..hello.clone() })).await;
        visit(&router, PREVIOUS, Frame::SignedLog(tests_log())).await;
        visit(&router, Address::ZERO, Frame::Hello(hello.clone())).await;
        assert!(timeout(Duration::from_millis(50), visitors.next()).await.is_err());
        visit(&router, PREVIOUS, Frame::Hello(hello.clone())).await;
        assert_eq!(visitors.next().await.hello, hello);
    }

    #[tokio::test]
    async fn the_newest_visitor_is_received() {
        let router = StreamRouter::default();
        let lane = Lane { job: JobId(1), stage: 1, replica: 0 };
        let mut visitors = router.register(lane, PREVIOUS);
        for next_interval in 0..5 {
            let hello = Hello { job: JobId(1), replica: 0, stage: 0, next_interval };
            visit(&router, PREVIOUS, Frame::Hello(hello)).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(visitors.next().await.hello.next_interval, 4);
        assert!(timeout(Duration::from_millis(20), visitors.next()).await.is_err());
    }

    fn tests_log() -> frame::SignedLog {
        let log = tensorlink_types::abi::EdgeLog {
            job: 1,
            replica: 0,
            fromStage: 0,
            toStage: 1,
            interval: 0,
            root: Default::default(),
        };
        frame::SignedLog { log, signature: vec![0; 65] }
    }
}
