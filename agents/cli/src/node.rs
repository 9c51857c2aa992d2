//! Puts a node together from its adapters.

use std::sync::Arc;

use anyhow::{Context, Result};
use tensorlink_chain::AlloyChain;
use tensorlink_net::{Libp2pNet, NetConfig};
use tensorlink_node::history::Remembered;
use tensorlink_node::ports::{Chain, Clock, Net, Store, SystemClock};
use tensorlink_node::{Identity, Journal};
use tensorlink_proof::commit::Contracts;
use tensorlink_store::{Content, Embedded, Kubo};
use tensorlink_tensor::TorchEngine;
use tensorlink_validator::Auditor;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::{device, keys};

/// The chain seen from the configured key.
pub async fn chain(config: &Config, shutdown: &CancellationToken) -> Result<(Identity, Arc<dyn Chain>)> {
    let identity = keys::load(config)?;
    let deployment = tensorlink_chain::read_deployment(&config.deployment)?;
    let chain = AlloyChain::connect(tensorlink_chain::Config {
        rpc_url: config.rpc.clone(),
        deployment,
        confirmations: config.confirmations,
        identity: identity.clone(),
        shutdown: shutdown.clone(),
    })
    .await?;
    Ok((identity, Arc::new(chain)))
}

/// A whole node.
pub struct Node {
    /// Its key and address.
    pub identity: Identity,
    /// The chain, its events remembered on disk.
    pub chain: Arc<dyn Chain>,
    /// Its peers.
    pub net: Arc<Libp2pNet>,
    /// Its files by CID.
    pub store: Arc<dyn Store>,
    /// Its time.
    pub clock: Arc<dyn Clock>,
    /// Addresses of the contracts.
    pub contracts: Contracts,
    /// Its own steps, for restarts.
    pub journal: Journal,
}

impl Node {
    /// Connects to the chain, joins the network, opens the store; `disk` bounds the embedded store, bytes.
    pub async fn start(config: &Config, disk: u64, shutdown: &CancellationToken) -> Result<Self> {
        let (identity, chain) = chain(config, shutdown).await?;
        let chain: Arc<dyn Chain> = Arc::new(Remembered::new(chain, &config.data_dir));
        let parse = |text: &String| text.parse().with_context(|| format!("{text:?} is not a multiaddr"));
        let net_config = NetConfig {
            listen: config.listen.iter().map(parse).collect::<Result<_>>()?,
            bootstrap: config.bootstrap.iter().map(parse).collect::<Result<_>>()?,
            ..NetConfig::default()
        };
        let key = tensorlink_net::Identity::from_secret(*identity.secret())?;
        let net = Arc::new(Libp2pNet::start(key, net_config)?);
        let port: Arc<dyn Net> = net.clone();
        let store: Arc<dyn Store> = match &config.ipfs {
            Some(url) => Arc::new(Content::start(Kubo::connect(url).await?, port, shutdown.clone()).await?),
            None => {
                let embedded = Embedded::open(&config.data_dir.join("blocks"), disk)?;
                Arc::new(Content::start(embedded, port, shutdown.clone()).await?)
            }
        };
        let deployment = chain.deployment();
        let contracts = Contracts {
            chain_id: deployment.chain_id,
            jobs: deployment.jobs,
            checkpoints: deployment.checkpoints,
            disputes: deployment.disputes,
        };
        let journal = Journal::open(config.data_dir.join("journal"))?;
        for address in net.listen_addresses().await? {
            tracing::debug!("listening on {address}");
        }
        Ok(Self { identity, chain, net, store, clock: Arc::new(SystemClock), contracts, journal })
    }

    /// Says where peers reach this node: what others take as `--bootstrap`.
    pub async fn announce(&self) -> Result<()> {
        for address in self.net.listen_addresses().await? {
            tracing::info!("listening on {address}");
        }
        Ok(())
    }

    /// The net as the roles see it.
    pub fn net_port(&self) -> Arc<dyn Net> {
        self.net.clone()
    }

    /// What audits on this node's adapters: `memory` bytes each, `turns` at once.
    pub fn auditor(&self, engine: TorchEngine, memory: u64, turns: usize) -> Auditor<TorchEngine> {
        Auditor {
            chain: self.chain.clone(),
            net: self.net_port(),
            store: self.store.clone(),
            clock: self.clock.clone(),
            contracts: self.contracts,
            engine: device::factory(engine),
            memory,
            turns: Semaphore::new(turns),
        }
    }
}
