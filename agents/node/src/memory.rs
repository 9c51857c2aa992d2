//! Memory that was freed, back to the system.

/// Gives back what was freed. glibc keeps memory that several threads allocated and freed in turns, in pieces too small for what is to come:
/// after tensors that came over the network, as much again as they take themselves. Elsewhere this does nothing. Milliseconds.
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
