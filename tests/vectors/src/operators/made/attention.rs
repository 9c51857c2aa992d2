//! Rules N-26 and N-27: scores of heads, and what they mix.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, constant, spread, ty};

pub(super) const MADE: Made = &[(Opcode::HeadScores, head_scores), (Opcode::HeadMix, head_mix)];

fn head_scores() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::HeadScores;
    let own = vec![spread(8, 4, &[3, 6], 37)?, spread(8, 4, &[2, 6], 91)?];
    let shared = vec![spread(16, 12, &[2, 12], 7919)?, spread(16, 12, &[3, 6], 104_729)?];
    let one = vec![spread(8, 4, &[2, 9], 53)?, spread(8, 4, &[2, 3], 29)?];
    let long = vec![constant(8, 0, &[1, 4096], -127)?, constant(8, 0, &[1, 4096], 127)?];
    Ok(vec![
        ("every head has its own keys", case(op, own, &[2, 3], ty(16, 5, &[2, 3, 2])?)?),
        ("two heads share a group", case(op, shared, &[4, 14], ty(16, 10, &[4, 2, 3])?)?),
        ("all heads share one group", case(op, one, &[3, 0], ty(24, 8, &[3, 2, 2])?)?),
        ("longest head", case(op, long, &[1, 6], ty(32, -6, &[1, 1, 1])?)?),
    ])
}

fn head_mix() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::HeadMix;
    let own = vec![spread(8, 7, &[2, 3, 4], 37)?, spread(8, 4, &[6, 4], 91)?];
    let shared = vec![spread(16, 15, &[4, 2, 3], 7919)?, spread(16, 12, &[4, 3], 104_729)?];
    let one = vec![spread(8, 7, &[3, 2, 5], 53)?, spread(8, 4, &[2, 5], 29)?];
    let long = vec![constant(8, 7, &[1, 1, 4096], 127)?, constant(8, 0, &[1, 4096], -127)?];
    Ok(vec![
        ("every head has its own values", case(op, own, &[2, 6], ty(16, 5, &[3, 6])?)?),
        ("two heads share a group", case(op, shared, &[4, 15], ty(16, 12, &[2, 8])?)?),
        ("all heads share one group", case(op, one, &[3, 0], ty(24, 11, &[2, 6])?)?),
        ("longest sum", case(op, long, &[1, 7], ty(32, 0, &[1, 1])?)?),
    ])
}
