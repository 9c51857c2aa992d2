//! Whether this node can listen where it should, and reaches whom it knows.

use std::net::ToSocketAddrs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tensorlink_net::probe;
use tokio::net::TcpStream;

use crate::advice;

/// A peer that has not answered within is not there.
const PATIENCE: Duration = Duration::from_secs(5);

/// A place that a multiaddr names.
#[derive(PartialEq, Eq, Debug)]
struct Place<'a> {
    host: &'a str,
    port: u16,
    /// By TCP, else by UDP.
    tcp: bool,
}

impl<'a> Place<'a> {
    fn of(address: &'a str) -> Option<Self> {
        let mut parts = address.strip_prefix('/')?.split('/');
        if !["ip4", "ip6", "dns", "dns4", "dns6"].contains(&parts.next()?) {
            return None;
        }
        let host = parts.next()?;
        let tcp = match parts.next()? {
            "tcp" => true,
            "udp" => false,
            _ => return None,
        };
        Some(Self { host, port: parts.next()?.parse().ok()?, tcp })
    }
}

/// Whether a node could listen here now.
pub(super) fn ports(listen: &[String]) -> Result<String> {
    for text in listen {
        let address = text.parse().with_context(|| format!("{text:?} is not a multiaddr"))?;
        probe(&address).with_context(|| {
            format!(
                "cannot listen on {text}: if a node of yours runs there, all is well; else name another by --listen"
            )
        })?;
    }
    Ok(format!("free: {}", listen.join(", ")))
}

/// Whether somebody takes connections where peers should be. Who listens by UDP alone is not tried.
pub(super) async fn peers(bootstrap: &[String]) -> Result<String> {
    if bootstrap.is_empty() {
        return Ok("none is known: pass --bootstrap, unless this is the network's first node".to_owned());
    }
    let (mut reached, mut untried, mut missing) = (0, 0, Vec::new());
    for address in bootstrap {
        let named = Place::of(address);
        let place =
            named.with_context(|| format!("{address} is no address such as /ip4/192.0.2.1/tcp/4001/p2p/16Uiu2..."))?;
        if !place.tcp {
            untried += 1;
            continue;
        }
        match connect(&place).await {
            Ok(()) => reached += 1,
            Err(error) => missing.push(format!("{address}: {}", advice::words(&error))),
        }
    }
    ensure!(missing.is_empty() || reached > 0, "no peer is reached: {}", missing.join("; "));
    let mut found = format!("{reached} of {} reached", bootstrap.len());
    if untried > 0 {
        found += &format!(", {untried} of QUIC not tried");
    }
    if !missing.is_empty() {
        found += &format!("; not {}", missing.join("; "));
    }
    Ok(found)
}

async fn connect(place: &Place<'_>) -> Result<()> {
    let (host, port) = (place.host.to_owned(), place.port);
    let looked_up =
        tokio::task::spawn_blocking(move || (host, port).to_socket_addrs().map(Iterator::collect::<Vec<_>>));
    let connecting = async {
        let addresses = looked_up.await??;
        TcpStream::connect(addresses.as_slice()).await?;
        anyhow::Ok(())
    };
    match tokio::time::timeout(PATIENCE, connecting).await {
        Ok(connected) => connected,
        Err(_) => bail!("no answer within {} s", PATIENCE.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn multiaddrs_name_places() {
        let tcp = Place { host: "192.0.2.1", port: 4001, tcp: true };
        assert_eq!(Place::of("/ip4/192.0.2.1/tcp/4001/p2p/16Uiu2"), Some(tcp));
        let udp = Place { host: "example.org", port: 4001, tcp: false };
        assert_eq!(Place::of("/dns/example.org/udp/4001/quic-v1"), Some(udp));
        for text in ["", "192.0.2.1:4001", "/ip4/192.0.2.1", "/ip4/192.0.2.1/tcp/70000", "/onion3/a/tcp/1"] {
            assert_eq!(Place::of(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn a_taken_port_and_a_peer_that_is_gone_are_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("/ip4/127.0.0.1/tcp/{}", taken.local_addr().unwrap().port());
        let error = ports(std::slice::from_ref(&at)).unwrap_err().to_string();
        assert!(error.contains(&at), "{error}");
        assert_eq!(peers(std::slice::from_ref(&at)).await.unwrap(), "1 of 1 reached");
        drop(taken);
        assert!(ports(std::slice::from_ref(&at)).is_ok());
        let error = peers(std::slice::from_ref(&at)).await.unwrap_err().to_string();
        assert!(error.contains(&at), "{error}");
        let quic = "/ip4/127.0.0.1/udp/1/quic-v1".to_owned();
        assert_eq!(peers(&[quic]).await.unwrap(), "0 of 1 reached, 1 of QUIC not tried");
    }
}
