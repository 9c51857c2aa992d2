//! An auditor, and the claim of a worker that behaves as a test says.

use std::sync::Arc;

use bytes::Bytes;
use tensorlink_node::budget::Budget;
use tensorlink_node::interval::{Outcome, Span, state_root_of};
use tensorlink_node::ports::chain::Parameters;
use tensorlink_node::ports::{Chain, Incoming, Net, Protocol, Store};
use tensorlink_node::replay::{Replay, Roots};
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_node::{Ports, files};
use tensorlink_program::{Engine, EngineError, Reference};
use tensorlink_proof::commit::{Boundary, SenderSignatures, io_root, state_root, trace_root};
use tensorlink_types::abi::{Claim, Holder, StepStatement};
use tensorlink_types::{Address, B256, Opcode, TensorRoot};
use tensorlink_validator::{Answers, Auditor, Standing, Target};

use crate::corrupted::{Corrupted, Deed, Lie};
use crate::support::{
    self, CONTRACTS, Hub, KEY, MemoryChain, MemoryNet, MemoryStore, STEPS, identity, job_view, publish, shards,
};

pub(crate) const INTERVAL: u32 = 1;

/// A lie in one step.
pub(crate) fn liar(step: u32) -> Corrupted<Reference> {
    Corrupted::new(Reference, Lie { step: Some(step), opcode: Opcode::MatMul, deed: Deed::Flip(3) })
}

/// How a worker behaves towards auditors.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Manner {
    Answers,
    Declines,
    /// Declines statements only.
    Withholds,
    /// Shows outputs byte by byte.
    Crumbles,
}

pub(crate) struct World {
    pub(crate) auditor: Auditor<Reference>,
    pub(crate) ports: Ports,
    pub(crate) chain: Arc<MemoryChain>,
    pub(crate) target: Target,
    pub(crate) program: B256,
    _folder: tempfile::TempDir,
}

impl World {
    /// Its auditor anew, of a deployment with these parameters.
    pub(crate) fn restart(&mut self, parameters: Parameters) {
        self.auditor = auditor(&self.ports, parameters, || Ok(Reference));
    }
}

/// An auditor of these ports, one audit at a time.
pub(crate) fn auditor(
    ports: &Ports,
    parameters: Parameters,
    make: impl Fn() -> Result<Reference, EngineError> + Send + Sync + 'static,
) -> Auditor<Reference> {
    let answers = Answers::open(ports.journal.clone(), parameters).unwrap();
    Auditor::new(ports.clone(), answers, make, Budget::new(1 << 30), 1)
}

pub(crate) async fn world(engine: impl Engine + Clone + Send + Sync + 'static, manner: Manner) -> World {
    let shards = shards(1);
    let worker = identity(1).address();
    let store = Arc::new(MemoryStore::default());
    let (manifest, _) = publish(&store, &shards).await;
    let chain = MemoryChain::new(job_view(1, 3), &[worker], &shards);
    let shard = shards[0].clone();

    let span = Span { first_step: INTERVAL * STEPS, steps: STEPS };
    let state = shard.initial_state.to_vec();
    let replay = Replay { shard, lineage: KEY.into(), span, state: state.clone(), inputs: Bytes::new() };
    let outcome = replay.outcome(engine.clone()).unwrap();
    let claim = Claim {
        job: 1,
        stage: 0,
        replica: 0,
        interval: INTERVAL,
        parentState: state_root_of(&state),
        newState: outcome.state_root,
        io: io_root(&outcome.logs.roots()),
    };
    chain.with(|l| l.claims.insert((0, INTERVAL), (claim.clone(), 201)));
    let record = IntervalRecord {
        state: store.put(files::join(&state).into()).await.unwrap().to_bytes(),
        inputs: store.put(Bytes::new()).await.unwrap().to_bytes(),
        logs: outcome.logs.roots(),
        signatures: SenderSignatures::default(),
        holder: Holder::default(),
    };
    let hub = Arc::new(Hub::default());
    let net = MemoryNet { own: worker, hub: hub.clone() };
    let mut requests = net.serve(Protocol::Rpc).await.unwrap();
    let standing = Standing::Committed { at: 201 };
    let target = Target { id: CONTRACTS.claim_id(&claim), claim, standing, manifest, listed: None };
    let id = target.id;
    tokio::spawn(async move {
        let roots = replay.roots(engine.clone()).unwrap();
        while let Some(Incoming { peer, body, reply }) = requests.recv().await {
            let question = decode("request", &body).unwrap();
            let mut response = match manner {
                Manner::Declines => Response::Declined("no".into()),
                Manner::Withholds if matches!(question, Request::Statements(_)) => Response::Declined("no".into()),
                _ => answer(&replay, engine.clone(), &roots, (&outcome, &record), (peer, id.0), question),
            };
            if let (Manner::Crumbles, Response::Output(bytes)) = (manner, &mut response) {
                bytes.truncate(1);
            }
            let _ = reply.send(encode("response", &response).unwrap());
        }
    });
    let program = chain.program_root(support::JOB, 0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ports = support::ports(2, chain.clone(), store, hub, folder.path());
    let auditor = auditor(&ports, Parameters::default(), || Ok(Reference));
    World { auditor, ports, chain, target, program, _folder: folder }
}

fn answer(
    replay: &Replay,
    engine: impl Engine,
    roots: &Roots,
    (outcome, record): (&Outcome, &IntervalRecord),
    (auditor, claim): (Address, B256),
    question: Request,
) -> Response {
    let local = |step: u32| (step - INTERVAL * STEPS) as usize;
    let sent = |boundary| {
        let log = outcome.logs.get(boundary);
        log.map(|log| log.items().iter().copied().map(TensorRoot).collect()).unwrap_or_default()
    };
    match question {
        Request::Interval(_) => Response::Interval(record.clone()),
        Request::SentLogs(_) => {
            Response::SentLogs { to_previous: sent(Boundary::ToPrevious), to_next: sent(Boundary::ToNext) }
        }
        Request::Statements(_) => {
            let statement = |n: u32| StepStatement {
                claimId: claim,
                auditor,
                step: INTERVAL * STEPS + n,
                preState: state_root(&roots.states[n as usize]),
                postState: state_root(&roots.states[n as usize + 1]),
                trace: trace_root(&roots.traces[n as usize]),
            };
            let sign = |s: StepStatement| {
                let signature = identity(1).sign(CONTRACTS.statement(&s)).unwrap().to_vec();
                (s, signature)
            };
            Response::Statements((0..STEPS).map(statement).map(sign).collect())
        }
        Request::Trace { step, .. } => Response::Roots(roots.traces[local(step)].clone()),
        Request::State { step, .. } => Response::Roots(roots.states[local(step) + 1].clone()),
        Request::Output { step, operator, from, .. } => {
            let output = replay.operator(engine, step, operator).unwrap().output.to_bytes();
            let most = output.len() / 3 + 1;
            Response::Output(output[from as usize..].iter().copied().take(most).collect())
        }
        other => Response::Declined(format!("{other:?}")),
    }
}

/// Of a deployment that draws.
pub(crate) fn drawing() -> Parameters {
    Parameters { audits_per_claim_bps: 10_000, dispute_clock: 1_000, ..Parameters::default() }
}

/// Of the interval, as it is right.
pub(crate) async fn honest_roots() -> Roots {
    let shard = shards(1)[0].clone();
    let state = shard.initial_state.to_vec();
    let span = Span { first_step: INTERVAL * STEPS, steps: STEPS };
    Replay { shard, lineage: KEY.into(), span, state, inputs: Bytes::new() }.roots(Reference).unwrap()
}
