//! The chess clocks of a challenge: the same rules as `Challenges.sol`.

use tensorlink_node::ports::chain::Parameters;
use tensorlink_proof::challenge::{Game, Turn};

use super::facts::{Clocks, Question, Side, Waiting};

/// Both clocks when a challenge is opened.
pub fn full(parameters: &Parameters) -> Clocks {
    Clocks { challenger: parameters.dispute_clock, worker: parameters.dispute_clock }
}

/// The clocks after a move of `side` that took so many seconds.
pub const fn after(clocks: Clocks, side: Side, taken: u64) -> Clocks {
    match side {
        Side::Challenger => Clocks { challenger: clocks.challenger.saturating_sub(taken), ..clocks },
        Side::Worker => Clocks { worker: clocks.worker.saturating_sub(taken), ..clocks },
    }
}

/// Who moves; none if it is over.
pub const fn side(turn: Turn) -> Option<Side> {
    match turn {
        Turn::Asking => Some(Side::Challenger),
        Turn::Answering => Some(Side::Worker),
        Turn::Spent | Turn::Won | Turn::Lost => None,
    }
}

/// Where a challenge stands whose turn began in block `began`; none if it is over. `now` is the block and the time.
pub fn waiting(
    game: &Game,
    (question, began): (Question, u64),
    now: (u64, u64),
    parameters: &Parameters,
) -> Option<Waiting> {
    let block = began.saturating_add(parameters.move_blocks);
    Some(Waiting {
        side: side(game.turn)?,
        deadline: game.deadline,
        seconds_left: game.deadline.saturating_sub(now.1),
        block,
        blocks_left: block.saturating_sub(now.0),
        question,
        void: false,
    })
}
