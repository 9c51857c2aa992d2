use super::*;

fn at(address: &str) -> Option<IpAddr> {
    host(&address.parse().unwrap())
}

/// Connections by number.
fn id(n: usize) -> ConnectionId {
    ConnectionId::new_unchecked(n)
}

fn limits() -> Limits {
    Limits {
        connections: 8,
        reserved: 4,
        connections_per_host: 2,
        connections_per_loopback: 3,
        connections_per_peer: 2,
        ..Limits::default()
    }
}

#[test]
fn one_customer_is_one_host() {
    assert_eq!(at("/ip4/192.0.2.1/tcp/1"), at("/ip4/192.0.2.1/udp/9/quic-v1"));
    assert_ne!(at("/ip4/192.0.2.1/tcp/1"), at("/ip4/192.0.2.2/tcp/1"));
    assert_eq!(at("/ip6/2001:db8:0:1::1/tcp/1"), at("/ip6/2001:db8:0:1:ffff::2/tcp/1"));
    assert_ne!(at("/ip6/2001:db8:0:1::1/tcp/1"), at("/ip6/2001:db8:0:2::1/tcp/1"));
    assert_eq!(at("/ip6/::ffff:192.0.2.1/tcp/1"), at("/ip4/192.0.2.1/tcp/1"));
    assert!(at("/ip6/::1/tcp/1").unwrap().is_loopback());
    assert_eq!(at("/memory/7"), None);
}

#[test]
fn an_address_has_its_share_of_handshakes_and_of_connections_and_no_more() {
    let mut connections = Connections::new(&limits());
    let (loud, quiet) = (at("/ip4/192.0.2.1/tcp/1"), at("/ip4/192.0.2.2/tcp/1"));
    connections.arriving(id(0), loud).unwrap();
    connections.arriving(id(1), loud).unwrap();
    assert_eq!(connections.arriving(id(2), loud), Err(Full::Host));
    connections.arriving(id(3), quiet).unwrap();
    // A share comes back, whether the handshake fails or the connection ends.
    connections.gone(id(1));
    connections.arriving(id(4), loud).unwrap();
    connections.gone(id(0));
    connections.arriving(id(5), loud).unwrap();
    for (n, admitted) in [(4, Ok(())), (5, Ok(())), (6, Err(Full::Host))] {
        assert_eq!(connections.arrived(id(n), PeerId::random(), loud, false), admitted, "{n}");
    }
    let here = at("/ip4/127.0.0.1/tcp/1");
    connections.gone(id(3));
    connections.gone(id(4));
    for n in 10..13 {
        connections.arriving(id(n), here).unwrap();
    }
    assert_eq!(connections.arriving(id(13), here), Err(Full::Host));
}

#[test]
fn peers_with_stake_do_not_count_for_their_address() {
    let mut connections = Connections::new(&limits());
    let router = at("/ip4/192.0.2.1/tcp/1");
    // Strangers that take all that the address may have keep nobody with stake out.
    for n in 0..8 {
        connections.arriving(id(n), router).unwrap();
        connections.arrived(id(n), PeerId::random(), router, n >= 2).unwrap();
    }
    // Nor do they where nothing is left: they make room.
    connections.arriving(id(8), router).unwrap();
    connections.arrived(id(8), PeerId::random(), router, true).unwrap();
    connections.dialling(id(9), None).unwrap();
    connections.dialled(id(9), PeerId::random()).unwrap();
    let left: Vec<ConnectionId> = connections.leaving.drain(..).map(|(id, _)| id).collect();
    assert_eq!(left, [id(0), id(1)]);
    connections.dialling(id(10), None).unwrap();
    assert_eq!(connections.dialled(id(10), PeerId::random()), Err(Full::All));
}

#[test]
fn strangers_leave_room_for_stake_and_for_our_own_dials() {
    let mut connections = Connections::new(&limits());
    let mut come = |n: usize, staked| {
        let from = at(&format!("/ip4/192.0.2.{n}/tcp/1"));
        connections.arriving(id(n), from).unwrap();
        let let_in = connections.arrived(id(n), PeerId::random(), from, staked);
        if let_in.is_err() {
            connections.gone(id(n));
        }
        let_in
    };
    for n in 0..4 {
        come(n, false).unwrap();
    }
    assert_eq!(come(4, false), Err(Full::Strangers));
    come(5, true).unwrap();
    come(6, true).unwrap();
    for n in 7..9 {
        connections.dialling(id(n), None).unwrap();
        connections.dialled(id(n), PeerId::random()).unwrap();
    }
    assert!(connections.leaving.is_empty());
}

#[test]
fn where_there_is_no_room_for_strangers_the_address_with_most_makes_it() {
    let mut connections = Connections::new(&limits());
    let [greedy, other, late] = [1, 2, 3].map(|n| at(&format!("/ip4/192.0.2.{n}/tcp/1")));
    let mut come = |n: usize, from| {
        connections.arriving(id(n), from).unwrap();
        let let_in = connections.arrived(id(n), PeerId::random(), from, false);
        if let_in.is_err() {
            connections.gone(id(n));
        }
        (let_in, connections.leaving.pop_front().map(|(id, _)| id))
    };
    assert_eq!([(0, other), (1, greedy), (2, other), (3, greedy)].map(|(n, from)| come(n, from)), [(Ok(()), None); 4]);
    // Of the two that have two each, the one whose oldest came later.
    assert_eq!(come(4, late), (Ok(()), Some(id(1))));
    assert_eq!(come(5, late), (Err(Full::Strangers), None), "it would have as many as who made room");
    assert_eq!(come(6, at("/ip4/192.0.2.4/tcp/1")), (Ok(()), Some(id(0))));
    assert_eq!(come(7, at("/ip4/192.0.2.5/tcp/1")), (Err(Full::Strangers), None), "everybody has one");
}

#[test]
fn a_key_and_handshakes_have_their_bounds_too() {
    let mut connections = Connections::new(&limits());
    let peer = PeerId::random();
    connections.arriving(id(0), None).unwrap();
    connections.arrived(id(0), peer, None, true).unwrap();
    connections.dialling(id(1), None).unwrap();
    connections.dialled(id(1), peer).unwrap();
    connections.arriving(id(2), None).unwrap();
    assert_eq!(connections.arrived(id(2), peer, None, true), Err(Full::Peer));
    for n in 3..6 {
        connections.arriving(id(n), None).unwrap();
    }
    assert_eq!(connections.arriving(id(6), None), Err(Full::Handshakes));
    for n in 10..14 {
        connections.dialling(id(n), None).unwrap();
    }
    assert_eq!(connections.dialling(id(14), None), Err(Full::Handshakes));
}

#[test]
fn the_first_refusal_is_said_and_the_others_are_summed_up() {
    let (mut said, now) = (Rationed::default(), Instant::now());
    assert_eq!(said.again(now), Some(1));
    assert_eq!((said.again(now), said.again(now + SILENCE / 2)), (None, None));
    assert_eq!(said.again(now + SILENCE), Some(3));
}

#[test]
fn one_peer_is_dialled_a_few_times_at_once_whoever_asks_for_that() {
    let mut connections = Connections::new(&Limits { connections_per_peer: 2, ..Limits::default() });
    let [peer, other] = [(); 2].map(|()| PeerId::random());
    connections.dialling(id(1), Some(peer)).unwrap();
    connections.dialling(id(2), Some(peer)).unwrap();
    assert_eq!(connections.dialling(id(3), Some(peer)), Err(Full::Peer));
    connections.dialling(id(3), Some(other)).unwrap();
    connections.gone(id(1));
    connections.dialling(id(4), Some(peer)).unwrap();
}
