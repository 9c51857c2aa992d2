//! What can go wrong in a pipeline: with the job, in one lane, for a text.

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{ChainError, NetError};
use tensorlink_node::wire::Malformed;
use tensorlink_num::TensorError;
use tensorlink_types::{Address, JobId, Lane, TypeError};
use thiserror::Error;

use super::account::AccountError;
use super::numbers::NumberError;
use super::receipt::ReceiptFault;

/// Why a job cannot be used.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The chain could not be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The account on disk is not the job's.
    #[error("{lane}: {source}")]
    Account {
        /// The lane.
        lane: Lane,
        /// What is wrong.
        source: AccountError,
    },
    /// It trains.
    #[error("job {0} trains a model and serves none")]
    Training(JobId),
    /// It does not run.
    #[error("job {job} is {state:?}: it serves while it runs; post another")]
    State {
        /// The job.
        job: JobId,
        /// Its state.
        state: JobState,
    },
    /// Somebody else pays for it.
    #[error("job {job} is of {user}: only its user can pay for texts; use its key")]
    NotOurs {
        /// The job.
        job: JobId,
        /// Its user.
        user: Address,
    },
    /// The files are of another job.
    #[error("the files have {files} stages, job {job} has {stages}")]
    Stages {
        /// The job.
        job: JobId,
        /// Its stages.
        stages: u16,
        /// Stages of the files.
        files: usize,
    },
    /// Fewer lanes than are to agree.
    #[error(
        "job {job} has {replicas} lanes a stage, so {asked} cannot agree: use --security {replicas} or less, or post another job"
    )]
    Replicas {
        /// The job.
        job: JobId,
        /// Its lanes of a stage.
        replicas: u16,
        /// Those that are to agree.
        asked: u16,
    },
}

/// Why a lane does not go on with a text. Another replica may.
#[derive(Debug, Error)]
pub enum LaneFault {
    /// No answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Bytes that are no answer.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It will not, or cannot.
    #[error("it declines: {0}")]
    Declined(String),
    /// It answers another question.
    #[error("it answers something else than it was asked")]
    OffTopic,
    /// It has too much to do.
    #[error("it is busy")]
    Busy,
    /// It waits for money that it is not owed, or that it does not take.
    #[error("it says that {0} tokens are unpaid, and takes no voucher for them")]
    Unpaid(u32),
    /// It lost the text again and again.
    #[error("it forgets the text again and again")]
    Forgetful,
    /// Rows of another length than the program gives.
    #[error("it gives {actual} bytes, the program gives {expected}")]
    Length {
        /// Bytes due.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// Rows that are no tensor of the registered type.
    #[error("it gives what is no output of its program: {0}")]
    Tensor(#[from] TensorError),
    /// A number that is no token of the model.
    #[error("it chose token {0}, which is none of the model's: it computes wrongly")]
    Token(i64),
    /// Rows that are not those that the text had before.
    #[error("it gives other rows than the text had before: it or the replica before it computes wrongly")]
    Changed,
    /// It computes wrongly: what others gave is right.
    #[error("it computes something else than its program, as computing the text again has shown")]
    Wrong,
    /// It gives something else than others, and nobody knows who is right.
    #[error("it gives something else than others for the same, and none of them shows that it is right")]
    Differs,
    /// A receipt that is wrong.
    #[error(transparent)]
    Receipt(#[from] ReceiptFault),
    /// Nobody waits for the text any more.
    #[error("nobody waits for the text any more")]
    Left,
    /// Nothing more can be paid.
    #[error(transparent)]
    Account(#[from] AccountError),
}

impl LaneFault {
    /// Whether coming back a little later may help.
    const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy | Self::Unpaid(_))
    }

    /// Whether the worker fails, and not its user, or the time.
    pub(super) const fn is_its_own(&self) -> bool {
        !self.is_busy() && !matches!(self, Self::Left | Self::Account(_))
    }
}

/// Why a text was not computed. It costs nothing, unless the error says that it can still be ended.
#[derive(Debug, Error)]
pub enum TextError {
    /// No lane of a stage computes it.
    #[error("no worker of stage {stage} computes the text: {}", list(faults))]
    Stage {
        /// The stage.
        stage: u16,
        /// What each of its workers did.
        faults: Vec<(Address, LaneFault)>,
    },
    /// No tokens, or more than the job computes.
    #[error("a text of {tokens} tokens: this job computes 1 to {longest}")]
    Length {
        /// Tokens of the text.
        tokens: usize,
        /// Most tokens.
        longest: u32,
    },
    /// Not a token of the model.
    #[error("token {token} is none of the model's {vocabulary}")]
    Token {
        /// The token.
        token: u32,
        /// Tokens of the model.
        vocabulary: u32,
    },
    /// Controls that are absent, of another type or number of rows, or that nobody asked for.
    #[error("a decoder on workers takes a row of controls for each token, and other models take none")]
    Controls,
    /// The job pays for no more tokens. Those before can be paid: end the text with
    /// [`Text::finish`](super::Text::finish).
    #[error(transparent)]
    Spent(AccountError),
    /// An encoder computes a text as a whole.
    #[error("this model computes a text as a whole: send all of its tokens at once")]
    Whole,
    /// Of one row, or before any tokens: nothing to end.
    #[error("only a text of which tokens were computed, a row for each, is ended without more")]
    Unended,
    /// The text has ended, or failed before.
    #[error("the text has ended")]
    Over,
    /// There is no number for it.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No tensor has this many tokens.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// Nobody waits for it any more.
    #[error("nobody waits for the text any more")]
    Left,
    /// The node is shutting down.
    #[error("the pipeline is closed")]
    Closed,
}

impl TextError {
    /// Whether coming back a little later may help.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Stage { faults, .. } => !faults.is_empty() && faults.iter().all(|(_, fault)| fault.is_busy()),
            _ => false,
        }
    }

    /// The stage whose workers failed, or are busy, if that is why: others may do better, or these later.
    pub(super) fn failed_stage(&self) -> Option<u16> {
        let Self::Stage { stage, faults } = self else { return None };
        faults.iter().any(|(_, fault)| fault.is_its_own() || fault.is_busy()).then_some(*stage)
    }
}

fn list(faults: &[(Address, LaneFault)]) -> String {
    let said: Vec<String> = faults.iter().map(|(worker, fault)| format!("{worker}: {fault}")).collect();
    said.join("; ")
}
