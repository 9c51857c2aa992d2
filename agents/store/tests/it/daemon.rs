//! A Kubo daemon of our own, in a temporary folder, offline.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A running daemon; killed on drop.
pub(crate) struct Daemon {
    folder: TempDir,
    binary: PathBuf,
    child: Child,
    pub(crate) url: String,
}

impl Daemon {
    /// Starts the daemon that `script/setup` installs. `None`, said on stderr, if there is none to start.
    pub(crate) async fn start(test: &str) -> Option<Self> {
        let binary = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolchain/bin/ipfs");
        if !binary.exists() {
            // Past the test harness, which swallows the output of tests that pass.
            let line = format!("NOT TESTED: {test} needs Kubo, which script/setup installs where Go is present\n");
            std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        // No known peers, no search for any, no fsync.
        ipfs(&binary, folder.path(), &["init", "--profile", "test", "--empty-repo"]);
        let addresses = r#"{"API": "/ip4/127.0.0.1/tcp/0", "Gateway": "", "Swarm": []}"#;
        ipfs(&binary, folder.path(), &["config", "--json", "Addresses", addresses]);
        let child = Command::new(&binary)
            .args(["daemon", "--offline"])
            .env("IPFS_PATH", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut daemon = Self { folder, binary, child, url: String::new() };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            // `/ip4/127.0.0.1/tcp/<port>`, written once it listens.
            if let Ok(api) = std::fs::read_to_string(daemon.folder.path().join("api"))
                && let Some(port) = api.trim().strip_prefix("/ip4/127.0.0.1/tcp/")
            {
                daemon.url = format!("http://127.0.0.1:{port}");
                return Some(daemon);
            }
            assert!(Instant::now() < deadline && daemon.child.try_wait().unwrap().is_none(), "Kubo does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The CID that `ipfs add` gives a file, by the program's own way of cutting it.
    pub(crate) fn add(&self, content: &[u8], options: &[&str]) -> String {
        let file = self.folder.path().join("file");
        std::fs::write(&file, content).unwrap();
        let add = ["add", "--quieter", "--cid-version", "1"];
        let args: Vec<&str> = add.into_iter().chain(options.iter().copied()).chain(file.to_str()).collect();
        ipfs(&self.binary, self.folder.path(), &args)
    }

    /// Runs `ipfs` against the daemon.
    pub(crate) fn ipfs(&self, args: &[&str]) -> String {
        ipfs(&self.binary, self.folder.path(), args)
    }

    /// Kills the daemon.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

fn ipfs(binary: &Path, repo: &Path, args: &[&str]) -> String {
    let output = Command::new(binary).args(args).env("IPFS_PATH", repo).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "ipfs {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
