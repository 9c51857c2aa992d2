//! A worker that computes right, and misbehaves as a test asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tensorlink_model::StageRunner;
use tensorlink_node::Identity;
use tensorlink_node::ports::{Incoming, Net, Protocol};
use tensorlink_node::serving::{Gives, ServingShard};
use tensorlink_node::wire::rpc::{Advance, Receipt, Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_proof::commit::{Crossed, receipt, receipt_list, tensor_root, verify_signer};
use tensorlink_types::abi::{Claim, Voucher};
use tensorlink_types::{B256, ClaimId, Lane, TensorType};
use tokio::sync::oneshot;

use crate::support::serving::user;
use crate::support::{CONTRACTS, Hub, MemoryNet, identity};

/// Bytes of a row of controls.
const CONTROLS_ROW: usize = 44;

/// How a worker behaves, until it is told otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    Honest,
    /// Answers nothing.
    Dead,
    /// Computes so often, and answers nothing then.
    Dies(u32),
    /// Computes and signs, and its next answers get lost.
    Loses(u32),
    /// Keeps the next answer with a receipt back, until it is released.
    Lags,
    /// Answers after so many milliseconds.
    Slow(u64),
    /// Forgets the text before the next call.
    Forgets,
    /// Says so until a voucher lists all that it has signed.
    WantsMoney,
    Busy(u32),
    Declines,
    /// Its receipts are wrong.
    Signs(Wrong),
    /// Gives one byte less.
    Short,
    /// Gives other numbers, and signs for them.
    Lies,
    /// Gives other numbers, and signs for nothing.
    Denies,
    /// Chooses what is no token.
    Babbles,
}

/// What is wrong with a receipt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    Absent,
    Tokens,
    Logs,
    /// As if tokens had been chosen by nobody.
    Controls,
    Io,
    State,
    Text,
    Stage,
    Replica,
    Job,
    Signer,
    Garbage,
}

/// What a worker saw and has.
pub(crate) struct Inner {
    pub(crate) manner: Manner,
    pub(crate) advances: Vec<(u32, u32, bool)>,
    pub(crate) abandoned: Vec<u32>,
    /// What it signed, in that order.
    pub(crate) receipts: Vec<(Claim, u32)>,
    pub(crate) vouchers: Vec<Voucher>,
    /// Its epochs: the receipts that each begins after.
    epochs: Vec<usize>,
    /// An answer that is kept back.
    pub(crate) kept: Option<(Response, oneshot::Sender<Bytes>)>,
    /// How often its receipts were asked for.
    pub(crate) asked: u32,
    /// Rows, and rows of controls.
    texts: HashMap<u32, (Vec<u8>, Vec<u8>)>,
}

impl Inner {
    /// Sends an answer, or keeps it back.
    fn deliver(&mut self, response: Response, reply: oneshot::Sender<Bytes>) {
        if self.manner == Manner::Lags && matches!(response, Response::Advanced { receipt: Some(_), .. }) {
            (self.manner, self.kept) = (Manner::Honest, Some((response, reply)));
        } else if let Manner::Slow(milliseconds) = self.manner {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                let _ = reply.send(encode("response", &response).unwrap());
            });
        } else {
            let _ = reply.send(encode("response", &response).unwrap());
        }
    }

    /// Sends what was kept back.
    pub(crate) fn release(&mut self) {
        let (response, reply) = self.kept.take().unwrap();
        self.deliver(response, reply);
    }

    /// How many of its receipts vouchers list.
    fn listed(&self) -> usize {
        let (epoch, start) = (self.epochs.len() as u32, *self.epochs.last().unwrap());
        let last = self.vouchers.iter().rfind(|last| last.epoch == epoch);
        last.map_or(start, |voucher| self.named(start, voucher).unwrap())
    }

    /// Where the list of a voucher ends that begins at `start`.
    fn named(&self, start: usize, voucher: &Voucher) -> Option<usize> {
        let ids: Vec<ClaimId> = self.receipts.iter().map(|(claim, _)| CONTRACTS.claim_id(claim)).collect();
        (start..=ids.len()).find(|end| receipt_list(&ids[start..*end]).root() == voucher.receipts)
    }
}

pub(crate) struct Worker {
    lane: Lane,
    key: Identity,
    shard: Arc<ServingShard>,
    pub(crate) inner: Mutex<Inner>,
}

impl Worker {
    pub(crate) async fn start(lane: Lane, key: u8, shard: Arc<ServingShard>, hub: &Arc<Hub>) -> Arc<Self> {
        let key = identity(key);
        let mut requests = MemoryNet { own: key.address(), hub: hub.clone() }.serve(Protocol::Rpc).await.unwrap();
        let inner = Inner {
            manner: Manner::Honest,
            advances: vec![],
            abandoned: vec![],
            receipts: vec![],
            vouchers: vec![],
            epochs: vec![0],
            kept: None,
            asked: 0,
            texts: HashMap::new(),
        };
        let worker = Arc::new(Self { lane, key, shard, inner: Mutex::new(inner) });
        let own = worker.clone();
        tokio::spawn(async move {
            while let Some(Incoming { body, reply, .. }) = requests.recv().await {
                let Some(response) = own.answer(decode("request", &body).unwrap()) else { continue };
                own.with(|inner| inner.deliver(response, reply));
            }
        });
        worker
    }

    pub(crate) fn set(&self, manner: Manner) {
        self.inner.lock().unwrap().manner = manner;
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Inner) -> T) -> T {
        look(&mut self.inner.lock().unwrap())
    }

    /// Tokens that it has a voucher for.
    pub(crate) fn paid(&self) -> u32 {
        self.with(|inner| inner.vouchers.last().map_or(0, |voucher| voucher.tokens))
    }

    /// Nothing if the answer gets lost.
    fn answer(&self, request: Request) -> Option<Response> {
        let inner = &mut *self.inner.lock().unwrap();
        if inner.manner == Manner::Dead {
            return None;
        }
        Some(match request {
            Request::Advance(advance) => return self.advance(inner, advance),
            Request::Abandon { text, .. } => {
                inner.abandoned.push(text);
                Response::Done
            }
            Request::Pay { voucher, signature } => self.pay(inner, voucher, &signature),
            Request::Receipts { epoch, .. } => {
                inner.asked += 1;
                match inner.epochs.get(epoch as usize - 1) {
                    Some(start) => {
                        Response::Receipts(inner.receipts[*start..].iter().map(|(claim, _)| claim.clone()).collect())
                    }
                    None => Response::Declined("no such epoch".into()),
                }
            }
            other => panic!("{other:?}"),
        })
    }

    /// As a worker does: a prefix of its epoch's list, none shorter than before; the next epoch after what the last
    /// voucher pays.
    fn pay(&self, inner: &mut Inner, voucher: Voucher, signature: &[u8]) -> Response {
        verify_signer(signature, CONTRACTS.voucher(&voucher), user().address()).unwrap();
        assert_eq!(
            (voucher.job, voucher.stage, voucher.replica),
            (self.lane.job.0, self.lane.stage, self.lane.replica)
        );
        let open = inner.epochs.len() as u32;
        let last = inner.vouchers.iter().rfind(|last| last.epoch == open);
        let mut start = *inner.epochs.last().unwrap();
        if voucher.epoch == open + 1 {
            let Some(last) = last else { return Response::Declined("the epoch before has no voucher".into()) };
            assert_eq!(voucher.before, last.tokens);
            start = inner.named(start, last).unwrap();
        } else if voucher.epoch != open {
            return Response::Declined(format!("epoch {open} is open"));
        }
        let before = inner.vouchers.iter().rfind(|last| last.epoch < voucher.epoch).map_or(0, |last| last.tokens);
        assert_eq!(voucher.before, before);
        if inner.named(start, &voucher).is_none()
            || inner.vouchers.last().is_some_and(|last| last.tokens > voucher.tokens)
        {
            return Response::Declined("not a beginning of my list".into());
        }
        if voucher.epoch > open {
            inner.epochs.push(start);
        }
        inner.vouchers.push(voucher);
        Response::Done
    }

    /// Ends the open epoch with its last voucher, as when the job is closing, and returns that.
    pub(crate) fn end_epoch(&self) -> Voucher {
        self.with(|inner| {
            let last = inner.vouchers.last().cloned().unwrap();
            let end = inner.listed();
            inner.epochs.push(end);
            last
        })
    }

    fn advance(&self, inner: &mut Inner, advance: Advance) -> Option<Response> {
        let Advance { lane, text, position, inputs, last } = advance;
        assert_eq!(lane, self.lane);
        inner.advances.push((text, position, last));
        let unlisted = inner.receipts[inner.listed()..].iter().map(|(_, tokens)| tokens).sum();
        match inner.manner {
            Manner::Denies if last => return Some(Response::Declined("I never said so".into())),
            Manner::Declines => return Some(Response::Declined("no".into())),
            Manner::Dies(0) => {
                inner.manner = Manner::Dead;
                return None;
            }
            Manner::Dies(times) => inner.manner = Manner::Dies(times - 1),
            Manner::WantsMoney if unlisted > 0 => return Some(Response::Unpaid { tokens: unlisted }),
            Manner::Busy(0) | Manner::Loses(0) => inner.manner = Manner::Honest,
            Manner::Busy(times) => {
                inner.manner = Manner::Busy(times - 1);
                return Some(Response::Busy);
            }
            Manner::Forgets => {
                inner.manner = Manner::Honest;
                inner.texts.clear();
            }
            _ => {}
        }
        let row = self.shard.received(1).unwrap().byte_len() as usize;
        let chooses = self.shard.plan.chooses();
        let (rows, steer) = inner.texts.entry(text).or_default();
        assert_eq!(inputs.len(), if chooses { 2 } else { 1 });
        assert!(last || !inputs[0].is_empty(), "only the end of a text comes without rows");
        let has = rows.len() / row;
        if has < position as usize {
            return Some(Response::Rewind { position: has as u32 });
        }
        rows.truncate(position as usize * row);
        rows.extend(&inputs[0]);
        if chooses {
            steer.truncate(position as usize * CONTROLS_ROW);
            steer.extend(&inputs[1]);
        }
        let tokens = (rows.len() / row) as u32;
        let input = Tensor::from_bytes(self.shard.received(tokens).unwrap(), rows).unwrap();
        let runner = StageRunner::new(Reference, (*self.shard.plan).clone(), &self.shard.constants).unwrap();
        let controls = chooses.then(|| {
            let ty = TensorType::new(32, 0, &[tokens, CONTROLS_ROW as u32 / 4]).unwrap();
            Tensor::from_bytes(ty, steer).expect("a row of controls for each token")
        });
        let mut whole = match &controls {
            Some(controls) => runner.choose(&input, controls).unwrap(),
            None => runner.run(&input).unwrap(),
        };
        if matches!(inner.manner, Manner::Lies | Manner::Denies | Manner::Babbles) {
            let mut mantissas = whole.mantissas().to_vec();
            mantissas[0] = if inner.manner == Manner::Babbles { 20 } else { mantissas[0] ^ 1 };
            whole = Tensor::from_wide(whole.ty().clone(), &mantissas).unwrap();
        }
        let mut output = match self.shard.gives() {
            Gives::Rows => whole.to_bytes().split_off(whole.to_bytes().len() / tokens as usize * position as usize),
            _ if last => whole.to_bytes(),
            _ => vec![],
        };
        if inner.manner == Manner::Short {
            output.pop();
        }
        let receipt = last.then(|| self.sign(inner, text, tokens, (&input, controls.as_ref(), &whole))).flatten();
        if let Manner::Loses(times) = inner.manner {
            inner.manner = Manner::Loses(times - 1);
            return None;
        }
        Some(Response::Advanced { output, receipt })
    }

    fn sign(
        &self,
        inner: &mut Inner,
        text: u32,
        tokens: u32,
        (input, controls, output): (&Tensor, Option<&Tensor>, &Tensor),
    ) -> Option<Receipt> {
        let from_next = controls.filter(|_| inner.manner != Manner::Signs(Wrong::Controls)).map(tensor_root);
        let crossed = Crossed { from_previous: tensor_root(input), from_next, to_next: tensor_root(output) };
        let (mut claim, logs) = receipt(self.lane, text, &crossed);
        if !inner.receipts.iter().any(|(known, _)| *known == claim) {
            inner.receipts.push((claim.clone(), tokens));
        }
        let (mut logs, mut tokens, mut key) = (logs.roots(), tokens, self.key.clone());
        if let Manner::Signs(wrong) = inner.manner {
            match wrong {
                Wrong::Absent => return None,
                Wrong::Tokens => tokens += 1,
                Wrong::Logs => logs.toNext = B256::repeat_byte(1),
                Wrong::Io => claim.io = B256::repeat_byte(1),
                Wrong::State => claim.newState = B256::repeat_byte(1),
                Wrong::Text => claim.interval += 1,
                Wrong::Stage => claim.stage += 1,
                Wrong::Replica => claim.replica += 1,
                Wrong::Job => claim.job += 1,
                Wrong::Signer => key = identity(77),
                Wrong::Controls | Wrong::Garbage => {}
            }
        }
        let mut signature = key.sign(CONTRACTS.claim_id(&claim).0).unwrap().to_vec();
        if inner.manner == Manner::Signs(Wrong::Garbage) {
            signature.pop();
        }
        Some(Receipt { claim, logs, tokens, signature })
    }
}
