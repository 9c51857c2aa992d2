//! What the parts of a stage are called in its model. Names are for people: no root commits to them, but the manifest's
//! CID does, which the job's terms hold.

use tensorlink_model::Plan;
use tensorlink_proof::commit::program::ProgramCommitment;
use tensorlink_types::{B256, Program};

use crate::blocking;
use crate::ports::Store;
use crate::shard::{ShardError, ShardSource, expect_root};
use crate::wire::manifest::{MAX_MANIFEST, MAX_PLAN, MAX_PROGRAM, Manifest, StageFiles, parse_cid};
use crate::wire::{decode, decode_plan};

/// The program of a stage, with its names, and nothing else of the stage: of a serving job the one for texts of
/// `tokens` tokens. It is the program of this root.
///
/// # Errors
/// [`ShardError`]; only `Store` is worth a retry.
pub async fn program(
    store: &dyn Store,
    source: &ShardSource,
    (tokens, root): (u32, B256),
) -> Result<Program, ShardError> {
    let get = async |cid, limit| store.get(&cid, &source.holders, limit).await;
    let manifest = Manifest::parse(&get(source.manifest, MAX_MANIFEST).await?)?;
    let program = match manifest.stage(source.stage)? {
        StageFiles::Training(files) => decode("program", &get(parse_cid(&files.program)?, MAX_PROGRAM).await?)?,
        StageFiles::Serving(files) => {
            let plan: Plan = decode_plan(&get(parse_cid(&files.plan)?, MAX_PLAN).await?)?;
            blocking(move || plan.program(tokens)).await?.into_inner()
        }
    };
    expect_root("the program", root, ProgramCommitment::new(&program)?.root())?;
    Ok(program)
}
