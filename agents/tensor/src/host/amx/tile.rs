//! Tiles: eight registers of 16 rows of 64 bytes, and the products that the processor computes of them.
//!
//! In inline assembly, because Rust has no stable intrinsics for tiles. Tiles hold nothing between two blocks; their
//! configuration stays, which no other code of this thread changes meanwhile.

use std::arch::asm;
use std::marker::PhantomData;

use super::super::vnni::lanes::{LANES, Lanes, VECTOR};

/// Tiles of sums of a block.
const SUMS: usize = 4;

/// A tile of sums in memory: its rows.
pub(super) type Tile = [Lanes; LANES];

/// What `ldtilecfg` loads: palette 1, from byte 16 on the bytes of a row of each tile in 16 bits, from byte 48 on
/// its rows.
#[repr(C, align(64))]
struct Configuration([u8; VECTOR]);

impl Configuration {
    /// Tiles of 16 rows of 64 bytes.
    const WHOLE: Self = {
        let mut bytes = [0; VECTOR];
        bytes[0] = 1;
        let mut tile = 0;
        while tile < 2 * SUMS {
            bytes[16 + 2 * tile] = VECTOR as u8;
            bytes[48 + tile] = LANES as u8;
            tile += 1;
        }
        Self(bytes)
    };
}

/// This thread's tiles, configured: all of 16 rows of 64 bytes.
pub(super) struct Tiles {
    /// Configured on one thread, of no use to another.
    thread: PhantomData<*const ()>,
}

/// A stretch of the dot products of two blocks of 16 rows with two panels.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// Where the first rows of both blocks begin; `stride` bytes lie between rows.
    pub(super) left: [&'a [u8]; 2],
    pub(super) stride: usize,
    /// Panels: lanes `16·i..16·(i + 1)` hold bytes `64·i..64·(i + 1)` of 16 rows.
    pub(super) right: [&'a [Lanes]; 2],
    /// Bytes of the dot product by 64.
    pub(super) steps: usize,
}

/// Which bytes of a block are signed.
pub(super) trait Signs {
    /// Sums of left 0 by right 0, left 0 by right 1, left 1 by right 0, left 1 by right 1: element `[i].0[j]` of a tile
    /// belongs to row `i` of the left and row `j` of the right.
    ///
    /// # Panics
    /// If the block ends before its steps do.
    fn multiply(tiles: &Tiles, block: &Block<'_>, sums: &mut [Tile; SUMS]);
}

/// All bytes.
pub(super) enum Signed {}
/// Those of left 0 and right 0, high halves of words; not those of left 1 and right 1, low halves.
pub(super) enum Halves {}
/// All but those of right 1, low halves of the words whose high halves are right 0.
pub(super) enum RightHalves {}

impl Tiles {
    /// Configures this thread's tiles.
    ///
    /// # Safety
    /// The processor has AMX, and the system lets this process use it.
    pub(super) unsafe fn configure() -> Self {
        static WHOLE: Configuration = Configuration::WHOLE;
        // SAFETY: the caller vouches for AMX; a valid configuration of 64 bytes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) WHOLE.0.as_ptr(), options(nostack, readonly, preserves_flags)) };
        Self { thread: PhantomData }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // Switching threads need not keep them any more.
        // SAFETY: `self` is the proof that there are tiles.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
    }
}

impl Block<'_> {
    /// Whether all that the steps read is there.
    fn holds(&self) -> bool {
        let rows = (LANES - 1) * self.stride + self.steps * VECTOR;
        self.left.iter().all(|left| left.len() >= rows)
            && self.right.iter().all(|right| right.len() >= self.steps * LANES)
    }
}

/// Implements [`Signs`] by the suffixes of four `tdpb..d`.
macro_rules! signs {
    ($name:ident: $a:literal, $b:literal, $c:literal, $d:literal) => {
        impl Signs for $name {
            fn multiply(_: &Tiles, block: &Block<'_>, sums: &mut [Tile; SUMS]) {
                assert!(block.holds(), "a block as long as its steps");
                if block.steps == 0 {
                    *sums = [[Lanes::ZERO; LANES]; SUMS];
                    return;
                }
                let ([left_0, left_1], [right_0, right_1]) = (block.left, block.right);
                // SAFETY: a `Tiles` exists, so there are tiles of 16 rows of 64 bytes. They are loaded from rows that
                // `holds` found in the slices, and stored to `sums`, which has four of them.
                unsafe {
                    asm!(
                        "tilezero tmm0",
                        "tilezero tmm1",
                        "tilezero tmm2",
                        "tilezero tmm3",
                        "2:",
                        // Panels stream from the second-level cache, and leave the first to the rows, which come
                        // again with every panel.
                        "tileloadd tmm4, [{left_0} + {stride}]",
                        "tileloaddt1 tmm6, [{right_0} + {vector}]",
                        concat!("tdpb", $a, "d tmm0, tmm4, tmm6"),
                        "tileloaddt1 tmm7, [{right_1} + {vector}]",
                        concat!("tdpb", $b, "d tmm1, tmm4, tmm7"),
                        "tileloadd tmm5, [{left_1} + {stride}]",
                        concat!("tdpb", $c, "d tmm2, tmm5, tmm6"),
                        concat!("tdpb", $d, "d tmm3, tmm5, tmm7"),
                        "add {left_0}, 64",
                        "add {left_1}, 64",
                        "add {right_0}, 1024",
                        "add {right_1}, 1024",
                        "dec {steps}",
                        "jnz 2b",
                        "tilestored [{sums} + {vector}], tmm0",
                        "tilestored [{sums} + {vector} + 1024], tmm1",
                        "tilestored [{sums} + {vector} + 2048], tmm2",
                        "tilestored [{sums} + {vector} + 3072], tmm3",
                        left_0 = inout(reg) left_0.as_ptr() => _,
                        left_1 = inout(reg) left_1.as_ptr() => _,
                        right_0 = inout(reg) right_0.as_ptr() => _,
                        right_1 = inout(reg) right_1.as_ptr() => _,
                        steps = inout(reg) block.steps => _,
                        stride = in(reg) block.stride,
                        vector = in(reg) VECTOR,
                        sums = in(reg) sums.as_mut_ptr(),
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack),
                    );
                }
            }
        }
    };
}
signs!(Signed: "ss", "ss", "ss", "ss");
signs!(Halves: "ss", "su", "us", "uu");
signs!(RightHalves: "ss", "su", "ss", "su");
