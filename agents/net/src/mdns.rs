//! The messages by which nodes of a local network find each other (mDNS), as other libp2p nodes have them: who asks
//! looks for the service, and who answers names itself in a PTR record and its addresses in TXT records.
//!
//! A node speaks for itself alone: an address counts where the message came from it, and where it is one that we dial.

use std::net::{Ipv4Addr, SocketAddrV4};

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};

/// Where every message is sent.
pub(crate) const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(224, 0, 0, 251), 5353);
/// Bytes of the longest message, as RFC 6762 has it.
pub(crate) const MAX_MESSAGE: usize = 9000;
/// Addresses in one message: so many fit into a packet of 1500 bytes.
pub(crate) const MAX_ADDRESSES: usize = 8;

/// What all libp2p nodes offer: `_p2p._udp.local`.
const SERVICE: &[u8] = b"\x04_p2p\x04_udp\x05local\0";
const PTR: u16 = 12;
const TXT: u16 = 16;
const ANY: u16 = 255;
/// The class of all records, and that with the bit by which a record replaces older ones.
const INTERNET: [u16; 2] = [0x0001, 0x8001];
/// What a TXT record of ours begins with.
const ADDRESS: &str = "dnsaddr=";
/// For how long others may remember an answer, seconds.
const TTL: u32 = 360;

/// What somebody said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// Who is there?
    Question,
    /// This peer, at these addresses.
    Answer(PeerId, Vec<Multiaddr>),
}

/// Asks who is there.
pub(crate) fn question() -> Vec<u8> {
    let mut out = header(0, 1, 0, 0);
    out.extend_from_slice(SERVICE);
    numbers(&mut out, [PTR, INTERNET[0]]);
    out
}

/// Says that a peer is there, at addresses of which [`told`] holds.
pub(crate) fn answer<'a>(peer: PeerId, addresses: impl IntoIterator<Item = &'a Multiaddr>) -> Vec<u8> {
    // A name by chance, as others have it: it is gone with the message.
    let name = [&[32], format!("{:032x}", rand::random::<u128>()).as_bytes(), &[0]].concat();
    let texts = addresses.into_iter().take(MAX_ADDRESSES).map(|address| format!("{ADDRESS}{address}/p2p/{peer}"));
    let texts: Vec<_> = texts.filter_map(|text| Some((u8::try_from(text.len()).ok()?, text))).collect();
    let mut out = header(0x8400, 0, 1, texts.len() as u16);
    record(&mut out, (SERVICE, PTR, INTERNET[0]), &name);
    for (length, text) in texts {
        record(&mut out, (&name, TXT, INTERNET[1]), &[&[length], text.as_bytes()].concat());
    }
    out
}

fn header(flags: u16, questions: u16, answers: u16, additional: u16) -> Vec<u8> {
    let mut out = Vec::new();
    numbers(&mut out, [rand::random(), flags, questions, answers, 0, additional]);
    out
}

fn numbers<const N: usize>(out: &mut Vec<u8>, numbers: [u16; N]) {
    out.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
}

fn record(out: &mut Vec<u8>, (name, kind, class): (&[u8], u16, u16), data: &[u8]) {
    out.extend_from_slice(name);
    numbers(out, [kind, class]);
    out.extend_from_slice(&TTL.to_be_bytes());
    numbers(out, [data.len() as u16]);
    out.extend_from_slice(data);
}

/// What somebody at this address said, if it is any of this.
pub(crate) fn read(message: &[u8], from: Ipv4Addr) -> Option<Message> {
    let mut rest = Reader(message);
    let [_, _, questions, answers, authorities, additional] = rest.numbers()?;
    if questions > 0 {
        return (0..questions).map_while(|_| rest.question()).any(|asks| asks).then_some(Message::Question);
    }
    // An iterator that ends at the first record that is none.
    let mut records =
        (0..u32::from(answers) + u32::from(authorities) + u32::from(additional)).map_while(|_| rest.record());
    let is_ours = |record: &Record<'_>| record.kind == PTR && record.name.eq_ignore_ascii_case(SERVICE);
    let node = records.find(is_ours)?.data;
    let mut said = None;
    let texts = records.filter(|record| record.kind == TXT && record.name == node);
    for (peer, address) in texts.flat_map(|record| Texts(Reader(record.data))).filter_map(|text| told_by(text, from)) {
        let (who, addresses) = said.get_or_insert_with(|| (peer, Vec::new()));
        if *who == peer && addresses.len() < MAX_ADDRESSES && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    said.map(|(peer, addresses)| Message::Answer(peer, addresses))
}

/// Who says by this text that it is where it speaks from.
fn told_by(text: &[u8], from: Ipv4Addr) -> Option<(PeerId, Multiaddr)> {
    let mut address: Multiaddr = std::str::from_utf8(text).ok()?.strip_prefix(ADDRESS)?.parse().ok()?;
    let Some(Protocol::P2p(peer)) = address.pop() else { return None };
    (told(&address) == Some(from)).then_some((peer, address))
}

/// The host of an address that others are told: one of TCP or QUIC, and no relay's.
pub(crate) fn told(address: &Multiaddr) -> Option<Ipv4Addr> {
    let mut parts = address.iter();
    match [(); 4].map(|()| parts.next()) {
        [Some(Protocol::Ip4(host)), Some(Protocol::Tcp(_)), None, None]
        | [Some(Protocol::Ip4(host)), Some(Protocol::Udp(_)), Some(Protocol::QuicV1), None] => Some(host),
        _ => None,
    }
}

/// What is left of a message.
struct Reader<'a>(&'a [u8]);

struct Record<'a> {
    name: &'a [u8],
    kind: u16,
    data: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u16; N]> {
        let mut numbers = [0; N];
        for (number, bytes) in numbers.iter_mut().zip(self.take(2 * N)?.as_chunks().0) {
            *number = u16::from_be_bytes(*bytes);
        }
        Some(numbers)
    }

    /// A name as it stands. Where it goes on elsewhere in the message, it ends with that, and is none of ours.
    fn name(&mut self) -> Option<&'a [u8]> {
        let from = self.0;
        loop {
            match self.byte()? {
                0 => break,
                length @ 1..64 => _ = self.take(length.into())?,
                0xc0.. => {
                    self.byte()?;
                    break;
                }
                _ => return None,
            }
        }
        from.get(..from.len() - self.0.len())
    }

    /// Whether a question is ours.
    fn question(&mut self) -> Option<bool> {
        let name = self.name()?;
        let [kind, _] = self.numbers()?;
        Some(matches!(kind, PTR | ANY) && name.eq_ignore_ascii_case(SERVICE))
    }

    fn record(&mut self) -> Option<Record<'a>> {
        let name = self.name()?;
        let [kind, _, _, _, length] = self.numbers()?;
        Some(Record { name, kind, data: self.take(length.into())? })
    }
}

/// The texts of a TXT record.
struct Texts<'a>(Reader<'a>);

impl<'a> Iterator for Texts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = self.0.byte()?;
        self.0.take(length.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 7);

    fn at(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_said_is_understood() {
        let peer = PeerId::random();
        let addresses = [at("/ip4/192.168.0.7/tcp/4001"), at("/ip4/192.168.0.7/udp/4001/quic-v1")];
        assert_eq!(read(&question(), HOST), Some(Message::Question));
        assert_eq!(read(&answer(peer, &addresses), HOST), Some(Message::Answer(peer, addresses.to_vec())));
        assert_eq!(read(&answer(peer, []), HOST), None, "whoever has no address cannot be dialled");
    }

    #[test]
    fn a_node_speaks_for_its_own_address_alone_and_of_few() {
        let (peer, own) = (PeerId::random(), at("/ip4/192.168.0.7/tcp/1"));
        let elsewhere =
            ["/ip4/192.168.0.8/tcp/1", "/ip4/192.168.0.7/udp/1", "/dns4/example.org/tcp/1", "/ip6/::1/tcp/1"];
        let relayed = own.clone().with(Protocol::P2p(peer)).with(Protocol::P2pCircuit);
        let said = elsewhere.map(at).into_iter().chain([relayed, own.clone()]).collect::<Vec<_>>();
        assert_eq!(read(&answer(peer, &said), HOST), Some(Message::Answer(peer, vec![own])));

        let many: Vec<_> = (1..=MAX_ADDRESSES + 1).map(|port| at(&format!("/ip4/192.168.0.7/tcp/{port}"))).collect();
        let message = answer(peer, &many);
        assert!(message.len() < 1400, "it fits into a packet");
        assert_eq!(read(&message, HOST), Some(Message::Answer(peer, many[..MAX_ADDRESSES].to_vec())));
    }

    #[test]
    fn of_two_names_in_one_message_the_first_counts() {
        let [first, second] = [(); 2].map(|()| PeerId::random());
        let own = at("/ip4/192.168.0.7/tcp/1");
        let text = |peer| {
            let text = format!("dnsaddr={own}/p2p/{peer}");
            [&[text.len() as u8], text.as_bytes()].concat()
        };
        let mut out = header(0x8400, 0, 1, 2);
        record(&mut out, (SERVICE, PTR, 1), b"\x01a\0");
        record(&mut out, (b"\x01b\0", TXT, 1), &text(second));
        record(&mut out, (b"\x01a\0", TXT, 1), &[text(first), text(second)].concat());
        assert_eq!(read(&out, HOST), Some(Message::Answer(first, vec![own.clone()])));
    }

    #[test]
    fn questions_for_others_are_none_of_ours() {
        let mut out = header(0, 2, 0, 0);
        out.extend_from_slice(b"\x05_http\x04_tcp\x05local\0\0\x0c\0\x01\x04_p2p\xc0\x12\0\x0c\0\x01");
        assert_eq!(read(&out, HOST), None);
        let mut out = header(0, 2, 0, 0);
        out.extend_from_slice(b"\x05_http\x04_tcp\x05local\0\0\x0c\0\x01\x04_P2P\x04_udp\x05local\0\0\xff\x80\x01");
        assert_eq!(read(&out, HOST), Some(Message::Question));
    }

    proptest! {
        #[test]
        fn a_broken_message_tells_no_more_than_a_whole_one(cut in 0usize..400, place in 0usize..400, byte: u8) {
            let peer = PeerId::random();
            let mut message = answer(peer, &[at("/ip4/192.168.0.7/tcp/4001")]);
            let place = place % message.len();
            message[place] = byte;
            message.truncate(cut);
            if let Some(Message::Answer(_, addresses)) = read(&message, HOST) {
                prop_assert!(addresses.iter().all(|address| told(address) == Some(HOST)));
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = read(&bytes, HOST);
        }
    }
}
