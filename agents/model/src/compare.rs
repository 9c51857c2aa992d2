//! How far rows of results in integers are from the same in floats, for people. Floats; never committed.

/// Sums over pairs of rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    rows: u64,
    elements: u64,
    cosine: f64,
    cosine_min: f64,
    difference: f64,
    largest_difference: f64,
    same: u64,
    divergence: f64,
    logits: u64,
    surprise: [f64; 2],
    predicted: u64,
}

impl Default for Comparison {
    fn default() -> Self {
        Self {
            rows: 0,
            elements: 0,
            cosine: 0.0,
            cosine_min: 1.0,
            difference: 0.0,
            largest_difference: 0.0,
            same: 0,
            divergence: 0.0,
            logits: 0,
            surprise: [0.0; 2],
            predicted: 0,
        }
    }
}

impl Comparison {
    /// Takes in a row of the model's output, `got` in integers and `due` in floats, of equal length.
    pub fn vector(&mut self, got: &[f64], due: &[f32]) {
        let (mut product, mut squares) = (0.0, [0.0; 2]);
        for (got, due) in got.iter().zip(due) {
            let due = f64::from(*due);
            product += got * due;
            squares = [squares[0] + got * got, squares[1] + due * due];
            let difference = (got - due).abs();
            self.largest_difference = self.largest_difference.max(difference);
            self.difference += difference;
        }
        let cosine = product / (squares[0] * squares[1]).sqrt().max(f64::MIN_POSITIVE);
        self.rows = self.rows.saturating_add(1);
        self.elements = self.elements.saturating_add(got.len() as u64);
        self.cosine += cosine;
        self.cosine_min = self.cosine_min.min(cosine);
    }

    /// As [`vector`](Self::vector), of logits over a vocabulary; `next` is the token that follows in the text, if one
    /// does.
    pub fn logits(&mut self, got: &[f64], due: &[f32], next: Option<u32>) {
        self.vector(got, due);
        self.logits = self.logits.saturating_add(1);
        let floats = || due.iter().map(|x| f64::from(*x));
        let (likeliest, got_sum) = spread(got.iter().copied());
        let (due_likeliest, due_sum) = spread(floats());
        self.same = self.same.saturating_add(u64::from(likeliest == due_likeliest));
        // Σ p (ln p − ln q), where ln p is the logit less the logarithm of the sum. Rounding may leave less than 0.
        let apart: f64 = got.iter().zip(floats()).map(|(got, due)| (due - due_sum).exp() * (due - got)).sum();
        self.divergence += (apart - due_sum + got_sum).max(0.0);
        if let Some(next) = next {
            let of = |logit: Option<f64>| logit.unwrap_or(f64::NEG_INFINITY);
            let (due, got) = (of(floats().nth(next as usize)), of(got.get(next as usize).copied()));
            self.surprise = [self.surprise[0] + due_sum - due, self.surprise[1] + got_sum - got];
            self.predicted = self.predicted.saturating_add(1);
        }
    }

    /// Rows taken in.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Cosine between both, mean and least.
    pub fn cosine(&self) -> [f64; 2] {
        [self.cosine / self.rows.max(1) as f64, self.cosine_min]
    }

    /// Difference of an element, mean and largest.
    pub fn difference(&self) -> [f64; 2] {
        [self.difference / self.elements.max(1) as f64, self.largest_difference]
    }

    /// Rows of logits whose largest is the same.
    pub const fn same_choices(&self) -> u64 {
        self.same
    }

    /// Mean over rows of logits of the Kullback–Leibler divergence of what the integers expect from what the floats
    /// expect, in nats; none without logits.
    pub fn divergence(&self) -> Option<f64> {
        (self.logits > 0).then(|| self.divergence / self.logits as f64)
    }

    /// Perplexity of the tokens that followed, by floats and by integers; none if none did.
    pub fn perplexity(&self) -> Option<[f64; 2]> {
        (self.predicted > 0).then(|| self.surprise.map(|sum| (sum / self.predicted as f64).exp()))
    }
}

/// Place of the first largest of some logits, and the logarithm of the sum of their exponentials.
fn spread(logits: impl Iterator<Item = f64> + Clone) -> (usize, f64) {
    let better = |best: (usize, f64), (place, logit)| if logit > best.1 { (place, logit) } else { best };
    let (place, top) = logits.clone().enumerate().fold((0, f64::NEG_INFINITY), better);
    (place, top + logits.map(|logit| (logit - top).exp()).sum::<f64>().ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_are_not_apart() {
        let mut rows = Comparison::default();
        rows.logits(&[1.0, -2.0, 0.5], &[1.0, -2.0, 0.5], Some(2));
        assert!(rows.cosine().iter().all(|cosine| (cosine - 1.0).abs() < 1e-12));
        assert_eq!((rows.rows(), rows.same_choices(), rows.difference()), (1, 1, [0.0; 2]));
        assert!(rows.divergence().is_some_and(|nats| nats < 1e-12));
        assert!(rows.perplexity().is_some_and(|[floats, integers]| floats == integers));
    }

    #[test]
    fn divergence_and_perplexity_are_those_of_the_two_distributions() {
        // Floats expect a half and a half, integers a quarter and three quarters.
        let mut rows = Comparison::default();
        rows.logits(&[0.0, 3f64.ln()], &[5.0, 5.0], Some(1));
        let due = 0.5 * 2f64.ln() + 0.5 * (2.0 / 3.0f64).ln();
        assert!(rows.divergence().is_some_and(|nats| (nats - due).abs() < 1e-12), "{rows:?}");
        let [floats, integers] = rows.perplexity().unwrap();
        assert!((floats - 2.0).abs() < 1e-12 && (integers - 4.0 / 3.0).abs() < 1e-12, "{floats} {integers}");
        // The first of two equal logits is the choice.
        assert_eq!(rows.same_choices(), 0);
    }

    #[test]
    fn vectors_are_compared_element_by_element_and_tell_no_divergence() {
        let mut rows = Comparison::default();
        rows.vector(&[3.0, 4.0], &[4.0, 3.0]);
        rows.vector(&[1.0, 0.0], &[1.0, 0.5]);
        assert_eq!(rows.difference(), [0.625, 1.0]);
        let [mean, least] = rows.cosine();
        assert!((least - 1.0 / 1.25f64.sqrt()).abs() < 1e-12 && mean > least, "{mean} {least}");
        assert_eq!((rows.divergence(), rows.perplexity()), (None, None));
    }

    #[test]
    fn what_is_no_number_stays_one_that_is_none() {
        let mut rows = Comparison::default();
        rows.logits(&[0.0, 1.0], &[f32::NAN, 0.0], Some(0));
        assert!(rows.perplexity().is_some_and(|[floats, _]| floats.is_nan()));
    }
}
