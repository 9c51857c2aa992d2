//! The stories behind the closed forms, told draw by draw. No formula of theirs is used.
//!
//! | module | what lives there |
//! |---|---|
//! | [`finding`] | a cheater that is found, and convicts itself first |
//! | [`lane`] | a lane whose worker cheats, with or without a friend that shields it |
//! | [`watch`] | validators that answer without looking, what is planted against them, who frames them |
//! | [`proposer`] | a cheater that proposes the last blocks before the beacon's |
//! | [`purse`] | a job whose budget for audits may run out |

pub mod finding;
pub mod lane;
pub mod proposer;
pub mod purse;
pub mod watch;

/// Mean of independent samples, and how far it can be trusted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Standard error of the mean; infinite for fewer than two samples.
    pub error: f64,
}

impl Estimate {
    /// Of samples that are independent of each other.
    pub fn of(samples: &[f64]) -> Self {
        let count = samples.len() as f64;
        if count < 2.0 {
            return Self { mean: samples.iter().sum(), error: f64::INFINITY };
        }
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
        Self { mean, error: (squares / (count - 1.0) / count).sqrt() }
    }

    /// Standard errors between the mean and `value`.
    pub fn errors_from(&self, value: f64) -> f64 {
        (self.mean - value).abs() / self.error
    }
}
