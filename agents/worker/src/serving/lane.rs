//! A lane's answers to its user: texts computed and receipted, vouchers taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tensorlink_model::CacheEngine;
use tensorlink_node::blocking;
use tensorlink_node::footprint::{QUEUE, queue};
use tensorlink_node::ports::{Clock, Owner, Ports, StoreError};
use tensorlink_node::serving::ServingShard;
use tensorlink_node::wire::rpc::{Advance, Receipt, Response};
use tensorlink_num::{Tensor, TensorError};
use tensorlink_proof::commit::{Crossed, SignatureError, receipt, tensor_root};
use tensorlink_types::{Lane, TypeError};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::book::{Book, EnterError, Entry, Signed};
use super::runner::{Cached, Whole};
use super::texts::{Step, Text};
use super::thread::{Done, LaneThread, StartError};
use crate::context::Context;

/// Tokens of credit unless configured otherwise, and in longest texts: whichever is more.
const CREDIT: (u32, u32) = (65_536, 16);

/// Why an ended text gets no receipt. Its text goes to the user.
#[derive(Debug, Error)]
pub enum ReceiptError {
    /// It was entered before, or there is no room.
    #[error(transparent)]
    Enter(#[from] EnterError),
    /// Its tensors could not be kept for auditors.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its rows make no tensor; a defect.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// There is no type for so many rows.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// We could not sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
}

/// A lane that serves.
pub struct ServingLane {
    lane: Lane,
    ports: Ports,
    shard: Arc<ServingShard>,
    book: Arc<Book>,
    thread: LaneThread,
    /// Most tokens delivered and not paid, beyond those of texts that are open.
    credit: u64,
    /// Set when the job takes no more texts.
    closing: CancellationToken,
    /// Tokens of texts that had ended before.
    again: AtomicU64,
    /// Requests that wait, and kibibytes of their rows.
    waiting: (Semaphore, Semaphore),
}

impl ServingLane {
    /// Moves the stage to an engine, on a thread of its own. It has memory for the keys and values of one text, and so
    /// many bytes more.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start<E>(
        context: &Context<E>,
        (shard, more): (Arc<ServingShard>, u64),
        book: Arc<Book>,
        closing: CancellationToken,
    ) -> Result<Self, StartError>
    where
        E: CacheEngine + Send + 'static,
    {
        let (lane, engine) = (book.payer().lane, context.engine.clone());
        let clock: Arc<dyn Clock> = context.ports.clock.clone();
        let thread = if shard.goes_on() {
            let make = move |shard| {
                let engine = engine().map_err(|e| e.to_string())?;
                Cached::new(engine, shard, more).map_err(|e| e.to_string())
            };
            LaneThread::start(lane, shard.clone(), clock, make).await?
        } else {
            let make = move |shard| {
                let engine = engine().map_err(|e| e.to_string())?;
                Whole::new(engine, shard).map_err(|e| e.to_string())
            };
            LaneThread::start(lane, shard.clone(), clock, make).await?
        };
        let most = CREDIT.0.max(shard.longest.saturating_mul(CREDIT.1));
        let credit = context.config.credit.unwrap_or(most).into();
        let text = shard.recorded(shard.longest);
        let text = text.map_err(|error| StartError::Engine { lane, reason: error.to_string() })?;
        let kib = usize::try_from(queue(text).div_ceil(1024)).unwrap_or(usize::MAX);
        let waiting = (Semaphore::new(QUEUE), Semaphore::new(kib.min(Semaphore::MAX_PERMITS)));
        Ok(Self {
            lane,
            ports: context.ports.clone(),
            shard,
            book,
            thread,
            credit,
            closing,
            again: AtomicU64::new(0),
            waiting,
        })
    }

    /// The stage.
    pub const fn shard(&self) -> &Arc<ServingShard> {
        &self.shard
    }

    /// Waits until the lane's thread has ended: it panicked.
    pub async fn ended(&self) {
        self.thread.ended().await;
    }

    /// Answers the job's user, who sends the next tokens of a text.
    pub async fn advance(&self, request: Advance) -> Response {
        let step = match self.step(request) {
            Ok(step) => step,
            Err(reason) => return Response::Declined(reason),
        };
        let owed = self.owed(&step);
        if owed > self.credit {
            return Response::Unpaid { tokens: u32::try_from(owed).unwrap_or(u32::MAX) };
        }
        let bytes = step.rows.len().saturating_add(step.controls.len());
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let places = (self.waiting.0.try_acquire(), self.waiting.1.try_acquire_many(kib));
        let (Ok(_place), Ok(_room)) = places else { return Response::Busy };
        let text = step.text;
        match self.thread.advance(step).await {
            Done::Rows(output) => Response::Advanced { output, receipt: None },
            Done::Ended(output, ended) => match self.receipt(text, ended).await {
                Ok(receipt) => Response::Advanced { output, receipt: Some(receipt) },
                Err(error) => Response::Declined(error.to_string()),
            },
            Done::Rewind(position) => Response::Rewind { position },
            Done::Busy => Response::Busy,
            Done::Refused(reason) => Response::Declined(reason),
        }
    }

    /// Forgets a text.
    pub fn abandon(&self, text: u32) -> Response {
        self.thread.forget(text);
        Response::Done
    }

    /// Tokens that count against the credit before a step. An open text always comes to its end, because only then it
    /// can be paid for; it is new texts that wait until those that are open are paid for, too.
    fn owed(&self, step: &Step) -> u64 {
        if step.tokens == 0 {
            return 0;
        }
        let again = self.again.load(Ordering::Relaxed);
        let owed = self.book.owed_with(self.thread.lost().saturating_add(again));
        if step.position == 0 { owed.saturating_add(self.thread.open()) } else { owed }
    }

    /// A request in the form that the thread takes, or what is wrong with it.
    fn step(&self, request: Advance) -> Result<Step, String> {
        let Advance { text, position, inputs, last, .. } = request;
        if self.closing.is_cancelled() && position == 0 {
            return Err("the job is closing and takes no new texts".into());
        }
        let (rows, controls) = self.inputs(inputs, last && position > 0)?;
        let longest = self.shard.longest;
        let row = self.shard.received(1).map_err(|e| e.to_string())?.byte_len();
        let bytes = rows.len() as u64;
        let tokens = bytes.checked_div(row).filter(|tokens| tokens.checked_mul(row) == Some(bytes));
        let tokens = tokens.ok_or_else(|| format!("{bytes} bytes are no whole rows: a row of this stage has {row}"))?;
        let end = tokens.saturating_add(position.into());
        let fits = u32::try_from(tokens).ok().filter(|_| end <= longest.into());
        let tokens = fits.ok_or_else(|| format!("a text of {end} tokens or more: this job takes at most {longest}"))?;
        let due = match self.shard.controls(1).map_err(|e| e.to_string())? {
            Some(one) => one.byte_len().saturating_mul(tokens.into()),
            None => 0,
        };
        if controls.len() as u64 != due {
            return Err(format!("{} bytes of controls for {tokens} tokens: send {due}", controls.len()));
        }
        let most = self.book.payer().most;
        if self.book.of_text(text).is_none() {
            if self.book.delivered().saturating_add(end) > most.into() {
                return Err(format!("the job pays for {most} tokens, and these are beyond: post another"));
            }
            self.book.has_room().map_err(|e| e.to_string())?;
        }
        Ok(Step { text, position, rows, controls, tokens, last })
    }

    /// Rows and controls of a request; who `ends` a text need not send any.
    fn inputs(&self, inputs: Vec<Vec<u8>>, ends: bool) -> Result<(Vec<u8>, Vec<u8>), String> {
        let controls = self.shard.controls(1).map_err(|e| e.to_string())?.is_some();
        let count = inputs.len();
        let mut inputs = inputs.into_iter();
        match (count, controls) {
            (0, _) if ends => Ok((Vec::new(), Vec::new())),
            (1, false) | (2, true) => Ok((inputs.next().unwrap_or_default(), inputs.next().unwrap_or_default())),
            (_, false) => Err(format!("{count} tensors of rows: this stage receives one")),
            (_, true) => Err(format!("{count} tensors: this stage receives rows and the controls of each")),
        }
    }

    /// Signs for a text that has ended, once everything that an auditor may ask for is on disk.
    async fn receipt(&self, number: u32, text: Text) -> Result<Receipt, ReceiptError> {
        let (lane, shard, ports, tokens) = (self.lane, self.shard.clone(), self.ports.clone(), text.tokens);
        let Text { received, controls, given, .. } = text;
        let at = received.len();
        let inputs = Bytes::from([received, controls].concat());
        let bytes = inputs.clone();
        let signing = move || {
            let received = Tensor::from_bytes(shard.received(tokens)?, bytes.get(..at).unwrap_or_default())?;
            let controls = match shard.controls(tokens)? {
                Some(ty) => Some(Tensor::from_bytes(ty, bytes.get(at..).unwrap_or_default())?),
                None => None,
            };
            let given = Tensor::from_bytes(shard.given(tokens)?, &given)?;
            let (from_previous, to_next) = (tensor_root(&received), tensor_root(&given));
            let from_next = controls.as_ref().map(tensor_root);
            let (claim, logs) = receipt(lane, number, &Crossed { from_previous, from_next, to_next });
            let signature = ports.identity.sign(ports.contracts.claim_id(&claim).0)?.to_vec();
            Ok::<_, ReceiptError>(Receipt { claim, logs: logs.roots(), tokens, signature })
        };
        // A text that is sent again gets the receipt that it has.
        if let Some(known) = self.book.of_text(number) {
            let receipt = blocking(signing).await?;
            self.again.fetch_add(tokens.into(), Ordering::Relaxed);
            let same = known.claim == receipt.claim;
            return if same { Ok(known) } else { Err(EnterError::OtherText(number).into()) };
        }
        // Between storing and naming them the inputs could be let go of for another text, which had the same.
        let _pins = self.ports.pins.lock().await;
        // The user waits for both, and neither for the other.
        let storing = async { Ok(self.ports.store.of(Owner::Lane(lane)).put(inputs).await?.to_string()) };
        let (receipt, inputs) = tokio::try_join!(blocking(signing), storing)?;
        let book = self.book.clone();
        Ok(blocking(move || book.enter(Entry { receipt, inputs })).await?)
    }
}

/// Takes a voucher of the job's user.
pub async fn pay(book: Arc<Book>, signed: Signed, now: u64) -> Response {
    match blocking(move || book.pay(signed, now)).await {
        Ok(()) => Response::Done,
        Err(error) => Response::Declined(error.to_string()),
    }
}
