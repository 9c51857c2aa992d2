//! Numbers and bytes out of an input; zeros when it is over.

use alloy_primitives::B256;

/// What is left of an input.
#[derive(Debug)]
pub(crate) struct Feed<'a>(&'a [u8]);

impl<'a> Feed<'a> {
    /// All of it.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether nothing is left.
    pub(crate) const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// All that is left.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next bytes, or as many as there are.
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(count.min(self.0.len()));
        self.0 = tail;
        head
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    /// A number below `end`, which is at most 256.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// A number, mostly a small one.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=239 => small.into(),
            large => {
                let mut word = [0; 8];
                for (to, from) in word.iter_mut().zip(self.take(usize::from(large % 8) + 1)) {
                    *to = *from;
                }
                u64::from_le_bytes(word)
            }
        }
    }

    /// One of these digests, or another.
    pub(crate) fn digest(&mut self, known: &[B256]) -> B256 {
        let at = self.byte();
        known.get(usize::from(at)).copied().unwrap_or_else(|| B256::repeat_byte(at))
    }
}
