//! Files in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use cid::multihash::Multihash;
use tensorlink_node::files;
use tensorlink_node::ports::*;
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::manifest::{MANIFEST_VERSION, Manifest, StageFiles, TrainingFiles};
use tensorlink_types::{Address, keccak256};

/// Files by the Keccak hash of their content.
#[derive(Default)]
pub struct MemoryStore {
    here: Mutex<HashMap<Cid, Bytes>>,
    /// With peers.
    elsewhere: Mutex<HashMap<Cid, Bytes>>,
}

fn cid_of(content: &[u8]) -> Cid {
    let hash = Multihash::<64>::wrap(0x1b, keccak256(content).as_slice()).unwrap();
    Cid::new_v1(0x55, hash)
}

impl MemoryStore {
    /// A file that peers have.
    pub fn elsewhere(&self, content: Bytes) -> Cid {
        let cid = cid_of(&content);
        self.elsewhere.lock().unwrap().insert(cid, content);
        cid
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn put(&self, content: Bytes) -> Result<Cid, StoreError> {
        let cid = cid_of(&content);
        self.here.lock().unwrap().insert(cid, content);
        Ok(cid)
    }

    async fn get(&self, cid: &Cid, _: &[Address], limit: u64) -> Result<Bytes, StoreError> {
        let here = self.here.lock().unwrap().get(cid).cloned();
        let content = here.or_else(|| self.elsewhere.lock().unwrap().get(cid).cloned());
        let content = content.ok_or(StoreError::NotFound(*cid))?;
        if content.len() as u64 > limit {
            return Err(StoreError::TooLarge { cid: *cid, limit });
        }
        self.here.lock().unwrap().insert(*cid, content.clone());
        Ok(content)
    }

    async fn has(&self, cid: &Cid) -> Result<bool, StoreError> {
        Ok(self.here.lock().unwrap().contains_key(cid))
    }

    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError> {
        // All nodes of a test share the store: others have it still.
        let dropped = self.here.lock().unwrap().remove(cid);
        self.elsewhere.lock().unwrap().extend(dropped.map(|content| (*cid, content)));
        Ok(())
    }
}

/// Puts the shards' files into a store; their manifest.
pub async fn publish(store: &MemoryStore, shards: &[Arc<Shard>]) -> (Cid, Manifest) {
    let mut stages = Vec::new();
    for shard in shards {
        let mut constants = Vec::new();
        for constant in shard.constants.iter() {
            constants.push(store.put(constant.to_bytes().into()).await.unwrap().to_string());
        }
        let program = encode("program", &**shard.program).unwrap();
        stages.push(StageFiles::Training(TrainingFiles {
            program: store.put(program).await.unwrap().to_string(),
            state: store.put(files::join(shard.initial_state.iter()).into()).await.unwrap().to_string(),
            constants,
            notes: store.put(encode("notes", &shard.info).unwrap()).await.unwrap().to_string(),
        }));
    }
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        name: "test".into(),
        stages,
        bounds: shards.first().map(|shard| shard.bounds).unwrap_or_default(),
    };
    (store.put(serde_json::to_vec(&manifest).unwrap().into()).await.unwrap(), manifest)
}
