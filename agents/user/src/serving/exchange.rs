//! Brings a text forward in one lane: sends the rows that its worker lacks, in parts that fit a frame, until it has
//! them all.

use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::wire::rpc::{Advance, Receipt, Request, Response};

use super::fault::LaneFault;
use super::lane::{LaneClient, PayFault};

/// Times that a worker may say it is busy or unpaid; with the waits some 20 s.
const WAITS: u32 = 12;
/// Waits between them: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Times that a worker may lose a text.
const REWINDS: u32 = 3;

/// What a lane is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a> {
    pub(super) text: u32,
    /// Tokens of the text so far.
    pub(super) tokens: u32,
    /// Their rows on the boundary into the stage, and the bytes of one.
    pub(super) input: (&'a [u8], usize),
    /// Rows of their controls, and the bytes of one; for a stage that chooses tokens.
    pub(super) controls: Option<(&'a [u8], usize)>,
    /// What the stage gave for the first of them, and the bytes of a row; 0 if it gives one row a text.
    pub(super) known: (&'a [u8], usize),
    /// Bytes of what it gives for all of them.
    pub(super) whole: usize,
    /// Most tokens of a message.
    pub(super) part: u32,
    /// Whether the text ends with these.
    pub(super) last: bool,
}

/// What a lane gave.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Given {
    /// What goes beyond the rows that were known; all of it if the stage gives one row a text.
    pub(super) rows: Vec<u8>,
    /// To the last tokens.
    pub(super) receipt: Option<Receipt>,
    /// How long the worker took; none where it was busy or not paid yet, or was sent rows again.
    pub(super) took: Option<Duration>,
}

impl LaneClient {
    /// Brings a text forward from the `held` tokens that the worker should have to all. It is asked at least once, with
    /// no rows if it has them all: so a text ends whose last tokens were not known to be the last.
    ///
    /// # Errors
    /// [`LaneFault`].
    pub(super) async fn advance(&self, ports: &Ports, task: Task<'_>, held: u32) -> Result<Given, LaneFault> {
        let mut given = Given { rows: Vec::new(), receipt: None, took: Some(Duration::ZERO) };
        let (mut position, mut waits, mut rewinds, mut pause) = (held, 0, 0, PAUSE.0);
        loop {
            let end = task.tokens.min(position.saturating_add(task.part));
            let last = task.last && end == task.tokens;
            let tensors = [Some(task.input), task.controls];
            let rows = tensors.into_iter().flatten().map(|rows| Ok(slice(rows, position, end)?.to_vec()));
            let inputs = rows.collect::<Result<_, LaneFault>>()?;
            let question = Advance { lane: self.lane, text: task.text, position, inputs, last };
            let (answer, took) = self.ask_timed(ports, &Request::Advance(question)).await?;
            given.took = given.took.map(|before| before.saturating_add(took));
            match answer {
                Response::Advanced { output, receipt } => {
                    task.take(&mut given, (position, end), output)?;
                    position = end;
                    if end == task.tokens {
                        given.receipt = receipt;
                        return Ok(given);
                    }
                }
                Response::Rewind { position: has } => {
                    rewinds += 1;
                    given.took = None;
                    if has >= position || rewinds > REWINDS {
                        return Err(if rewinds > REWINDS { LaneFault::Forgetful } else { LaneFault::OffTopic });
                    }
                    position = has;
                    // Rows since then are given again.
                    let keep = task.known.1.saturating_mul(has as usize).saturating_sub(task.known.0.len());
                    given.rows.truncate(keep);
                }
                busy @ (Response::Busy | Response::Unpaid { .. }) => {
                    waits += 1;
                    given.took = None;
                    if let Response::Unpaid { tokens } = busy {
                        tracing::debug!(lane = %self.lane, tokens, "the worker asks to be paid first");
                        self.settle(ports).await?;
                        if waits > WAITS {
                            return Err(LaneFault::Unpaid(tokens));
                        }
                    } else if waits > WAITS {
                        return Err(LaneFault::Busy);
                    }
                    ports.clock.sleep(pause).await;
                    pause = pause.saturating_mul(2).min(PAUSE.1);
                }
                Response::Declined(reason) => return Err(LaneFault::Declined(reason)),
                _ => return Err(LaneFault::OffTopic),
            }
        }
    }

    /// Pays what is due, with regard to what the lane has redeemed meanwhile.
    async fn settle(&self, ports: &Ports) -> Result<(), LaneFault> {
        self.look(ports).await?;
        match self.pay(ports, true).await {
            // Its money is on its way through the chain.
            Ok(()) | Err(PayFault::Unredeemed(_)) => Ok(()),
            Err(PayFault::Lane(fault)) => Err(fault),
            Err(PayFault::Account(error)) => Err(error.into()),
            Err(PayFault::Journal(error)) => Err(LaneFault::Declined(error.to_string())),
        }
    }
}

impl Task<'_> {
    /// Takes in what the stage gave for tokens `[position, end)`.
    fn take(&self, given: &mut Given, (position, end): (u32, u32), output: Vec<u8>) -> Result<(), LaneFault> {
        let (known, row) = self.known;
        if row == 0 {
            // Before the text is whole, one row for all of it means nothing.
            if end == self.tokens {
                given.rows = expect(output, self.whole)?;
            }
            return Ok(());
        }
        let output = expect(output, row.saturating_mul(end.saturating_sub(position) as usize))?;
        // Rows that the text had before: the same, or somebody computes wrongly.
        let start = row.saturating_mul(position as usize);
        let before = known.get(start..).unwrap_or_default();
        let again = before.len().min(output.len());
        let (again, fresh) = output.split_at_checked(again).unwrap_or((&output, &[]));
        if !before.starts_with(again) {
            return Err(LaneFault::Changed);
        }
        given.rows.extend_from_slice(fresh);
        Ok(())
    }
}

fn expect(output: Vec<u8>, expected: usize) -> Result<Vec<u8>, LaneFault> {
    if output.len() == expected { Ok(output) } else { Err(LaneFault::Length { expected, actual: output.len() }) }
}

/// Rows `[from, to)`.
fn slice((rows, row): (&[u8], usize), from: u32, to: u32) -> Result<&[u8], LaneFault> {
    let at = |token: u32| row.saturating_mul(token as usize);
    let expected = at(to);
    rows.get(at(from)..expected).ok_or(LaneFault::Length { expected, actual: rows.len() })
}
