//! Heads in floats.

use super::dot;

/// `Σ_d q[t,h,d]·k[s,g,d]` of every head; operands with the lengths of their rows.
pub(super) fn scores((q, q_row): (&[f64], usize), (k, k_row): (&[f64], usize), heads: usize) -> Vec<f64> {
    let width = per(q_row, heads);
    let mut scores = Vec::new();
    for h in 0..heads {
        let kv_head = per(h.saturating_mul(per(k_row, width)), heads);
        for q in q.chunks_exact(q_row) {
            let q = nth(q, h, width);
            scores.extend(k.chunks_exact(k_row).map(|k| dot(q, nth(k, kv_head, width))));
        }
    }
    scores
}

/// `Σ_s p[h,t,s]·v[g,d,s]`; the values transposed, with the length of their rows; `row` is that of the result.
pub(super) fn mix(p: &[f64], (v, keys): (&[f64], usize), heads: usize, row: usize) -> Vec<f64> {
    let width = per(row, heads);
    let (tokens, kv_heads) = (per(p.len(), heads.saturating_mul(keys)), per(v.len(), width.saturating_mul(keys)));
    let mut mixed = Vec::new();
    for t in 0..tokens {
        for h in 0..heads {
            let p = nth(p, h.saturating_mul(tokens).saturating_add(t), keys);
            let v = nth(v, per(h.saturating_mul(kv_heads), heads), width.saturating_mul(keys));
            mixed.extend(v.chunks_exact(keys).map(|v| dot(p, v)));
        }
    }
    mixed
}

/// Sums over the heads of each group; `row` is the length of a row of the result.
pub(super) fn group_sum((a, a_row): (&[f64], usize), heads: usize, row: usize) -> Vec<f64> {
    let width = per(a_row, heads);
    let share = per(heads, per(row, width)).saturating_mul(width);
    let group = |heads: &[f64]| -> Vec<f64> { (0..width).map(|d| heads.iter().skip(d).step_by(width).sum()).collect() };
    a.chunks_exact(share.max(1)).flat_map(group).collect()
}

fn nth(values: &[f64], index: usize, length: usize) -> &[f64] {
    values.chunks_exact(length.max(1)).nth(index).unwrap_or_default()
}

fn per(whole: usize, part: usize) -> usize {
    whole.checked_div(part).unwrap_or_default()
}
