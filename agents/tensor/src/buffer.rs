//! Host memory of results, used again: a layer's results are as large as those of the layer before, so that what one
//! leaves another takes, still in cache and without asking the system.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::host::block::Element;

/// Bytes of a cache line, which buffers begin with and consist of.
const LINE: usize = 64;
/// Most bytes that wait to be taken: a few tensors of an optimiser's state, whose pages the system would take longer to
/// give than they take to compute. Beyond them what is dropped is freed.
const KEPT: usize = 256 << 20;

/// Memory that begins within a cache line and ends another after the bytes that were asked for.
type Memory = Vec<u8>;

/// Memory that begins with a cache line; its bytes are some, whichever the last user left.
pub(crate) struct Buffer(Memory);

/// Buffers that wait to be taken, by their bytes.
struct Pool {
    waiting: BTreeMap<usize, Vec<Memory>>,
    bytes: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { waiting: BTreeMap::new(), bytes: 0 });

impl Pool {
    fn take(&mut self, bytes: usize) -> Option<Memory> {
        let taken = self.waiting.get_mut(&bytes)?.pop()?;
        self.bytes -= bytes;
        Some(taken)
    }

    /// Keeps a buffer, if there is room once those of other sizes, which nobody may want again, are freed; gives what
    /// is to be freed.
    fn keep(&mut self, buffer: Memory) -> Vec<Memory> {
        let bytes = buffer.len();
        let mut freed = Vec::new();
        if bytes > KEPT {
            return vec![buffer];
        }
        while self.bytes + bytes > KEPT {
            let other = self.waiting.iter_mut().find(|(size, waiting)| **size != bytes && !waiting.is_empty());
            let Some((size, Some(one))) = other.map(|(size, waiting)| (*size, waiting.pop())) else {
                return vec![buffer];
            };
            self.bytes -= size;
            freed.push(one);
        }
        self.bytes += bytes;
        self.waiting.entry(bytes).or_default().push(buffer);
        freed
    }
}

impl Buffer {
    /// At least so many bytes; none if they are more than any memory has.
    pub(crate) fn take(bytes: usize) -> Option<Self> {
        let bytes = bytes.checked_next_multiple_of(LINE)?.checked_add(LINE)?;
        isize::try_from(bytes).ok()?;
        let taken = POOL.lock().unwrap_or_else(PoisonError::into_inner).take(bytes);
        // Zeros of the system's, which it gives when they are written.
        Some(Self(taken.unwrap_or_else(|| vec![0; bytes])))
    }

    /// From where the memory begins to the first line.
    fn offset(&self) -> usize {
        self.0.as_ptr().addr().wrapping_neg() % LINE
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0[self.offset()..].as_ptr()
    }

    /// The first `count` elements.
    pub(crate) fn slice_mut<T: Element>(&mut self, count: usize) -> &mut [T] {
        let offset = self.offset();
        let lines = &mut self.0[offset..];
        assert!(count * size_of::<T>() <= lines.len(), "elements within the buffer");
        // SAFETY: as many bytes as the assertion says, all written once, of which integers of any width are made;
        // aligned as any of them.
        unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), count) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        let freed = POOL.lock().unwrap_or_else(PoisonError::into_inner).keep(buffer);
        // Outside the lock.
        drop(freed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Memory {
        vec![0; count * LINE]
    }

    #[test]
    fn buffers_are_taken_again_by_size_and_bounded() {
        let mut pool = Pool { waiting: BTreeMap::new(), bytes: 0 };
        let all = KEPT / LINE;
        assert!(pool.keep(lines(3)).is_empty() && pool.take(2 * LINE).is_none());
        assert_eq!((pool.take(3 * LINE).map(|taken| taken.len()), pool.bytes), (Some(3 * LINE), 0));
        assert_eq!(pool.keep(lines(all + 1)).len(), 1, "larger than all that is kept");
        assert!(pool.keep(lines(all / 2)).is_empty() && pool.keep(lines(all / 2)).is_empty());
        assert_eq!(pool.keep(lines(all / 2)).len(), 1, "full of its own size");
        assert_eq!(pool.keep(lines(7)).len(), 1, "another size makes room");
        assert!(pool.bytes <= KEPT && pool.take(7 * LINE).is_some());
    }

    #[test]
    fn a_buffer_holds_what_was_asked_for() {
        assert!(Buffer::take(usize::MAX).is_none());
        let mut buffer = Buffer::take(130).unwrap();
        assert!(buffer.as_ptr().addr().is_multiple_of(LINE));
        buffer.slice_mut::<i64>(16).fill(-1);
        assert_eq!(buffer.slice_mut::<i8>(130)[..128], [-1; 128]);
    }
}
