//! Moves and events of `Challenges`.

use alloy::primitives::U256;
use alloy::sol_types::{Error, SolCall};
use tensorlink_bindings::Challenges;
use tensorlink_bindings::challenges::Challenges::ChallengesEvents;
use tensorlink_node::ports::chain::Event;
use tensorlink_proof::challenge::{Move, Row, Told};
use tensorlink_proof::commit::SenderSignatures;

use crate::convert::recode;

/// A move as the contract takes it. The number of the challenge is not looked at where one is opened.
pub(crate) fn encode(challenge: U256, step: &Move) -> Result<Vec<u8>, Error> {
    use Challenges as C;
    Ok(match step {
        Move::Open { claim, committed_at, question } => {
            C::openCall { claim: recode(claim)?, committedAt: *committed_at, question: recode(question)? }.abi_encode()
        }
        Move::AnswerSteps { position, claim, steps, siblings, way, data } => C::answerStepsCall {
            challenge,
            position: recode(position)?,
            claim: recode(claim)?,
            steps: *steps,
            siblings: siblings.clone(),
            way: recode(way)?,
            data: data.clone(),
        }
        .abi_encode(),
        Move::AnswerStatement { position, facts, said, way, data } => C::answerStatementCall {
            challenge,
            position: recode(position)?,
            facts: recode(facts)?,
            said: recode(said)?,
            way: recode(way)?,
            data: data.clone(),
        }
        .abi_encode(),
        Move::AnswerOutput { position, facts, data_root, way, data } => C::answerOutputCall {
            challenge,
            position: recode(position)?,
            facts: recode(facts)?,
            dataRoot: *data_root,
            way: recode(way)?,
            data: data.clone(),
        }
        .abi_encode(),
        Move::AnswerLogs { position, facts, claim, said } => C::answerLogsCall {
            challenge,
            position: recode(position)?,
            facts: recode(facts)?,
            claim: recode(claim)?,
            said: recode(&**said)?,
        }
        .abi_encode(),
        Move::Answer { position, way, data } => {
            C::answerCall { challenge, position: recode(position)?, way: recode(way)?, data: data.clone() }.abi_encode()
        }
        Move::Ask { position, pick, question } => {
            C::askCall { challenge, position: recode(position)?, pick: recode(pick)?, question: recode(question)? }
                .abi_encode()
        }
        Move::AskTree { position, facts, subject, question } => C::askTreeCall {
            challenge,
            position: recode(position)?,
            facts: recode(facts)?,
            subject: subject.to_number(),
            question: recode(question)?,
        }
        .abi_encode(),
        Move::AskStatement { position, facts, claim, pick, pre_state, pre_siblings, question } => C::askStatementCall {
            challenge,
            position: recode(position)?,
            facts: recode(facts)?,
            claim: recode(claim)?,
            pick: recode(pick)?,
            preState: *pre_state,
            preSiblings: pre_siblings.clone(),
            question: recode(question)?,
        }
        .abi_encode(),
        Move::AskOutput { position, facts, pick, operator, membership, question } => C::askOutputCall {
            challenge,
            position: recode(position)?,
            facts: recode(facts)?,
            pick: recode(pick)?,
            operator: recode(operator)?,
            operatorMembership: membership.clone(),
            question: recode(question)?,
        }
        .abi_encode(),
        Move::AskLogs { position } => C::askLogsCall { challenge, position: recode(position)? }.abi_encode(),
        Move::AskLog { position, facts, claim, logs, boundary, question } => C::askLogCall {
            challenge,
            position: recode(position)?,
            facts: recode(facts)?,
            claim: recode(claim)?,
            logs: recode(logs)?,
            edge: *boundary,
            question: recode(question)?,
        }
        .abi_encode(),
        Move::Fund { .. } => C::fundCall { challenge }.abi_encode(),
        Move::Timeout => C::timeoutCall { challenge }.abi_encode(),
    })
}

/// An event as the port tells it.
pub(crate) fn event(event: ChallengesEvents) -> Result<Option<Event>, Error> {
    use ChallengesEvents as E;
    let (challenge, told) = match event {
        E::ChallengeOpened(e) => {
            return Ok(Some(Event::ChallengeOpened {
                challenge: e.challenge,
                id: e.claimId.into(),
                claim: recode(&e.claim)?,
                challenger: e.challenger,
                worker: e.worker,
            }));
        }
        E::Funded(e) => (e.challenge, Told::Funded { amount: e.amount }),
        E::Charged(e) => {
            let gas = e.gasUsed.try_into().map_err(|_| Error::custom("gas that no block holds"))?;
            (e.challenge, Told::Charged { gas, owed: e.owed, spent: e.spent })
        }
        E::Collected(_) => return Ok(None),
        E::Asked(e) => {
            let (deadline, position) = (e.deadline.to(), recode(&e.position)?);
            (e.challenge, Told::Asked { deadline, position, hints: e.hints })
        }
        E::Answered(e) => {
            let row = Row { position: recode(&e.position)?, siblings: e.siblings, data: e.data };
            (e.challenge, Told::Answered { deadline: e.deadline.to(), row })
        }
        E::Established(e) => (e.challenge, Told::Established { facts: recode(&e.facts)? }),
        E::Stated(e) => (e.challenge, Told::Stated { signature: e.signature }),
        E::LogsGiven(e) => {
            let signatures = SenderSignatures { previous: e.previousSignature, next: e.nextSignature };
            (e.challenge, Told::LogsGiven { logs: recode(&e.logs)?, signatures })
        }
        E::ChallengeWon(e) => (e.challenge, Told::Won { silence: e.silence }),
        E::ChallengeLost(e) => (e.challenge, Told::Lost),
    };
    Ok(Some(Event::Challenge { challenge, told }))
}
