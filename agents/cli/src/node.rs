//! Puts a node together from its adapters.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::TryRngCore;
use tempfile::TempDir;
use tensorlink_chain::AlloyChain;
use tensorlink_net::{Libp2pNet, NetConfig};
use tensorlink_node::budget::Budget;
use tensorlink_node::history::Remembered;
use tensorlink_node::ports::{Chain, Net, Owner, Store, StoreError, SystemClock};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::shard::{ShardError, ShardSource};
use tensorlink_node::{Identity, Journal, Ports, names};
use tensorlink_program::EngineError;
use tensorlink_store::{Content, Embedded, Kubo};
use tensorlink_types::{B256, Program};
use tensorlink_validator::{Answers, Auditor};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::config::Config;
use crate::{keys, origin, peers};

/// A node that has reached no peer after so long says so.
const PEERS: Duration = Duration::from_secs(10);
/// How long the chain can be asked after an interrupt, by who has money there.
const GRACE: Duration = Duration::from_secs(60);
/// Longest wait for a program.
const FILES: Duration = Duration::from_secs(30);

/// The chain seen from the configured key.
pub async fn chain(config: &Config, shutdown: &CancellationToken) -> Result<(Identity, Arc<dyn Chain>)> {
    let (identity, chain) = connect(config, keys::load(config)?, shutdown).await?;
    Ok((identity, chain))
}

/// The chain for who only looks: as nobody, with a key that is thrown away.
pub async fn reader(config: &Config, shutdown: &CancellationToken) -> Result<(Identity, Arc<dyn Chain>)> {
    let (identity, chain) = look(config, shutdown).await?;
    Ok((identity, chain))
}

/// As [`reader`], for who is to tell it from another chain of the same id.
pub async fn look(config: &Config, shutdown: &CancellationToken) -> Result<(Identity, Arc<AlloyChain>)> {
    let mut secret = Zeroizing::new([0u8; 32]);
    rand::rngs::OsRng.try_fill_bytes(secret.as_mut())?;
    connect(config, Identity::new(&secret)?, shutdown).await
}

async fn connect(
    config: &Config,
    identity: Identity,
    shutdown: &CancellationToken,
) -> Result<(Identity, Arc<AlloyChain>)> {
    let deployment = tensorlink_chain::read_deployment(&config.deployment)?;
    let confirmations = config.confirmations(deployment.chain_id);
    let chain = AlloyChain::connect(tensorlink_chain::Config {
        rpc_urls: config.rpc.clone(),
        deployment,
        confirmations,
        limits: config.gas.clone(),
        identity: identity.clone(),
        shutdown: shutdown.clone(),
    })
    .await?;
    Ok((identity, Arc::new(chain)))
}

/// Peers and files, without a chain.
pub struct World {
    /// The net, which only this program starts and stops.
    pub net: Arc<Libp2pNet>,
    /// The files.
    pub store: Arc<dyn Store>,
}

impl World {
    /// Joins the network, opens the store; `disk` bounds what it holds, in a folder or a daemon, bytes.
    pub async fn join(config: &Config, identity: &Identity, disk: u64, shutdown: &CancellationToken) -> Result<Self> {
        let parse = |text: &String| text.parse().with_context(|| format!("{text:?} is not a multiaddr"));
        let net_config = NetConfig {
            listen: config.listen.iter().map(parse).collect::<Result<_>>()?,
            external: config.external.iter().map(parse).collect::<Result<_>>()?,
            behind_nat: config.behind_nat,
            mdns: config.mdns,
            upnp: config.upnp,
            relay: config.relay.unwrap_or(false),
            bootstrap: config.bootstrap.iter().map(parse).collect::<Result<_>>()?,
            ..NetConfig::default()
        };
        let key = tensorlink_net::Identity::from_secret(*identity.secret())?;
        let net = Arc::new(Libp2pNet::start(key, net_config)?);
        let port: Arc<dyn Net> = net.clone();
        let folder = config.data_dir.join("blocks");
        let store: Arc<dyn Store> = match &config.ipfs {
            Some(url) => {
                let kubo = Kubo::connect(url, &folder, disk).await?;
                Arc::new(Content::start(kubo, port.clone(), shutdown.clone()).await?)
            }
            None => {
                let embedded = Embedded::open(&folder, disk)?;
                Arc::new(Content::start(embedded, port.clone(), shutdown.clone()).await?)
            }
        };
        Ok(Self { net, store })
    }
}

/// A whole node.
#[derive(Clone)]
pub struct Node {
    /// What its roles see of the world; the chain's events are remembered on disk.
    pub ports: Ports,
    /// Its net, which only this program starts and stops.
    pub net: Arc<Libp2pNet>,
}

impl Node {
    /// Connects to the chain, joins the network, opens the store; `disk` bounds what it holds, bytes.
    pub async fn start(config: &Config, disk: u64, shutdown: &CancellationToken) -> Result<Self> {
        Self::remembering(config, connect(config, keys::load(config)?, shutdown).await?, disk, shutdown).await
    }

    /// As [`Self::start`], for who has money on the chain: after an interrupt the chain can be asked for a while, so
    /// that it comes back.
    pub async fn start_to_pay(config: &Config, disk: u64, shutdown: &CancellationToken) -> Result<Self> {
        let end = CancellationToken::new();
        let (interrupted, later) = (shutdown.clone(), end.clone());
        tokio::spawn(async move {
            interrupted.cancelled().await;
            tokio::time::sleep(GRACE).await;
            later.cancel();
        });
        let connected = shutdown.run_until_cancelled(connect(config, keys::load(config)?, &end)).await;
        Self::remembering(config, connected.context("interrupted")??, disk, shutdown).await
    }

    async fn remembering(
        config: &Config,
        (identity, chain): (Identity, Arc<AlloyChain>),
        disk: u64,
        shutdown: &CancellationToken,
    ) -> Result<Self> {
        origin::check(config, &chain).await?;
        let chain: Arc<dyn Chain> = Arc::new(Remembered::new(chain, &config.data_dir));
        Self::join(config, (identity, chain), disk, shutdown).await
    }

    /// As [`Self::start`], for a short task. Where this account's own node is running, e.g. its gateway, the files are
    /// taken: the task then works in a folder of its own, which is removed with the second value.
    pub async fn beside(config: &Config, disk: u64, shutdown: &CancellationToken) -> Result<(Self, Option<TempDir>)> {
        // Its addresses are taken, too.
        let config = &Config { listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()], ..config.clone() };
        match Self::start(config, disk, shutdown).await {
            Err(error) if matches!(error.downcast_ref(), Some(StoreError::InUse(_))) => {
                let folder = tempfile::tempdir().context("no temporary folder for the task")?;
                let keystore = Some(keys::default_path(config));
                let beside = Config { data_dir: folder.path().to_owned(), keystore, ..config.clone() };
                Ok((Self::start(&beside, disk, shutdown).await?, Some(folder)))
            }
            other => Ok((other?, None)),
        }
    }

    /// As [`Self::start`], on a chain that is there already.
    pub async fn join(
        config: &Config,
        (identity, chain): (Identity, Arc<dyn Chain>),
        disk: u64,
        shutdown: &CancellationToken,
    ) -> Result<Self> {
        let World { net, store } = World::join(config, &identity, disk, shutdown).await?;
        let deployment = chain.deployment();
        let contracts = deployment.contracts();
        let journal = Journal::open(config.data_dir.join("journal"))?;
        for address in net.listen_addresses().await? {
            tracing::debug!("listening on {address}");
        }
        let clock = Arc::new(SystemClock);
        Ok(Self {
            ports: Ports { identity, chain, net: net.clone(), store, clock, contracts, journal, pins: Arc::default() },
            net,
        })
    }

    /// The program of a stage, of this root, from whoever holds it; of a serving job the one for texts of so
    /// many tokens.
    ///
    /// # Errors
    /// When it cannot be had, or is another.
    pub async fn program(&self, config: &Config, source: &ShardSource, program: (u32, B256)) -> Result<Program> {
        let store = self.ports.store.of(Owner::Nobody);
        let fetch = || async {
            names::program(store.as_ref(), source, program).await.map_err(|error| match error {
                ShardError::Store(_) => Failure::Transient(error),
                error => Failure::Permanent(error),
            })
        };
        // A node that has just come up may not have met any holder yet.
        let attempts = if config.bootstrap.is_empty() { 1 } else { Policy::PEER.attempts };
        let fetched = retry(self.ports.clock.as_ref(), Policy { attempts, ..Policy::PEER }, fetch);
        let fetched = tokio::time::timeout(FILES, fetched).await;
        let fetched = fetched.with_context(|| format!("the job's files did not come within {} s", FILES.as_secs()))?;
        fetched.context("the job's files cannot be had; --bootstrap names peers that may have them, --ipfs a daemon")
    }

    /// Says where peers reach this node: what others take as `--bootstrap`; warns where nobody will, and later where
    /// nobody was reached.
    pub async fn announce(&self, config: &Config, shutdown: &CancellationToken) -> Result<()> {
        for address in self.net.listen_addresses().await? {
            tracing::info!("listening on {address}");
        }
        if let Some(alone) = peers::alone(config, self.ports.chain.deployment().chain_id) {
            tracing::warn!("{alone}");
        }
        if !config.bootstrap.is_empty() {
            let (net, tried, shutdown) = (self.net.clone(), config.bootstrap.clone(), shutdown.clone());
            tokio::spawn(async move {
                let reached = tokio::select! {
                    () = tokio::time::sleep(PEERS) => net.connected_peers().await,
                    () = shutdown.cancelled() => return,
                };
                if reached.is_ok_and(|peers| peers.is_empty()) {
                    tracing::warn!("{}; trying on", peers::unreached(&tried));
                }
            });
        }
        Ok(())
    }

    /// Why an error about too few workers is one about peers: none was reached. None where there are peers.
    pub async fn unreached(&self, config: &Config) -> Option<String> {
        let peers = self.net.connected_peers().await.ok()?;
        peers.is_empty().then(|| peers::unreached(&config.bootstrap))
    }

    /// What audits on this node's adapters, with engines that `make` makes: of this `memory`, `turns` at once.
    ///
    /// # Errors
    /// When the chain or the disk fails.
    pub async fn auditor<E>(
        &self,
        make: impl Fn() -> Result<E, EngineError> + Send + Sync + 'static,
        memory: Arc<Budget>,
        turns: usize,
    ) -> Result<Auditor<E>> {
        let answers = Answers::open(self.ports.journal.clone(), self.ports.chain.parameters().await?)?;
        Ok(Auditor::new(self.ports.clone(), answers, make, memory, turns))
    }
}
