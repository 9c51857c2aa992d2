//! Receipts of serving jobs: found right, convicted by the liar's own answers, drawn from what a redeemed
//! voucher names.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cid::Cid;
use tensorlink_model::choice::controls;
use tensorlink_model::{SamplingParams, StageRunner, tokens};
use tensorlink_node::interval::{Outcome, Span};
use tensorlink_node::ports::chain::{JobState, Parameters};
use tensorlink_node::ports::{Call, Chain, ChainError, Event, Incoming, Net, Protocol, Store};
use tensorlink_node::replay::{Replay, Roots};
use tensorlink_node::serving::ServingShard;
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_node::{Ports, Roster};
use tensorlink_program::{Engine, Reference};
use tensorlink_proof::commit::{Boundary, SenderSignatures, io_root, receipt_list, receipt_statement};
use tensorlink_proof::fraud::verify::verify_element_proof;
use tensorlink_proof::fraud::{Case, Work};
use tensorlink_types::abi::{Claim, Holder, JobKind, JobTerms};
use tensorlink_types::{Address, B256, ClaimId, Opcode, TensorRoot, U256};
use tensorlink_validator::epoch::Epoch;
use tensorlink_validator::{Auditor, Finding, Rate, Standing, Target, Validator, ValidatorError};
use tokio_util::sync::CancellationToken;

use crate::corrupted::{Corrupted, Deed, Lie};
use crate::support::serving::{LONGEST, choosing_plans, publish_serving, serving_shards, serving_view, shards};
use crate::support::{self, CONTRACTS, Hub, JOB, KEY, MemoryChain, MemoryNet, MemoryStore, WINDOW, identity, lane};
use crate::world::auditor;

const TEXT: [u32; 3] = [5, 7, 11];
const TEXTS: u32 = 3;

fn liar() -> Corrupted<Reference> {
    Corrupted::new(Reference, Lie { step: None, opcode: Opcode::Norm, deed: Deed::Flip(3) })
}

/// A text as its worker keeps it.
struct Kept {
    claim: Claim,
    replay: Replay,
    outcome: Outcome,
    record: IntervalRecord,
}

struct World {
    ports: Ports,
    chain: Arc<MemoryChain>,
    manifest: Cid,
    claims: Vec<Claim>,
    /// What auditors asked.
    asked: Arc<Mutex<Vec<Request>>>,
    /// Kept as long as the journal.
    _folder: tempfile::TempDir,
}

async fn keep(engine: impl Engine, store: &MemoryStore, replay: &Replay, text: u32) -> Kept {
    let outcome = replay.outcome(engine).unwrap();
    let logs = outcome.logs.roots();
    let (parent, io) = (B256::ZERO, io_root(&logs));
    let claim = Claim { job: 1, stage: 0, replica: 0, interval: text, parentState: parent, newState: parent, io };
    let inputs = store.put(replay.inputs.clone()).await.unwrap().to_bytes();
    Kept {
        claim,
        replay: replay.clone(),
        outcome,
        record: IntervalRecord {
            state: vec![],
            inputs,
            logs,
            signatures: SenderSignatures::default(),
            holder: Holder::default(),
        },
    }
}

async fn world(engine: impl Engine + Clone + Send + Sync + 'static) -> World {
    world_of(engine, serving_shards(), tokens(&TEXT).unwrap().to_bytes()).await
}

/// A job of two stages, of which the first received `inputs`.
async fn world_of(
    engine: impl Engine + Clone + Send + Sync + 'static,
    shards: Vec<Arc<ServingShard>>,
    inputs: Vec<u8>,
) -> World {
    let worker = identity(1).address();
    let store = Arc::new(MemoryStore::default());
    let (manifest, _) = publish_serving(&store, &shards).await;
    let chain = MemoryChain::serving(serving_view(2), &[worker, worker], &shards);
    let length = TEXT.len() as u32;
    let shard = Arc::new(shards[0].shard(length).unwrap());
    let inputs = inputs.into();
    let span = Span { first_step: length, steps: 1 };
    let replay = Replay { shard, lineage: KEY.into(), span, state: vec![], inputs };
    let mut kept = Vec::new();
    for text in 0..TEXTS {
        kept.push(keep(engine.clone(), &store, &replay, text).await);
    }
    let claims: Vec<Claim> = kept.iter().map(|kept| kept.claim.clone()).collect();
    let hub = Arc::new(Hub::default());
    let mut requests = MemoryNet { own: worker, hub: hub.clone() }.serve(Protocol::Rpc).await.unwrap();
    let asked: Arc<Mutex<Vec<Request>>> = Arc::default();
    let (told, list) = (asked.clone(), claims.clone());
    tokio::spawn(async move {
        while let Some(Incoming { peer, body, reply }) = requests.recv().await {
            let question: Request = decode("request", &body).unwrap();
            told.lock().unwrap().push(question.clone());
            let response = match question {
                Request::Receipts { lane: of, epoch: 1 } if of == lane(0) => Response::Receipts(list.clone()),
                Request::Receipts { .. } => Response::Receipts(list[1..].to_vec()),
                question => answer(&kept, engine.clone(), peer, question),
            };
            let _ = reply.send(encode("response", &response).unwrap());
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let ports = support::ports(2, chain.clone(), store, hub, folder.path());
    World { ports, chain, manifest, claims, asked, _folder: folder }
}

fn answer(kept: &[Kept], engine: impl Engine + Clone, auditor: Address, question: Request) -> Response {
    let (Request::Interval(id)
    | Request::Statements(id)
    | Request::SentLogs(id)
    | Request::Trace { claim: id, .. }
    | Request::Output { claim: id, .. }) = question
    else {
        return Response::Declined(format!("{question:?}"));
    };
    let Some(kept) = kept.iter().find(|kept| CONTRACTS.claim_id(&kept.claim) == id) else {
        return Response::Declined("no such receipt".into());
    };
    let roots = || -> Roots { kept.replay.roots(engine.clone()).unwrap() };
    match question {
        Request::Interval(_) => Response::Interval(kept.record.clone()),
        Request::SentLogs(_) => {
            let sent =
                kept.outcome.logs.get(Boundary::ToNext).unwrap().items().iter().copied().map(TensorRoot).collect();
            Response::SentLogs { to_previous: vec![], to_next: sent }
        }
        Request::Statements(_) => {
            let statement = receipt_statement(id, auditor, TEXT.len() as u32, &roots().traces[0]);
            let signature = identity(1).sign(CONTRACTS.statement(&statement)).unwrap().to_vec();
            Response::Statements(vec![(statement, signature)])
        }
        Request::Trace { .. } => Response::Roots(roots().traces[0].clone()),
        Request::Output { step, operator, from, .. } => {
            let output = kept.replay.operator(engine, step, operator).unwrap().output.to_bytes();
            Response::Output(output[from as usize..].to_vec())
        }
        other => Response::Declined(format!("{other:?}")),
    }
}

impl World {
    fn auditor(&self) -> Auditor<Reference> {
        auditor(&self.ports, Parameters::default(), || Ok(Reference))
    }

    fn target(&self, text: usize) -> Target {
        let claim = self.claims[text].clone();
        Target {
            id: CONTRACTS.claim_id(&claim),
            claim,
            standing: Standing::Receipt,
            manifest: self.manifest,
            listed: None,
        }
    }

    fn list(&self) -> B256 {
        let ids: Vec<ClaimId> = self.claims.iter().map(|claim| CONTRACTS.claim_id(claim)).collect();
        receipt_list(&ids).root()
    }

    /// The job is posted, and a lane redeems.
    fn redeem(&self, receipts: B256) {
        let terms = JobTerms { kind: JobKind::Serving as u8, manifest: self.manifest.to_bytes().into(), ..terms() };
        let user = serving_view(2).user;
        self.chain.with(|ledger| {
            ledger.follows = true;
            ledger.tell(Event::JobPosted { job: JOB, user, deposit: U256::ZERO, terms });
            ledger.tell(Event::VoucherRedeemed { lane: lane(0), epoch: 1, tokens: 9, receipts });
        });
    }

    /// A validator that audits everything.
    fn validate(&self) -> CancellationToken {
        let shutdown = CancellationToken::new();
        let roster = Arc::new(Roster::new(self.ports.identity.address()));
        let validator = Validator { rate: Rate::new(1.0).unwrap(), roster, auditor: Arc::new(self.auditor()) };
        tokio::spawn(validator.run(shutdown.clone()));
        shutdown
    }

    fn asked(&self, about: impl Fn(&Request) -> bool) -> usize {
        self.asked.lock().unwrap().iter().filter(|request| about(request)).count()
    }
}

fn terms() -> JobTerms {
    JobTerms {
        kind: 0,
        token: Address::ZERO,
        stages: 2,
        replicas: 1,
        intervals: 1000,
        stepsPerInterval: LONGEST,
        acceptBy: Default::default(),
        duration: Default::default(),
        challengeWindow: 10,
        workerStake: 10,
        continues: 0,
        firstStep: 0,
        programs: vec![],
        initialStates: vec![],
        manifest: Default::default(),
    }
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came true");
}

#[tokio::test]
async fn an_honest_receipt_is_right() {
    let world = world(Reference).await;
    let auditor = world.auditor();
    for text in 0..2 {
        assert_eq!(auditor.audit(&world.target(text)).await.unwrap(), Finding::Right);
    }
}

/// The last stage of a decoder, which receives from both sides.
async fn chosen(engine: impl Engine + Clone + Send + Sync + 'static) -> World {
    let mut shards = shards(choosing_plans());
    let first = &shards[0];
    let runner = StageRunner::new(Reference, (*first.plan).clone(), &first.constants).unwrap();
    let rows = runner.run(&tokens(&TEXT).unwrap()).unwrap().to_bytes();
    let warm = SamplingParams { temperature: 0.7, seed: 3, ..SamplingParams::default() };
    let [a, b, c] = TEXT;
    let controls = controls(0, &[(a, None), (b, Some(warm)), (c, Some(warm))]).unwrap().to_bytes();
    shards.reverse();
    world_of(engine, shards, [rows, controls].concat()).await
}

#[tokio::test]
async fn receipts_of_chosen_tokens_are_repeated_with_their_controls() {
    let world = chosen(Reference).await;
    assert_eq!(world.auditor().audit(&world.target(1)).await.unwrap(), Finding::Right);
    let choice = Lie { step: None, opcode: Opcode::Choose, deed: Deed::Flip(1) };
    proves(&chosen(Corrupted::new(Reference, choice)).await, "choice").await;
}

#[tokio::test]
async fn one_wrong_element_gives_a_proof_that_verifies() {
    let fault = proves(&world(liar()).await, "norm").await;
    assert!(fault.contains("element 3"), "{fault}");
}

/// Audits a lie about an operator; what is told of it.
async fn proves(world: &World, operator: &str) -> String {
    let finding = world.auditor().audit(&world.target(1)).await.unwrap();
    let Finding::Wrong { call, fault } = finding else { panic!("{finding:?}") };
    let Call::Prove(proof) = *call else { panic!("{call:?}") };
    let programs = world.chain.program_root(JOB, 0).await.unwrap();
    let work = Work::Serving { longest: LONGEST, programs };
    let case = Case { contracts: CONTRACTS, worker: identity(1).address(), lineage: KEY.into(), work };
    verify_element_proof(&case, &proof).unwrap();
    assert!(fault.contains(operator), "{fault}");
    assert_eq!(proof.statement.auditor, identity(2).address());
    fault
}

#[tokio::test]
async fn what_is_no_receipt_or_of_another_text_is_not_decided() {
    let world = world(liar()).await;
    let auditor = world.auditor();
    let undecided = async |change: fn(&mut Target)| {
        let mut target = world.target(0);
        change(&mut target);
        matches!(auditor.audit(&target).await.unwrap(), Finding::Unproven(_))
    };
    assert!(undecided(|target| target.claim.newState = B256::repeat_byte(1)).await);
    assert!(undecided(|target| target.claim.io = B256::repeat_byte(1)).await);
    assert!(undecided(|target| target.id = ClaimId(B256::repeat_byte(1))).await);
    assert!(undecided(|target| target.standing = Standing::Committed { at: 1 }).await);
}

#[tokio::test]
async fn a_list_that_is_not_the_redeemed_one_is_not_taken() {
    let world = world(Reference).await;
    let auditor = world.auditor();
    let (receipts, manifest, block) = (world.list(), world.manifest, B256::ZERO);
    let epoch = Epoch { lane: lane(0), epoch: 1, receipts, redeemed_at: 1, block, manifest };
    let listed = epoch.claims(&auditor).await.unwrap();
    for (index, target) in (0..).zip(&listed) {
        let place = target.listed.as_ref().unwrap();
        assert_eq!((place.epoch, place.redeemed_at, place.receipts, place.index), (1, 1, receipts, index));
        assert_eq!(Target { listed: None, ..target.clone() }, world.target(index as usize));
    }
    assert_eq!(listed.len(), 3);
    assert!(Epoch { epoch: 2, ..epoch }.claims(&auditor).await.is_err(), "one is missing");
    assert!(Epoch { receipts: B256::ZERO, ..epoch }.claims(&auditor).await.is_err());
    assert!(Epoch { lane: lane(1), ..epoch }.claims(&auditor).await.is_err(), "of another lane");
}

#[tokio::test]
async fn receipts_of_a_redeemed_epoch_are_audited_and_a_liar_is_convicted() {
    let world = world(liar()).await;
    world.redeem(world.list());
    let shutdown = world.validate();
    until(|| world.chain.with(|ledger| ledger.sent.len()) == TEXTS as usize).await;
    shutdown.cancel();
}

#[tokio::test]
async fn a_settled_job_is_left_alone_and_a_closed_one_is_not() {
    let world = world(Reference).await;
    world.chain.with(|ledger| (ledger.job.state, ledger.job.deadline) = (JobState::Closing, ledger.now + 1 - WINDOW));
    world.redeem(world.list());
    let shutdown = world.validate();
    until(|| world.asked(|request| matches!(request, Request::Interval(_))) == TEXTS as usize).await;
    shutdown.cancel();
    assert!(world.chain.with(|ledger| ledger.sent.is_empty()), "they are right");

    // Until it can be settled, whatever was redeemed last: a window after nothing more can be redeemed.
    let world = self::world(Reference).await;
    world.chain.with(|ledger| (ledger.job.state, ledger.job.deadline) = (JobState::Closing, ledger.now - WINDOW));
    world.redeem(world.list());
    let auditor = world.auditor();
    let validator = Validator {
        rate: Rate::new(1.0).unwrap(),
        roster: Arc::new(Roster::new(Address::ZERO)),
        auditor: Arc::new(auditor),
    };
    // Its events end here, and with them the validator.
    world.chain.with(|ledger| ledger.follows = false);
    let ended = validator.run(CancellationToken::new()).await;
    assert!(matches!(ended, Err(ValidatorError::Chain(ChainError::Ended))), "{ended:?}");
    assert_eq!(world.asked(|_| true), 0);
}
