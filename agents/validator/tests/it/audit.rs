//! An audit finds an honest record right, and convicts a lie by the liar's own answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cid::Cid;
use tensorlink_node::Games;
use tensorlink_node::budget::Budget;
use tensorlink_node::files;
use tensorlink_node::interval::{Outcome, Span, state_root_of};
use tensorlink_node::ports::chain::Parameters;
use tensorlink_node::ports::{Call, Chain, Event, EventAt, Incoming, Net, Owner, Protocol, Store};
use tensorlink_node::replay::{Replay, Roots};
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_program::{Engine, Reference};
use tensorlink_proof::challenge::Told;
use tensorlink_proof::commit::{Boundary, SenderSignatures, io_root, state_root, trace_root};
use tensorlink_proof::fraud::verify::verify_element_proof;
use tensorlink_proof::fraud::{Case, Work};
use tensorlink_types::abi::{AuditAnswer, Claim, Holder, StepStatement};
use tensorlink_types::{Address, B256, ClaimId, Opcode, TensorRoot, U256};
use tensorlink_validator::{Answers, Auditor, ChallengeEnd, Claims, Finding, Hunts, LastStage, Standing, Target};
use tokio::sync::Semaphore;

use crate::corrupted::{Corrupted, Deed, Lie};
use crate::support::{
    self, CONTRACTS, Hub, KEY, MemoryChain, MemoryNet, MemoryStore, STEPS, identity, job_view, lane, publish, shards,
};

const INTERVAL: u32 = 1;

/// A lie in one step.
fn liar(step: u32) -> Corrupted<Reference> {
    Corrupted::new(Reference, Lie { step: Some(step), opcode: Opcode::MatMul, deed: Deed::Flip(3) })
}

/// How a worker behaves towards auditors.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Answers,
    Declines,
    /// Declines statements only.
    Withholds,
    /// Shows outputs byte by byte.
    Crumbles,
}

struct World {
    auditor: Auditor<Reference>,
    chain: Arc<MemoryChain>,
    target: Target,
    program: B256,
    _folder: tempfile::TempDir,
}

async fn world(engine: impl Engine + Clone + Send + Sync + 'static, manner: Manner) -> World {
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
    let auditor = Auditor {
        answers: Answers::open(ports.journal.clone(), Parameters::default()).unwrap(),
        ports,
        engine: Arc::new(|| Ok(Reference)),
        memory: Budget::new(1 << 30),
        turns: Semaphore::new(1),
        stages: LastStage::default(),
        games: Arc::new(Games::new(Address::ZERO)),
        plays: Semaphore::new(1),
        hunts: Hunts::default(),
        claims: Claims::default(),
    };
    World { auditor, chain, target, program, _folder: folder }
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

#[tokio::test]
async fn an_honest_claim_is_right() {
    let world = world(Reference, Manner::Answers).await;
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
}

/// The state before a replica's interval is the same file as that before our own.
#[tokio::test]
async fn what_this_node_needs_besides_is_not_let_go_of() {
    for needed in [false, true] {
        let world = world(Reference, Manner::Answers).await;
        let store = &world.auditor.ports.store;
        let state = store.put(files::join(&shards(1)[0].initial_state.to_vec()).into()).await.unwrap();
        if needed {
            assert!(store.of(Owner::Lane(lane(0))).own(&state).await.unwrap());
        }
        assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
        assert_eq!(store.has(&state).await.unwrap(), needed);
    }
}

/// A replica's claim is of the same files: what we answered about one is to be shown after we looked at the other.
#[tokio::test]
async fn what_an_answer_rests_on_is_not_let_go_of() {
    let mut world = world(Reference, Manner::Answers).await;
    world.auditor.answers = Answers::open(world.auditor.ports.journal.clone(), drawing()).unwrap();
    world.chain.with(|l| l.job.audit_budget = 1);
    world.auditor.answers.drawn(world.target.id);
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
    let given = world.auditor.answers.of(world.target.id).unwrap();
    world.target.id = ClaimId(B256::repeat_byte(9));
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
    for file in [given.record.state, given.record.inputs] {
        assert!(world.auditor.ports.store.has(&Cid::try_from(file).unwrap()).await.unwrap());
    }
}

/// Nobody's files make room for others.
#[tokio::test]
async fn what_an_answer_will_rest_on_stays_while_it_is_worked_out() {
    let mut world = world(Reference, Manner::Answers).await;
    world.chain.with(|l| l.job.audit_budget = 1);
    let (store, seen) = (world.auditor.ports.store.clone(), Arc::new(std::sync::Mutex::new(Vec::new())));
    let (looked_at, noted) = (store.clone(), seen.clone());
    world.auditor.engine = Arc::new(move || {
        noted.lock().unwrap().push(futures::executor::block_on(looked_at.owners()).unwrap());
        Ok(Reference)
    });
    let owners = || std::mem::take(&mut *seen.lock().unwrap());
    world.auditor.audit(&world.target).await.unwrap();
    assert_eq!(owners(), [[]], "not drawn");
    // Drawn, but not answered: nothing is left to pay it.
    world.chain.with(|l| l.job.audit_budget = 0);
    world.auditor.answers = Answers::open(world.auditor.ports.journal.clone(), drawing()).unwrap();
    world.auditor.answers.drawn(world.target.id);
    world.auditor.audit(&world.target).await.unwrap();
    assert_eq!(owners(), [[Owner::Audit(world.target.id)]]);
    assert!(store.owners().await.unwrap().is_empty(), "without an answer it need not be shown");
    world.chain.with(|l| l.job.audit_budget = 1);
    world.auditor.audit(&world.target).await.unwrap();
    assert_eq!(owners(), [[Owner::Audit(world.target.id)]]);
    assert_eq!(store.owners().await.unwrap(), [Owner::Audit(world.target.id)]);
}

#[tokio::test]
async fn one_wrong_element_gives_a_proof_that_verifies() {
    let lie = INTERVAL * STEPS + 1;
    let world = world(liar(lie), Manner::Answers).await;
    let finding = world.auditor.audit(&world.target).await.unwrap();
    let Finding::Wrong { call, fault } = finding else { panic!("{finding:?}") };
    let Call::Prove(proof) = *call else { panic!("{call:?}") };
    let case = Case {
        contracts: CONTRACTS,
        worker: identity(1).address(),
        lineage: KEY.into(),
        work: Work::Training {
            steps_per_interval: STEPS,
            program: world.program,
            record: world.chain.record(lane(0), INTERVAL).await.unwrap(),
        },
    };
    let conviction = verify_element_proof(&case, &proof).unwrap();
    assert!(fault.starts_with(&format!("step {lie}, operator")), "{fault}");
    assert!(fault.contains("element 3:"), "{fault}");
    assert!(format!("{conviction:?}").contains(&format!("step: {lie}")), "{conviction:?}");
}

#[tokio::test]
async fn a_worker_that_declines_is_not_convicted_and_not_right() {
    for manner in [Manner::Declines, Manner::Withholds, Manner::Crumbles] {
        let world = world(liar(INTERVAL * STEPS), manner).await;
        let finding = world.auditor.audit(&world.target).await.unwrap();
        assert!(matches!(finding, Finding::Unproven(_)), "{finding:?}");
    }
}

#[tokio::test]
async fn a_record_of_another_interval_is_not_taken_for_the_claimed_one() {
    let mut world = world(Reference, Manner::Answers).await;
    world.target.claim.io.0[0] ^= 1;
    assert!(matches!(world.auditor.audit(&world.target).await.unwrap(), Finding::Unproven(_)));
    world.target.claim.io.0[0] ^= 1;
    world.target.claim.parentState.0[0] ^= 1;
    assert!(matches!(world.auditor.audit(&world.target).await.unwrap(), Finding::Unproven(_)));
}

/// Of a deployment that draws.
fn drawing() -> Parameters {
    Parameters { audits_per_claim_bps: 10_000, dispute_clock: 1_000, ..Parameters::default() }
}

#[tokio::test]
async fn who_is_drawn_answers_with_its_own_last_step_and_remembers_it() {
    // What is lied about in the first step goes through all the others: the answer is not the worker's.
    for engine in [liar(INTERVAL * STEPS), liar(u32::MAX)] {
        let mut world = world(engine, Manner::Answers).await;
        world.auditor.answers = Answers::open(world.auditor.ports.journal.clone(), drawing()).unwrap();
        world.chain.with(|l| (l.job.audit_budget, l.job.challenge_window) = (1, 400));
        world.auditor.audit(&world.target).await.unwrap();
        assert_eq!(world.auditor.answers.of(world.target.id), None, "nobody has drawn it");

        world.auditor.answers.drawn(world.target.id);
        world.auditor.audit(&world.target).await.unwrap();
        let given = world.auditor.answers.of(world.target.id).unwrap();
        let roots = honest_roots().await;
        let last = roots.traces.len() - 1;
        let expected = AuditAnswer {
            step: INTERVAL * STEPS + last as u32,
            preState: state_root(&roots.states[last]),
            trace: trace_root(&roots.traces[last]),
        };
        assert_eq!((&given.answer, given.audited.fixedAt, given.window), (&expected, 201, 400));
        let again = Answers::open(world.auditor.ports.journal.clone(), drawing()).unwrap();
        assert_eq!(again.of(world.target.id), Some(given), "a restart forgets no answer");
    }
}

#[tokio::test]
async fn nobody_answers_for_a_lane_that_could_frame_it_for_nothing_or_for_nothing() {
    let mut world = world(Reference, Manner::Answers).await;
    let parameters = Parameters { dispute_bond: u128::MAX, ..drawing() };
    world.auditor.answers = Answers::open(world.auditor.ports.journal.clone(), parameters).unwrap();
    world.chain.with(|l| l.job.audit_budget = 1);
    world.auditor.answers.drawn(world.target.id);
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
    assert_eq!(world.auditor.answers.of(world.target.id), None, "less at risk than a challenge costs");

    world.auditor.answers = Answers::open(world.auditor.ports.journal.clone(), drawing()).unwrap();
    world.chain.with(|l| l.job.audit_budget = 0);
    world.auditor.answers.drawn(world.target.id);
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
    assert_eq!(world.auditor.answers.of(world.target.id), None, "nothing is left to pay it");
}

#[tokio::test]
async fn a_wrong_claim_is_proven_wrong_once_its_worker_may_tell() {
    let mut world = world(liar(INTERVAL * STEPS), Manner::Answers).await;
    world.auditor.answers = Answers::open(world.auditor.ports.journal.clone(), drawing()).unwrap();
    let now = world.chain.head().await.unwrap().timestamp;
    let window = 4 * u32::try_from(now + 1).unwrap();
    world.chain.with(|l| l.job.challenge_window = window.into());
    world.target.standing = Standing::Committed { at: 0 };
    world.chain.with(|l| l.claims.insert((0, INTERVAL), (world.target.claim.clone(), 0)));
    let engines = Arc::new(AtomicU32::new(0));
    let counting = engines.clone();
    world.auditor.engine = Arc::new(move || {
        counting.fetch_add(1, Ordering::Relaxed);
        Ok(Reference)
    });
    let executions = || engines.swap(0, Ordering::Relaxed);
    let finding = world.auditor.audit(&world.target).await.unwrap();
    assert_eq!(finding, Finding::Withheld { until: now + 1 });
    assert_eq!(executions(), 1);
    world.chain.with(|l| l.job.challenge_window = u64::from(window) - 4);
    let anew = world.auditor.audit(&world.target).await.unwrap();
    let all = executions();
    let finding = world.auditor.prove(&world.target).await.unwrap();
    assert!(matches!(finding, Finding::Wrong { .. }), "{finding:?}");
    assert_eq!((finding, executions()), (anew, all - 1), "what was executed before is not executed again");
}

/// What a node opened before it was restarted is on chain, and not told yet.
#[tokio::test]
async fn a_challenge_that_waits_for_confirmation_is_not_opened_again() {
    let mut world = world(liar(INTERVAL * STEPS), Manner::Withholds).await;
    let us = identity(2).address();
    world.auditor.games = Arc::new(Games::new(us));
    let (target, challenge) = (world.target.clone(), U256::from(7));
    world.chain.with(|l| l.open_challenge = Some((target.id, challenge)));
    let (id, claim, worker) = (target.id, target.claim.clone(), identity(1).address());
    let opened = Event::ChallengeOpened { challenge, id, claim, challenger: us, worker };
    let tell = |event| {
        let told = world.chain.with(|l| {
            l.tell(event);
            l.told.as_ref().and_then(|told| told.last().cloned())
        });
        world.auditor.games.apply(&told.unwrap());
    };
    let ended = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        tell(opened);
        // It is being played now.
        tokio::time::sleep(Duration::from_millis(500)).await;
        tell(Event::Challenge { challenge, told: Told::Won { silence: true } });
    };
    let (end, ()) = tokio::join!(world.auditor.challenge(&target), ended);
    let end = end.unwrap();
    assert!(matches!(end, ChallengeEnd::Convicted(_)), "{end:?}");
    let sent = world.chain.with(|l| l.sent.clone());
    assert!(!sent.is_empty() && !sent.contains(&"open"), "it is played: {sent:?}");
}

/// Who takes up a challenge reads the chain up to its head, and follows it from its first block.
#[tokio::test]
async fn a_challenge_that_is_told_again_is_the_same() {
    let world = world(Reference, Manner::Answers).await;
    let Target { id, claim, .. } = world.target;
    let (challenge, challenger, worker) = (U256::ZERO, Address::ZERO, identity(1).address());
    let told = [
        Event::ChallengeOpened { challenge, id, claim, challenger, worker },
        Event::Challenge { challenge, told: Told::Lost },
    ];
    let at = |(log_index, event)| EventAt {
        block: 300,
        block_hash: B256::ZERO,
        timestamp: 300,
        log_index,
        transaction: B256::ZERO,
        event,
    };
    let events: Vec<EventAt> = (0..).zip(told).map(at).collect();
    let known = world.auditor.apply_after(None, &events[..1]);
    assert_eq!((known, world.auditor.games.on(id)), (Some((300, 0)), Some(challenge)));
    let known = world.auditor.apply_after(known, &events);
    assert_eq!((known, world.auditor.games.on(id)), (Some((300, 1)), None), "it is over");
    assert_eq!(world.auditor.apply_after(known, &events[..1]), known);
    assert_eq!(world.auditor.games.on(id), None, "and does not begin anew");
}

/// Of the interval, as it is right.
async fn honest_roots() -> Roots {
    let shard = shards(1)[0].clone();
    let state = shard.initial_state.to_vec();
    let span = Span { first_step: INTERVAL * STEPS, steps: STEPS };
    Replay { shard, lineage: KEY.into(), span, state, inputs: Bytes::new() }.roots(Reference).unwrap()
}
