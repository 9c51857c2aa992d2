//! Challenges: how data is forced out of a worker that gives none, question by question, and what both sides say.
//!
//! The contract (`IChallenges`) tells everything in its events, and so [`Game`] is a fold over them: who restarts reads
//! them again and stands where it stood. Both players are functions of a game and of their own data: they hold no
//! state, no clock and no key.
//!
//! | module | what lives there |
//! |---|---|
//! | [`position`] | geometry: what lies below a node, and how many levels to ask for |
//! | [`game`] | [`Game`]: a challenge as its events tell it |
//! | [`tree`] | [`OwnTree`]: one's own tree, and the rows that answer a question |
//! | [`known`] | [`Known`]: another's tree as far as it is known, by answers and by agreement with one's own |
//! | [`answer`] | the worker's next answer |
//! | [`ask`], [`next`] | the challenger's next question, or the proof; what it may be |
//! | `descent` | the way down to the first difference |
//! | `logs` | another's boundary logs as far as they are known |
//! | [`cost`] | what answers cost, and what a challenger puts up for that |
//! | [`way`] | hints, and the way down a tree that they lead |
//! | [`moves`] | [`Move`]: the calls of the contract |

pub mod answer;
pub mod ask;
pub mod cost;
mod descent;
pub mod game;
pub mod known;
mod logs;
pub mod moves;
pub mod next;
pub mod position;
pub mod tree;
pub mod way;

pub use self::answer::{Answerer, Lacking};
pub use self::ask::Challenger;
pub use self::game::{Game, Row, Told, Turn};
pub use self::known::Known;
pub use self::moves::Move;
pub use self::next::{Next, Stuck, Tensors};
pub use self::position::Subject;
pub use self::tree::OwnTree;
