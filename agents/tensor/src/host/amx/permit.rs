//! Whether there are tiles: the processor has them, and the system keeps them for this process.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// Bits of EDX of CPUID's leaf 7: `AMX-TILE` and `AMX-INT8`.
const TILES_OF_BYTES: u32 = 1 << 24 | 1 << 25;
/// Bits of EAX of CPUID's leaf 13: the system saves tiles and their configuration.
const SAVED: u32 = 1 << 17 | 1 << 18;
/// Linux's `arch_prctl`, and its request that this process may use a component of the processor's state: tiles.
const ARCH_PRCTL: usize = 158;
const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
const TILES: usize = 18;

/// Asks once.
pub(super) fn tiles() -> bool {
    static GRANTED: OnceLock<bool> = OnceLock::new();
    *GRANTED.get_or_init(|| has_tiles() && permitted())
}

fn has_tiles() -> bool {
    // Leaf 0 gives the number of the last.
    __cpuid(0).eax >= 13
        && __cpuid_count(7, 0).edx & TILES_OF_BYTES == TILES_OF_BYTES
        && __cpuid_count(13, 0).eax & SAVED == SAVED
}

/// Linux saves tiles only for processes that asked.
fn permitted() -> bool {
    if !cfg!(target_os = "linux") {
        return false;
    }
    let refusal: isize;
    // SAFETY: a system call that reads no memory and changes nothing but what this process may use; it clobbers rcx
    // and r11. `arch_prctl` exists for this architecture only, hence in no library that we have.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => refusal,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") TILES,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    refusal == 0
}
