//! What operators and tensors are called in the model. The chain does not know: the job's files do.

use tensorlink_types::{Program, Source};

use super::facts::{Challenge, Deed, Dispute, Found, Named, Operand, Question, Sink, Wiring};

/// Whether there is anything in a dispute that has a name in the model.
pub fn wanted(dispute: &Dispute) -> bool {
    let shown = dispute.conviction.as_ref().and_then(|conviction| conviction.found.as_ref());
    let asked = dispute.challenges.iter().any(|challenge| questions(challenge).any(|q| q.operator.is_some()));
    asked || matches!(shown, Some(Found::Element(_) | Found::Wiring(_)))
}

fn questions(challenge: &Challenge) -> impl Iterator<Item = &Question> {
    challenge.moves.iter().filter_map(|step| match &step.deed {
        Deed::Asked { question, .. } | Deed::Answered { question, .. } => Some(question),
        Deed::Won { .. } | Deed::Lost => None,
    })
}

/// Writes the names of a program into a dispute about it.
pub fn write(dispute: &mut Dispute, program: &Program) {
    match dispute.conviction.as_mut().and_then(|conviction| conviction.found.as_mut()) {
        Some(Found::Element(element)) => {
            operator(program, &mut element.operator);
            element.operands.iter_mut().for_each(|operand| name(program, operand));
        }
        Some(Found::Wiring(wiring)) => {
            operator(program, &mut wiring.operator);
            let Wiring { sink, place, .. } = wiring;
            if *sink == Sink::State {
                place.name = at(&program.state, place.index).map(|slot| slot.name.clone());
            }
        }
        Some(Found::Contradiction(_) | Found::Equivocation(_)) | None => {}
    }
    for challenge in &mut dispute.challenges {
        let told = challenge.moves.iter_mut().filter_map(|step| match &mut step.deed {
            Deed::Asked { question, .. } | Deed::Answered { question, .. } => Some(question),
            Deed::Won { .. } | Deed::Lost => None,
        });
        let asked = challenge.waiting.as_mut().map(|waiting| &mut waiting.question);
        for question in told.chain(asked) {
            if let Some(about) = &mut question.operator {
                operator(program, about);
            }
        }
    }
}

fn at<T>(list: &[T], index: u32) -> Option<&T> {
    list.get(usize::try_from(index).ok()?)
}

fn operator(program: &Program, named: &mut Named) {
    named.name = at(&program.names, named.index).cloned();
}

fn name(program: &Program, operand: &mut Operand) {
    operand.name = match operand.source {
        Source::Output(index) => at(&program.names, index).cloned(),
        Source::State(index) => at(&program.state, index).map(|slot| slot.name.clone()),
        Source::Constant(index) => at(&program.constants, index).map(|slot| slot.name.clone()),
        Source::FromPrevious(_) | Source::FromNext(_) => None,
    };
}
