//! What it takes to serve a stage: one plan, its constants, and the roots of its programs by length (rule C-13), each
//! equal to what the chain registered.

use std::sync::Arc;

use rayon::prelude::*;
use tensorlink_model::{Architecture, Output, Plan, PlanError};
use tensorlink_num::Tensor;
use tensorlink_program::check::{CheckedProgram, MAX_SLOTS};
use tensorlink_proof::commit::program::ProgramCommitment;
use tensorlink_proof::commit::{ProgramList, tensor_root};
use tensorlink_training::StageInfo;
use tensorlink_types::{B256, TensorType, TypeError};

use crate::blocking;
use crate::bounds::Bounds;
use crate::budget::Hold;
use crate::footprint::Footprint;
use crate::memory::give_back;
use crate::ports::{Chain, Store};
use crate::shard::{Room, Shard, ShardError, ShardSource, expect_root};
use crate::wire::decode_plan;
use crate::wire::manifest::{MAX_MANIFEST, MAX_PLAN, Manifest, ManifestError, parse_cid};

/// Most operators of the programs of all lengths together: what a stranger's plan can make us hash, some 5 µs each. A
/// stage of 1,000 operators, or 24 layers, can serve texts of 8,192 tokens.
const MAX_HASHED: u64 = 1 << 23;

/// Most receipts of an epoch.
pub const MAX_RECEIPTS: usize = 1 << 14;

/// Bytes of a constant after which memory is given back.
const LARGE: usize = 1 << 20;

/// A serving stage: its plan, its constants, and its programs' roots.
#[derive(Clone, Debug)]
pub struct ServingShard {
    /// What its programs share.
    pub plan: Arc<Plan>,
    /// Constants in the plan's order.
    pub constants: Arc<[Tensor]>,
    /// Roots of the programs, by length.
    pub programs: Arc<ProgramList>,
    /// Most tokens of a text: the job's steps per interval.
    pub longest: u32,
    /// The memory that it takes, where nobody else holds that for it.
    memory: Option<Arc<Hold>>,
    /// Types of what the stage receives and gives for a text of one token.
    received: TensorType,
    controls: Option<TensorType>,
    given: TensorType,
}

/// What a stage gives for a text, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// A row for each token, which depends on no later token.
    Rows,
    /// A row for each token, which depends on every token.
    RowsOfTheWhole,
    /// One row.
    One,
}

impl ServingShard {
    /// A stage that serves texts of up to `longest` tokens. Emits and hashes the programs of every length, on all
    /// cores: blocks.
    ///
    /// # Errors
    /// [`ShardError::Plan`] if a length has no program, [`ShardError::TooLarge`] or [`ShardError::TooLong`].
    pub fn new(plan: Plan, constants: Arc<[Tensor]>, longest: u32) -> Result<Self, ShardError> {
        let (first, programs) = commit(&plan, longest)?;
        let received =
            first.from_previous.first().cloned().ok_or(PlanError::Unsupported("a stage that receives nothing"))?;
        let controls = first.from_next.first().cloned();
        let last = first.to_next.first().and_then(|index| first.operators.get(*index as usize));
        let given = last.map(|last| last.output.clone()).ok_or(PlanError::Unsupported("a stage that gives nothing"))?;
        let (plan, programs) = (Arc::new(plan), Arc::new(programs));
        Ok(Self { plan, constants, programs, longest, memory: None, received, controls, given })
    }

    /// Fetches and checks a stage for texts of up to `longest` tokens, once `room` has given what it needs.
    ///
    /// # Errors
    /// [`ShardError`]; only `Chain` and `Store` are worth a retry.
    pub async fn fetch(
        chain: &dyn Chain,
        store: &dyn Store,
        source: &ShardSource,
        (longest, room): (u32, &dyn Room),
    ) -> Result<Self, ShardError> {
        let get = async |cid, limit| store.get(&cid, &source.holders, limit).await;
        let manifest = Manifest::parse(&get(source.manifest, MAX_MANIFEST).await?)?;
        let files = manifest.serving(source.stage)?;
        let plan: Plan = decode_plan(&get(parse_cid(&files.plan)?, MAX_PLAN).await?)?;
        let memory = room.take(needs(&plan, longest)?).await?.map(Arc::new);
        if files.constants.len() != plan.constants().len() {
            let reason = format!("{} constants for {} slots", files.constants.len(), plan.constants().len());
            return Err(ManifestError::Malformed(reason).into());
        }
        let registered = chain.program_root(source.job, source.stage).await?;
        let mut shard = blocking(move || Self::new(plan, [].into(), longest)).await?;
        expect_root("the list of programs by length", registered, shard.programs.root())?;

        let mut constants = Vec::with_capacity(files.constants.len());
        for (slot, cid) in shard.plan.constants().iter().zip(&files.constants) {
            let what = format!("constant {:?}", slot.name);
            let bytes = get(parse_cid(cid)?, slot.ty.byte_len()).await?;
            let tensor = Tensor::from_bytes(slot.ty.clone(), &bytes)
                .map_err(|e| ShardError::File { what: what.clone(), source: e.into() })?;
            expect_root(&what, slot.root.0, tensor_root(&tensor).0)?;
            constants.push(tensor);
            let large = bytes.len() >= LARGE;
            drop(bytes);
            // While they come, so that what is held at most is little more than the constants.
            if large {
                give_back();
            }
        }
        (shard.constants, shard.memory) = (constants.into(), memory);
        Ok(shard)
    }

    /// The ordinary shard of one length, without state: a replay of it with `Span { first_step: tokens, steps: 1 }`
    /// repeats a text.
    ///
    /// # Errors
    /// [`PlanError::Tokens`] for no tokens, or more than the longest text has.
    pub fn shard(&self, tokens: u32) -> Result<Shard, PlanError> {
        Ok(Shard {
            program: Arc::new(self.program(tokens)?),
            constants: self.constants.clone(),
            initial_state: [].into(),
            info: StageInfo::default(),
            bounds: Bounds::default(),
            memory: self.memory.clone(),
        })
    }

    /// The program for texts of `tokens` tokens.
    ///
    /// # Errors
    /// [`PlanError::Tokens`] for no tokens, or more than the longest text has.
    pub fn program(&self, tokens: u32) -> Result<CheckedProgram, PlanError> {
        if tokens > self.longest {
            return Err(PlanError::Tokens { tokens, context: self.longest });
        }
        self.plan.program(tokens)
    }

    /// What the stage gives for a text.
    pub fn gives(&self) -> Gives {
        let Architecture { layers, causal, output, .. } = *self.plan.architecture();
        let last = self.plan.layers().end == layers;
        match output {
            Output::Embedding(_) | Output::Classes(_) if last => Gives::One,
            _ if causal => Gives::Rows,
            _ => Gives::RowsOfTheWhole,
        }
    }

    /// Whether a text can go on token by token: keys and values of a decoder's tokens stay as they are.
    pub fn goes_on(&self) -> bool {
        self.plan.goes_on()
    }

    /// Type of what the stage receives for a text from the previous stage, or of its token numbers.
    ///
    /// # Errors
    /// [`TypeError`] for no tokens, or too many for any tensor.
    pub fn received(&self, tokens: u32) -> Result<TensorType, TypeError> {
        rows(&self.received, tokens)
    }

    /// Type of the controls of a text, as from the next stage; none unless the stage chooses tokens.
    ///
    /// # Errors
    /// [`TypeError`] for no tokens, or too many for any tensor.
    pub fn controls(&self, tokens: u32) -> Result<Option<TensorType>, TypeError> {
        self.controls.as_ref().map(|one| rows(one, tokens)).transpose()
    }

    /// Bytes of all that the stage receives for a text: of the record of it, first what it receives, then the controls.
    ///
    /// # Errors
    /// [`TypeError`] for no tokens, or too many for any tensor.
    pub fn recorded(&self, tokens: u32) -> Result<u64, TypeError> {
        let controls = self.controls(tokens)?.map_or(0, |controls| controls.byte_len());
        Ok(self.received(tokens)?.byte_len().saturating_add(controls))
    }

    /// Type of what the stage gives for a text.
    ///
    /// # Errors
    /// [`TypeError`] for no tokens, or too many for any tensor.
    pub fn given(&self, tokens: u32) -> Result<TensorType, TypeError> {
        if self.gives() == Gives::One { Ok(self.given.clone()) } else { rows(&self.given, tokens) }
    }
}

/// The root that a serving stage registers, and nothing else of it: for who writes the job's terms. Blocks.
///
/// # Errors
/// As [`ServingShard::new`].
pub fn programs_root(plan: &Plan, longest: u32) -> Result<B256, ShardError> {
    Ok(commit(plan, longest)?.1.root())
}

/// The program of one token, and the roots of all.
fn commit(plan: &Plan, longest: u32) -> Result<(CheckedProgram, ProgramList), ShardError> {
    let context = plan.architecture().context;
    if !(1..=context).contains(&longest) {
        return Err(PlanError::Tokens { tokens: longest, context }.into());
    }
    // Before anything is done for each length: the shortest program has as many operators as any other.
    let first = plan.program(1)?;
    let operators = (first.operators.len() as u64).saturating_mul(longest.into());
    if operators > MAX_HASHED {
        return Err(ShardError::TooLong { longest, operators });
    }
    let root = |tokens| -> Result<B256, ShardError> {
        let program = plan.program(tokens)?;
        Ok(ProgramCommitment::new(&program)?.root())
    };
    let roots: Result<Vec<B256>, ShardError> = (1..=longest).into_par_iter().map(root).collect();
    Ok((first, ProgramList::new(roots?)))
}

/// What a stage needs by a stranger's plan, checked before anything of its size is done.
fn needs(plan: &Plan, longest: u32) -> Result<Footprint, ShardError> {
    let count = plan.constants().len() as u64;
    if count > MAX_SLOTS as u64 {
        let limit = MAX_SLOTS as u64;
        return Err(
            PlanError::from(tensorlink_program::ProgramError::TooMany { what: "constants", count, limit }).into()
        );
    }
    Ok(Footprint::serving(plan, longest)?)
}

/// The type of `tokens` rows of what one token has.
fn rows(one: &TensorType, tokens: u32) -> Result<TensorType, TypeError> {
    let mut dims = one.dims().to_vec();
    if let Some(first) = dims.first_mut() {
        *first = tokens;
    }
    TensorType::new(one.bits(), one.exponent(), &dims)
}
