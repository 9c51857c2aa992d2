//! The components of a worker, each with what it needs of the others.

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::Keeper;
use tensorlink_node::ports::chain::Parameters;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::custody::Wards;
use crate::evidence::{AuditAnswers, Auditors, Challenges, Demands, OwnClaims, Replays, Withheld};
use crate::hiring::Hiring;
use crate::hiring::promises::Promises;
use crate::keeping::{Files, Lost, Past, Payout, Records, Shards};
use crate::requests::Requests;
use crate::serving::Serving;
use crate::state::{Jobs, Lanes};
use crate::training::Training;

/// What was read before there is a worker.
pub(crate) struct Read {
    pub(crate) keeper: Keeper,
    pub(crate) promises: Promises,
    pub(crate) past: Past,
    /// Of the deployment.
    pub(crate) parameters: Parameters,
}

/// What a worker consists of.
pub(crate) struct Components<E> {
    pub(crate) context: Arc<Context<E>>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) jobs: Arc<Jobs>,
    /// States of others that we keep.
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) hiring: Arc<Hiring<E>>,
    pub(crate) files: Arc<Files>,
    pub(crate) shards: Arc<Shards<E>>,
    pub(crate) records: Records,
    pub(crate) lost: Lost,
    pub(crate) payout: Arc<Payout>,
    pub(crate) wards: Arc<Wards>,
    pub(crate) serving: Arc<Serving<E>>,
    pub(crate) challenges: Arc<Challenges<E>>,
    pub(crate) auditors: Arc<Auditors<E>>,
    pub(crate) withheld: Arc<Withheld>,
    pub(crate) demands: Arc<Demands<E>>,
    pub(crate) training: Arc<Training<E>>,
    pub(crate) requests: Arc<Requests<E>>,
}

impl<E> Components<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Of a worker that `end` stops.
    pub(crate) fn new(context: Arc<Context<E>>, read: Read, end: CancellationToken) -> Self {
        let Read { keeper, promises, past, parameters } = read;
        let (keeper, promises) = (Arc::new(keeper), Arc::new(promises));
        let (lanes, jobs) = (Arc::new(Lanes::new(end)), Arc::new(Jobs::default()));
        let ports = context.ports.clone();

        let hiring = Arc::new(Hiring::new(context.clone(), lanes.clone(), jobs.clone(), promises.clone()));
        let files = Arc::new(Files::new(ports.clone(), lanes.clone()));
        let shards = Arc::new(Shards::new(context.clone(), lanes.clone(), promises.clone(), files.clone()));
        let records = Records::new(ports.clone(), lanes.clone(), past, keeper.clone());
        let payout = Arc::new(Payout::new(ports.clone(), lanes.clone()));
        let wards = Arc::new(Wards::new(ports.clone(), lanes.clone(), jobs.clone(), files.clone(), keeper.clone()));
        let serving =
            Serving::new(context.clone(), lanes.clone(), jobs.clone(), promises, files.clone(), payout.clone());
        let serving = Arc::new(serving);

        let claims = Arc::new(OwnClaims::new(context.clone(), lanes.clone(), shards.clone(), serving.clone()));
        let replays = Arc::new(Replays::new(context.clone()));
        let challenges = Arc::new(Challenges::new(context.clone(), claims.clone(), replays.clone()));
        let auditors = Arc::new(Auditors::new(
            context.clone(),
            parameters,
            lanes.clone(),
            jobs.clone(),
            serving.clone(),
            claims.clone(),
            replays.clone(),
        ));
        let withheld = Arc::new(Withheld::new(ports.clone(), lanes.clone()));
        let demands = Arc::new(Demands::new(
            context.clone(),
            lanes.clone(),
            keeper.clone(),
            shards.clone(),
            claims.clone(),
            replays.clone(),
            withheld.clone(),
        ));
        let audits = AuditAnswers::new(context.clone(), claims.clone(), replays, auditors.clone());

        let training = Arc::new(Training::new(
            context.clone(),
            lanes.clone(),
            shards.clone(),
            files.clone(),
            payout.clone(),
            keeper.clone(),
            withheld.clone(),
        ));
        let requests = Arc::new(Requests::new(hiring.clone(), serving.clone(), wards.clone(), claims, audits));
        Self {
            lost: Lost::new(ports),
            context,
            lanes,
            jobs,
            keeper,
            hiring,
            files,
            shards,
            records,
            payout,
            wards,
            serving,
            challenges,
            auditors,
            withheld,
            demands,
            training,
            requests,
        }
    }
}
