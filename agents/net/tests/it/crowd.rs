//! More peers than there is room for.

use std::sync::Arc;

use tensorlink_net::Limits;
use tensorlink_node::ports::Net;

use crate::common::{Staked, addresses, connected, eventually, identity, node, quick, start, tcp};

/// Linux has all of 127.0.0.0/8 on the loopback interface, so one machine can be several hosts.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_of_one_address_that_say_nothing_shut_out_no_other() {
    use libp2p::multiaddr::Protocol;
    use tokio::net::TcpSocket;

    let a = start(1, tcp(), vec![], Limits { connections_per_loopback: 8, ..quick() });
    let at = addresses(&a).await;
    let port = at[0].iter().find_map(|part| if let Protocol::Tcp(port) = part { Some(port) } else { None }).unwrap();
    let mut silent = Vec::new();
    for _ in 0..140 {
        let socket = TcpSocket::new_v4().unwrap();
        // Or other tests' nodes could not dial from their port, if it is the same.
        socket.set_reuseport(true).unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        silent.push(socket.connect(([127, 0, 0, 1], port).into()).await.unwrap());
    }
    let refused = || a.metrics().refused_connections();
    eventually("all but eight are refused", async || (refused() == 132).then_some(())).await;
    let b = node(2, at);
    connected(&b, a.address()).await;
    assert_eq!(refused(), 132, "who comes from elsewhere is not");
}

#[tokio::test]
async fn strangers_leave_room_for_peers_with_stake() {
    let a = start(1, tcp(), vec![], Limits { connections: 6, reserved: 4, ..quick() });
    let staked = identity(9).address();
    a.set_gate(Arc::new(Staked(vec![staked])));
    let at = addresses(&a).await;
    let strangers = [node(2, at.clone()), node(3, at.clone())];
    for stranger in &strangers {
        connected(&a, stranger.address()).await;
    }
    let late = node(4, at.clone());
    eventually("the third is refused", async || (a.metrics().refused_connections() > 0).then_some(())).await;
    let _with_stake = node(9, at);
    connected(&a, staked).await;
    assert!(!a.connected_peers().await.unwrap().contains(&late.address()));
}
