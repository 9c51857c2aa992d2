//! Streams that we open: a fresh one for the roles, pooled ones for requests.
//!
//! Requests reuse streams because a fresh one costs a round trip and starts with a small window. A stream that carried
//! a request whose fate is unknown is dropped, never reused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use libp2p::{PeerId, StreamProtocol};
use libp2p_stream::{Control, OpenStreamError};
use tensorlink_node::ports::{NetError, Protocol};
use tensorlink_types::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt};

use crate::config::Limits;
use crate::metrics::{Counted, Metrics};
use crate::swarm::Command;
use crate::wire::{self, Mode, ReadError, Verdict};

/// Attempts at opening a stream that the peer dropped before its verdict: it drops streams that come in bursts.
const ATTEMPTS: u32 = 5;
/// Pools kept without a stream in use before idle ones are swept.
const SWEEP_ABOVE: usize = 256;

type Stream = Counted<Compat<libp2p::Stream>, ()>;

/// Streams to one peer for the requests of one protocol.
struct Pool {
    idle: Mutex<Vec<(Stream, Instant)>>,
    in_use: Semaphore,
    /// Held while one is opened: of streams that arrive at once the peer takes one, and drops the others.
    opening: tokio::sync::Mutex<()>,
}

pub(crate) struct Outbound {
    limits: Limits,
    metrics: Arc<Metrics>,
    commands: mpsc::Sender<Command>,
    control: Control,
    pools: Mutex<HashMap<(Address, Protocol), Arc<Pool>>>,
}

impl Outbound {
    pub(crate) fn new(
        limits: Limits,
        metrics: Arc<Metrics>,
        commands: mpsc::Sender<Command>,
        control: Control,
    ) -> Self {
        Self { limits, metrics, commands, control, pools: Mutex::default() }
    }

    /// One request and its answer.
    pub(crate) async fn request(&self, peer: Address, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        let (size, limit) = (body.len(), protocol.max_request());
        if size > limit {
            return Err(NetError::TooLarge { size, limit });
        }
        let pool = self.pool(peer, protocol);
        let place =
            in_time(peer, self.limits.answer, async { pool.in_use.acquire().await.map_err(|_| NetError::Closed) })
                .await?;
        let mut stream = match self.idle(&pool) {
            Some(stream) => stream,
            None => {
                // One that hangs does not hold up the others for long.
                let _turn = timeout(self.limits.handshake, pool.opening.lock()).await.ok();
                match self.idle(&pool) {
                    Some(stream) => stream,
                    None => self.open(peer, protocol, Mode::Requests).await?,
                }
            }
        };
        let patience = self.limits.transfer(size) + self.limits.answer + self.limits.transfer(protocol.max_frame());
        let answer = in_time(peer, patience, exchange(&mut stream, peer, protocol, &body, &self.limits)).await?;
        pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push((stream, Instant::now()));
        drop(place);
        Ok(answer)
    }

    /// A fresh stream that the peer has accepted.
    pub(crate) async fn open(&self, peer: Address, protocol: Protocol, mode: Mode) -> Result<Stream, NetError> {
        let mut reason = String::new();
        for attempt in 0..ATTEMPTS {
            let id = self.connect(peer).await?;
            match in_time(peer, self.limits.handshake, self.shake_hands(id, protocol, mode)).await? {
                Ok((stream, Ok(()))) => return Ok(stream),
                Ok((_, Err(refusal))) => return Err(refusal.into_error(peer, protocol)),
                Err(ReadError::Io(e)) => reason = e.to_string(),
                Err(e) => return Err(e.into_error(peer, protocol)),
            }
            // Spread, so that those who collided do not meet again.
            sleep(Duration::from_millis(rand::random_range(1..=(10 << attempt)))).await;
        }
        // Negotiation is lazy: a peer of another version looks like one whose streams break.
        let name = protocol.name();
        let reason = format!(
            "it dropped {ATTEMPTS} streams of {name}: {reason} (if it is up, update the older node of the two)"
        );
        Err(NetError::Unreachable { peer, reason })
    }

    async fn shake_hands(
        &self,
        id: PeerId,
        protocol: Protocol,
        mode: Mode,
    ) -> Result<Result<(Stream, Verdict), ReadError>, NetError> {
        let opened = self.control.clone().open_stream(id, StreamProtocol::new(protocol.name())).await;
        let stream = match opened {
            Ok(stream) => stream,
            Err(OpenStreamError::Io(e)) => return Ok(Err(ReadError::Io(e))),
            Err(e) => return Ok(Err(ReadError::Io(std::io::Error::other(e.to_string())))),
        };
        let mut stream = Counted::new(stream.compat(), self.metrics.clone(), ());
        let shake = async {
            stream.write_all(&[mode as u8]).await?;
            stream.flush().await?;
            wire::read_verdict(&mut stream).await
        };
        Ok(shake.await.map(|verdict| (stream, verdict)))
    }

    async fn connect(&self, peer: Address) -> Result<PeerId, NetError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Connect(peer, reply)).await.map_err(|_| NetError::Closed)?;
        // The loop gives up by itself after three of these; this bounds a loop that is stuck.
        in_time(peer, 4 * self.limits.handshake, async { answer.await.map_err(|_| NetError::Closed)? }).await
    }

    fn pool(&self, peer: Address, protocol: Protocol) -> Arc<Pool> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if pools.len() > SWEEP_ABOVE {
            pools.retain(|_, pool| {
                self.forget_old(pool);
                Arc::strong_count(pool) > 1 || !pool.idle.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
            });
        }
        let most = self.limits.request_streams_per_peer.max(1);
        let fresh =
            || Arc::new(Pool { idle: Mutex::default(), in_use: Semaphore::new(most), opening: Default::default() });
        pools.entry((peer, protocol)).or_insert_with(fresh).clone()
    }

    /// An idle stream that the peer has not closed.
    fn idle(&self, pool: &Pool) -> Option<Stream> {
        self.forget_old(pool);
        let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((mut stream, _)) = idle.pop() {
            // Nothing is due between requests: an end, an error or a byte means that it cannot be used.
            if stream.read_u8().now_or_never().is_none() {
                return Some(stream);
            }
        }
        None
    }

    fn forget_old(&self, pool: &Pool) {
        let oldest = self.limits.idle / 2;
        pool.idle.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, since)| since.elapsed() < oldest);
    }
}

/// Writes a request and reads its answer. The peer may refuse before it has read the whole request.
async fn exchange(
    stream: &mut Stream,
    peer: Address,
    protocol: Protocol,
    body: &[u8],
    limits: &Limits,
) -> Result<Bytes, NetError> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let send = timeout(limits.transfer(body.len()), wire::write_request(&mut writer, body));
    // The send runs meanwhile, and the role may take its time.
    let first_byte = limits.transfer(body.len()) + limits.queue_wait + limits.answer;
    let receive = async {
        in_time(peer, first_byte, async { Ok(wire::read_verdict(&mut reader).await) })
            .await?
            .map_err(|e| e.into_error(peer, protocol))?
            .map_err(|refusal| refusal.into_error(peer, protocol))?;
        let length = wire::read_length(&mut reader, protocol.max_frame()).await;
        let length = length.map_err(|e| e.into_error(peer, protocol))?;
        // We asked for it, so it has room.
        let read = async { Ok(wire::read_body(&mut reader, length, |_| true).await) };
        let body = in_time(peer, limits.transfer(length), read).await?;
        let body = body.map_err(|e| ReadError::Io(e).into_error(peer, protocol))?;
        body.ok_or_else(|| NetError::Unreachable { peer, reason: "no memory is left for its answer".into() })
    };
    tokio::pin!(send, receive);
    tokio::select! {
        biased;
        sent = &mut send => match sent {
            Ok(Ok(())) => receive.await,
            // It may have said why before it closed; then that is the error.
            Ok(Err(e)) => match in_time(peer, limits.handshake, receive).await {
                Err(said @ (NetError::Refused(_) | NetError::Protocol { .. })) => Err(said),
                _ => Err(NetError::Unreachable { peer, reason: e.to_string() }),
            },
            Err(_) => Err(NetError::Timeout { peer, after: limits.transfer(body.len()) }),
        },
        early = &mut receive => match early {
            Ok(_) => {
                Err(NetError::Protocol { peer, protocol, reason: "it answered before it had the request".into() })
            }
            Err(e) => Err(e),
        },
    }
}

async fn in_time<T>(
    peer: Address,
    after: Duration,
    work: impl Future<Output = Result<T, NetError>>,
) -> Result<T, NetError> {
    timeout(after, work).await.unwrap_or(Err(NetError::Timeout { peer, after }))
}
