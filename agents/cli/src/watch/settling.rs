//! Jobs are moved towards their settlement, and what that brings is fetched.

use std::collections::BTreeMap;

use anyhow::Result;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_types::JobId;
use tensorlink_user::User;

use super::balance::Balance;
use super::losses::Past;
use super::summary::Given;
use super::{PERIOD, patiently};
use crate::live::say;
use crate::node::Node;
use crate::report::Report;

/// Moves a job towards its settlement, and fetches what that brings; whether it is settled. Not only once: until that
/// is confirmed a reorganisation may undo it.
pub async fn wind_up(node: &Node, user: &User, view: &JobView) -> Result<bool, ChainError> {
    match user.wind_up(view.id).await {
        Ok(settled) => {
            if settled {
                collect(node, view).await;
            }
            return Ok(settled);
        }
        // The endpoint is down for a while, a transaction is late, or the day's gas is spent: the next look tells more.
        Err(error @ (ChainError::Unavailable(_) | ChainError::Pending(_) | ChainError::OverBudget { .. })) => {
            tracing::warn!(job = %view.id, %error, "the job waits for the chain");
        }
        Err(error) => return Err(error),
    }
    Ok(false)
}

/// Closes a job that still runs.
pub async fn close(node: &Node, job: JobId) -> Result<(), ChainError> {
    let chain = &node.ports.chain;
    if chain.job(job).await?.is_none_or(|view| view.state != JobState::Running) {
        return Ok(());
    }
    match chain.send(Call::Cancel { job }).await {
        // Refused where it was closed just now.
        Ok(_) | Err(ChainError::Reverted { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Fetches what came back.
pub(super) async fn collect(node: &Node, view: &JobView) {
    let own = node.ports.identity.address();
    let tokens = [view.token, node.ports.chain.deployment().sno];
    for token in tokens.iter().take(if tokens[0] == tokens[1] { 1 } else { 2 }) {
        let result = async {
            if !node.ports.chain.credit(own, *token).await?.is_zero() {
                node.ports.chain.send(Call::Collect { token: *token }).await?;
            }
            Ok::<(), ChainError>(())
        };
        if let Err(error) = result.await {
            say!("not collected ({error}); `tensorlink withdraw` does it later");
        }
    }
}

/// What jobs before came to, once they are settled.
pub(super) async fn given((node, user): (&Node, &User), before: &mut [Past]) -> Result<Vec<Given>> {
    let mut given = Vec::new();
    for past in before {
        while !past.settled {
            past.settled = wind_up(node, user, &past.view).await?;
            if !past.settled {
                tokio::time::sleep(PERIOD).await;
            }
        }
        let report = Balance::new(past.view.id, user).settled().await?;
        let Report { paid, convictions, refund, .. } = report;
        let (job, intervals, loss) = (past.view.id, past.taken, past.loss.clone());
        given.push(Given { job, intervals, loss, paid, convictions, refund });
    }
    Ok(given)
}

/// Gas of one transaction of each kind; also completes the convictions with theirs.
pub(super) async fn gas(node: &Node, report: &mut Report) -> Result<BTreeMap<&'static str, u64>> {
    let mut gas = BTreeMap::new();
    for (what, transaction) in &report.samples {
        if let Some(mined) = patiently(async || node.ports.chain.mined(*transaction).await).await? {
            gas.insert(*what, mined.gas);
        }
    }
    for conviction in &mut report.convictions {
        let mined = patiently(async || node.ports.chain.mined(conviction.transaction).await).await?;
        conviction.gas = mined.map(|mined| mined.gas);
    }
    Ok(gas)
}
