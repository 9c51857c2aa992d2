//! The bytes at the start of a stream and around a request. Integers are little-endian.
//!
//! | who | bytes | meaning |
//! |---|---|---|
//! | opener | mode: u8 | what the stream is for ([`Mode`]) |
//! | acceptor | verdict: u8 | 0 or a [`Refusal`]; nothing else is sent before it |
//! | opener, requests only | length: u32, body | a request; the next one follows its answer |
//! | acceptor, requests only | verdict: u8, then if 0 length: u32, body | its answer |
//!
//! After a [`Mode::Stream`] was accepted the bytes are the roles'.

use bytes::Bytes;
use tensorlink_node::ports::{NetError, Protocol};
use tensorlink_types::Address;
use tokio::io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// "Yes" in place of a refusal.
const ACCEPTED: u8 = 0;
/// A body is given this much memory at first, and then as much again as has really arrived. What is given at first is
/// bounded by the number of streams.
const PIECE: usize = 64 << 10;
/// What is written at once: a frame of yamux. Each write wakes the connection, which passes through all its protocols.
const WRITE: usize = 16 << 10;

/// What a stream is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Requests, one after the other.
    Requests = 1,
    /// Bytes for the roles at both ends.
    Stream = 2,
}

impl Mode {
    pub(crate) fn decode(byte: u8) -> Option<Self> {
        [Self::Requests, Self::Stream].into_iter().find(|mode| *mode as u8 == byte)
    }
}

/// Why a stream or a request was refused, as sent to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The gate said no: not staked, or not assigned to one of our jobs.
    NotAllowed = 1,
    /// A limit is reached; the same may pass later.
    Busy = 2,
    /// No role here serves this protocol now.
    NotServed = 3,
    /// The frame exceeds the protocol's limit.
    TooLarge = 4,
    /// The bytes mean nothing.
    Malformed = 5,
    /// The role saw the request and would not answer it.
    Declined = 6,
}

impl Refusal {
    /// Every reason.
    pub const ALL: [Self; Self::COUNT] =
        [Self::NotAllowed, Self::Busy, Self::NotServed, Self::TooLarge, Self::Malformed, Self::Declined];
    pub(crate) const COUNT: usize = 6;

    pub(crate) fn index(self) -> usize {
        self as usize - 1
    }

    fn decode(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == byte)
    }

    /// What the caller shall make of it.
    pub(crate) fn into_error(self, peer: Address, protocol: Protocol) -> NetError {
        let broken = |reason: &str| NetError::Protocol { peer, protocol, reason: reason.into() };
        let later = |reason: &str| NetError::Unreachable { peer, reason: reason.into() };
        match self {
            Self::NotAllowed => NetError::Refused(peer),
            Self::Busy => later("it is busy"),
            Self::NotServed => later("no role of it serves this protocol now"),
            Self::TooLarge => broken("it takes no frame of this size"),
            Self::Malformed => broken("it could not read what we sent"),
            Self::Declined => broken("it declined to answer"),
        }
    }
}

/// What an answer starts with.
pub(crate) type Verdict = Result<(), Refusal>;

/// Why a frame was not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The stream ended or broke.
    Io(io::Error),
    /// The announced length exceeds the limit. Nothing of the body was read.
    TooLarge(usize),
    /// The verdict's byte is none.
    Malformed(u8),
}

impl From<io::Error> for ReadError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl ReadError {
    pub(crate) fn into_error(self, peer: Address, protocol: Protocol) -> NetError {
        match self {
            Self::Io(e) => NetError::Unreachable { peer, reason: e.to_string() },
            Self::TooLarge(size) => {
                let reason = format!("it sent a frame of {size} bytes; the limit is {}", protocol.max_frame());
                NetError::Protocol { peer, protocol, reason }
            }
            Self::Malformed(byte) => NetError::Protocol { peer, protocol, reason: format!("{byte} is no verdict") },
        }
    }
}

pub(crate) async fn write_verdict<S: AsyncWrite + Unpin>(stream: &mut S, verdict: Verdict) -> io::Result<()> {
    let byte = verdict.map_or_else(|reason| reason as u8, |()| ACCEPTED);
    stream.write_all(&[byte]).await?;
    stream.flush().await
}

pub(crate) async fn read_verdict<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Verdict, ReadError> {
    match stream.read_u8().await? {
        ACCEPTED => Ok(Ok(())),
        byte => Refusal::decode(byte).map(Err).ok_or(ReadError::Malformed(byte)),
    }
}

/// Writes a request, which the caller knows to be within the limit.
pub(crate) async fn write_request<S: AsyncWrite + Unpin>(stream: &mut S, body: &[u8]) -> io::Result<()> {
    write_frame(stream, &[], body).await
}

/// Writes an answer, which the caller knows to be within the limit.
pub(crate) async fn write_answer<S: AsyncWrite + Unpin>(stream: &mut S, body: &[u8]) -> io::Result<()> {
    write_frame(stream, &[ACCEPTED], body).await
}

/// Writes what stands before a length and a body: all of it at once where it is short.
async fn write_frame<S: AsyncWrite + Unpin>(stream: &mut S, before: &[u8], body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(|_| io::Error::other("a frame of 4 GiB or more"))?;
    let length = length.to_le_bytes();
    let room = WRITE.saturating_sub(before.len() + length.len());
    let (first, rest) = body.split_at(body.len().min(room));
    stream.write_all(&[before, &length, first].concat()).await?;
    stream.write_all(rest).await?;
    stream.flush().await
}

/// Reads the length of a frame; one over `limit` is an error.
pub(crate) async fn read_length<S: AsyncRead + Unpin>(stream: &mut S, limit: usize) -> Result<usize, ReadError> {
    let length = stream.read_u32_le().await? as usize;
    if length > limit { Err(ReadError::TooLarge(length)) } else { Ok(length) }
}

/// Reads a body of known length. Before it takes more memory than any body is given, it asks `room`; `None` if there is
/// none.
pub(crate) async fn read_body<S: AsyncRead + Unpin>(
    stream: &mut S,
    length: usize,
    mut room: impl FnMut(usize) -> bool,
) -> io::Result<Option<Bytes>> {
    let mut body = Vec::with_capacity(length.min(PIECE));
    while body.len() < length {
        let left = length - body.len();
        if body.capacity() == body.len() {
            // Doubling, so that a large body is moved a constant number of times.
            let more = left.min(body.len().max(PIECE));
            if !room(more) {
                return Ok(None);
            }
            body.reserve_exact(more);
        }
        let free = left.min(body.capacity() - body.len());
        if stream.read_buf(&mut bytes::BufMut::limit(&mut body, free)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Some(body.into()))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever a peer sends: a body within the limit and no byte of what follows, or an error.
        #[test]
        fn bytes_of_a_stranger(
            bytes in prop::collection::vec(any::<u8>(), 0..250),
            right in any::<bool>(),
            limit in 0usize..400,
        ) {
            // Half the time a length that can be right, or nothing would come of it.
            let half = (bytes.len() / 2) as u8;
            let bytes = if right { [&[half, 0, 0, 0], &bytes[..]].concat() } else { bytes };
            let mut reader = bytes.as_slice();
            match read_length(&mut reader, limit).now_or_never().unwrap() {
                Ok(length) => {
                    prop_assert!(length <= limit);
                    let follows = reader;
                    match read_body(&mut reader, length, |_| true).now_or_never().unwrap() {
                        Ok(body) => {
                            let body = body.expect("there was room");
                            prop_assert_eq!(&body[..], &follows[..length]);
                            prop_assert_eq!(reader, &follows[length..]);
                        }
                        Err(error) => prop_assert!(follows.len() < length, "{}", error),
                    }
                }
                Err(ReadError::TooLarge(length)) => prop_assert!(length > limit),
                Err(error) => prop_assert!(matches!(error, ReadError::Io(_)) && bytes.len() < 4, "{:?}", error),
            }
            if let Ok(verdict) = read_verdict(&mut bytes.as_slice()).now_or_never().unwrap() {
                let mut again = Vec::new();
                write_verdict(&mut again, verdict).now_or_never().unwrap().unwrap();
                prop_assert_eq!(&again[..], &bytes[..1]);
            }
        }
    }

    #[tokio::test]
    async fn frames_come_back_as_they_went() {
        for size in [0, 1, WRITE - 4, WRITE - 3, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7] {
            let body: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let mut bytes = Vec::new();
            write_request(&mut bytes, &body).await.unwrap();
            write_answer(&mut bytes, &body).await.unwrap();
            bytes.extend_from_slice(b"next");
            let mut reader = bytes.as_slice();
            let length = read_length(&mut reader, size).await.unwrap();
            assert_eq!(read_body(&mut reader, length, |_| true).await.unwrap().unwrap(), body);
            assert_eq!(read_verdict(&mut reader).await.unwrap(), Ok(()));
            let length = read_length(&mut reader, size).await.unwrap();
            assert_eq!(read_body(&mut reader, length, |_| true).await.unwrap().unwrap(), body);
            assert_eq!(reader, b"next");
        }
    }

    #[tokio::test]
    async fn memory_is_taken_as_bytes_arrive_and_only_while_there_is_room() {
        let (announced, arrived) = (64 << 20, 3 * PIECE);
        let mut taken = 0;
        let mut take = |n: usize| {
            taken += n;
            true
        };
        read_body(&mut vec![7; arrived].as_slice(), announced, &mut take).await.unwrap_err();
        let taken = taken + PIECE;
        assert!((arrived..=2 * arrived).contains(&taken), "{taken} bytes for {arrived}");
        let body = vec![7; arrived];
        let mut room = PIECE;
        let mut bounded = |n: usize| room.checked_sub(n).inspect(|left| room = *left).is_some();
        assert_eq!(read_body(&mut body.as_slice(), arrived, &mut bounded).await.unwrap(), None);
        assert_eq!(room, 0, "what there was is used");
    }

    #[tokio::test]
    async fn oversized_truncated_and_meaningless_frames_are_errors() {
        let mut reader: &[u8] = &[0xff; 4];
        assert!(matches!(read_length(&mut reader, 1 << 20).await, Err(ReadError::TooLarge(0xffff_ffff))));
        let mut reader: &[u8] = &[1, 2];
        assert!(matches!(read_length(&mut reader, 1 << 20).await, Err(ReadError::Io(_))));
        let mut reader: &[u8] = b"abc";
        let short = read_body(&mut reader, 4, |_| true).await;
        assert_eq!(short.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mut reader: &[u8] = &[77];
        assert!(matches!(read_verdict(&mut reader).await, Err(ReadError::Malformed(77))));
    }

    #[tokio::test]
    async fn every_verdict_survives_the_wire() {
        for verdict in Refusal::ALL.into_iter().map(Err).chain([Ok(())]) {
            let mut bytes = Vec::new();
            write_verdict(&mut bytes, verdict).await.unwrap();
            assert_eq!(read_verdict(&mut bytes.as_slice()).await.unwrap(), verdict);
        }
    }
}
