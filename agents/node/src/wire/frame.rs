//! Frames on a stream between two neighbouring stages.
//!
//! A frame is a header of 16 bytes and a payload. Header: kind (1 byte), three zero bytes, micro-batch (u32), step
//! (u32), payload length (u32), little-endian. A tensor goes [packed](super::packing) where that is worth it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tensorlink_types::JobId;
use tensorlink_types::abi::EdgeLog;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::packing::{pack, unpack};
use super::{Malformed, decode, encode};

/// Largest payload, bytes.
pub const MAX_PAYLOAD: usize = 256 << 20;
/// Largest payload that is not a tensor, bytes.
const MAX_CONTROL: usize = 4096;

const HELLO: u8 = 1;
const TENSOR: u8 = 2;
const SIGNED_LOG: u8 = 3;
const PACKED_TENSOR: u8 = 4;

/// First frame of each side: who speaks for which boundary, and where it can resume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The job.
    pub job: JobId,
    /// The replica.
    pub replica: u16,
    /// The sender's stage.
    pub stage: u16,
    /// First interval the sender has not finished.
    pub next_interval: u32,
}

/// The log of a boundary, signed by its sender, after the last tensor of an interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SignedLog {
    /// The log's root and place.
    pub log: EdgeLog,
    /// Signature (rule C-9).
    pub signature: Vec<u8>,
}

/// A frame.
#[derive(Clone, PartialEq, Debug)]
pub enum Frame {
    /// See [`Hello`].
    Hello(Hello),
    /// Canonical bytes of one boundary tensor.
    Tensor {
        /// Absolute step.
        step: u32,
        /// Micro-batch.
        micro_batch: u32,
        /// Canonical bytes without padding.
        data: Bytes,
    },
    /// See [`SignedLog`].
    SignedLog(SignedLog),
}

/// Why a frame could not be read.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The stream ended or failed: the peer is gone. Reconnect.
    #[error("the stream ended: {0}")]
    Io(#[from] std::io::Error),
    /// The peer sends what this version does not know. Drop it.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// The peer announces more than the protocol allows. Drop it.
    #[error("a frame of {0} bytes exceeds the limit of {1}")]
    TooLarge(usize, usize),
    /// The payload is not what the kind says. Drop the peer.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Writes a frame; the caller flushes.
///
/// # Errors
/// [`FrameError::Io`] when the stream fails, [`FrameError::TooLarge`] for a payload over the limit.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin + ?Sized), frame: &Frame) -> Result<(), FrameError> {
    let (kind, micro_batch, step, payload) = match frame {
        Frame::Hello(hello) => (HELLO, 0, 0, encode("hello", hello)?),
        Frame::Tensor { step, micro_batch, data } => match pack(data) {
            Some(packed) => (PACKED_TENSOR, *micro_batch, *step, packed.into()),
            None => (TENSOR, *micro_batch, *step, data.clone()),
        },
        Frame::SignedLog(log) => (SIGNED_LOG, 0, 0, encode("signed log", log)?),
    };
    let length = u32::try_from(payload.len())
        .ok()
        .filter(|n| *n as usize <= MAX_PAYLOAD)
        .ok_or(FrameError::TooLarge(payload.len(), MAX_PAYLOAD))?;
    let mut header = [0u8; 16];
    header[0] = kind;
    header[4..8].copy_from_slice(&micro_batch.to_le_bytes());
    header[8..12].copy_from_slice(&step.to_le_bytes());
    header[12..].copy_from_slice(&length.to_le_bytes());
    stream.write_all(&header).await?;
    stream.write_all(&payload).await?;
    Ok(())
}

/// Reads a frame whose tensor payload is at most `max_tensor` bytes.
///
/// # Errors
/// As [`FrameError`] says.
pub async fn read(stream: &mut (impl AsyncRead + Unpin + ?Sized), max_tensor: usize) -> Result<Frame, FrameError> {
    let mut header = [0u8; 16];
    stream.read_exact(&mut header).await?;
    let [kind, zero @ ..] = header;
    let word = |at: usize| header.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
    let limit = match kind {
        TENSOR | PACKED_TENSOR => max_tensor.min(MAX_PAYLOAD),
        HELLO | SIGNED_LOG => MAX_CONTROL,
        other => return Err(FrameError::Kind(other)),
    };
    if zero.iter().take(3).any(|b| *b != 0) {
        return Err(Malformed { what: "frame header", reason: "reserved bytes are set".into() }.into());
    }
    let length = word(12) as usize;
    if length > limit {
        return Err(FrameError::TooLarge(length, limit));
    }
    let mut payload = vec![0u8; length];
    stream.read_exact(&mut payload).await?;
    Ok(match kind {
        HELLO => Frame::Hello(decode("hello", &payload)?),
        SIGNED_LOG => Frame::SignedLog(decode("signed log", &payload)?),
        PACKED_TENSOR => Frame::Tensor { step: word(8), micro_batch: word(4), data: unpack(&payload, max_tensor)? },
        _ => Frame::Tensor { step: word(8), micro_batch: word(4), data: payload.into() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn round_trip(frame: Frame) -> Frame {
        let mut bytes = Vec::new();
        write(&mut bytes, &frame).await.unwrap();
        read(&mut bytes.as_slice(), 1 << 20).await.unwrap()
    }

    #[tokio::test]
    async fn frames_round_trip() {
        let hello = Frame::Hello(Hello { job: JobId(7), replica: 1, stage: 2, next_interval: 3 });
        let tensor = |data: &[u8]| Frame::Tensor { step: 9, micro_batch: 2, data: Bytes::copy_from_slice(data) };
        for frame in [hello, tensor(b"abc"), tensor(&[0; 2000])] {
            assert_eq!(round_trip(frame.clone()).await, frame);
        }
    }

    #[tokio::test]
    async fn oversized_unknown_and_torn_frames_are_refused() {
        let mut bytes = Vec::new();
        let tensor = Frame::Tensor { step: 0, micro_batch: 0, data: vec![1; 100].into() };
        write(&mut bytes, &tensor).await.unwrap();
        assert!(matches!(read(&mut bytes.as_slice(), 99).await, Err(FrameError::TooLarge(100, 99))));
        assert!(matches!(read(&mut &bytes[..50], 100).await, Err(FrameError::Io(_))));
        let mut packed = Vec::new();
        let tensor = Frame::Tensor { step: 0, micro_batch: 0, data: vec![0; 512].into() };
        write(&mut packed, &tensor).await.unwrap();
        assert_eq!((packed[0], packed.len()), (PACKED_TENSOR, 16 + 5));
        assert!(matches!(read(&mut packed.as_slice(), 511).await, Err(FrameError::Malformed(_))));
        bytes[0] = 77;
        assert!(matches!(read(&mut bytes.as_slice(), 100).await, Err(FrameError::Kind(77))));
        bytes[0] = HELLO;
        assert!(matches!(read(&mut bytes.as_slice(), 100).await, Err(FrameError::Malformed(_))));
        bytes[1] = 1;
        assert!(matches!(read(&mut bytes.as_slice(), 100).await, Err(FrameError::Malformed(_))));
    }
}
