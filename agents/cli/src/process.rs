//! What every process of ours does: log, listen to signals, end with an exit code.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

use crate::advice::{advice, words};
use crate::live::{Lines, say};
use crate::output::Unread;

const SUCCESS: i32 = 0;
const FAILURE: i32 = 1;
/// As shells say it of who was interrupted.
const INTERRUPTED: i32 = 130;

/// Runs a future on a runtime of its own until it ends, then ends the process; its shutdown token is cancelled by the
/// first SIGINT or SIGTERM.
pub fn run<F, Fut>(work: F) -> !
where
    F: FnOnce(CancellationToken) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say!("error: cannot start: {error}");
            leave(FAILURE)
        }
    };
    let result = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        tokio::spawn(stop_on_signal(shutdown.clone()));
        work(shutdown).await
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
    end_log();
    match result {
        Ok(()) => leave(SUCCESS),
        Err(error) if error.is::<Unread>() => leave(SUCCESS),
        Err(error) => {
            say!("error: {}", words(&error));
            if let Some(advice) = advice(&error) {
                say!("{advice}");
            }
            leave(FAILURE)
        }
    }
}

/// Files and connections that a process of ours may have open, where the system lets it.
const FILES: u64 = 16_384;

/// Lets this process open as many files and connections as the system allows it, up to 16,384. Systems grant 1,024
/// until they are asked, for the sake of programs that use `select`.
pub fn raise_file_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.unwrap_or(FILES).min(FILES);
        if limit.current.is_some_and(|current| current < wanted) {
            limit.current = Some(wanted);
            if let Err(error) = setrlimit(Resource::Nofile, limit) {
                tracing::debug!("the limit of open files stays: {error}");
            }
        }
    }
}

/// Ends the process at once. Libraries are not taken apart: libtorch unregisters thousands of operators one by one, a
/// quarter of the time of a short command, while threads that were given up may still be in it.
fn leave(code: i32) -> ! {
    end_log();
    // Whoever reads is gone where this fails.
    let _ = std::io::stdout().flush();
    #[cfg(unix)]
    // SAFETY: ends the process; nothing is left to flush, and destructors give back only what ends with it.
    unsafe {
        libc::_exit(code)
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}

/// Lines of the log that wait for whoever reads them. Beyond them lines are lost.
const WAITING: usize = 4096;
/// What writes the log, until the program ends.
static LOG: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Writes on a thread of its own. Whoever holds back what is written, as a terminal does after Ctrl-S or `less` does,
/// stops no node: it would be slashed for its silence.
fn unhurried(writer: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    NonBlockingBuilder::default().buffered_lines_limit(WAITING).lossy(true).thread_name("log").finish(writer)
}

/// Writes what was logged, for about a second at most.
fn end_log() {
    drop(LOG.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Logs to stderr; data goes to stdout. `RUST_LOG` beats `-v`.
pub fn log(verbose: u8) {
    // What alloy says of lost connections, the chain adapter says in our words.
    let default = match verbose {
        0 => {
            "warn,tensorlink_net=warn,tensorlink_net::reach=info,alloy_pubsub=off,alloy_transport_ws=off,tensorlink=info,tensorlink_worker=info,tensorlink_validator=info"
        }
        1 => "info",
        _ => {
            "info,tensorlink=debug,tensorlink_worker=debug,tensorlink_validator=debug,tensorlink_user=debug,\
              tensorlink_chain=debug,tensorlink_net=debug,tensorlink_store=debug"
        }
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let (lines, guard) = unhurried(Lines);
    *LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(lines)
        // It would panic where nobody reads them.
        .log_internal_errors(false)
        .with_target(false)
        .init();
}

/// Asks everything to stop at the first SIGINT or SIGTERM; ends the process at the second.
async fn stop_on_signal(shutdown: CancellationToken) {
    for again in [false, true] {
        wait_for_signal().await;
        if again {
            leave(INTERRUPTED)
        }
        shutdown.cancel();
    }
}

#[cfg(unix)]
async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn wait_for_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Takes nothing until the other end is dropped.
    struct HeldBack(Receiver<()>);

    impl Write for HeldBack {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_does_not_read_the_log_stops_nobody() {
        let (reader, writer) = channel();
        let (lines, guard) = unhurried(HeldBack(writer));
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            (0..2 * WAITING).for_each(|line| tracing::info!(line, "said"));
        });
        assert!(lines.error_counter().dropped_lines() >= WAITING - 1, "the queue is bounded");
        drop(reader);
        drop(guard);
    }
}
