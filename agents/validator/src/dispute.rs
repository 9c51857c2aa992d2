//! From a claim that differs from its re-execution to a proof: gathers the worker's own signed answers until they
//! convict it.

use std::sync::Arc;

use tensorlink_node::Ports;
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::replay::{OperatorTensors, Replay, Roots};
use tensorlink_node::wire::rpc::{OUTPUT_PIECE, Request, Response};
use tensorlink_num::Tensor;
use tensorlink_program::engine::Engine;
use tensorlink_proof::audit::{Answer, Audit, OwnInterval, Undecided, Verdict, first_element};
use tensorlink_proof::commit::{Boundary, BoundaryLists, LogBuilder, LogError, ProgramList};
use tensorlink_proof::fraud::{Case, FraudError, Prover, Signed, StepAnswer};
use tensorlink_proof::merkle::TensorTree;
use tensorlink_types::{Address, TensorRoot, TensorType};

use crate::ask::ask;
use crate::case::case;
use crate::executor::Executor;
use crate::finding::{AuditError, Failed, Finding, Gap, fatal};
use crate::target::{Standing, Target};

/// Longest time that a worker may take to show an output, seconds. The largest that is served, of scores of 4,096
/// tokens, has some hundred pieces.
const SHOWN: u64 = 600;
/// Pieces that a worker may give an output in beyond what it takes.
const CRUMBS: u64 = 8;

/// A claim known to differ from its re-execution.
pub(crate) struct Dispute<'a, E> {
    pub(crate) ports: &'a Ports,
    pub(crate) executor: Executor<'a, E>,
    pub(crate) target: &'a Target,
    pub(crate) job: &'a JobView,
    pub(crate) worker: Address,
    pub(crate) replay: Replay,
    /// Of a receipt: the programs of its stage by length.
    pub(crate) programs: Option<Arc<ProgramList>>,
}

impl<E> Dispute<'_, E>
where
    E: Engine + Send + 'static,
{
    /// Gathers what convicts, and proves it.
    pub(crate) async fn convict(&self) -> Result<Finding, Failed> {
        let own = self.executor.run(self.replay.clone(), |replay, engine| replay.roots(engine)).await?;
        let logs = self.their_logs(&own).await?;
        let mut answers = self.statements().await?;
        let case = case(self.ports, self.target, self.job, self.worker).await?;
        let (states, traces) = (own.states.clone(), own.traces);
        let state = states.first().cloned().unwrap_or_default();
        let own = OwnInterval { first_step: self.replay.span.first_step, state, traces };
        let program = &self.replay.shard.program;
        let audit = Audit { case: &case, program, claim: &self.target.claim, logs: &logs, own: &own };
        let verdict = loop {
            match audit.verdict(&answers) {
                Ok(verdict) => break verdict,
                Err(lacking) => self.complete(&mut answers, lacking).await?,
            }
        };
        self.prove(&case, &logs, &answers, &states, verdict).await
    }

    /// The claim's logs: what was received from our own replay of it, what was sent from the worker.
    async fn their_logs(&self, own: &Roots) -> Result<BoundaryLists, Failed> {
        let question = Request::SentLogs(self.target.id);
        let Response::SentLogs { to_previous, to_next } = ask(self.ports, self.worker, &question).await? else {
            return Err(Gap::OffTopic.into());
        };
        let program = &self.replay.shard.program;
        let mut logs = LogBuilder::new(program, self.replay.span.steps)?;
        let mut enter = |boundary, roots: Vec<TensorRoot>| -> Result<(), LogError> {
            for (index, root) in (0u32..).zip(roots) {
                logs.record(boundary, index / program.micro_batches, index % program.micro_batches, root)?;
            }
            Ok(())
        };
        for boundary in [Boundary::FromPrevious, Boundary::FromNext] {
            let received = own.logs.get(boundary).map(|log| log.items().iter().copied().map(TensorRoot).collect());
            enter(boundary, received.unwrap_or_default())?;
        }
        enter(Boundary::ToPrevious, to_previous)?;
        enter(Boundary::ToNext, to_next)?;
        Ok(logs.finish()?)
    }

    async fn statements(&self) -> Result<Vec<Answer>, Failed> {
        let question = Request::Statements(self.target.id);
        let Response::Statements(signed) = ask(self.ports, self.worker, &question).await? else {
            return Err(Gap::OffTopic.into());
        };
        let steps = self.replay.span.steps;
        // Bounds what checking them costs.
        if signed.len() != steps as usize {
            return Err(Gap::Statements(signed.len(), steps).into());
        }
        let answer = |(statement, signature): (_, Vec<u8>)| Answer {
            signed: Signed { statement, signature: signature.into() },
            trace: None,
            post_state: None,
        };
        Ok(signed.into_iter().map(answer).collect())
    }

    /// Asks for the list that the verdict lacks; a list that was given and does not open what was signed ends
    /// the audit.
    async fn complete(&self, answers: &mut [Answer], lacking: Undecided) -> Result<(), Failed> {
        let claim = self.target.id;
        let (step, question) = match lacking {
            Undecided::Trace(step) => (step, Request::Trace { claim, step }),
            Undecided::State(step) => (step, Request::State { claim, step }),
            other => return Err(other.into()),
        };
        let answer = answers.iter_mut().find(|answer| answer.signed.statement.step == step).ok_or(lacking)?;
        let list = if matches!(lacking, Undecided::Trace(_)) { &mut answer.trace } else { &mut answer.post_state };
        if list.is_some() {
            return Err(lacking.into());
        }
        let Response::Roots(roots) = ask(self.ports, self.worker, &question).await? else {
            return Err(Gap::OffTopic.into());
        };
        *list = Some(roots);
        Ok(())
    }

    async fn prove(
        &self,
        case: &Case,
        logs: &BoundaryLists,
        answers: &[Answer],
        states: &[Vec<TensorRoot>],
        verdict: Verdict,
    ) -> Result<Finding, Failed> {
        let (target, program) = (self.target, &self.replay.shard.program);
        let prover = match (target.standing, &self.programs) {
            (Standing::Committed { at }, _) => Prover::new(*case, program, &target.claim, at, logs).map_err(fatal)?,
            (Standing::Receipt, programs) => {
                let list = programs.as_ref().ok_or(Gap::NoReceipt)?;
                let siblings = list.prove(self.replay.span.first_step)?;
                Prover::of_receipt(*case, program, siblings, &target.claim, logs).map_err(fatal)?
            }
        };
        let step_answer = |step: u32| {
            let answer = answers.iter().find(|answer| answer.signed.statement.step == step)?;
            let local = step.checked_sub(self.replay.span.first_step)? as usize;
            Some(StepAnswer {
                said: &answer.signed,
                trace: answer.trace.as_deref().unwrap_or_default(),
                before: states.get(local)?,
                after: answer.post_state.as_deref().unwrap_or_default(),
            })
        };
        match verdict {
            // The claim and all that was signed are what our second execution gave: our first one erred.
            Verdict::Consistent => Err(fatal(AuditError::Unsteady)),
            Verdict::Element { step, operator } => {
                let said = step_answer(step).ok_or(Undecided::Statement(step))?;
                let (tensors, theirs) = self.outputs(step, operator).await?;
                let element = first_element(&tensors.output, &theirs).ok_or(Gap::Record("output"))?;
                let operands: Vec<&Tensor> = tensors.operands.iter().collect();
                // Bytes, not a tensor: what a liar committed may exceed its type.
                let tree = TensorTree::from_bytes(tensors.output.ty().clone(), &theirs)?;
                let proof = prover.element(&said, operator, element, &tree, &operands).map_err(unproven)?;
                let name = program.names.get(operator as usize).cloned().unwrap_or_default();
                let (claimed, right) = (mantissa(tensors.output.ty(), &theirs, element), tensors.output.get(element));
                let fault = format!(
                    "step {step}, operator {operator} ({name}), element {element}: claimed {}, right is {}",
                    claimed.unwrap_or_default(),
                    right.unwrap_or_default()
                );
                Ok(Finding::Wrong { call: Box::new(Call::Prove(Box::new(proof))), fault })
            }
            Verdict::Wiring { step, sink, index } => {
                let said = step_answer(step).ok_or(Undecided::Statement(step))?;
                let own = self.executor.run(self.replay.clone(), |replay, engine| replay.roots(engine)).await?;
                let local = step.saturating_sub(self.replay.span.first_step) as usize;
                // The traces agree where the wiring does not.
                let trace = own.traces.get(local).map(Vec::as_slice).unwrap_or_default();
                let said = StepAnswer { trace, ..said };
                let proof = prover.wiring(&said, sink, index).map_err(unproven)?;
                let fault = format!("step {step}: {sink:?} {index} is not what its operator computed");
                Ok(Finding::Wrong { call: Box::new(Call::ProveWiring(Box::new(proof))), fault })
            }
            Verdict::Contradiction { first, second } => {
                let (Some(a), Some(b)) = (answers.get(first), answers.get(second)) else {
                    return Err(Gap::OffTopic.into());
                };
                let proof = prover.contradiction(&a.signed, &b.signed).map_err(fatal)?;
                let fault = format!(
                    "the signed statements on steps {} and {} contradict each other or the claim",
                    a.signed.statement.step, b.signed.statement.step
                );
                Ok(Finding::Wrong { call: Box::new(Call::ProveContradiction(Box::new(proof))), fault })
            }
        }
    }

    /// Our tensors of an operator, and the bytes of the worker's output.
    async fn outputs(&self, step: u32, operator: u32) -> Result<(OperatorTensors, Vec<u8>), Failed> {
        let find = move |replay: Replay, engine: E| replay.operator(engine, step, operator);
        let tensors = self.executor.run(self.replay.clone(), find).await?;
        let theirs = self.output(step, operator, tensors.output.ty().byte_len()).await?;
        Ok((tensors, theirs))
    }

    /// The bytes of the worker's output, so many, piece by piece. A worker that gives them too slowly, in crumbs or not
    /// at all is challenged for them.
    async fn output(&self, step: u32, operator: u32, length: u64) -> Result<Vec<u8>, Failed> {
        let most = length.div_ceil(OUTPUT_PIECE as u64).saturating_add(CRUMBS);
        let deadline = self.ports.clock.now().saturating_add(SHOWN);
        let mut theirs = Vec::new();
        for _ in 0..=most {
            let from = theirs.len() as u64;
            if from >= length {
                return Ok(theirs);
            }
            if self.ports.clock.now() > deadline {
                break;
            }
            let question = Request::Output { claim: self.target.id, step, operator, from };
            let Response::Output(piece) = ask(self.ports, self.worker, &question).await? else {
                return Err(Gap::OffTopic.into());
            };
            if piece.is_empty() || piece.len() as u64 > length - from {
                return Err(Gap::OffTopic.into());
            }
            theirs.extend_from_slice(&piece);
        }
        Err(Gap::Slow { given: theirs.len() as u64, length }.into())
    }
}

/// What keeps a proof from being one: what the worker has shown is not what it signed, or else we have erred.
fn unproven(error: FraudError) -> Failed {
    match error {
        FraudError::NotInTrace { .. } | FraudError::List(_) => Gap::Shown(error).into(),
        error => fatal(error),
    }
}

/// The mantissa that an element of canonical bytes stands for, in its type or not; none beyond the bytes.
fn mantissa(ty: &TensorType, bytes: &[u8], element: u64) -> Option<i64> {
    let width = ty.width().bytes();
    let bytes = bytes.chunks(width).nth(usize::try_from(element).ok()?)?;
    let sign = if bytes.last()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 8];
    wide.iter_mut().zip(bytes).for_each(|(wide, byte)| *wide = *byte);
    Some(i64::from_le_bytes(wide))
}
