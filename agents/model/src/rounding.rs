//! Rounding weights so that their errors cancel in the sums that they enter (GPTQ, Frantar et al. 2023, in the form of
//! LDLQ, Chee et al. 2023).
//!
//! Inputs that vary together let the error of one weight be undone by the weights after it. With `H` the inputs'
//! products summed over calibration, and `H = (I + U)·D·(I + U)ᵀ`, U strictly upper triangular, weight k is rounded
//! after adding `Σ_{j<k} e_j·U_jk`, `e_j` being what rounding weight j left. What is lost is then
//! `Σ_k D_kk·(rounding error)²`, never more than without. `H` is taken in [`Blocks`] of channels, which bounds
//! memory and work. It costs nothing when the weights are used.

use super::sites::Blocks;

/// Share of the mean square that is added to every channel's: a few hundred tokens do not tell all that will come.
const DAMPING: f32 = 0.2;

/// How the errors of a matrix's columns are passed on, block by block; within a block without any input, they are not.
pub(super) struct Rounding {
    blocks: Vec<Option<Block>>,
    /// Channels of a block.
    length: usize,
}

/// Rows of `U`: of each channel, what those after it take of its error.
struct Block(Vec<Vec<f32>>);

impl Rounding {
    /// Each weight for itself.
    pub(super) const fn none() -> Self {
        Self { blocks: Vec::new(), length: 1 }
    }

    /// For inputs of so many channels whose [`Blocks`] have these sums of products; without any, each weight is rounded
    /// for itself.
    pub(super) fn new(products: &[f32], channels: u32) -> Self {
        let length = (Blocks::of(channels).length as usize).max(1);
        let firsts = (0..channels as usize).step_by(length);
        let blocks = products.chunks_exact(length.saturating_mul(length)).zip(firsts);
        let there = |first: usize| (channels as usize).saturating_sub(first).min(length);
        Self { blocks: blocks.map(|(products, first)| Block::new(products, (length, there(first)))).collect(), length }
    }

    /// Rounds a row of weights, in units of their mantissas, to integers within `±limit`; half to even.
    pub(super) fn round(&self, row: &mut [f32], limit: f32) {
        let clamped = |w: f32| w.round_ties_even().clamp(-limit, limit);
        let mut corrections = vec![0.0; self.length];
        let mut blocks = self.blocks.iter();
        for weights in row.chunks_mut(self.length) {
            let Some(Some(Block(passed))) = blocks.next() else {
                weights.iter_mut().for_each(|w| *w = clamped(*w));
                continue;
            };
            corrections.fill(0.0);
            let mut rest = corrections.as_mut_slice();
            for (weight, passed) in weights.iter_mut().zip(passed) {
                let Some((correction, after)) = rest.split_first_mut() else { break };
                let rounded = clamped(*weight + *correction);
                let error = *weight - rounded;
                *weight = rounded;
                after.iter_mut().zip(passed).for_each(|(sum, share)| *sum += error * share);
                rest = after;
            }
        }
    }
}

impl Block {
    /// Factors the first channels of a block of so many; none for one without any input.
    fn new(products: &[f32], (length, channels): (usize, usize)) -> Option<Self> {
        let row = |row: &[f32]| -> Vec<f64> { row.iter().take(channels).map(|x| f64::from(*x)).collect() };
        let mut h: Vec<Vec<f64>> = products.chunks(length).take(channels).map(row).collect();
        let trace: f64 = h.iter().enumerate().filter_map(|(i, row)| row.get(i)).sum();
        let damping = f64::from(DAMPING) * trace / channels.max(1) as f64;
        if !(damping.is_finite() && damping > 0.0) {
            return None;
        }
        h.iter_mut().enumerate().filter_map(|(i, row)| row.get_mut(i)).for_each(|square| *square += damping);
        // From the last column on: what is left of the others has that column's part taken off.
        let mut upper: Vec<Vec<f32>> = (0..h.len()).map(|i| Vec::with_capacity(h.len().saturating_sub(i))).collect();
        while let Some(last) = h.pop() {
            let k = h.len();
            let square = last.get(k).copied().filter(|square| *square > 0.0)?;
            for (row, part) in h.iter_mut().zip(&last) {
                let share = part / square;
                row.iter_mut().zip(&last).take(k).for_each(|(x, y)| *x -= share * y);
            }
            upper.iter_mut().zip(&last).take(k).for_each(|(row, part)| row.push((part / square) as f32));
        }
        // Columns were found from the last to the one after the diagonal.
        upper.iter_mut().for_each(|row| row.reverse());
        Some(Self(upper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs with a common part, and rows of weights, all made up.
    fn made_up(tokens: usize, channels: usize) -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
        // The finaliser of MurmurHash3.
        let draw = |i: usize| {
            let x = (i as u32 ^ (i as u32 >> 16)).wrapping_mul(0x85eb_ca6b);
            let x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
            ((x ^ (x >> 16)) >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        let inputs = (0..tokens).map(|t| (0..channels).map(|k| 0.7 + draw(t * 977 + k * 31)).collect()).collect();
        let row = |n: usize| (0..channels).map(|k| 200.0 * draw(7 + k * 13 + n * 10_007)).collect();
        (inputs, (0..16).map(row).collect())
    }

    fn products(inputs: &[Vec<f32>], channels: usize) -> Vec<f32> {
        let at = |x: &Vec<f32>, k: usize| x.get(k).copied().unwrap_or(0.0);
        let mut sums = Vec::new();
        let length = Blocks::of(channels as u32).length as usize;
        for first in (0..channels).step_by(length) {
            let pair = |i: usize, j: usize| inputs.iter().map(|x| at(x, first + i) * at(x, first + j)).sum::<f32>();
            sums.extend((0..length * length).map(|place| pair(place / length, place % length)));
        }
        sums
    }

    fn loss(inputs: &[Vec<f32>], exact: &[f32], rounded: &[f32]) -> f32 {
        let error = |x: &Vec<f32>| x.iter().zip(exact.iter().zip(rounded)).map(|(x, (w, r))| x * (w - r)).sum::<f32>();
        inputs.iter().map(|x| error(x).powi(2)).sum()
    }

    #[test]
    fn errors_cancel_where_inputs_vary_together() {
        for channels in [128, 40, 515] {
            let (inputs, rows) = made_up(300, channels);
            let products = products(&inputs, channels);
            let rounding = Rounding::new(&products, channels as u32);
            let (mut alone, mut together) = (0.0, 0.0);
            for weights in rows {
                let mut rounded = weights.clone();
                Rounding::none().round(&mut rounded, 127.0);
                assert!(rounded.iter().zip(&weights).all(|(r, w)| (r - w).abs() <= 0.5));
                alone += loss(&inputs, &weights, &rounded);
                rounded.clone_from(&weights);
                rounding.round(&mut rounded, 127.0);
                assert!(rounded.iter().all(|w| w.fract() == 0.0 && w.abs() <= 127.0));
                together += loss(&inputs, &weights, &rounded);
            }
            assert!(together < 0.5 * alone, "{together} against {alone} of {channels} channels");
        }
    }

    #[test]
    fn independent_inputs_change_nothing() {
        let weights = made_up(0, 128).1.swap_remove(0);
        let mut identity = vec![0.0; 128 * 128];
        identity.iter_mut().step_by(129).for_each(|square| *square = 3.0);
        for products in [identity, vec![0.0; 128 * 128]] {
            let mut rounded = weights.clone();
            Rounding::new(&products, 128).round(&mut rounded, 127.0);
            let due: Vec<f32> = weights.iter().map(|w| w.round_ties_even()).collect();
            assert_eq!(rounded, due);
        }
    }
}
