//! What it takes to run a stage, fetched by CID and checked against what the chain registered.

mod room;

use std::sync::Arc;

use bytes::Bytes;
use cid::Cid;
use tensorlink_model::PlanError;
use tensorlink_num::Tensor;
use tensorlink_program::check::{CheckedProgram, ProgramError};
use tensorlink_proof::commit::program::{ProgramCommitment, ProgramTooLarge};
use tensorlink_proof::commit::{state_root, tensor_root};
use tensorlink_training::StageInfo;
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{Address, B256, JobId, Program};
use thiserror::Error;

pub use self::room::Room;
use crate::bounds::Bounds;
use crate::budget::Hold;
use crate::files::{FileError, file_len, split};
use crate::footprint::Footprint;
use crate::ports::{Chain, ChainError, Store, StoreError};
use crate::wire::manifest::{MAX_MANIFEST, MAX_PROGRAM, Manifest, ManifestError, TrainingFiles, parse_cid};
use crate::wire::{Malformed, decode};

/// A stage's program, constants and initial state, each equal to what the chain registered.
#[derive(Clone, Debug)]
pub struct Shard {
    /// The checked program.
    pub program: Arc<CheckedProgram>,
    /// Constants in the program's order.
    pub constants: Arc<[Tensor]>,
    /// State before step 0.
    pub initial_state: Arc<[Tensor]>,
    /// The compiler's notes, for progress reports.
    pub info: StageInfo,
    /// What the job's training may not exceed, by its user's word.
    pub bounds: Bounds,
    /// The memory that it takes, where nobody else holds that for it.
    pub memory: Option<Arc<Hold>>,
}

/// Why a shard cannot be used.
#[derive(Debug, Error)]
pub enum ShardError {
    /// The chain could not be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A file could not be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The manifest is unusable.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The program file is not a program.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The program breaks a rule; nobody can be paid for it.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The plan gives no program of some length; nobody can be paid for it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The programs of all lengths are too many to be hashed.
    #[error(
        "the programs of texts of up to {longest} tokens have {operators} operators, too many to check: serve shorter texts, or fewer layers in a stage"
    )]
    TooLong {
        /// Most tokens of a text.
        longest: u32,
        /// Operators of all programs together.
        operators: u64,
    },
    /// The program is too large to be committed.
    #[error(transparent)]
    TooLarge(#[from] ProgramTooLarge),
    /// A file does not hold the tensors that the program names.
    #[error("{what}: {source}")]
    File {
        /// Which file.
        what: String,
        /// What is wrong.
        source: FileError,
    },
    /// A file is not the one that was registered.
    #[error("{what} has root {actual}, {expected} is registered")]
    Root {
        /// Which file.
        what: String,
        /// Registered root.
        expected: B256,
        /// Root of what was fetched.
        actual: B256,
    },
    /// The shard needs more memory than this node has left.
    #[error("the shard needs {needed} bytes of memory, this node has {left} left of the {limit} that it lends")]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes that nothing else needs.
        left: u64,
        /// Bytes lent.
        limit: u64,
    },
}

/// Where a shard's files are.
#[derive(Clone, Debug)]
pub struct ShardSource {
    /// The job.
    pub job: JobId,
    /// The stage.
    pub stage: u16,
    /// CID of the job's manifest.
    pub manifest: Cid,
    /// Who may hold the files.
    pub holders: Vec<Address>,
}

impl Shard {
    /// Fetches and checks a shard, of a job with so many steps in an interval, once `room` has given what it needs.
    ///
    /// # Errors
    /// [`ShardError`]; only `Chain` and `Store` are worth a retry.
    pub async fn fetch(
        chain: &dyn Chain,
        store: &dyn Store,
        source: &ShardSource,
        (steps, room): (u32, &dyn Room),
    ) -> Result<Self, ShardError> {
        let files = Files { chain, store, source };
        let Named { names, program, bounds } = files.program().await?;
        let memory = room.take(Footprint::training(&program, steps)).await?.map(Arc::new);
        let initial_state = files.initial_state(&names, &program).await?;
        let mut constants = Vec::with_capacity(program.constants.len());
        for (slot, cid) in program.constants.iter().zip(&names.constants) {
            constants.push(files.constant(slot, cid).await?);
        }
        let info = decode("stage notes", &files.get(&names.notes, MAX_MANIFEST).await?)?;
        let (program, constants, initial_state) = (Arc::new(program), constants.into(), initial_state.into());
        Ok(Self { program, constants, initial_state, info, bounds, memory })
    }

    /// Fetches and checks the files of a shard, one after another, for who wants to give them to others: it has them
    /// afterwards, and none of them in memory.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub async fn store(chain: &dyn Chain, store: &dyn Store, source: &ShardSource) -> Result<(), ShardError> {
        let files = Files { chain, store, source };
        let Named { names, program, .. } = files.program().await?;
        files.initial_state(&names, &program).await?;
        for (slot, cid) in program.constants.iter().zip(&names.constants) {
            files.constant(slot, cid).await?;
        }
        files.get(&names.notes, MAX_MANIFEST).await?;
        Ok(())
    }
}

/// Bytes of the files of a stage's state and constants.
pub fn bytes(program: &Program) -> u64 {
    file_len(program.state.iter().map(|slot| &slot.ty).chain(program.constants.iter().map(|slot| &slot.ty)))
}

/// The files of a stage, each fetched and checked on its own.
struct Files<'a> {
    chain: &'a dyn Chain,
    store: &'a dyn Store,
    source: &'a ShardSource,
}

/// What a stage's files are called, its program, and what bounds its training.
struct Named {
    names: TrainingFiles,
    program: CheckedProgram,
    bounds: Bounds,
}

impl Files<'_> {
    async fn get(&self, cid: &str, limit: u64) -> Result<Bytes, ShardError> {
        Ok(self.store.get(&parse_cid(cid)?, &self.source.holders, limit).await?)
    }

    async fn program(&self) -> Result<Named, ShardError> {
        let manifest = self.store.get(&self.source.manifest, &self.source.holders, MAX_MANIFEST).await?;
        let manifest = Manifest::parse(&manifest)?;
        let (files, bounds) = (manifest.training(self.source.stage)?.clone(), manifest.bounds);
        let program: Program = decode("program", &self.get(&files.program, MAX_PROGRAM).await?)?;
        let registered = self.chain.program_root(self.source.job, self.source.stage).await?;
        expect_root("the program", registered, ProgramCommitment::new(&program)?.root())?;
        let program = CheckedProgram::new(program)?;
        if files.constants.len() != program.constants.len() {
            let reason = format!("{} constants for {} slots", files.constants.len(), program.constants.len());
            return Err(ManifestError::Malformed(reason).into());
        }
        Ok(Named { names: files, program, bounds })
    }

    async fn initial_state(&self, files: &TrainingFiles, program: &CheckedProgram) -> Result<Vec<Tensor>, ShardError> {
        let types = || program.state.iter().map(|slot| &slot.ty);
        let bytes = self.get(&files.state, file_len(types())).await?;
        let state =
            split(&bytes, types()).map_err(|source| ShardError::File { what: "the initial state".into(), source })?;
        let registered = self.chain.initial_state(self.source.job, self.source.stage).await?;
        let roots: Vec<_> = state.iter().map(tensor_root).collect();
        expect_root("the initial state", registered, state_root(&roots))?;
        Ok(state)
    }

    async fn constant(&self, slot: &ConstantSlot, cid: &str) -> Result<Tensor, ShardError> {
        let what = format!("constant {:?}", slot.name);
        let bytes = self.get(cid, slot.ty.byte_len()).await?;
        let tensor = Tensor::from_bytes(slot.ty.clone(), &bytes)
            .map_err(|e| ShardError::File { what: what.clone(), source: e.into() })?;
        expect_root(&what, slot.root.0, tensor_root(&tensor).0)?;
        Ok(tensor)
    }
}

pub(crate) fn expect_root(what: &str, expected: B256, actual: B256) -> Result<(), ShardError> {
    if expected == actual { Ok(()) } else { Err(ShardError::Root { what: what.to_owned(), expected, actual }) }
}
