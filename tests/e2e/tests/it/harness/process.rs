//! Processes that end with the test, however it ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

/// Time a process gets to end when asked to.
const GRACE: Duration = Duration::from_secs(30);
/// Lines of a log that a failed test shows.
const SHOWN: usize = 40;

/// A process in the background, its output in a file.
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// Length of the log when it started: others of its name may have run before.
    from: usize,
}

impl Process {
    /// Starts a command; its output is appended to `folder/name.log`.
    pub(crate) fn spawn(name: &str, mut command: Command, folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let from = file.metadata().unwrap().len() as usize;
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { name: name.to_owned(), child, log, from }
    }

    /// What it has printed so far.
    pub(crate) fn log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(log.get(self.from..).unwrap_or_default()).into_owned()
    }

    /// How much it has printed.
    pub(crate) fn said(&self) -> u64 {
        self.log.metadata().map_or(0, |about| about.len())
    }

    /// Whether it ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap_or_else(|error| panic!("{} cannot be signalled: {error}", self.name));
    }

    /// Keeps it from doing anything for a while.
    pub(crate) async fn hang(&self, duration: Duration) {
        self.signal(Signal::STOP);
        // INVARIANT: the outage is the stimulus, nothing is awaited by it.
        tokio::time::sleep(duration).await;
        self.signal(Signal::CONT);
    }

    /// From now on no file of it grows beyond so many bytes; none is no bound. To a program that is as a disk that is
    /// full, or has room again.
    pub(crate) fn set_room(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Fsize, limit).unwrap();
    }

    /// Ends it as an operator would; how it ended, and what it has printed.
    pub(crate) fn stop(mut self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        let started = Instant::now();
        while started.elapsed() < GRACE {
            if let Some(status) = self.ended() {
                return (status, self.log());
            }
            std::thread::sleep(super::LOOK);
        }
        panic!("{} goes on {GRACE:?} after SIGTERM", self.name);
    }

    /// Ends it as a power cut would.
    pub(crate) fn cut(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.iter().skip(lines.len().saturating_sub(SHOWN)).copied().collect::<Vec<_>>().join("\n");
            eprintln!("---- the end of what {} said\n{tail}", self.name);
        }
    }
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) ok: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    /// Of its command line.
    arguments: Vec<String>,
}

impl Output {
    /// Of a command that must have succeeded: the JSON values that it printed, one a line, which are as the book
    /// describes them.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        assert!(self.ok, "failed: {}", self.stderr);
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        let values: Vec<_> = self.stdout.lines().map(parse).collect();
        values.iter().for_each(|value| super::documented::check(&self.arguments, value));
        values
    }
}

/// `tensorlink`, with nothing of our own environment that would configure it.
pub(crate) fn tensorlink() -> Command {
    let path = Path::new(env!("CARGO_BIN_EXE_villain")).with_file_name("tensorlink");
    assert!(path.exists(), "there is no {}: run `cargo build --bin tensorlink` first", path.display());
    bare(&path)
}

/// Somebody who cheats as the settings say, otherwise `tensorlink`.
pub(crate) fn villain(settings: &[(&str, &str)]) -> Command {
    let mut command = bare(Path::new(env!("CARGO_BIN_EXE_villain")));
    command.envs(settings.iter().map(|(name, value)| (format!("TENSORLINK_VILLAIN_{name}"), value)));
    command
}

/// A program that is told that a file is too large, as of a full disk, where it would otherwise be ended;
/// see [`Process::set_room`].
pub(crate) fn bounded(program: &Command) -> Command {
    let mut command = bare(Path::new("bash"));
    command.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(program.get_program());
    command
}

/// A shell that carries out a script, with nothing of our own environment that would configure `tensorlink`.
pub(crate) fn shell(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]);
    forget_settings(&mut command);
    command
}

fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name == "RUST_LOG" || name.to_string_lossy().starts_with("TENSORLINK_") {
            command.env_remove(name);
        }
    }
}

fn bare(path: &Path) -> Command {
    let mut command = Command::new(path);
    forget_settings(&mut command);
    // Nor anything of a network that runs for whoever runs the tests.
    command.env("TENSORLINK_HOME", "/nonexistent");
    // How fast this machine is, is measured once for all of them.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    // Dozens of programs share two processors: more threads would only wait for each other. Results depend on none.
    command.env("OMP_NUM_THREADS", "1");
    command
}

/// Runs a command to its end, within `limit`.
pub(crate) async fn run(command: Command, limit: Duration) -> Output {
    let shown = format!("{command:?}");
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let started = Instant::now();
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(limit, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("{shown} goes on after {limit:?}")).unwrap();
    Output {
        ok: output.status.success(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        took: started.elapsed(),
        arguments,
    }
}
