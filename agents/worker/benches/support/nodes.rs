//! Nodes of the stages of a bench, and the streams between them.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_net::{Libp2pNet, NetConfig};
use tensorlink_node::ports::{Duplex, Gate, Net, Protocol};
use tensorlink_types::{Address, TensorType};

use super::line::Line;
use crate::Result;

/// Bytes on the way between two stages in memory, as on a network stream.
const IN_FLIGHT: usize = 1 << 20;

/// Lets everybody in: there is no chain to ask for stakes.
struct Open;

impl Gate for Open {
    fn allows(&self, _: Address, _: Protocol) -> bool {
        true
    }
}

/// The nodes of the stages, none where links are in memory.
#[derive(Default)]
pub(crate) struct Nodes(Vec<Arc<Libp2pNet>>);

pub(crate) fn secret(stage: u16) -> Result<[u8; 32]> {
    Ok([u8::try_from(stage + 1)?; 32])
}

impl Nodes {
    /// Starts a node for each stage on the loopback interface; each knows the one before it, over a line if there
    /// is one.
    pub(crate) async fn new(stages: u16, line: Option<Line>) -> Result<Self> {
        let mut nodes: Vec<Arc<Libp2pNet>> = Vec::new();
        for stage in 0..stages {
            let mut bootstrap = match nodes.last() {
                Some(node) => node.listen_addresses().await?,
                None => Vec::new(),
            };
            if let Some(line) = line {
                for address in &mut bootstrap {
                    *address = line.before(&address.to_string()).await?.parse()?;
                }
            }
            let config = NetConfig { listen: vec!["/ip4/127.0.0.1/tcp/0".parse()?], bootstrap, ..NetConfig::default() };
            let node = Arc::new(Libp2pNet::start(tensorlink_net::Identity::from_secret(secret(stage)?)?, config)?);
            node.set_gate(Arc::new(Open));
            if let Some(previous) = nodes.last() {
                while !previous.connected_peers().await?.contains(&node.address()) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            nodes.push(node);
        }
        Ok(Self(nodes))
    }

    /// Both ends of a stream between a stage and the one before it.
    pub(crate) async fn connect(&self, stage: usize) -> Result<(Box<dyn Duplex>, Box<dyn Duplex>)> {
        let (Some(before), Some(after)) = (self.0.get(stage - 1), self.0.get(stage)) else {
            let (before, after) = tokio::io::duplex(IN_FLIGHT);
            return Ok((Box::new(before), Box::new(after)));
        };
        let mut visitors = after.accept(Protocol::Tensor).await?;
        let stream = before.open(after.address(), Protocol::Tensor).await?;
        let (_, visitor) = visitors.recv().await.ok_or("the node stopped")?;
        Ok((stream, visitor))
    }
}

/// Bytes of the largest tensor that crosses a boundary.
pub(crate) fn limit(types: &[TensorType]) -> Result<usize> {
    Ok(usize::try_from(types.iter().map(TensorType::byte_len).max().unwrap_or(0))?)
}
