//! A TCP forwarder that does to connections what a bad network does.
//!
//! Packets cannot be lost here: that takes a kernel with `netem`, and the right to use it, which neither CI nor every
//! developer has. What a program sees of lost packets is what TCP makes of them, and that is modelled: each segment
//! arrives a delay after it was sent, and each time it is lost a retransmission timeout later, which doubles (RFC
//! 6298); what comes after it waits, and few segments are on their way at once, as the congestion window is small where
//! much is lost. Two things are left out: a connection that ends because its retransmissions do, after a quarter of an
//! hour, and fast retransmits, which messages of a few segments do not see.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::dice::Dice;

/// Bytes of a segment, as on an Ethernet.
const SEGMENT: usize = 1_460;
/// Segments on their way at once: the first congestion window (RFC 6928), which does not grow where a third is lost.
const WINDOW: usize = 10;
/// What a retransmission timeout is longer than the round trip, on Linux at least.
const SLACK: Duration = Duration::from_millis(200);
/// The first timeout of a connection that is being opened, whose round trip nobody knows yet.
const OPENING: Duration = Duration::from_secs(1);

/// How bad a path is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Weather {
    /// One way.
    pub(super) delay: Duration,
    /// Per cent of segments, each time they are sent.
    pub(super) loss: u64,
}

impl Weather {
    pub(super) const FAIR: Self = Self { delay: Duration::ZERO, loss: 0 };

    /// From the sending of a segment to its arrival.
    fn passage(self, timeout: Duration, dice: &mut Dice) -> Duration {
        let (mut took, mut timeout) = (self.delay, timeout);
        while dice.percent(self.loss) {
            took += timeout;
            timeout *= 2;
        }
        took
    }

    fn timeout(self) -> Duration {
        2 * self.delay + SLACK
    }
}

/// Whether anything passes at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    Open,
    /// Nothing passes and nothing ends, as where a cable is pulled.
    Silent,
    /// Connections end, and new ones are closed at once.
    Cut,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Where it leads; nowhere as long as nobody listens there.
    to: Option<SocketAddr>,
    weather: Weather,
    mood: Mood,
}

/// A port that leads elsewhere.
pub(super) struct Wire {
    pub(super) port: u16,
    state: watch::Sender<State>,
    bytes: Arc<AtomicU64>,
}

impl Wire {
    pub(super) async fn new(weather: Weather, seed: u64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, seen) = watch::channel(State { to: None, weather, mood: Mood::Open });
        let bytes = Arc::new(AtomicU64::new(0));
        let counter = bytes.clone();
        let mut dice = Dice::new(seed);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, seen.clone(), Dice::new(dice.roll()), counter.clone()));
            }
        });
        Self { port, state, bytes }
    }

    pub(super) fn lead(&self, port: u16) {
        self.state.send_modify(|state| state.to = Some(SocketAddr::from(([127, 0, 0, 1], port))));
    }

    pub(super) fn set_mood(&self, mood: Mood) {
        self.state.send_modify(|state| state.mood = mood);
    }

    pub(super) fn set_weather(&self, weather: Weather) {
        self.state.send_modify(|state| state.weather = weather);
    }

    /// Bytes that it has carried, both ways.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

async fn carry(near: TcpStream, state: watch::Receiver<State>, mut dice: Dice, bytes: Arc<AtomicU64>) {
    let cut = state.clone();
    let carrying = async move {
        let State { to, weather, .. } = *state.borrow();
        // The handshake, whose packets are lost like others.
        sleep(weather.passage(OPENING, &mut dice) + weather.delay).await;
        heard(&state).await;
        let far = TcpStream::connect(to.ok_or(io::ErrorKind::ConnectionRefused)?).await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
        let back = Dice::new(dice.roll());
        let there = pump(from_near, to_far, state.clone(), dice, &bytes);
        tokio::try_join!(there, pump(from_far, to_near, state, back, &bytes)).map(|_| ())
    };
    tokio::select! {
        // An end that is gone shows at the other: both sockets are dropped here.
        _ended = carrying => {}
        () = told(cut, |state| state.mood == Mood::Cut) => {}
    }
}

/// Until the path does this; for ever once nobody can change it any more.
async fn told(mut state: watch::Receiver<State>, what: fn(&State) -> bool) {
    if state.wait_for(what).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn heard(state: &watch::Receiver<State>) {
    told(state.clone(), |state| state.mood != Mood::Silent).await;
}

/// One direction of a connection.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: watch::Receiver<State>,
    mut dice: Dice,
    bytes: &AtomicU64,
) -> io::Result<()> {
    let (under_way, mut arriving) = mpsc::channel::<(Instant, Vec<u8>)>(WINDOW);
    let seen = state.clone();
    let sending = async move {
        let mut last = Instant::now();
        loop {
            let weather = seen.borrow().weather;
            let most = if weather == Weather::FAIR { 64 * SEGMENT } else { SEGMENT };
            let mut segment = vec![0; most];
            let length = from.read(&mut segment).await?;
            if length == 0 {
                return Ok(());
            }
            segment.truncate(length);
            // In order: what was lost holds up what was not.
            last = last.max(Instant::now() + weather.passage(weather.timeout(), &mut dice));
            if under_way.send((last, segment)).await.is_err() {
                return Ok(());
            }
        }
    };
    let receiving = async move {
        while let Some((at, segment)) = arriving.recv().await {
            sleep_until(at).await;
            heard(&state).await;
            bytes.fetch_add(segment.len() as u64, Ordering::Relaxed);
            to.write_all(&segment).await?;
        }
        to.shutdown().await
    };
    tokio::try_join!(sending, receiving).map(|_: ((), ())| ())
}

#[test]
fn a_lossy_path_delays_what_it_loses_and_longer_each_time() {
    let weather = Weather { delay: Duration::from_millis(200), loss: 30 };
    let mut dice = Dice::new(7);
    let passages: Vec<Duration> = (0..10_000).map(|_| weather.passage(weather.timeout(), &mut dice)).collect();
    let lost = passages.iter().filter(|passage| **passage > weather.delay).count();
    assert!((2_850..3_150).contains(&lost), "{lost} of 10,000 are lost once at least");
    assert!(passages.iter().all(|passage| *passage >= weather.delay));
    let twice = passages.iter().filter(|passage| **passage >= weather.delay + 3 * weather.timeout()).count();
    assert!((800..1_000).contains(&twice), "{twice} of 10,000 are lost twice at least");
}

#[tokio::test]
async fn a_wire_carries_in_order_waits_where_it_is_silent_and_can_be_cut() {
    let echo = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let wire = Wire::new(Weather { delay: Duration::from_millis(5), loss: 5 }, 1).await;
    wire.lead(echo.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = echo.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                tokio::io::copy(&mut reader, &mut writer).await
            });
        }
    });
    let sent: Vec<u8> = (0..5 * SEGMENT).map(|i| (i % 251) as u8).collect();
    let mut stream = TcpStream::connect(("127.0.0.1", wire.port)).await.unwrap();
    let mut back = vec![0; sent.len()];
    stream.write_all(&sent).await.unwrap();
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(back, sent);
    assert_eq!(wire.bytes(), 2 * sent.len() as u64);

    wire.set_mood(Mood::Silent);
    stream.write_all(b"x").await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(300), stream.read_u8()).await.is_err(), "nothing passes");
    wire.set_mood(Mood::Open);
    assert_eq!(stream.read_u8().await.unwrap(), b'x');
    wire.set_mood(Mood::Cut);
    let end = tokio::time::timeout(Duration::from_secs(5), stream.read_u8()).await.unwrap();
    assert!(end.is_err(), "{end:?}");
}
