//! `foundations.json`: rescale (N-2), div (N-3) and draws (N-4).

use serde::{Deserialize, Serialize};
use tensorlink_num::fixed::{div, rescale};
use tensorlink_num::{arbitrary::Dice, philox};
use tensorlink_types::{B256, JobKey};

use crate::file::{Coverage, VectorError, compare, parse, text};

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Foundations {
    rescale: Vec<RescaleCase>,
    div: Vec<DivCase>,
    draw: Vec<DrawCase>,
}

/// `y = rescale(x, shift, bits)`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RescaleCase {
    rule: String,
    x: String,
    shift: i64,
    bits: u8,
    y: String,
}

/// `y = div(a, b)`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DivCase {
    rule: String,
    a: String,
    b: String,
    y: String,
}

/// `word = philox(key of job_key, (row, step, stream, 0))[0]`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DrawCase {
    rule: String,
    job_key: B256,
    row: u32,
    step: u32,
    stream: u32,
    word: u32,
}

/// One case of any kind, so that [`text`] writes them alike.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyCase {
    Rescale(RescaleCase),
    Div(DivCase),
    Draw(DrawCase),
}

/// Text of the file.
///
/// # Errors
/// [`VectorError::Json`] if a case cannot be written.
pub fn generate() -> Result<String, VectorError> {
    let mut dice = Dice::new(2);
    let rescales = rescale_inputs(&mut dice).into_iter().map(|(x, shift, bits)| {
        let y = rescale(x, shift, bits).to_string();
        AnyCase::Rescale(RescaleCase { rule: "N-2".into(), x: x.to_string(), shift, bits, y })
    });
    let divs = div_inputs(&mut dice).into_iter().filter_map(|(a, b)| {
        let y = div(a, b)?.to_string();
        Some(AnyCase::Div(DivCase { rule: "N-3".into(), a: a.to_string(), b: b.to_string(), y }))
    });
    let draws = draw_inputs(&mut dice).into_iter().map(|(job_key, row, step, stream)| {
        let word = philox::draw(&JobKey(job_key), row, step, stream);
        AnyCase::Draw(DrawCase { rule: "N-4".into(), job_key, row, step, stream, word })
    });
    text(&[("rescale", rescales.collect()), ("div", divs.collect()), ("draw", draws.collect::<Vec<_>>())])
}

/// Checks the reference against every case.
///
/// # Errors
/// [`VectorError::Json`], [`VectorError::Malformed`], [`VectorError::Mismatch`].
pub fn verify(text: &str) -> Result<Coverage, VectorError> {
    let file: Foundations = parse(text)?;
    let mut coverage = Coverage::default();
    for (i, case) in file.rescale.iter().enumerate() {
        let name = format!("rescale[{i}]");
        let x = case.x.parse().map_err(|_| VectorError::Malformed { case: name.clone(), field: "x" })?;
        compare(&name, "y", &case.y, &rescale(x, case.shift, case.bits).to_string())?;
        coverage.add(&case.rule);
    }
    for (i, case) in file.div.iter().enumerate() {
        let name = format!("div[{i}]");
        let number = |text: &str, field| text.parse().map_err(|_| VectorError::Malformed { case: name.clone(), field });
        let y = div(number(&case.a, "a")?, number(&case.b, "b")?);
        compare(&name, "y", &case.y, &y.map_or_else(String::new, |y| y.to_string()))?;
        coverage.add(&case.rule);
    }
    for (i, case) in file.draw.iter().enumerate() {
        let word = philox::draw(&JobKey(case.job_key), case.row, case.step, case.stream);
        compare(&format!("draw[{i}]"), "word", &case.word, &word)?;
        coverage.add(&case.rule);
    }
    Ok(coverage)
}

fn rescale_inputs(dice: &mut Dice) -> Vec<(i128, i64, u8)> {
    let halves = (-7..=7).flat_map(|x| [(x, 1, 8), (x, 2, 8)]);
    let bound = (1i128 << 62) - 1;
    let edges = [
        (0, -63, 8),
        (0, 63, 8),
        (1, -63, 64),
        (-1, -63, 64),
        (1, -62, 64),
        (1, 63, 8),
        (-1, 63, 8),
        (bound, 63, 8),
        (-bound, 63, 8),
        (bound, 62, 8),
        (-bound, 62, 8),
        (bound, 61, 8),
        (-bound, 61, 2),
        (bound, 0, 64),
        (bound, 0, 63),
        (-bound, 0, 63),
        (bound, 0, 62),
        (-bound, 0, 62),
        (bound, -1, 64),
        (-bound, -1, 64),
        (bound, -63, 64),
        (-bound, -63, 64),
        (127, 0, 8),
        (128, 0, 8),
        (-128, 0, 8),
        (-127, 0, 8),
        (1 << 61, 62, 8),
        (3 << 61, 62, 8),
        (-(1 << 61), 62, 8),
        (-(3 << 60), 61, 8),
        (64, -1, 8),
        (63, -1, 8),
        (255, 1, 8),
        (253, 1, 8),
        (-255, 1, 8),
        (254, 1, 8),
    ];
    let random = (0..40).map(|_| {
        let x = dice.range(1 - (1 << 62), (1 << 62) - 1) >> dice.range(0, 61);
        let (shift, bits) = (dice.range(-63, 63), dice.range(2, 64));
        (x.into(), if dice.once_in(2) { shift } else { dice.range(1, 20) }, bits as u8)
    });
    halves.chain(edges).chain(random).collect()
}

fn div_inputs(dice: &mut Dice) -> Vec<(i128, i128)> {
    let small = (-5..=5).flat_map(|a| [(a, 1), (a, 2), (a, 3), (a, 4)]);
    let bound = (1i128 << 61) - 1;
    let edges = [(bound, 1), (-bound, 1), (bound, bound), (-bound, bound), (1, bound), (-1, bound), (0, bound)];
    let random = (0..20).map(|_| {
        let a = dice.range(1 - (1 << 61), (1 << 61) - 1) >> dice.range(0, 60);
        (a.into(), (dice.range(1, (1 << 61) - 1) >> dice.range(0, 60)).max(1).into())
    });
    small.chain(edges).chain(random).collect()
}

fn draw_inputs(dice: &mut Dice) -> Vec<(B256, u32, u32, u32)> {
    // The first is a known answer of the algorithm's authors: key and counter zero.
    let mut inputs = vec![
        (B256::ZERO, 0, 0, 0),
        (B256::repeat_byte(0xff), u32::MAX, u32::MAX, u32::MAX),
        (B256::with_last_byte(1), 0, 0, 0),
        (B256::right_padding_from(&[1]), 0, 0, 0),
        (B256::right_padding_from(&[0, 0, 0, 0, 1]), 1, 2, 3),
    ];
    inputs.extend((0..15).map(|_| (dice.word(), dice.bits(32) as u32, dice.bits(16) as u32, 0)));
    inputs
}
