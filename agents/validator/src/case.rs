//! What the chain knows of a claim, which proofs rest on.

use tensorlink_node::Ports;
use tensorlink_node::ports::chain::JobView;
use tensorlink_proof::fraud::{Case, Work};
use tensorlink_types::Address;

use crate::finding::{Failed, fatal};
use crate::target::{Standing, Target};

/// What the chain knows about a claim.
pub(crate) async fn case(ports: &Ports, target: &Target, job: &JobView, worker: Address) -> Result<Case, Failed> {
    let chain = &ports.chain;
    let lane = target.claim.lane();
    let program = chain.program_root(lane.job, lane.stage).await.map_err(fatal)?;
    let work = match target.standing {
        Standing::Committed { .. } => Work::Training {
            steps_per_interval: job.steps_per_interval,
            program,
            record: chain.record(lane, target.claim.interval).await.map_err(fatal)?,
        },
        Standing::Receipt => Work::Serving { longest: job.steps_per_interval, programs: program },
    };
    Ok(Case { contracts: ports.contracts, worker, lineage: job.lineage, work })
}
