//! Files in memory.

use std::collections::{BTreeSet, HashMap};
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

/// Files by the Keccak hash of their content. All nodes of a test share them: what one lets go of, others have still.
pub struct MemoryStore {
    files: Arc<Mutex<Files>>,
    owner: Owner,
}

#[derive(Default)]
struct Files {
    here: HashMap<Cid, Bytes>,
    /// With peers.
    elsewhere: HashMap<Cid, Bytes>,
    /// Who owns what is here, but for the nodes themselves, of which each is every other.
    owners: HashMap<Cid, BTreeSet<Owner>>,
    /// Bytes that owners may still add; none for any number.
    room: Option<u64>,
}

impl Files {
    fn own(&mut self, cid: Cid, owner: Owner) {
        if owner.keeps() && owner != Owner::Node {
            self.owners.entry(cid).or_default().insert(owner);
        }
    }

    fn disown(&mut self, cid: &Cid, owner: Owner) {
        let owners = self.owners.entry(*cid).or_default();
        let had = owners.remove(&owner) || owner == Owner::Node || !owner.keeps();
        if had && owners.is_empty() {
            self.move_away(cid);
        }
    }

    fn move_away(&mut self, cid: &Cid) {
        self.owners.remove(cid);
        let dropped = self.here.remove(cid);
        self.elsewhere.extend(dropped.map(|content| (*cid, content)));
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self { files: Arc::default(), owner: Owner::Node }
    }
}

fn cid_of(content: &[u8]) -> Cid {
    let hash = Multihash::<64>::wrap(0x1b, keccak256(content).as_slice()).unwrap();
    Cid::new_v1(0x55, hash)
}

impl MemoryStore {
    /// A file that peers have.
    pub fn elsewhere(&self, content: Bytes) -> Cid {
        let cid = cid_of(&content);
        self.files.lock().unwrap().elsewhere.insert(cid, content);
        cid
    }

    /// Leaves owners so much room, bytes.
    pub fn leave_room(&self, bytes: u64) {
        self.files.lock().unwrap().room = Some(bytes);
    }

    /// Who owns a file.
    pub fn owners_of(&self, cid: &Cid) -> Vec<Owner> {
        self.files.lock().unwrap().owners.get(cid).into_iter().flatten().copied().collect()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn of(&self, owner: Owner) -> Arc<dyn Store> {
        Arc::new(Self { files: self.files.clone(), owner })
    }

    async fn put(&self, content: Bytes) -> Result<Cid, StoreError> {
        let cid = cid_of(&content);
        let mut files = self.files.lock().unwrap();
        files.here.insert(cid, content);
        files.own(cid, self.owner);
        Ok(cid)
    }

    async fn get(&self, cid: &Cid, _: &[Address], limit: u64) -> Result<Bytes, StoreError> {
        let mut files = self.files.lock().unwrap();
        let content = files.here.get(cid).or_else(|| files.elsewhere.get(cid)).cloned();
        let content = content.ok_or(StoreError::NotFound(*cid))?;
        if content.len() as u64 > limit {
            return Err(StoreError::TooLarge { cid: *cid, limit });
        }
        files.here.insert(*cid, content.clone());
        files.own(*cid, self.owner);
        Ok(content)
    }

    async fn has(&self, cid: &Cid) -> Result<bool, StoreError> {
        Ok(self.files.lock().unwrap().here.contains_key(cid))
    }

    async fn own(&self, cid: &Cid) -> Result<bool, StoreError> {
        let mut files = self.files.lock().unwrap();
        let here = files.here.contains_key(cid);
        if here {
            files.own(*cid, self.owner);
        }
        Ok(here)
    }

    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError> {
        self.files.lock().unwrap().disown(cid, self.owner);
        Ok(())
    }

    async fn release(&self) -> Result<(), StoreError> {
        let mut files = self.files.lock().unwrap();
        let own = files.owners.iter().filter(|(_, owners)| owners.contains(&self.owner)).map(|(cid, _)| *cid);
        for cid in own.collect::<Vec<_>>() {
            files.disown(&cid, self.owner);
        }
        Ok(())
    }

    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        let files = self.files.lock().unwrap();
        let owners: BTreeSet<Owner> = files.owners.values().flatten().copied().collect();
        Ok(owners.into_iter().collect())
    }

    async fn room(&self) -> Result<u64, StoreError> {
        Ok(self.files.lock().unwrap().room.unwrap_or(u64::MAX))
    }
}

/// Puts the shards' files into a store; their manifest.
pub async fn publish(store: &MemoryStore, shards: &[Arc<Shard>]) -> (Cid, Manifest) {
    publish_to(store, shards).await
}

/// The same with any store.
pub async fn publish_to(store: &dyn Store, shards: &[Arc<Shard>]) -> (Cid, Manifest) {
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
