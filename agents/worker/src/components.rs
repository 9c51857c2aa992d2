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
        let ports = || context.ports.clone();
        let (keeper, promises) = (Arc::new(keeper), Arc::new(promises));
        let (lanes, jobs) = (Arc::new(Lanes::new(end)), Arc::new(Jobs::default()));
        let both = || (lanes.clone(), jobs.clone());

        let hiring = Arc::new(Hiring::new(context.clone(), both(), promises.clone()));
        let files = Arc::new(Files::new(ports(), lanes.clone()));
        let shards = Shards::new(context.clone(), lanes.clone(), (promises.clone(), files.clone()));
        let shards = Arc::new(shards);
        let records = Records::new(ports(), (lanes.clone(), past), keeper.clone());
        let payout = Arc::new(Payout::new(ports(), lanes.clone()));
        let wards = Arc::new(Wards::new(ports(), both(), (files.clone(), keeper.clone())));
        let serving = Serving::new(context.clone(), both(), (promises, files.clone(), payout.clone()));
        let serving = Arc::new(serving);

        let claims = OwnClaims::new(context.clone(), lanes.clone(), (shards.clone(), serving.clone()));
        let (claims, replays) = (Arc::new(claims), Arc::new(Replays::new(context.clone())));
        let evidence = || (claims.clone(), replays.clone());
        let challenges = Arc::new(Challenges::new(context.clone(), evidence()));
        let known = (lanes.clone(), jobs.clone(), serving.clone());
        let auditors = Arc::new(Auditors::new((context.clone(), parameters), known, evidence()));
        let withheld = Arc::new(Withheld::new(ports(), lanes.clone()));
        let kept = (lanes.clone(), keeper.clone(), shards.clone());
        let shown = (claims.clone(), replays.clone(), withheld.clone());
        let demands = Arc::new(Demands::new(context.clone(), kept, shown));

        let training = Training::new(
            context.clone(),
            (lanes.clone(), shards.clone()),
            (files.clone(), payout.clone()),
            (keeper.clone(), withheld.clone()),
        );
        let audits = AuditAnswers::new(context.clone(), evidence(), auditors.clone());
        let (of_users, of_workers) = ((hiring.clone(), serving.clone()), wards.clone());
        let requests = Requests::new(of_users, of_workers, (claims, audits));
        Self {
            lost: Lost::new(ports()),
            training: Arc::new(training),
            requests: Arc::new(requests),
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
        }
    }
}
