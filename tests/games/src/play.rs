//! One game from its opening to its verdict.

use alloy::primitives::U256;
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_num::arbitrary::Dice;
use tensorlink_proof::challenge::next::Tensors;
use tensorlink_proof::challenge::{Answerer, Challenger, Game, Lacking, Move, Next, Stuck, Turn, cost};
use tensorlink_proof::commit::{
    Boundary, ProgramCommitment, SenderSignatures, edge_log, io_root, record_hash, sign, state_root, trace_root,
};
use tensorlink_proof::fraud::{BytesError, Case, ElementProof, Refusal, Signed, Work, bytes, verify_element_proof};
use tensorlink_types::abi::{BoundaryLogs, Claim, ClaimLink, EquivocationProof, StepStatement};
use tensorlink_types::{B256, Bytes, Lineage};

use crate::scenario::{Lie, Run, Scenario};
use crate::world::{BASE_FEE, CHALLENGER, STAGE, World, key_of, worker, worker_of};

/// How the two behave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conduct {
    /// What the worker gets wrong.
    pub lie: Lie,
    /// Answers that the worker gives before it falls silent.
    pub answers: u32,
    /// Questions that the challenger asks before it leaves.
    pub asks: u32,
    /// The challenger's own execution is wrong in this.
    pub error: Lie,
    /// The neighbours signed whatever the worker says it received, and claim what they really computed.
    pub misled: bool,
    /// The worker has claimed what is right, and accuses its auditor, who challenges it, by a false statement about the
    /// last step.
    pub frames: Option<Framing>,
}

/// How a worker goes on that accuses its auditor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// It stands by what it signed, which this seed makes up.
    Stands(u64),
    /// It says the truth on chain.
    Recants(u64),
}

impl Conduct {
    /// Both play to the end.
    pub const fn of(lie: Lie) -> Self {
        Self { lie, answers: u32::MAX, asks: u32::MAX, error: Lie::None, misled: false, frames: None }
    }
}

/// How a game ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What the worker was convicted of: fault, step, operator, element. None: the challenge was lost.
    pub conviction: Option<(Fault, u32, u32, u64)>,
    /// Stage of the neighbour that was convicted instead.
    pub blamed: Option<u16>,
    /// Why the challenger stopped, if it did.
    pub stuck: Option<Stuck>,
    /// Gas of each answer.
    pub answers: Vec<u64>,
    /// Gas of each question, the opening first.
    pub asks: Vec<u64>,
    /// Gas of the proof.
    pub proof: u64,
    /// What the challenger has more of than before, wei of SNO.
    pub challenger: i128,
    /// What the worker has more of than before, stake not counted.
    pub worker: i128,
}

/// A game in play.
struct Table<'a> {
    world: World,
    scenario: &'a Scenario,
    lineage: Lineage,
    claim: Claim,
    committed_at: u64,
    commitment: ProgramCommitment,
    game: Game,
    challenge: U256,
    /// What the neighbours signed as sent, and what they claim.
    signatures: SenderSignatures,
    sent: BoundaryLogs,
    misled: bool,
    error: Lie,
    accusation: Option<Signed>,
    outcome: Outcome,
}

/// Plays.
pub fn play(world: &World, scenario: &Scenario, conduct: Conduct) -> Outcome {
    let mut world = world.clone();
    let (job, lineage) = world.start_job(&scenario.terms(world.now), scenario.first_step);
    let honest = scenario.honest(lineage);
    let mut theirs = scenario.lied(lineage, conduct.lie, &honest);
    let own = scenario.lied(lineage, conduct.error, &honest);
    let claim = theirs.claim(job);
    let none = ClaimLink { parentState: B256::ZERO, io: B256::ZERO, committedAt: 0 };
    world.call(worker(), &Call::Commit { claim: claim.clone(), previous: none }).expect("the claim is committed");
    let committed_at = world.now;
    let before = (world.sno(CHALLENGER), world.sno(worker()));
    let game = Game::new(world.contracts().claim_id(&claim), claim.clone(), CHALLENGER, worker());
    let commitment = ProgramCommitment::new(&scenario.program).unwrap();
    let outcome = Outcome {
        conviction: None,
        blamed: None,
        stuck: None,
        answers: vec![],
        asks: vec![],
        proof: 0,
        challenger: 0,
        worker: 0,
    };
    let accusation = conduct.frames.map(|framing| {
        let (Framing::Stands(seed) | Framing::Recants(seed)) = framing;
        let framed = scenario.framing(&honest, &mut Dice::new(seed));
        let accusation = accusation(&world, &claim, &framed);
        if matches!(framing, Framing::Stands(_)) {
            theirs = framed;
        }
        accusation
    });
    let challenge = U256::ZERO;
    let sent = honest.logs.roots();
    let said = if conduct.misled { theirs.logs.roots() } else { sent.clone() };
    let signatures = neighbours_sign(&world, &claim, &said);
    let mut table = Table {
        world,
        scenario,
        lineage,
        claim,
        committed_at,
        commitment,
        game,
        challenge,
        signatures,
        sent,
        misled: conduct.misled,
        error: conduct.error,
        accusation,
        outcome,
    };
    table.open(&own);
    while matches!(table.game.turn, Turn::Asking | Turn::Answering) {
        let silent = match table.game.turn {
            Turn::Answering => table.outcome.answers.len() >= conduct.answers as usize || !table.answer(&theirs),
            _ => table.outcome.asks.len() >= conduct.asks as usize || !table.ask(&own),
        };
        if silent {
            table.world.wait(3_600, 2);
            table.step(worker(), Move::Timeout);
        } else if table.outcome.conviction.is_some() {
            table.step(CHALLENGER, Move::Timeout);
        }
    }
    let after = (table.world.sno(CHALLENGER), table.world.sno(worker()));
    let difference = |after: U256, before: U256| after.to::<u128>() as i128 - before.to::<u128>() as i128;
    table.outcome.challenger = difference(after.0, before.0);
    table.outcome.worker = difference(after.1, before.1);
    table.outcome
}

impl Table<'_> {
    fn open(&mut self, own: &Run) {
        let case = self.case();
        let question = self.challenger(&case, own).opening().expect("its own execution is whole");
        let open = Move::Open { claim: self.claim.clone(), committed_at: self.committed_at, question };
        let gas = self.step(CHALLENGER, open);
        self.outcome.asks.push(gas);
    }

    /// Whether the worker had an answer.
    fn answer(&mut self, run: &Run) -> bool {
        let contracts = self.world.contracts();
        let answerer = Answerer {
            contracts: &contracts,
            claim: &self.claim,
            program: &self.commitment.header,
            first_step: 0,
            states: &run.state_roots,
            traces: &run.traces,
            logs: &run.logs,
            signatures: &self.signatures,
        };
        let signed = |digest| sign(&key_of(STAGE), digest).map(Bytes::from);
        let answer = match answerer.answer(&self.game, None, signed) {
            Err(Lacking::Output { step, operator }) => {
                let output = &run.outputs[step as usize][operator as usize];
                answerer.answer(&self.game, Some(output), signed)
            }
            other => other,
        };
        let Ok(answer) = answer else { return false };
        // Who logged what nobody sent it has no answer that counts.
        if matches!(answer, Move::AnswerLogs { .. }) && run.logs.roots() != self.sent && !self.misled {
            let call = Call::Challenge { challenge: self.challenge, step: Box::new(answer.clone()) };
            if self.world.clone().call(worker(), &call).is_err() {
                return false;
            }
        }
        let (owed, most) = (self.game.owed, cost::most_gas(cost::bytes_of(&self.game.position, self.game.hints.len())));
        let gas = self.step(worker(), answer);
        let charged = (self.game.owed - owed) / BASE_FEE;
        assert!(
            charged >= U256::from(gas) && charged <= U256::from(most),
            "{charged} for {gas}, {most} at most (P-42)"
        );
        self.outcome.answers.push(gas);
        true
    }

    fn case(&self) -> Case {
        Case {
            contracts: self.world.contracts(),
            worker: worker(),
            lineage: self.lineage,
            work: Work::Training {
                steps_per_interval: self.scenario.steps,
                program: self.commitment.root(),
                record: record_hash(&self.claim, self.committed_at),
            },
        }
    }

    fn challenger<'b>(&'b self, case: &'b Case, own: &'b Run) -> Challenger<'b> {
        Challenger {
            case,
            program: &self.scenario.program,
            committed_at: self.committed_at,
            first_step: 0,
            states: &own.state_roots,
            traces: &own.traces,
            logs: &own.logs,
            accusation: self.accusation.as_ref(),
            salt: B256::repeat_byte(0x5a),
        }
    }

    /// Whether the challenger had anything to ask or to prove.
    fn ask(&mut self, own: &Run) -> bool {
        let case = self.case();
        let challenger = self.challenger(&case, own);
        let next = match challenger.next(&self.game, None) {
            Ok(Next::Tensors { step, operator }) => {
                let tensors = self.tensors(own, step, operator);
                challenger.next(&self.game, Some(&tensors))
            }
            other => other,
        };
        match next {
            Ok(Next::Ask(question)) => {
                let bytes = question.question().map_or(0, cost::most_bytes);
                if let Some(amount) = cost::top_up(self.game.left(), bytes, BASE_FEE) {
                    self.step(CHALLENGER, Move::Fund { amount });
                }
                let gas = self.step(CHALLENGER, *question);
                self.outcome.asks.push(gas);
            }
            Ok(Next::Element(proof)) => {
                self.spoil(&proof);
                self.prove(&Call::Prove(proof));
            }
            Ok(Next::Wiring(proof)) => self.prove(&Call::ProveWiring(proof)),
            Ok(Next::Contradiction(proof)) => self.prove(&Call::ProveContradiction(proof)),
            // The claim is right, given what was received: there is nothing more to ask.
            Ok(Next::Equivocation { boundary, root, signature }) => {
                if self.misled {
                    self.blame(boundary, root, signature);
                }
                return false;
            }
            Ok(Next::Tensors { .. }) => unreachable!("they were given"),
            Err(stuck) => {
                self.outcome.stuck = Some(stuck);
                return false;
            }
        }
        true
    }

    fn tensors(&self, own: &Run, step: u32, operator: u32) -> Tensors {
        let op = &self.scenario.program.operators[operator as usize];
        let (state, outputs) = (&own.states[step as usize], &own.outputs[step as usize]);
        let operands = self.scenario.operands(op, (state, outputs), step, self.error);
        Tensors { step, operator, output: outputs[operator as usize].clone(), operands }
    }

    /// Convicts the neighbour that signed another log than it claims; its claim is made now.
    fn blame(&mut self, boundary: Boundary, root: B256, signature: Bytes) {
        let (stage, over) = (boundary.neighbour(STAGE).unwrap(), boundary.opposite());
        let mut logs =
            BoundaryLogs { fromPrevious: B256::ZERO, toPrevious: B256::ZERO, fromNext: B256::ZERO, toNext: B256::ZERO };
        let to_next = over == Boundary::ToNext;
        *(if to_next { &mut logs.toNext } else { &mut logs.toPrevious }) = boundary.root(&self.sent);
        let claim = Claim { stage, io: io_root(&logs), ..self.claim.clone() };
        let none = ClaimLink { parentState: B256::ZERO, io: B256::ZERO, committedAt: 0 };
        let worker = worker_of(stage);
        self.world
            .call(worker, &Call::Commit { claim: claim.clone(), previous: none })
            .expect("the claim is committed");
        let committed_at = self.world.now;
        let proof = EquivocationProof { claim, committedAt: committed_at, logs, toNext: to_next, root, signature };
        let proof = Call::ProveEquivocation(Box::new(proof));
        let (_, events) = self.world.call(CHALLENGER, &proof).expect("the proof stands");
        assert!(events.iter().any(|event| {
            matches!(event, Event::Convicted { worker: convicted, auditor, fault: Fault::Equivocation, .. }
                if (*convicted, *auditor) == (worker, worker_of(STAGE)))
        }));
        self.outcome.blamed = Some(stage);
    }

    /// The proof with bytes changed, left out or added: the contract finds in it what the agents' checks find, and
    /// nothing else.
    fn spoil(&self, proof: &ElementProof) {
        let whole = bytes::encode(proof).expect("a proof that holds has bytes");
        let mut dice = Dice::new(u64::from_le_bytes(*whole.last_chunk().expect("more than a number")));
        let mut below = |count: usize| dice.range(0, count as i64 - 1) as usize;
        let mut other = whole.clone();
        other[below(whole.len())] ^= 1 << below(8);
        let short = whole[..below(whole.len())].to_vec();
        let long = [whole.as_slice(), &[0; 32][..=below(32)]].concat();
        for spoiled in [other, short, long] {
            let found = self.world.clone().prove(spoiled.clone().into());
            let read = bytes::decode(&spoiled, &self.world.contracts());
            let verdict = read.map(|proof| verify_element_proof(&self.case(), &proof).map(drop));
            match (found, verdict) {
                (Ok(()), Ok(Ok(()))) => {}
                (Err(revert), Ok(Err(refusal))) => {
                    let expected = error_of(&refusal);
                    assert!(expected.is_none_or(|name| name == revert.name), "{revert:?}, {refusal:?}");
                }
                (Err(revert), Err(unread)) => {
                    assert!(errors_of(&unread).contains(&revert.name.as_str()), "{revert:?}, {unread}");
                }
                (found, verdict) => panic!("{found:?} on chain, {verdict:?} off it"),
            }
        }
    }

    fn prove(&mut self, proof: &Call) {
        let (gas, events) = self.world.call(CHALLENGER, proof).expect("the proof stands");
        self.outcome.proof = gas;
        self.follow(&events);
    }

    fn step(&mut self, from: tensorlink_types::Address, step: Move) -> u64 {
        let what = format!("{step:?}");
        let call = Call::Challenge { challenge: self.challenge, step: Box::new(step) };
        let moved = self.world.call(from, &call);
        let (gas, events) = moved.unwrap_or_else(|revert| panic!("{revert:?} to {what} in {:?}", self.game.position));
        self.follow(&events);
        gas
    }

    fn follow(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::ChallengeOpened { challenge, .. } => self.challenge = *challenge,
                Event::Challenge { told, .. } => self.game.apply(told),
                Event::Convicted { fault, step, operator, element, .. } => {
                    self.outcome.conviction = Some((*fault, *step, *operator, *element));
                }
                _ => {}
            }
        }
    }
}

/// The contract's error for the reason of a refusal; none where another contract decides.
const fn error_of(refusal: &Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::UnknownClaim => "UnknownClaim",
        Refusal::StatementMismatch => "StatementMismatch",
        Refusal::BadSignature(_) => "BadSignature",
        Refusal::WrongProgram => "WrongProgram",
        Refusal::WrongOperator => "WrongOperator",
        Refusal::WrongLogs => "WrongLogs",
        Refusal::WrongMembership(_) => "WrongMembership",
        Refusal::WrongOpening { .. } | Refusal::WrongOutput(_) => "WrongOpening",
        Refusal::ElementOutOfRange(_) => "ElementOutOfRange",
        Refusal::NoFault => "NoFault",
        Refusal::Recompute(_) => return None,
    })
}

/// The contract's errors over bytes that are no proof of anything.
const fn errors_of(unread: &BytesError) -> &'static [&'static str] {
    match unread {
        BytesError::TooShort | BytesError::TooLong(_) => &["MalformedProof"],
        BytesError::Type => &["WrongOperator", "WrongProgram"],
        BytesError::Opening(_) => &["WrongOperator", "WrongProgram", "WrongOpening", "WrongMembership"],
        BytesError::Length(_) | BytesError::Logs => &[],
    }
}

/// What a worker signs about the last step of a run, to accuse somebody.
fn accusation(world: &World, claim: &Claim, run: &Run) -> Signed {
    let last = run.traces.len() - 1;
    let statement = StepStatement {
        claimId: world.contracts().claim_id(claim).0,
        auditor: worker(),
        step: last as u32,
        preState: state_root(&run.state_roots[last]),
        postState: claim.newState,
        trace: trace_root(&run.traces[last]),
    };
    let signature = sign(&key_of(STAGE), world.contracts().statement(&statement)).unwrap();
    Signed { statement, signature: signature.into() }
}

/// The neighbours' signatures of what a claim's worker says it received.
fn neighbours_sign(world: &World, claim: &Claim, received: &BoundaryLogs) -> SenderSignatures {
    let signed = |boundary: Boundary| {
        let log = edge_log(claim.lane(), claim.interval, boundary, received).unwrap();
        Bytes::from(sign(&key_of(log.fromStage), world.contracts().edge_log(&log)).unwrap())
    };
    SenderSignatures { previous: signed(Boundary::FromPrevious), next: signed(Boundary::FromNext) }
}
