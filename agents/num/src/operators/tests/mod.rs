//! Tests of the operators. A family's are in one file: what is refused, which corners random cases reach, and what its
//! operators are against floats or a loop over indices.
//!
//! | module | what lives there |
//! |---|---|
//! | the families | as `operators!` lists them |
//! | `every` | what is tested of every opcode at once |
//! | `agreement` | whole outputs and single elements agree, for every opcode |
//! | `refusing` | operators made up for the checker, and what it must say |
//! | `drawing` | random cases, counted by what they are |
//! | `meaning` | operators that are run, and what their results are compared with |

mod agreement;
mod attention;
mod chances;
mod choices;
mod drawing;
mod elementwise;
mod embeddings;
mod every;
mod gradients;
mod gumbel;
mod linear;
mod meaning;
mod norms;
mod positions;
mod reductions;
mod refusing;
mod roots;
mod runs;
mod sampling;
mod selections;
mod shifts;
mod softmax;
mod tables;
mod tails;
