//! Programs of a serving stage by the length of the text (C-13).

use alloy_primitives::B256;

use crate::merkle::{List, OpeningError, verify_membership};

/// Program roots, that for texts of one token first.
#[derive(Clone, Debug)]
pub struct ProgramList(List);

impl ProgramList {
    /// Hashes the list.
    pub fn new(roots: impl IntoIterator<Item = B256>) -> Self {
        Self(List::new(roots))
    }

    /// Most tokens of a text, `stepsPerInterval` of the job's terms.
    pub const fn longest(&self) -> usize {
        self.0.len()
    }

    /// What `JobTerms.programs` registers for the stage; zero if there is no program.
    pub fn root(&self) -> B256 {
        self.0.root()
    }

    /// Root of the program for texts of `tokens` tokens.
    pub fn get(&self, tokens: u32) -> Option<B256> {
        self.0.items().get(usize::try_from(tokens.checked_sub(1)?).ok()?).copied()
    }

    /// Siblings that lead from the program for texts of `tokens` tokens to the root.
    ///
    /// # Errors
    /// [`OpeningError::OutOfRange`] for no tokens, or more than the longest text has.
    pub fn prove(&self, tokens: u32) -> Result<Vec<B256>, OpeningError> {
        self.0.prove(place(tokens, self.longest() as u64)?)
    }
}

/// Checks that `program` is registered in a list of `longest` programs for texts of `tokens` tokens.
///
/// # Errors
/// As [`verify_membership`].
pub fn verify_program(
    programs: B256,
    longest: u32,
    tokens: u32,
    program: B256,
    siblings: &[B256],
) -> Result<(), OpeningError> {
    let longest = longest.into();
    verify_membership(programs, longest, place(tokens, longest)?, program, siblings)
}

/// Where the program for texts of `tokens` tokens stands.
fn place(tokens: u32, longest: u64) -> Result<u64, OpeningError> {
    u64::from(tokens).checked_sub(1).ok_or(OpeningError::OutOfRange { first: 0, count: 0, total: longest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_proven_for_its_own_length_only() {
        for longest in [1u32, 2, 5, 8, 33] {
            let list = ProgramList::new((1..=longest).map(|n| B256::with_last_byte(n as u8)));
            assert_eq!(list.longest(), longest as usize);
            for tokens in 1..=longest {
                let program = list.get(tokens).unwrap();
                assert_eq!(program, B256::with_last_byte(tokens as u8));
                let siblings = list.prove(tokens).unwrap();
                for other in 0..=longest + 1 {
                    let verified = verify_program(list.root(), longest, other, program, &siblings);
                    assert_eq!(verified.is_ok(), other == tokens, "{tokens} as {other} of {longest}");
                }
                assert!(verify_program(list.root(), longest, tokens, B256::ZERO, &siblings).is_err());
                assert!(verify_program(B256::ZERO, longest, tokens, program, &siblings).is_err());
            }
            for tokens in [0, longest + 1, u32::MAX] {
                assert_eq!(list.get(tokens), None);
                assert!(matches!(list.prove(tokens), Err(OpeningError::OutOfRange { .. })));
            }
        }
    }

    #[test]
    fn no_program_is_the_zero_root() {
        let none = ProgramList::new([]);
        assert_eq!((none.longest(), none.root()), (0, B256::ZERO));
        assert!(verify_program(B256::ZERO, 0, 1, B256::ZERO, &[]).is_err());
    }
}
