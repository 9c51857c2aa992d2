//! The operators. Each is described in one place, whatever family it is of: what it must be to be accepted, its whole
//! output, one element of it, and what that is computed from.
//!
//! | module | what lives there |
//! |---|---|
//! | `check` | what rules ask of types, attributes, shifts and accumulators |
//! | `whole` | what whole outputs are computed with, in `i64` |
//! | `site` | what one element is computed with, over `i128` |
//! | the families | as `operators!` lists them; the contracts' libraries have the same names |

mod attention;
mod chances;
mod check;
mod choices;
mod controls;
mod elementwise;
mod embeddings;
mod gradients;
mod gumbel;
mod linear;
mod norms;
mod positions;
mod reductions;
mod roots;
mod runs;
mod sampling;
mod selections;
mod shifts;
mod site;
mod softmax;
mod tables;
mod tails;
mod whole;

use tensorlink_types::{Opcode, Operator};

use crate::error::OpError;

use self::check::Check;

pub use self::attention::Heads;
pub use self::check::Visible;
pub use self::linear::RowProduct;
pub use self::norms::Spread;
pub use self::site::Read;

pub(crate) use self::site::Site;
pub(crate) use self::whole::Whole;

/// Hands the table of all operators, each under its family, to a macro: whoever does something of each operator writes
/// what once, and the compiler names the operator that lacks it.
#[macro_export]
macro_rules! operators {
    ($then:ident) => {
        $then! {
            attention: HeadScores, HeadMix;
            chances: Dropout, Dither;
            choices: RowArgMax, RowPick, Choose;
            elementwise: Combine, Scale, Mul, Relu, ReluGrad;
            embeddings: Gather;
            gradients: GatherGrad, GroupSum;
            gumbel: Perturb;
            linear: MatMul, ScaledMatMul, Transpose;
            norms: Norm, InverseNorm;
            positions: Rope;
            reductions: RowMax, RowAbsMax, RowSum;
            roots: Ratio, Shrink;
            runs: RowCombine, RowMul;
            sampling: Sample;
            selections: AtStep, Slice;
            shifts: RowShift, ShiftRows, ShiftedMatMul;
            softmax: Normalize, OneHotSub;
            tables: Lookup, ExpNeg;
            tails: TailSum, Threshold;
        }
    };
}

/// An accepted operator: its attributes, and the lengths that its loops need.
pub(crate) trait Operation: Sized {
    /// The rules that it must obey (N-6, N-7 and its own).
    fn check(check: &Check<'_>) -> Result<Self, OpError>;

    /// Every element, row by row. Rule N-6, checked before, keeps every accumulator below 2^62, so `i64` holds them.
    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError>;

    /// One element, as the rule is written, without regard to speed.
    fn element(&self, site: &Site<'_>) -> Result<i64, OpError>;

    /// What that element is computed from, ordered by operand and element.
    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError>;
}

macro_rules! declare {
    ($($family:ident: $($name:ident),+;)*) => {
        $(pub use self::$family::{$($name),+};)*

        /// An operator that was accepted: its existence is the proof that rules N-6 and N-7 hold.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs, reason = "each is what its variant holds")]
        pub enum CheckedOperator { $($($name($name),)+)* }

        impl CheckedOperator {
            /// Accepts an operator by itself, as [`check_operator`] does.
            ///
            /// # Errors
            /// The first rule it breaks, and what to change.
            pub fn new(operator: &Operator) -> Result<Self, OpError> {
                counts(operator)?;
                let check = Check::new(operator);
                Ok(match operator.opcode { $($(Opcode::$name => Self::$name($name::check(&check)?),)+)* })
            }

            pub(crate) fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
                match self { $($(Self::$name(operation) => operation.execute(whole),)+)* }
            }

            pub(crate) fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
                match self { $($(Self::$name(operation) => operation.element(site),)+)* }
            }

            pub(crate) fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
                match self { $($(Self::$name(operation) => operation.reads(site),)+)* }
            }
        }
    };
}

operators!(declare);

/// Checks an operator by itself: counts, shapes, widths, attribute ranges, accumulator bounds (rules N-6 to N-8, and
/// N-11 and the following). Whether its operands exist is the program checker's business.
///
/// # Errors
/// The first rule it breaks, and what to change.
pub fn check_operator(operator: &Operator) -> Result<(), OpError> {
    CheckedOperator::new(operator).map(drop)
}

/// As many operands and attributes as the opcode has.
fn counts(operator: &Operator) -> Result<(), OpError> {
    let opcode = operator.opcode;
    if operator.operands.len() != opcode.operands() {
        let (expected, actual) = (opcode.operands(), operator.operands.len());
        return Err(OpError::OperandCount { opcode, expected, actual });
    }
    let expected = opcode.attributes().len();
    if operator.attributes.len() != expected {
        return Err(OpError::AttributeCount { opcode, expected, actual: operator.attributes.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
