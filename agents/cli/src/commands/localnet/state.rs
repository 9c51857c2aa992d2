//! What is remembered of the local network on disk: enough to find its processes, and to start them again.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tensorlink_model::Output;
use tensorlink_types::Address;

use super::folder::Folder;
use super::process::Process;

/// The name of the chain's process, and of the gateway's.
pub(super) const CHAIN: &str = "chain";
pub(super) const GATEWAY: &str = "gateway";
/// The name of the validator.
pub(super) const VALIDATOR: &str = "validator";

/// The network.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    /// Whether it was built to its end.
    pub(super) ready: bool,
    pub(super) chain: Chain,
    /// The account of the configuration's key.
    pub(super) user: Option<Address>,
    /// The validator first.
    pub(super) nodes: Vec<Node>,
    pub(super) gateway: Option<Gateway>,
}

/// The chain.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Chain {
    pub(super) port: u16,
    /// Seconds between two blocks.
    pub(super) block_time: u64,
    pub(super) process: Option<Process>,
}

/// A node with a key of its own.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) address: Address,
    /// Its name among peers.
    pub(super) peer: String,
    /// Where it listens, on this machine only.
    pub(super) port: u16,
    pub(super) process: Option<Process>,
}

/// What a node does.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Role {
    /// It audits this share of claims.
    Validator { rate: f64 },
    /// It computes.
    Worker { memory: String, price: String },
    /// It computes wrong.
    Villain { operator: String, step: Option<u32>, price: String },
}

/// Models over HTTP.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Gateway {
    pub(super) http: SocketAddr,
    pub(super) model: PathBuf,
    /// What it gives.
    pub(super) output: Output,
    /// Whether it is served however much it lost in integers.
    #[serde(default)]
    pub(super) accept_loss: bool,
    pub(super) process: Option<Process>,
}

impl Role {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Validator { .. } => "validator",
            Self::Worker { .. } => "worker",
            Self::Villain { .. } => "villain",
        }
    }
}

impl Chain {
    pub(super) fn http(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn ws(&self) -> String {
        format!("ws://127.0.0.1:{}", self.port)
    }
}

impl Node {
    /// Where others reach it.
    pub(super) fn listens(&self) -> String {
        format!("/ip4/127.0.0.1/tcp/{}/p2p/{}", self.port, self.peer)
    }
}

impl State {
    /// What is on disk; none where there is no network.
    pub(super) fn read(folder: &Folder) -> Result<Option<Self>> {
        let path = folder.state();
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let state = serde_json::from_slice(&text);
        state.map(Some).with_context(|| {
            format!("{} is not of this version: stop the processes, remove {}", path.display(), folder.path().display())
        })
    }

    /// The same, of a network that there must be.
    pub(super) fn must(folder: &Folder) -> Result<Self> {
        folder.must_exist()?;
        Self::read(folder)?.context("the local network was just removed")
    }

    /// Writes it, whole or not at all.
    pub(super) fn save(&self, folder: &Folder) -> Result<()> {
        let write = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(folder.path())?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.flush()?;
            file.as_file().sync_all()?;
            file.persist(folder.state())?;
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", folder.state().display()))
    }

    /// Every process by its name, running or not; the chain first.
    pub(super) fn processes(&self) -> Vec<(&str, Option<&Process>)> {
        let nodes = self.nodes.iter().map(|node| (node.name.as_str(), node.process.as_ref()));
        let gateway = self.gateway.iter().map(|gateway| (GATEWAY, gateway.process.as_ref()));
        std::iter::once((CHAIN, self.chain.process.as_ref())).chain(nodes).chain(gateway).collect()
    }

    /// Whether a process of this name is known.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.processes().iter().any(|(known, _)| *known == name)
    }

    /// Fails where no process has this name.
    pub(super) fn must_know(&self, name: &str) -> Result<()> {
        if self.knows(name) {
            return Ok(());
        }
        let names: Vec<&str> = self.processes().into_iter().map(|(name, _)| name).collect();
        bail!("nobody is named {name:?}; there are {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_from_disk() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path());
        assert!(State::read(&folder).unwrap().is_none());
        assert!(State::must(&folder).unwrap_err().to_string().contains("localnet up"));
        let role = Role::Villain { operator: "mat_mul".into(), step: Some(30), price: "0.5".into() };
        let node = Node {
            name: "mallory".into(),
            role,
            address: Address::with_last_byte(7),
            peer: "16Uiu2".into(),
            port: 20_001,
            process: None,
        };
        let chain = Chain { port: 20_000, block_time: 1, process: None };
        let state = State { ready: true, chain, user: None, nodes: vec![node], gateway: None };
        state.save(&folder).unwrap();
        let read = State::must(&folder).unwrap();
        assert_eq!(format!("{read:?}"), format!("{state:?}"));
        assert_eq!(read.nodes[0].listens(), "/ip4/127.0.0.1/tcp/20001/p2p/16Uiu2");
        assert!(read.knows("mallory") && read.knows("chain") && !read.knows("gateway"));
        let unknown = read.must_know("bob").unwrap_err().to_string();
        assert!(unknown.contains("chain, mallory"), "{unknown}");
        std::fs::write(folder.state(), "{").unwrap();
        assert!(State::read(&folder).is_err());
    }
}
