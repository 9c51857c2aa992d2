//! Cases made by hand for the corners of each rule, in the families of `tensorlink_num::operators`.

mod attention;
mod chances;
mod choices;
mod elementwise;
mod embeddings;
mod gradients;
mod gumbel;
mod linear;
mod norms;
mod pieces;
mod positions;
mod reductions;
mod roots;
mod runs;
mod sampling;
mod selections;
mod shifts;
mod softmax;
mod tables;
mod tails;

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use self::pieces::{Made, Named};

macro_rules! declare {
    ($($family:ident: $($name:ident),+;)*) => {
        /// What the family of an opcode has.
        const fn family(opcode: Opcode) -> Made {
            match opcode { $($(Opcode::$name)|+ => $family::MADE,)* }
        }
    };
}

tensorlink_num::operators!(declare);

/// Made cases of an opcode; none if its family has none.
pub(super) fn cases(opcode: Opcode) -> Result<Vec<Named>, CaseError> {
    match family(opcode).iter().find(|(made, _)| *made == opcode) {
        Some((_, make)) => make(),
        None => Ok(Vec::new()),
    }
}
