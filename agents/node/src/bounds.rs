//! What the training of a job may not exceed. Its user sets it, its workers go no further, and whoever follows the job
//! ends it: all by the same comparisons, of numbers that nobody proves.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Share of a weight's elements at the limit of their type that a training may have where none is named: calibration
/// left room for twice of what it saw, so that more are no outliers but a training out of its range, where steps have
/// no effect any more.
pub const MAX_SATURATION: f32 = 0.05;

/// Bounds of a training, for each of its intervals; what is not named is not bounded.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Largest share of a weight's elements at the limit of their type, of any weight of any stage: more than 0, and
    /// at most 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_saturation: Option<f32>,
    /// Largest loss, times the job's first: more than 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_loss: Option<f32>,
}

/// A bound out of its range. Name another.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum BoundsError {
    /// No share.
    #[error("max_saturation is {0}: it must be more than 0, and at most 1 (all of a weight's elements)")]
    Saturation(f32),
    /// No multiple that a training could stay within.
    #[error("max_loss is {0}: it must be a number, and more than 1 (the first loss)")]
    Loss(f32),
}

/// What a lane tells of an interval.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Readings {
    /// Largest share of a weight's elements at the limit of their type, 0 to 1, at its end; none of a stage without
    /// such weights.
    pub saturation: Option<f32>,
    /// Mean loss, nats; of the last stage only.
    pub loss: Option<f32>,
}

/// By how much a bound is exceeded.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    /// The weights do not fit their types any more.
    Saturated {
        /// Share of elements at the limit of their type, of the worst weight.
        share: f32,
        /// What it may be at most.
        most: f32,
    },
    /// It learns the wrong way.
    Exploded {
        /// The loss, nats.
        loss: f32,
        /// What it may be at most, nats.
        most: f32,
    },
    /// The loss is no number any more.
    NotFinite,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saturated { share, most } => write!(
                f,
                "{:.1} % of a weight's elements are as large as their type allows, more than {:.1} %: it does not learn; lower \
                 learning_rate, calibrate for more steps, or raise max_saturation",
                share * 100.0,
                most * 100.0
            ),
            Self::Exploded { loss, most } => write!(
                f,
                "its loss is {loss:.4}, more than {most:.4}: it does not learn; lower learning_rate, or raise max_loss"
            ),
            Self::NotFinite => f.write_str("its loss is not a number any more: lower learning_rate"),
        }
    }
}

impl Bounds {
    /// Whether none is named.
    pub const fn is_empty(&self) -> bool {
        self.max_saturation.is_none() && self.max_loss.is_none()
    }

    /// Whether each is in its range.
    ///
    /// # Errors
    /// [`BoundsError`].
    pub fn check(&self) -> Result<(), BoundsError> {
        match *self {
            Self { max_saturation: Some(share), .. } if !(share > 0.0 && share <= 1.0) => {
                Err(BoundsError::Saturation(share))
            }
            Self { max_loss: Some(times), .. } if !(times.is_finite() && times > 1.0) => Err(BoundsError::Loss(times)),
            _ => Ok(()),
        }
    }

    /// Whether this share of a weight's elements at the limit of their type is too large. What is no share is
    /// no reading.
    pub fn saturated(&self, share: f32) -> Option<Excess> {
        let most = self.max_saturation?;
        (share > most && share <= 1.0).then_some(Excess::Saturated { share, most })
    }

    /// Whether this loss is too large, where the job's first was `first`, both in nats. What is no number always is.
    pub fn exploded(&self, loss: f32, first: f32) -> Option<Excess> {
        if !loss.is_finite() {
            return Some(Excess::NotFinite);
        }
        let most = self.max_loss? * first;
        (loss > most).then_some(Excess::Exploded { loss, most })
    }

    /// Which bound an interval exceeds, if it does; `first` is the loss of the job's first, in nats, none if this
    /// is it.
    pub fn exceeded(&self, readings: Readings, first: Option<f32>) -> Option<Excess> {
        let saturated = readings.saturation.and_then(|share| self.saturated(share));
        saturated.or_else(|| readings.loss.and_then(|loss| self.exploded(loss, first.unwrap_or(loss))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { max_saturation: Some(0.05), max_loss: Some(1.5) };

    #[test]
    fn only_more_than_a_bound_exceeds_it() {
        let of = |saturation, loss| BOUNDS.exceeded(Readings { saturation, loss }, Some(4.0));
        let saturated = Some(Excess::Saturated { share: 0.06, most: 0.05 });
        let exploded = Some(Excess::Exploded { loss: 6.1, most: 6.0 });
        assert_eq!(of(Some(0.05), Some(6.0)), None);
        assert_eq!(of(None, None), None);
        assert_eq!((of(Some(0.06), None), of(None, Some(6.1))), (saturated, exploded));
        assert_eq!(of(Some(0.06), Some(6.1)), saturated);
        for no_share in [f32::NAN, f32::INFINITY, 1.1] {
            assert_eq!(of(Some(no_share), None), None);
        }
        for no_number in [f32::NAN, f32::INFINITY] {
            assert_eq!(of(None, Some(no_number)), Some(Excess::NotFinite));
        }
    }

    #[test]
    fn the_first_loss_is_what_others_are_held_against() {
        let loss = |loss| Readings { loss: Some(loss), saturation: None };
        assert_eq!(BOUNDS.exceeded(loss(400.0), None), None);
        assert!(BOUNDS.exceeded(loss(400.0), Some(266.0)).is_some());
    }

    #[test]
    fn what_is_not_named_is_not_bounded() {
        let readings = Readings { saturation: Some(1.0), loss: Some(1e9) };
        assert_eq!(Bounds::default().exceeded(readings, Some(1.0)), None);
        assert!(Bounds::default().is_empty() && !BOUNDS.is_empty());
    }

    #[test]
    fn bounds_that_nothing_could_exceed_or_stay_within_are_refused() {
        assert_eq!(BOUNDS.check(), Ok(()));
        assert_eq!(Bounds { max_saturation: Some(1.0), max_loss: None }.check(), Ok(()));
        for share in [0.0, -1.0, 1.1, f32::NAN] {
            assert!(Bounds { max_saturation: Some(share), ..BOUNDS }.check().is_err(), "{share}");
        }
        for times in [1.0, 0.5, f32::INFINITY, f32::NAN] {
            assert!(Bounds { max_loss: Some(times), ..BOUNDS }.check().is_err(), "{times}");
        }
    }
}
