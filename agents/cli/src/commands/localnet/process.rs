//! Processes that outlive the command that starts them. Each is known by its number, by when it began and by which boot
//! of the machine: a number that the system has given to another process is never signalled.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

const LOOK: Duration = Duration::from_millis(50);
/// For a process that was told to end, before it is made to; and after that.
const GRACE: Duration = Duration::from_secs(15);
const END: Duration = Duration::from_secs(5);

/// A process of the network.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Clock ticks from the boot to its begin.
    start: u64,
    /// Which boot.
    boot: String,
}

/// Starts a program in a session of its own, what it writes appended to a log, with nothing of our environment that
/// would configure it.
pub(super) fn spawn(mut command: Command, log: &Path) -> Result<Process> {
    let program = command.get_program().to_string_lossy().into_owned();
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let ours = text.starts_with("TENSORLINK_") && !command.get_envs().any(|(given, _)| given == name);
        if ours || text == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    let output = File::options().create(true).append(true).open(log);
    let output = output.with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    own_session(&mut command);
    let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let pid = child.id();
    // Nobody waits for it: it outlives us, or is seen to have ended by its state.
    drop(child);
    let (start, _) = about(pid).with_context(|| format!("{program} ended at once; its log is {}", log.display()))?;
    Ok(Process { pid, start, boot: boot()? })
}

#[cfg(unix)]
fn own_session(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let detach = || rustix::process::setsid().map(|_| ()).map_err(std::io::Error::from);
    // SAFETY: between fork and exec only `setsid` is called, which is async-signal-safe and allocates nothing.
    unsafe { command.pre_exec(detach) };
}

#[cfg(not(unix))]
fn own_session(_: &mut Command) {}

impl Process {
    /// Whether it runs, and not another of its number.
    pub(super) fn runs(&self) -> bool {
        let ended = |state: char| matches!(state, 'Z' | 'X' | 'x');
        boot().is_ok_and(|boot| boot == self.boot)
            && about(self.pid).is_some_and(|(start, state)| start == self.start && !ended(state))
    }

    /// Asks it to end, and makes it end if it does not within a grace. Returns when it has ended.
    pub(super) async fn stop(&self) -> Result<()> {
        if self.signal(false)? && !self.ends(GRACE).await {
            self.signal(true)?;
            if !self.ends(END).await {
                bail!("process {} does not end", self.pid);
            }
        }
        Ok(())
    }

    async fn ends(&self, within: Duration) -> bool {
        let asked = Instant::now();
        while self.runs() {
            if asked.elapsed() >= within {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        true
    }

    /// Sends SIGTERM, or SIGKILL; returns whether there was a process to send it to.
    #[cfg(target_os = "linux")]
    fn signal(&self, kill: bool) -> Result<bool> {
        use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
        // The descriptor holds on to the process, so that what is checked after it is opened is what is signalled.
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(false) };
        if !self.runs() {
            return Ok(false);
        }
        match pidfd_send_signal(descriptor, if kill { Signal::KILL } else { Signal::TERM }) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("process {} cannot be ended", self.pid)),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(&self, _: bool) -> Result<bool> {
        bail!("a local network runs on Linux")
    }
}

/// When a process began, and the letter of its state.
fn about(pid: u32) -> Option<(u64, char)> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The same from its line in `/proc`. The name in parentheses may hold anything, parentheses and spaces too.
fn parse(line: &str) -> Option<(u64, char)> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is field 3, the time of the start field 22.
    Some((fields.nth(18)?.parse().ok()?, state))
}

fn boot() -> Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    Ok(text.context("a local network needs /proc, as Linux has it")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_hides_nothing() {
        let line = "42 (a) b (c) S 1 42 42 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 777 100 200";
        assert_eq!(parse(line), Some((777, 'S')));
        assert_eq!(parse("42 (a"), None);
        assert_eq!(parse("42 (a) S 1"), None);
    }

    fn sleeper(folder: &Path, script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        spawn(command, &folder.join("log")).unwrap()
    }

    #[tokio::test]
    async fn it_is_ended_whether_it_listens_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let process = sleeper(folder.path(), "exec sleep 600");
        assert!(process.runs());
        process.stop().await.unwrap();
        assert!(!process.runs());
        // Ended already.
        process.stop().await.unwrap();
    }

    #[tokio::test]
    async fn a_number_that_another_has_is_never_signalled() {
        let folder = tempfile::tempdir().unwrap();
        let process = sleeper(folder.path(), "exec sleep 600");
        let others = [
            Process { start: process.start + 1, ..process.clone() },
            Process { boot: "another".into(), ..process.clone() },
        ];
        for other in others {
            assert!(!other.runs());
            other.stop().await.unwrap();
            assert!(process.runs(), "not signalled");
        }
        process.stop().await.unwrap();
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = spawn(Command::new("/nonexistent/program"), &folder.path().join("log")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/program"), "{error}");
    }
}
