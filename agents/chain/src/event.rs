//! Logs of the contracts as the events of the port.

use alloy::primitives::Log;
use alloy::sol_types::SolEventInterface;
use tensorlink_bindings::audits::Audits::AuditsEvents as Audits;
use tensorlink_bindings::challenges::Challenges::ChallengesEvents as Challenges;
use tensorlink_bindings::channels::Channels::ChannelsEvents as Channels;
use tensorlink_bindings::checkpoints::Checkpoints::CheckpointsEvents as Checkpoints;
use tensorlink_bindings::custody::Custody::CustodyEvents as Custody;
use tensorlink_bindings::disputes::Disputes::DisputesEvents as Disputes;
use tensorlink_bindings::jobs::Jobs::JobsEvents as Jobs;
use tensorlink_bindings::staking::Staking::StakingEvents as Staking;
use tensorlink_node::ports::chain::{Deployment, Event, Fault, Role};
use tensorlink_types::{JobId, Lane};

use crate::challenge;
use crate::convert::recode;

/// A log that one of our contracts cannot have written: the endpoint talks nonsense, or the deployment file
/// names others.
pub type NotOurs = alloy::sol_types::Error;

/// What a log says; none if it is nothing that the port has an event for. `timestamp` is its block's.
///
/// # Errors
/// [`NotOurs`].
pub fn decode(deployment: &Deployment, log: &Log, timestamp: u64) -> Result<Option<Event>, NotOurs> {
    let known = |selectors: &[[u8; 32]]| log.topics().first().is_some_and(|topic| selectors.contains(&topic.0));
    if log.address == deployment.jobs && known(Jobs::SELECTORS) {
        jobs(Jobs::decode_log(log)?.data)
    } else if log.address == deployment.checkpoints && known(Checkpoints::SELECTORS) {
        checkpoints(Checkpoints::decode_log(log)?.data, timestamp)
    } else if log.address == deployment.channels && known(Channels::SELECTORS) {
        Ok(channels(&Channels::decode_log(log)?.data))
    } else if log.address == deployment.disputes && known(Disputes::SELECTORS) {
        disputes(Disputes::decode_log(log)?.data)
    } else if log.address == deployment.challenges && known(Challenges::SELECTORS) {
        challenge::event(Challenges::decode_log(log)?.data)
    } else if log.address == deployment.custody && known(Custody::SELECTORS) {
        custody(Custody::decode_log(log)?.data)
    } else if log.address == deployment.audits && known(Audits::SELECTORS) {
        audits(Audits::decode_log(log)?.data)
    } else if log.address == deployment.staking && known(Staking::SELECTORS) {
        staking(Staking::decode_log(log)?.data)
    } else {
        Ok(None)
    }
}

const fn lane(job: u64, stage: u16, replica: u16) -> Lane {
    Lane { job: JobId(job), stage, replica }
}

fn jobs(event: Jobs) -> Result<Option<Event>, NotOurs> {
    Ok(Some(match event {
        Jobs::JobPosted(e) => {
            Event::JobPosted { job: JobId(e.job), user: e.user, deposit: e.deposit, terms: recode(&e.terms)? }
        }
        Jobs::JobAccepted(e) => Event::JobAccepted { job: JobId(e.job), offers: recode(&e.offers)? },
        Jobs::JobStarted(e) => {
            Event::JobStarted { job: JobId(e.job), job_key: e.jobKey.into(), deadline: e.deadline.to() }
        }
        Jobs::JobClosing(e) => Event::JobClosing { job: JobId(e.job), convicted: e.convicted },
        Jobs::JobSettled(e) => Event::JobSettled { job: JobId(e.job), refund: e.refund },
        Jobs::Paid(e) => {
            Event::Paid { lane: lane(e.job, e.stage, e.replica), worker: e.worker, units: e.units, amount: e.amount }
        }
        Jobs::AuditPaid(_) | Jobs::Collected(_) | Jobs::EIP712DomainChanged(_) => return Ok(None),
    }))
}

fn checkpoints(event: Checkpoints, timestamp: u64) -> Result<Option<Event>, NotOurs> {
    Ok(Some(match event {
        Checkpoints::ClaimCommitted(e) => {
            Event::ClaimCommitted { id: e.claimId.into(), claim: recode(&e.claim)?, committed_at: timestamp }
        }
        Checkpoints::ClaimSealed(e) => Event::ClaimSealed {
            lane: lane(e.job, e.stage, e.replica),
            interval: e.interval,
            seal: e.sealedClaim,
            sealed_at: timestamp,
        },
        Checkpoints::ReplicasDiffer(e) => {
            Event::ReplicasDiffer { claim: e.claimId.into(), job: JobId(e.job), stage: e.stage, interval: e.interval }
        }
        Checkpoints::ClaimsFinalized(e) => {
            Event::ClaimsFinalized { lane: lane(e.job, e.stage, e.replica), from: e.from, to: e.to }
        }
        Checkpoints::ClaimsVoided(e) => Event::ClaimsVoided { lane: lane(e.job, e.stage, e.replica), from: e.from },
        Checkpoints::LaneOpened(_) | Checkpoints::EIP712DomainChanged(_) => return Ok(None),
    }))
}

const fn channels(event: &Channels) -> Option<Event> {
    match event {
        Channels::VoucherRedeemed(e) => Some(Event::VoucherRedeemed {
            lane: lane(e.job, e.stage, e.replica),
            epoch: e.epoch,
            tokens: e.tokens,
            receipts: e.receipts,
        }),
        Channels::EIP712DomainChanged(_) => None,
    }
}

fn custody(event: Custody) -> Result<Option<Event>, NotOurs> {
    Ok(Some(match event {
        Custody::Demanded(e) => Event::Demanded { id: e.id, demand: Box::new(recode(&e.demand)?) },
        Custody::Delivered(e) => {
            Event::DemandEnded { id: e.id, shown: Some((e.firstLeaf, e.leaves)), convicted: false }
        }
        Custody::DemandExpired(e) => Event::DemandEnded { id: e.id, shown: None, convicted: e.convicted },
        Custody::WordGiven(e) => Event::AttestationGiven { id: e.id, root: e.root, signature: e.signature },
        Custody::EIP712DomainChanged(_) => return Ok(None),
    }))
}

fn audits(event: Audits) -> Result<Option<Event>, NotOurs> {
    Ok(Some(match event {
        Audits::AuditRevealed(e) => Event::AuditRevealed {
            claim: e.claimId.into(),
            auditor: e.auditor,
            job: JobId(e.job),
            answer: recode(&e.answer)?,
            fee: e.fee,
        },
        Audits::AuditorAccused(e) => Event::AuditorAccused {
            claim: e.claimId.into(),
            auditor: e.auditor,
            statement: recode(&e.statement)?,
            signature: e.signature,
        },
        Audits::AuditorPenalised(e) => Event::AuditorPenalised {
            claim: e.claimId.into(),
            auditor: e.auditor,
            accuser: e.accuser,
            amount: e.amount,
        },
        Audits::AuditorShared(e) => {
            Event::AuditorShared { claim: e.claimId.into(), auditor: e.auditor, job: JobId(e.job), amount: e.amount }
        }
        Audits::AuditSealed(_) => return Ok(None),
    }))
}

fn disputes(event: Disputes) -> Result<Option<Event>, NotOurs> {
    Ok(Some(match event {
        Disputes::Convicted(e) => Event::Convicted {
            lane: Lane { job: JobId(e.job), stage: e.stage, replica: e.replica },
            claim: e.claimId.into(),
            worker: e.worker,
            auditor: e.auditor,
            fault: match e.fault {
                1 => Fault::Element,
                2 => Fault::Wiring,
                3 => Fault::Contradiction,
                4 => Fault::Silence,
                5 => Fault::Equivocation,
                6 => Fault::Withholding,
                _ => return Err(NotOurs::custom("a conviction for no fault")),
            },
            step: e.step,
            operator: e.operatorIndex,
            element: e.element,
            claimed: e.claimed.to_string(),
            recomputed: e.recomputed.to_string(),
        },
        Disputes::EIP712DomainChanged(_) => return Ok(None),
    }))
}

fn staking(event: Staking) -> Result<Option<Event>, NotOurs> {
    Ok(Some(match event {
        Staking::Staked(e) => Event::Staked { account: e.account, role: role(e.role)?, amount: e.amount },
        Staking::UnstakeRequested(e) => Event::UnstakeRequested {
            account: e.account,
            role: role(e.role)?,
            amount: e.amount,
            release_at: e.releaseAt.to(),
        },
        Staking::Withdrawn(e) => Event::StakeWithdrawn { account: e.account, role: role(e.role)?, amount: e.amount },
        Staking::Slashed(e) => Event::Slashed {
            account: e.account,
            amount: e.amount,
            bounty: e.bounty,
            shared: e.shared,
            harm: e.harm,
            burned: e.burned,
        },
        Staking::Locked(_) | Staking::Unlocked(_) | Staking::Penalised(_) | Staking::ValidatorsChanged(_) => {
            return Ok(None);
        }
    }))
}

fn role(number: u8) -> Result<Role, NotOurs> {
    match number {
        1 => Ok(Role::Worker),
        2 => Ok(Role::Validator),
        _ => Err(NotOurs::custom("a stake in no role")),
    }
}
