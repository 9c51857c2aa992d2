//! One dispute with everything that has to be asked for: what its transactions cost, and what the proof shows.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use tensorlink_node::ports::chain::Mined;
use tensorlink_node::ports::{Chain, Clock, SystemClock};
use tensorlink_types::{B256, ClaimId, Lane};

use super::facts::{Cost, Dispute, Sent};
use super::{Docket, found};
use crate::amount::Wei;

/// Transactions asked for at once.
const AT_ONCE: usize = 8;

/// Which dispute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// A challenge, by its number.
    Challenge(u64),
    /// Everything about a claim, by its id.
    Claim(ClaimId),
    /// Everything about the claim of an interval of a lane.
    Of(Lane, u32),
}

/// Reads all disputes; also returns the time that counts as now.
pub async fn docket(chain: &dyn Chain) -> Result<(Docket, u64)> {
    let (head, parameters) = (chain.head().await?, chain.parameters().await?);
    let events = chain.past_events(chain.deployment().block, head.number).await?;
    // The next block is not older than the machine's time, give or take seconds.
    let now = head.timestamp.max(SystemClock.now());
    let mut docket = Docket::read(&events, parameters, (head.number, now));
    for (_, mined) in mined(chain, docket.unknown()).await? {
        if let Some((id, claim)) = mined.proof.as_ref().and_then(found::claim) {
            docket.adopt(id, claim.clone());
        }
    }
    Ok((docket, now))
}

/// One dispute, and the proof that convicted, if there is one that can be read.
pub async fn dispute(
    chain: &dyn Chain,
    (docket, now): (&Docket, u64),
    which: Which,
) -> Result<(Dispute, Option<tensorlink_node::ports::Call>)> {
    let mut dispute = find(docket, now, which)?;
    let hashes = sent(&mut dispute).map(|sent| sent.transaction).collect();
    let mut mined = mined(chain, hashes).await?;
    for sent in sent(&mut dispute) {
        sent.cost = mined.get(&sent.transaction).map(|mined| Cost {
            sender: mined.sender,
            gas: mined.gas,
            fee: Wei(mined.fee),
        });
    }
    let Dispute { conviction, claimed, .. } = &mut dispute;
    let Some(conviction) = conviction else { return Ok((dispute, None)) };
    // A transaction that brings a proof itself convicts once.
    let proof = mined.remove(&conviction.sent.transaction).and_then(|mined| mined.proof);
    if let (Some(proof), Some(terms)) = (&proof, &claimed.terms) {
        conviction.found = found::read(proof, conviction, terms);
    }
    Ok((dispute, proof))
}

fn find(docket: &Docket, now: u64, which: Which) -> Result<Dispute> {
    let all = || docket.challenges();
    let (id, challenges) = match which {
        Which::Challenge(number) => {
            let found = all().find(|(_, challenge)| challenge.number == number);
            let (id, challenge) = found.with_context(|| match all().count() {
                0 => format!("there is no challenge {number}: nobody has challenged anything yet"),
                count => {
                    format!("there is no challenge {number}, only {count} so far: `tensorlink dispute list` shows them")
                }
            })?;
            (id, vec![challenge])
        }
        Which::Claim(id) => (id, all().filter(|(of, _)| *of == id).map(|(_, challenge)| challenge).collect()),
        Which::Of(lane, interval) => {
            ensure!(docket.job(lane.job).is_some(), "there is no job {}: `tensorlink job list` shows all", lane.job);
            let id = docket.claim_of(lane, interval).with_context(|| {
                format!(
                    "{lane} has no confirmed claim for interval {interval}, and no convicted receipt of that number"
                )
            })?;
            (id, all().filter(|(of, _)| *of == id).map(|(_, challenge)| challenge).collect())
        }
    };
    let claimed = docket.claimed(id).with_context(|| {
        format!("there is no claim {id}: `tensorlink dispute list` shows those in dispute, with their ids")
    })?;
    let conviction = docket.conviction(id).cloned();
    if challenges.is_empty() && conviction.is_none() {
        bail!("claim {id} was never challenged, and nothing was proven about it: there is no dispute to show");
    }
    Ok(Dispute { now, claimed, challenges, conviction, nameless: None })
}

/// Every transaction of a dispute.
fn sent(dispute: &mut Dispute) -> impl Iterator<Item = &mut Sent> {
    let moves = dispute.challenges.iter_mut().flat_map(|challenge| &mut challenge.moves);
    let conviction = dispute.conviction.as_mut().map(|conviction| &mut conviction.sent);
    dispute.claimed.committed.iter_mut().chain(moves.map(|step| &mut step.sent)).chain(conviction)
}

/// Transactions by their hashes; those that the endpoint does not remember are left out.
async fn mined(chain: &dyn Chain, mut hashes: Vec<B256>) -> Result<HashMap<B256, Mined>> {
    hashes.sort_unstable();
    hashes.dedup();
    let found =
        stream::iter(hashes).map(|hash| async move { Ok::<_, anyhow::Error>((hash, chain.mined(hash).await?)) });
    let found: Vec<(B256, Option<Mined>)> = found.buffered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().filter_map(|(hash, mined)| Some((hash, mined?))).collect())
}
