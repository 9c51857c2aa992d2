//! Work that keeps a thread busy, or waits for the disk, on a thread where that is allowed.

/// Does the work; a panic over there is one here, with its own message.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
