//! Memory of tensors that come and go on several threads: without fragments, and what was freed back to the system.

/// Makes all threads allocate from one place. glibc gives each its own, and tensors that one thread makes and another
/// drops leave every one of them full of holes. Call it before there are threads; small allocations do not wait for
/// each other, because threads keep some of what they freed. Elsewhere this does nothing.
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;

        /// `M_ARENA_MAX` of `malloc.h`.
        const ARENA_MAX: c_int = -8;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        // SAFETY: takes numbers and no memory of ours; may be called at any time, from any thread.
        let _set = unsafe { mallopt(ARENA_MAX, 1) };
    }
}

/// Gives back what was freed. glibc keeps memory that several threads allocated and freed in turns, in pieces too small
/// for what is to come: after tensors that came over the network, as much again as they take themselves. Elsewhere this
/// does nothing. Milliseconds.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: takes a number and no memory of ours; may be called at any time, from any thread.
        let _any = unsafe { malloc_trim(0) };
    }
}
