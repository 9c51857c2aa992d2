//! What encryption, multiplexing and framing cost on the loopback interface, against plain TCP in the same run.
//!
//! `cargo bench -p tensorlink-net` prints megabytes a second and the time of a 64 KiB round trip, each as the median of
//! interleaved rounds, and their ratio to plain TCP. `cargo test --benches` runs one small round.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tensorlink_net::{Identity, Libp2pNet, Multiaddr, NetConfig};
use tensorlink_node::ports::{Duplex, Gate, Net, Protocol};
use tensorlink_types::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const PIECE: usize = 4 << 20;
const ECHO: usize = 64 << 10;

struct Open;

impl Gate for Open {
    fn allows(&self, _: Address, _: Protocol) -> bool {
        true
    }
}

/// Reads bytes and, when all have come, says so by one; then echoes pieces of [`ECHO`] until the end.
async fn sink(mut stream: Box<dyn Duplex>, total: usize) -> std::io::Result<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        let mut left = total;
        while left > 0 {
            let room = left.min(PIECE);
            let n = stream.read(&mut buffer[..room]).await?;
            if n == 0 {
                return Ok(());
            }
            left -= n;
        }
        stream.write_all(&[1]).await?;
        stream.flush().await?;
        for _ in 0..ECHOES {
            stream.read_exact(&mut buffer[..ECHO]).await?;
            stream.write_all(&buffer[..ECHO]).await?;
            stream.flush().await?;
        }
    }
}

const ECHOES: usize = 64;

/// One round: the time for `total` bytes, and the median time of a round trip.
async fn round(stream: &mut Box<dyn Duplex>, total: usize, piece: &[u8]) -> std::io::Result<(Duration, Duration)> {
    let start = Instant::now();
    let mut left = total;
    while left > 0 {
        let n = left.min(piece.len());
        stream.write_all(&piece[..n]).await?;
        left -= n;
    }
    stream.flush().await?;
    stream.read_u8().await?;
    let took = start.elapsed();
    let mut trips = Vec::with_capacity(ECHOES);
    let mut back = vec![0; ECHO];
    for _ in 0..ECHOES {
        let start = Instant::now();
        stream.write_all(&piece[..ECHO]).await?;
        stream.flush().await?;
        stream.read_exact(&mut back).await?;
        trips.push(start.elapsed());
    }
    Ok((took, median(trips)))
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

async fn plain_tcp(total: usize) -> Result<Box<dyn Duplex>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        sink(Box::new(stream), total).await
    });
    let stream = TcpStream::connect(at).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

async fn nodes(listen: &str) -> Result<(Arc<Libp2pNet>, Arc<Libp2pNet>)> {
    let listen: Multiaddr = listen.parse()?;
    let mut made = Vec::new();
    let mut bootstrap = Vec::new();
    for n in 1..=2 {
        let config = NetConfig { listen: vec![listen.clone()], bootstrap, ..NetConfig::default() };
        let node = Arc::new(Libp2pNet::start(Identity::from_secret([n; 32])?, config)?);
        node.set_gate(Arc::new(Open));
        bootstrap = loop {
            let at = node.listen_addresses().await?;
            if !at.is_empty() {
                break at;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        made.push(node);
    }
    let (b, a) = (made.pop().ok_or("two nodes")?, made.pop().ok_or("two nodes")?);
    while a.connected_peers().await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok((a, b))
}

async fn tensor_stream(from: &Libp2pNet, to: &Libp2pNet, total: usize) -> Result<Box<dyn Duplex>> {
    let mut streams = to.accept(Protocol::Tensor).await?;
    tokio::spawn(async move {
        match streams.recv().await {
            Some((_, stream)) => sink(stream, total).await,
            None => Ok(()),
        }
    });
    Ok(from.open(to.address(), Protocol::Tensor).await?)
}

fn print(name: &str, bytes: usize, took: Duration, trip: Duration, tcp: (Duration, Duration)) {
    println!(
        "{name:<16} {:>7.0} MB/s  {:>5.1} % of TCP   64 KiB round trip {:>6.0} us  {:.2} x TCP",
        bytes as f64 / took.as_secs_f64() / 1e6,
        100.0 * tcp.0.as_secs_f64() / took.as_secs_f64(),
        trip.as_secs_f64() * 1e6,
        trip.as_secs_f64() / tcp.1.as_secs_f64(),
    );
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<()> {
    // `cargo bench` passes --bench; anything else is a test of the bench itself.
    let (total, rounds) = if std::env::args().any(|a| a == "--bench") { (256 << 20, 9) } else { (8 << 20, 1) };
    let piece: Vec<u8> = (0..PIECE).map(|i| (i * 31 % 251) as u8).collect();

    let (a, b) = nodes("/ip4/127.0.0.1/tcp/0").await?;
    let (c, d) = nodes("/ip4/127.0.0.1/udp/0/quic-v1").await?;
    let mut lines = [
        ("plain TCP", plain_tcp(total).await?, Vec::new()),
        ("TLS and yamux", tensor_stream(&b, &a, total).await?, Vec::new()),
        ("QUIC", tensor_stream(&d, &c, total).await?, Vec::new()),
    ];
    for _ in 0..rounds {
        for (_, stream, results) in &mut lines {
            results.push(round(stream, total, &piece).await?);
        }
    }
    let medians = |results: &[(Duration, Duration)]| {
        let (took, trips): (Vec<_>, Vec<_>) = results.iter().copied().unzip();
        (median(took), median(trips))
    };
    let tcp = medians(&lines[0].2);
    for (name, _, results) in &lines {
        let (took, trip) = medians(results);
        print(name, total, took, trip, tcp);
    }

    let mut requests = a.serve(Protocol::Rpc).await?;
    tokio::spawn(async move {
        while let Some(request) = requests.recv().await {
            // The asker is below and waits.
            let _ = request.reply.send(request.body);
        }
    });
    for (size, times) in [(ECHO, 200), (16 << 20, rounds)] {
        let body = Bytes::from(vec![7; size]);
        let mut trips = Vec::new();
        for _ in 0..times {
            let start = Instant::now();
            b.request(a.address(), Protocol::Rpc, body.clone()).await?;
            trips.push(start.elapsed());
        }
        let trip = median(trips);
        println!(
            "request of {:>5} KiB and the same back: {:>6.0} us, {:.0} MB/s",
            size >> 10,
            trip.as_secs_f64() * 1e6,
            2.0 * size as f64 / trip.as_secs_f64() / 1e6
        );
    }
    Ok(())
}
