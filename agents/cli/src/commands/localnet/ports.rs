//! Ports of this machine that are free. Below those that the system gives to outgoing connections, so that they are
//! free after a restart, too.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;

use anyhow::{Context, Result};
use rand::Rng;

const RANGE: Range<u16> = 20_000..32_000;
const TRIES: usize = 200;

/// Whether nobody listens there.
pub(super) fn free(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
}

/// One that is free, and none of those named.
pub(super) fn pick(taken: &[u16]) -> Result<u16> {
    let mut rng = rand::rng();
    let found = (0..TRIES).map(|_| rng.random_range(RANGE)).find(|port| !taken.contains(port) && free(*port));
    found.with_context(|| format!("no port of 127.0.0.1 from {} to {} is free", RANGE.start, RANGE.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_not_free() {
        let port = pick(&[]).unwrap();
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(!free(port) && RANGE.contains(&port));
    }
}
