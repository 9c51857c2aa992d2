//! What a worker was convicted of, in words. The only place that has a text for each kind of fault: a new kind gets its
//! own here.

use tensorlink_node::ports::chain::Fault;
use tensorlink_types::Source;

use super::numbers::{count, real};
use super::question::question;
use super::{claim, operator};
use crate::dispute::facts::{
    Challenge, Clash, Conviction, Deed, Dispute, Element, Equivocation, Found, Operand, Sink, Wiring,
};

/// What happened, short, and what was found, at length.
pub(super) struct Words {
    /// Completes "worker … was convicted: ".
    pub(super) title: &'static str,
    /// Paragraphs.
    pub(super) told: Vec<String>,
}

/// The words for a conviction.
pub(super) fn words(dispute: &Dispute, conviction: &Conviction) -> Words {
    let step = claim::step(dispute, conviction.step);
    match conviction.fault {
        Fault::Element => Words { title: "it got a number wrong", told: element(&step, dispute, conviction) },
        Fault::Wiring => {
            Words { title: "what it passed on is not what it computed", told: wiring(&step, dispute, conviction) }
        }
        Fault::Contradiction => Words { title: "it contradicted itself", told: vec![contradiction(&step, conviction)] },
        Fault::Silence => {
            Words { title: "it did not answer a challenge in time", told: vec![silence(dispute, conviction)] }
        }
        Fault::Equivocation => Words {
            title: "it told its neighbour one thing and the chain another",
            told: vec![equivocation(conviction)],
        },
        Fault::Withholding => Words {
            title: "it did not show data that it holds",
            told: vec![
                "Part of a file or state that this worker had, or had signed that it keeps for another, was demanded on chain, and it did \
                 not show it in time. Nothing says that what it computed is wrong: its claims stand."
                    .to_owned(),
            ],
        },
    }
}

fn element(step: &str, dispute: &Dispute, conviction: &Conviction) -> Vec<String> {
    let Conviction { operator: index, element, claimed, recomputed, .. } = conviction;
    let Some(Found::Element(shown)) = &conviction.found else {
        return vec![format!(
            "The wrong number is {step}: element {element} of the output of operator {index}. The worker's signed trace holds \
             {claimed}, the contract computed {recomputed}. What the operator does cannot be read here: another contract brought the \
             proof, or the endpoint does not remember the transaction."
        )];
    };
    let Element { operator: named, opcode, operands, output, place, real: numbers } = shown;
    let operator = operator(named, Some(*opcode));
    let from: Vec<String> = operands.iter().map(operand).collect();
    let mut first = format!("The wrong number is {step}, in the output of {operator}.");
    first += &format!(" It computes from {}.", listed(&from));
    if named.name.is_none()
        && let Some(reason) = &dispute.nameless
    {
        first += &format!(" What the model calls it could not be found out: {reason}.");
    }
    let shape = output.dims();
    let place = place.as_ref().map_or_else(
        || {
            format!(
                "lies behind the {} of shape {shape:?}, where only zeros may fill the last 256 bytes",
                count(output.elements(), "element")
            )
        },
        |place| format!("stands at {place:?} of shape {shape:?}"),
    );
    let row = |name: &str, integer: &str, number: Option<f64>| {
        let number = number.map_or_else(String::new, |number| format!(", which stands for {}", real(number)));
        format!("  {name:<10}{integer}{number}")
    };
    let mut second = vec![
        format!("Element {element} {place}:"),
        row("claimed", claimed, numbers.map(|(claimed, _)| claimed)),
        row("expected", recomputed, numbers.map(|(_, recomputed)| recomputed)),
    ];
    if numbers.is_some() {
        second.push(format!("An integer m of this tensor stands for m · 2^{}.", -i32::from(output.exponent())));
    }
    let third = "The claimed one is in the trace that the worker signed. The expected one the contract computed itself, from what the worker \
                 signed or committed to, and from the job's own program and constants.";
    vec![first, second.join("\n"), third.to_owned()]
}

fn operand(operand: &Operand) -> String {
    let name = operand.name.as_ref().map_or_else(String::new, |name| format!(" `{name}`"));
    match operand.source {
        Source::Output(index) => format!("the output of operator {index}{name}"),
        Source::State(index) => format!("tensor {index}{name} of the state before the step"),
        Source::Constant(index) => format!("constant {index}{name}"),
        Source::FromPrevious(micro_batch) => format!("what the stage before sent for micro-batch {micro_batch}"),
        Source::FromNext(micro_batch) => format!("what the stage after sent for micro-batch {micro_batch}"),
    }
}

fn listed(parts: &[String]) -> String {
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

fn wiring(step: &str, dispute: &Dispute, conviction: &Conviction) -> Vec<String> {
    let Conviction { operator: index, element: entry, .. } = conviction;
    let meaning = "Each number may be right. But what a step computes has to be what it leaves in its state and what it sends on: else a worker \
                   could compute one thing for the auditors and go on with another.";
    let Some(Found::Wiring(Wiring { operator: named, sink, place, traced, committed })) = &conviction.found else {
        return vec![
            format!(
                "The worker's own commitments do not agree {step}: the output of operator {index} is one tensor in its signed trace and \
                 another where the program puts it, at entry {entry}."
            ),
            meaning.to_owned(),
        ];
    };
    let operator = operator(named, None);
    let name = place.name.as_ref().map_or_else(String::new, |name| format!(" `{name}`"));
    let index = place.index;
    let (sink, holds) = match sink {
        Sink::State => (format!("tensor {index}{name} of the state"), "the state after the step that it stated holds"),
        Sink::ToNext => {
            (format!("what goes to the next stage for micro-batch {index}"), "its log of tensors sent holds")
        }
        Sink::ToPrevious => {
            (format!("what goes to the stage before for micro-batch {index}"), "its log of tensors sent holds")
        }
    };
    let mut first = format!(
        "The worker's own commitments do not agree {step}. By the program the output of {operator} is {sink}. The trace that the worker \
         signed holds tensor {traced} for it; {holds} tensor {committed} in its place."
    );
    if named.name.is_none()
        && let Some(reason) = &dispute.nameless
    {
        first += &format!(" What the model calls these could not be found out: {reason}.");
    }
    vec![first, meaning.to_owned()]
}

fn contradiction(step: &str, conviction: &Conviction) -> String {
    let law = "Who signs only what it computed can never do that.";
    let Some(Found::Contradiction(clash)) = &conviction.found else {
        return format!(
            "The worker signed something about itself {step} that cannot be true beside what else it said. {law}"
        );
    };
    let said = match clash {
        Clash::Start { stated, claimed } => {
            format!("it signed that the step started from state {stated}; its claim starts from {claimed}")
        }
        Clash::End { stated, claimed } => {
            format!("it signed that the step ended in state {stated}; its claim ends in {claimed}")
        }
        Clash::Outcomes { first: [pre, post, trace], second: [other_pre, other_post, other_trace] } => format!(
            "it signed two outcomes of one step: from state {pre} to {post} by trace {trace}, and from {other_pre} to {other_post} by \
             trace {other_trace}"
        ),
        Clash::Gap { ended, started } => {
            format!("it signed that this step ended in state {ended}, and that the next started from {started}")
        }
        Clash::Lengths { first, second } => {
            format!("it signed that the same text has {first} tokens, and that it has {second}")
        }
    };
    format!(
        "The worker's signed words do not fit together {step}: {said}. {law} No number had to be computed to see it."
    )
}

fn equivocation(conviction: &Conviction) -> String {
    let law = "Who signs what it sent can never do that. The bounty goes to the neighbour's worker, who was misled.";
    match &conviction.found {
        Some(Found::Equivocation(Equivocation { stage, signed, claimed })) => format!(
            "The worker signed to its neighbour at stage {stage} that the tensors it sent there in this interval are those of list \
             {signed}; its claim says that they are those of list {claimed}. {law}"
        ),
        _ => format!(
            "The worker signed to a neighbour one list of the tensors that it sent in this interval, and claimed another. {law}"
        ),
    }
}

fn silence(dispute: &Dispute, conviction: &Conviction) -> String {
    let ended = |challenge: &&Challenge| {
        challenge.moves.iter().any(|step| step.sent.transaction == conviction.sent.transaction)
    };
    let law = "Whoever made a claim can answer every question about it from what it computed; who keeps silent until its clock has run \
               out is convicted as if it had been proven wrong.";
    let Some(challenge) = dispute.challenges.iter().find(ended) else {
        return format!(
            "Another challenge asked the worker about the claim, or somebody demanded the state that it ends in, or what it says was sent to a \
             neighbour, and the worker did not answer in time. {law}"
        );
    };
    let last = challenge.moves.iter().rev().find_map(|step| match &step.deed {
        Deed::Asked { question, deadline } => Some((question, *deadline)),
        Deed::Answered { .. } | Deed::Won { .. } | Deed::Lost => None,
    });
    let asked = last.map_or_else(String::new, |(asked, deadline)| {
        format!(" for {}. It had until {} and gave nothing", question(asked), super::numbers::time(deadline))
    });
    format!("Challenge {} asked the worker{asked}. {law}", challenge.number)
}
