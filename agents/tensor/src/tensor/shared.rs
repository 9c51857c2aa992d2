//! Memory of caches, of which tensors are parts.

use tch::{Device, TchError};
use tensorlink_program::EngineError;
use tensorlink_types::Width;

use super::{TorchTensor, device as failed, kind};
use crate::buffer::Buffer;
use crate::slice::{Slice, each_width};

/// Lines of elements, one after another. They are written further while no tensor is a part of them: whoever writes
/// needs them mutably, and tensors hold them.
pub(crate) struct Shared {
    width: Width,
    lines: usize,
    /// Elements of a line.
    length: usize,
    memory: Memory,
}

enum Memory {
    Host(Buffer),
    /// `[lines, length]`.
    Device(tch::Tensor),
}

// SAFETY: libtorch allows concurrent reads of one tensor; writing takes `&mut`.
unsafe impl Sync for Shared {}

impl Shared {
    /// Lines of some elements, whichever.
    ///
    /// # Errors
    /// [`EngineError::Device`] when the device's memory runs out.
    pub(crate) fn new(width: Width, (lines, length): (usize, usize), device: Device) -> Result<Self, EngineError> {
        let memory = if device == Device::Cpu {
            let large =
                || EngineError::Device(format!("a cache of {lines} by {length} elements is larger than memory"));
            let bytes = lines.checked_mul(length).and_then(|elements| elements.checked_mul(width.bytes()));
            Memory::Host(bytes.and_then(Buffer::take).ok_or_else(large)?)
        } else {
            let size = [lines as i64, length as i64];
            Memory::Device(tch::Tensor::f_zeros(size, (kind(width), device)).map_err(failed)?)
        };
        Ok(Self { width, lines, length, memory })
    }

    /// Elements of a line.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Where some elements of some lines begin in the host's memory; of each the first and how many.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn address(&self, lines: (usize, usize), elements: (usize, usize)) -> Option<*const u8> {
        let fits = lines.0 + lines.1 <= self.lines && elements.0 + elements.1 <= self.length;
        assert!(fits, "a part of the cache");
        match &self.memory {
            Memory::Host(buffer) => {
                let offset = (lines.0 * self.length + elements.0) * self.width.bytes();
                // SAFETY: an element of the buffer, or its end.
                Some(unsafe { buffer.as_ptr().add(offset) })
            }
            Memory::Device(_) => None,
        }
    }

    /// Some elements of some lines on a device; of each the first and how many.
    ///
    /// # Errors
    /// What libtorch says.
    pub(crate) fn part(&self, lines: (usize, usize), elements: (usize, usize)) -> Result<tch::Tensor, TchError> {
        let range = |(first, count): (usize, usize)| (first as i64, count as i64);
        let ((line, lines), (element, elements)) = (range(lines), range(elements));
        match &self.memory {
            Memory::Host(_) => Err(TchError::Torch("the cache lies in the host's memory".to_owned())),
            Memory::Device(data) => data.f_narrow(0, line, lines)?.f_narrow(1, element, elements),
        }
    }

    /// Copies the rows of a tensor of this width into lines from one on, from one of their elements on.
    ///
    /// # Errors
    /// [`EngineError::Device`] if libtorch fails, [`EngineError::Malformed`] if the tensor lies elsewhere.
    ///
    /// # Panics
    /// If it has more rows than there are lines, longer ones, or another width.
    pub(crate) fn put(&mut self, (line, element): (usize, usize), tensor: &TorchTensor) -> Result<(), EngineError> {
        // What lies in memory has as many elements as a usize counts.
        let (rows, row) = (tensor.ty().rows() as usize, tensor.ty().row() as usize);
        let fits = line + rows <= self.lines && element + row <= self.length;
        assert!(fits && tensor.ty().width() == self.width, "rows that fit");
        match &mut self.memory {
            Memory::Host(buffer) => {
                let (slice, stride) = tensor.strided()?;
                each_width!(Slice, slice, from => {
                    let to = &mut buffer.slice_mut(self.lines * self.length)[line * self.length..];
                    for (to, from) in to.chunks_mut(self.length).zip(from.chunks(stride)) {
                        to[element..element + row].copy_from_slice(&from[..row]);
                    }
                });
            }
            Memory::Device(data) => {
                let lines = data.f_narrow(0, line as i64, rows as i64);
                let place = lines.and_then(|lines| lines.f_narrow(1, element as i64, row as i64));
                let from = tensor.data()?;
                place.and_then(|mut place| place.f_copy_(from)).map_err(failed)?;
            }
        }
        Ok(())
    }
}
