//! `tensorlink localnet`, as somebody who tries it for the first time: from an empty folder and an empty home.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{LONG, Output, eventually, run, shell, tensorlink};

/// The network is up within. Putting the model into integers takes ten seconds alone, and minutes among other tests.
const UP: Duration = LONG;
/// A job is over within.
const JOB: Duration = Duration::from_secs(300);

/// A home of its own, with the network in it until dropped.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Where the network's folder is, while there is a network.
    pub(crate) fn network(&self) -> PathBuf {
        self.0.path().join("home/localnet")
    }

    /// An empty folder, to be in.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.0.path().join("folder");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A command that knows this home, in the empty folder.
    pub(crate) fn at_home(&self, mut command: Command) -> Command {
        command.env("TENSORLINK_HOME", self.0.path().join("home")).env("HOME", self.0.path());
        // How fast this machine is, is measured once for all tests.
        command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command.current_dir(self.folder());
        command
    }

    async fn run(&self, line: &str, limit: Duration) -> Output {
        let mut command = self.at_home(tensorlink());
        command.args(line.split(' '));
        run(command, limit).await
    }

    async fn ok(&self, line: &str, limit: Duration) -> Output {
        let output = self.run(line, limit).await;
        assert!(output.ok, "`tensorlink {line}` failed:\n{}", output.stderr);
        output
    }

    async fn status(&self) -> Value {
        self.ok("localnet status --json", UP).await.json().remove(0)
    }

    /// Runs a command that was printed, in the shell.
    async fn shell(&self, line: &str, limit: Duration) -> Output {
        let output = run(self.at_home(shell(line)), limit).await;
        assert!(output.ok, "{line}\nfailed:\n{}{}", output.stdout, output.stderr);
        output
    }

    /// Processes that this network has started and that run: by what their command line or their folder says.
    pub(crate) fn processes(&self) -> BTreeSet<u32> {
        let network = self.network().display().to_string();
        let of = |entry: std::fs::DirEntry| -> Option<u32> {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            String::from_utf8_lossy(&line).contains(&network).then_some(pid)
        };
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Whatever the test came to, nothing goes on.
        let logs = self.network().join("logs");
        if std::thread::panicking() && logs.exists() {
            let kept = self.0.path().with_extension("logs");
            let _renamed = std::fs::rename(&logs, &kept);
            eprintln!("what the network said is in {}", kept.display());
        }
        let mut down = self.at_home(tensorlink());
        let _status = down.args(["localnet", "down"]).output();
    }
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Commands that `up` printed to be tried next: each with its continuation lines, in the order of printing.
fn printed(said: &str) -> Vec<String> {
    let (_, list) = said.split_once("Try next:").unwrap_or_else(|| panic!("nothing to try:\n{said}"));
    let commands = list.split("\n# ").skip(1).map(|item| item.split_once('\n').unwrap().1.trim().to_owned());
    commands.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_comes_up_works_and_leaves_nothing_behind() {
    let home = Home::new();
    let http = format!("127.0.0.1:{}", free_port());
    let refused = home.run("localnet status", UP).await;
    assert!(!refused.ok && refused.stderr.contains("localnet up"), "{}", refused.stderr);

    let up = home.ok(&format!("localnet up --http {http}"), UP).await;
    eprintln!("up within {:.1} s", up.took.as_secs_f64());
    let tries = printed(&up.stderr);
    assert_eq!(tries.len(), 3, "{}", up.stderr);
    let status = home.status().await;
    assert_eq!(status["running"], true, "{status}");
    assert_eq!(status["nodes"].as_array().unwrap().len(), 4, "{status}");
    assert_eq!(status["nodes"][1]["stake"], "2000000000000000000000");
    let nobody_asks_twice = home.ok(&format!("localnet up --http {http}"), UP).await;
    assert!(nobody_asks_twice.stderr.contains("runs already"), "{}", nobody_asks_twice.stderr);

    let check = home.ok("check", UP).await;
    assert!(check.stdout.contains(&home.network().join("config.toml").display().to_string()), "{}", check.stdout);
    let given = home.ok("localnet faucet --sno 5 --json", UP).await.json().remove(0);
    assert_eq!(given["sno"], "10005000000000000000000");

    let job = home.shell(&format!("{} --report report.json", tries[0]), JOB).await;
    assert!(job.stdout.contains("60 committed, 60 final"), "{}", job.stdout);
    if status["gateway"].is_object() {
        let answer = home.shell(&tries[1], UP).await;
        assert!(answer.stdout.contains("\"embedding\""), "{}", answer.stdout);
    }

    // A power cut for one of them; it comes back by its files alone.
    let ada = status["nodes"][1].clone();
    let pid = i32::try_from(ada["pid"].as_u64().unwrap()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    eventually("ada is gone", UP, async || (home.status().await["running"] == false).then_some(())).await;
    let again = home.ok(&format!("localnet up --http {http}"), UP).await;
    assert!(again.stderr.contains("started again") && again.stderr.contains("ada"), "{}", again.stderr);
    assert_eq!(home.status().await["nodes"][1]["address"], ada["address"]);

    // The third: a liar is hired, and convicted.
    home.shell(&tries[2], JOB).await;
    let convicted = home.ok("dispute list --job 2", UP).await;
    assert!(convicted.stdout.contains("convict"), "{}", convicted.stdout);
    let mallory = home.status().await["nodes"][4].clone();
    assert_eq!((&mallory["name"], &mallory["role"]), (&Value::from("mallory"), &Value::from("villain")));
    assert_ne!(mallory["stake"], "2000000000000000000000", "it lost its stake in the job");

    let logs = home.ok("localnet logs --lines 5", UP).await;
    assert!(logs.stdout.lines().any(|line| line.starts_with("ada ")), "{}", logs.stdout);
    home.ok("localnet down mallory", UP).await;
    assert_eq!(home.status().await["nodes"][4]["running"], false);

    // Every process is stopped and started again: the chain, too, and nothing is lost.
    restart(&home, &http).await;

    assert!(!home.processes().is_empty());
    home.ok("localnet down", UP).await;
    assert_eq!(home.processes(), BTreeSet::new());
    assert!(!home.network().exists() && !home.network().parent().unwrap().exists(), "all that was written is gone");
    let left: Vec<_> = std::fs::read_dir(home.folder()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["report.json"], "only what was asked for");
    std::net::TcpListener::bind(&http).unwrap();
    home.ok("localnet down", UP).await;
}

/// As when the machine is shut down and started again.
async fn restart(home: &Home, http: &str) {
    let before = home.status().await;
    for pid in home.processes() {
        let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
    eventually("everybody is gone", UP, async || home.processes().is_empty().then_some(())).await;
    home.ok(&format!("localnet up --http {http}"), UP).await;
    let after = home.status().await;
    assert_eq!(after["running"], true, "{after}");
    assert!(after["chain"]["height"].as_u64() >= before["chain"]["height"].as_u64(), "{before} {after}");
    assert_eq!(after["nodes"][1]["stake"], before["nodes"][1]["stake"]);
    assert!(home.ok("job list", UP).await.stdout.contains("job 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_begun_leaves_nothing_behind() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let model = home.folder().join("model");
    std::fs::create_dir(&model).unwrap();
    let http = taken.local_addr().unwrap();
    for (line, reason) in [
        (format!("localnet up --http {http} --model model"), "choose another --http"),
        (format!("localnet up --http 127.0.0.1:{} --model model", free_port()), "model"),
        ("localnet up --model absent".into(), "absent"),
        ("localnet up --validator-rate 2".into(), "between 0 and 1"),
        ("localnet add-worker".into(), "localnet up"),
        ("localnet logs".into(), "localnet up"),
    ] {
        let refused = home.run(&line, UP).await;
        assert!(!refused.ok && refused.stderr.contains(reason), "{line}: {}", refused.stderr);
        assert!(!home.network().exists(), "{line}");
    }
    assert_eq!(home.processes(), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_make_one_network() {
    let home = Home::new();
    let up = "localnet up --no-gateway --workers 0";
    let (one, other) = tokio::join!(home.run(up, UP), home.run(up, UP));
    assert!(one.ok && other.ok, "{}{}", one.stderr, other.stderr);
    let already = [&one, &other].iter().filter(|output| output.stderr.contains("runs already")).count();
    assert_eq!(already, 1, "{}{}", one.stderr, other.stderr);
    assert_eq!(home.status().await["nodes"].as_array().unwrap().len(), 1);
    home.ok("localnet add-worker --stake 1500", UP).await;
    assert_eq!(home.status().await["nodes"][1]["name"], "ada");
    assert_eq!(home.status().await["nodes"][1]["stake"], "1500000000000000000000");
}
