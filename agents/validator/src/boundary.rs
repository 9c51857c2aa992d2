//! What crossed a claim's boundaries: that its senders signed it, and that they claim what they signed.

use tensorlink_node::Ports;
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_proof::commit::{Boundary, SenderSignatures, edge_log, verify_signer};
use tensorlink_types::abi::{BoundaryLogs, EdgeLog, EquivocationProof};
use tensorlink_types::{B256, Bytes, Lane};

use crate::claims::Claims;
use crate::finding::{Failed, Finding, Gap, fatal};
use crate::records::record;
use crate::target::{Standing, Target};

/// What a worker signed to a neighbour as sent.
pub(crate) struct Attestation<'a> {
    /// Over which boundary of its stage.
    pub(crate) over: Boundary,
    /// Root of the log.
    pub(crate) root: B256,
    /// Its signature.
    pub(crate) signature: &'a Bytes,
}

/// Looks at boundaries.
#[derive(Clone, Copy)]
pub(crate) struct Boundaries<'a> {
    ports: &'a Ports,
    claims: &'a Claims,
}

impl<'a> Boundaries<'a> {
    /// Of claims on record.
    pub(crate) const fn new(ports: &'a Ports, claims: &'a Claims) -> Self {
        Self { ports, claims }
    }

    /// Checks that all that a worker logged as received was signed by who sent it.
    pub(crate) async fn senders_signed(&self, target: &Target, record: &IntervalRecord) -> Result<(), Failed> {
        for boundary in [Boundary::FromPrevious, Boundary::FromNext] {
            if boundary.root(&record.logs).is_zero() {
                continue;
            }
            let unsigned = || Failed::from(Gap::Unsigned(boundary));
            let lane = target.claim.lane();
            let log = edge_log(lane, target.claim.interval, boundary, &record.logs).ok_or_else(unsigned)?;
            let sender = Lane { stage: log.fromStage, ..lane };
            let (sender, _) = self.ports.chain.assignment(sender).await.map_err(fatal)?;
            let signature = record.signatures.at(boundary).ok_or_else(unsigned)?;
            verify_signer(signature, self.ports.contracts.edge_log(&log), sender).map_err(|_| unsigned())?;
        }
        Ok(())
    }

    /// Compares a claim's logs with those of its neighbours for the same interval, where these are on record and can be
    /// had: who signed to a neighbour another log than it claims is found out by either's audit. `held` is what the
    /// claim's worker holds of its senders.
    pub(crate) async fn compare(
        &self,
        target: &Target,
        job: &JobView,
        logs: &BoundaryLogs,
        held: &SenderSignatures,
    ) -> Result<Option<Finding>, Failed> {
        let lane = target.claim.lane();
        for (received, sent) in [(Boundary::FromPrevious, Boundary::ToPrevious), (Boundary::FromNext, Boundary::ToNext)]
        {
            let Some(stage) = received.neighbour(lane.stage).filter(|stage| *stage < job.stages) else { continue };
            let Some(neighbour) = self.claims.beside(target, Lane { stage, ..lane }, target.claim.interval) else {
                continue;
            };
            let (worker, _) = self.ports.chain.assignment(neighbour.claim.lane()).await.map_err(fatal)?;
            let record = match record(self.ports, &neighbour, worker).await {
                Ok(record) => record,
                Err(gap) => {
                    tracing::debug!(%lane, stage, %gap, "a neighbour does not show its logs");
                    continue;
                }
            };
            let (theirs, ours) = (received.opposite(), sent.opposite());
            // Of the neighbour as a sender, what our worker holds; of our worker, what the neighbour holds.
            let by_neighbour =
                held.at(received).map(|signature| (&neighbour, &record.logs, theirs, received.root(logs), signature));
            let by_worker =
                record.signatures.at(ours).map(|signature| (target, logs, sent, ours.root(&record.logs), signature));
            for (sender, claimed, over, root, signature) in by_neighbour.into_iter().chain(by_worker) {
                let found = self.equivocation(sender, claimed, &Attestation { over, root, signature }).await?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// What convicts a sender whose attestation is not what it claims; none if it is, or if the signature is not
    /// its own.
    pub(crate) async fn equivocation(
        &self,
        sender: &Target,
        logs: &BoundaryLogs,
        attestation: &Attestation<'_>,
    ) -> Result<Option<Finding>, Failed> {
        let Standing::Committed { at } = sender.standing else { return Ok(None) };
        let (lane, interval) = (sender.claim.lane(), sender.claim.interval);
        if attestation.over.root(logs) == attestation.root || attestation.root.is_zero() {
            return Ok(None);
        }
        // Who is convicted already is not convicted again.
        if self.ports.chain.lane(lane).await.map_err(fatal)?.void_from.is_some_and(|from| interval >= from) {
            return Ok(None);
        }
        let Some(log) = edge_log(lane, interval, attestation.over, logs) else { return Ok(None) };
        let signed = EdgeLog { root: attestation.root, ..log };
        let (worker, _) = self.ports.chain.assignment(lane).await.map_err(fatal)?;
        if verify_signer(attestation.signature, self.ports.contracts.edge_log(&signed), worker).is_err() {
            return Ok(None);
        }
        let proof = EquivocationProof {
            claim: sender.claim.clone(),
            committedAt: at,
            logs: logs.clone(),
            toNext: attestation.over == Boundary::ToNext,
            root: attestation.root,
            signature: attestation.signature.clone(),
        };
        let fault = format!(
            "{lane}, interval {interval}: what it signed to stage {} as sent is another log than it claims",
            signed.toStage
        );
        Ok(Some(Finding::Wrong { call: Box::new(Call::ProveEquivocation(Box::new(proof))), fault }))
    }
}
