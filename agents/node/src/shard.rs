//! What it takes to run a stage, fetched by CID and checked against what the chain registered.

use std::sync::Arc;

use cid::Cid;
use tensorlink_graph::check::{CheckedProgram, ProgramError};
use tensorlink_graph::compile::StageInfo;
use tensorlink_graph::transformer::PlanError;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::program::{ProgramCommitment, ProgramTooLarge};
use tensorlink_proof::commit::{state_root, tensor_root};
use tensorlink_types::{Address, B256, JobId, Program};
use thiserror::Error;

use crate::files::{FileError, file_len, split};
use crate::ports::{Chain, ChainError, Store, StoreError};
use crate::wire::manifest::{MAX_MANIFEST, MAX_PROGRAM, Manifest, ManifestError, parse_cid};
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
    /// The shard needs more memory than this node lends.
    #[error("the shard needs {needed} bytes, this node lends {limit}")]
    Memory {
        /// Bytes needed.
        needed: u64,
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
    /// Fetches and checks a shard of at most `memory` bytes.
    ///
    /// # Errors
    /// [`ShardError`]; only `Chain` and `Store` are worth a retry.
    pub async fn fetch(
        chain: &dyn Chain,
        store: &dyn Store,
        source: &ShardSource,
        memory: u64,
    ) -> Result<Self, ShardError> {
        let get = async |cid: &Cid, limit| store.get(cid, &source.holders, limit).await;
        let manifest = Manifest::parse(&get(&source.manifest, MAX_MANIFEST).await?)?;
        let files = manifest.training(source.stage)?;

        let program: Program = decode("program", &get(&parse_cid(&files.program)?, MAX_PROGRAM).await?)?;
        let registered = chain.program_root(source.job, source.stage).await?;
        expect_root("the program", registered, ProgramCommitment::new(&program)?.root())?;
        let program = CheckedProgram::new(program)?;

        let state_len = file_len(program.state.iter().map(|slot| &slot.ty));
        let needed = state_len + file_len(program.constants.iter().map(|slot| &slot.ty));
        if needed > memory {
            return Err(ShardError::Memory { needed, limit: memory });
        }
        let bytes = get(&parse_cid(&files.state)?, state_len).await?;
        let initial_state = split(&bytes, program.state.iter().map(|slot| &slot.ty))
            .map_err(|source| ShardError::File { what: "the initial state".into(), source })?;
        let registered = chain.initial_state(source.job, source.stage).await?;
        let roots: Vec<_> = initial_state.iter().map(tensor_root).collect();
        expect_root("the initial state", registered, state_root(&roots))?;

        if files.constants.len() != program.constants.len() {
            let reason = format!("{} constants for {} slots", files.constants.len(), program.constants.len());
            return Err(ManifestError::Malformed(reason).into());
        }
        let mut constants = Vec::with_capacity(program.constants.len());
        for (slot, cid) in program.constants.iter().zip(&files.constants) {
            let what = format!("constant {:?}", slot.name);
            let bytes = get(&parse_cid(cid)?, slot.ty.byte_len()).await?;
            let tensor = Tensor::from_bytes(slot.ty.clone(), &bytes)
                .map_err(|e| ShardError::File { what: what.clone(), source: e.into() })?;
            expect_root(&what, slot.root.0, tensor_root(&tensor).0)?;
            constants.push(tensor);
        }
        let info = decode("stage notes", &get(&parse_cid(&files.notes)?, MAX_MANIFEST).await?)?;
        Ok(Self { program: Arc::new(program), constants: constants.into(), initial_state: initial_state.into(), info })
    }
}

pub(crate) fn expect_root(what: &str, expected: B256, actual: B256) -> Result<(), ShardError> {
    if expected == actual { Ok(()) } else { Err(ShardError::Root { what: what.to_owned(), expected, actual }) }
}
