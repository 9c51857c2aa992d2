//! What to believe of a worker: what it says, until it has been seen to do less.
//!
//! Whoever uses a worker can say how fast it was. Such words are signed elsewhere; here they are weighed by what was
//! paid for the work, which makes invented ones expensive, and by their age.

use crate::node::{Profile, Rates, Tier};
use crate::number::{Invalid, at_least_zero, positive};

/// How fast a worker was once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Observation {
    /// What it did, as a share of what it says: 0.5 is half as fast.
    pub share: f64,
    /// What was paid for the work.
    pub paid: f64,
    /// Seconds since then.
    pub age: f64,
}

/// How claims and observations are weighed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trust {
    /// Seconds after which an observation counts half.
    pub half_life: f64,
    /// A claim counts as an observation for which so much was paid.
    pub claim: f64,
    /// A claim is cut at so many times the median claim of its tier.
    pub most: f64,
    /// The share of its claim that is believed of a worker that nobody has observed. Plans by which workers are tried
    /// believe all of it, so that everybody is tried who might be good; plans that are kept believe less, so that
    /// measurements admit to them.
    pub unseen: f64,
}

impl Default for Trust {
    /// A week; a claim as an observation for one unit of price; four medians; a tenth.
    fn default() -> Self {
        Self { half_life: 7.0 * 86_400.0, claim: 1.0, most: 4.0, unseen: 0.1 }
    }
}

impl Trust {
    /// The same for plans by which workers are tried.
    pub fn trying(self) -> Self {
        Self { unseen: 1.0, ..self }
    }

    /// # Errors
    /// For weights that are no numbers.
    pub fn check(&self) -> Result<(), Invalid> {
        positive("seconds of a half-life", self.half_life)?;
        at_least_zero("the weight of a claim", self.claim)?;
        positive("the most medians of a claim", self.most)?;
        positive("the share believed of the unseen", self.unseen)
    }

    /// The share of its claim that is believed of a worker: the weighted median of what was observed, the claim itself
    /// being an observation of 1. More than it claims is never believed. A fifth of the weight that lies moves a median
    /// little, where it would move a mean as far as it likes.
    ///
    /// # Errors
    /// For weights or observations that are no numbers.
    pub fn share(&self, observations: &[Observation]) -> Result<f64, Invalid> {
        self.check()?;
        let mut weighed = vec![(1.0, self.claim)];
        for observation in observations {
            positive("what a worker did", observation.share)?;
            at_least_zero("what was paid", observation.paid)?;
            at_least_zero("the age of an observation", observation.age)?;
            let fresh = (-observation.age / self.half_life).exp2();
            weighed.push((observation.share.min(1.0), observation.paid * fresh));
        }
        let all: f64 = weighed.iter().map(|(_, weight)| weight).sum();
        let seen = all - self.claim;
        if seen <= 0.0 {
            return Ok(self.unseen.min(1.0));
        }
        weighed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0.0;
        let median = weighed.into_iter().find(|(_, weight)| {
            below += weight;
            below >= all / 2.0
        });
        Ok(median.map_or(1.0, |(share, _)| share))
    }

    /// What is believed of each worker of a fleet, from what each says and what was observed of it.
    ///
    /// # Errors
    /// For profiles, weights or observations that are no numbers.
    pub fn believed(&self, claims: &[Profile], observations: &[Vec<Observation>]) -> Result<Vec<Profile>, Invalid> {
        claims.iter().try_for_each(Profile::check)?;
        let capped = self.capped(claims);
        let none = Vec::new();
        let believe = |(at, claim): (usize, &Profile)| {
            let seen = observations.get(at).unwrap_or(&none);
            let share = self.share(seen)?;
            let observed = seen.iter().any(|observation| observation.paid > 0.0);
            // What was observed is a share of the claim as it was made, and may exceed the cap.
            Ok(scaled(if observed { claim } else { capped.get(at).unwrap_or(claim) }, share))
        };
        claims.iter().enumerate().map(believe).collect()
    }

    /// Claims, none above so many times the median of its tier.
    pub fn capped(&self, claims: &[Profile]) -> Vec<Profile> {
        let median = |tier: Tier, of: &dyn Fn(&Profile) -> f64| {
            let mut values: Vec<f64> = claims.iter().filter(|claim| claim.tier() == tier).map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
        };
        let caps = [Tier::A, Tier::B, Tier::C].map(|tier| {
            let rate = self.most * median(tier, &|claim| claim.rates.int16);
            (tier, rate, self.most * median(tier, &|claim| claim.memory_rate))
        });
        let cap = |claim: &Profile| {
            let Some((_, rate, memory)) = caps.iter().find(|(tier, ..)| *tier == claim.tier()) else { return *claim };
            let share = (rate / claim.rates.int16).min(1.0);
            Profile { memory_rate: claim.memory_rate.min(*memory), ..computing(claim, share) }
        };
        claims.iter().map(cap).collect()
    }
}

/// A profile with a share of its speeds.
fn scaled(claim: &Profile, share: f64) -> Profile {
    Profile { memory_rate: claim.memory_rate * share, ..computing(claim, share) }
}

fn computing(claim: &Profile, share: f64) -> Profile {
    let Rates { int4, int8, int16 } = claim.rates;
    Profile { rates: Rates { int4: int4 * share, int8: int8 * share, int16: int16 * share }, ..*claim }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::World;
    use crate::generate::world::faster;

    fn seen(share: f64, paid: f64, age: f64) -> Observation {
        Observation { share, paid, age }
    }

    #[test]
    fn who_claims_twice_its_speed_is_believed_what_it_does() {
        let trust = Trust::default();
        let truth = World::generate(1, 8).nodes;
        let mut claims = truth.clone();
        claims[3] = faster(&truth[3], 2.0);
        let mut observations = vec![vec![]; 8];
        observations[3] = vec![seen(0.5, 2.0, 0.0)];
        let believed = trust.believed(&claims, &observations).expect("all are numbers");
        assert!((believed[3].rates.int8 / truth[3].rates.int8 - 1.0).abs() < 1e-12);
        assert!((believed[4].rates.int8 / trust.capped(&claims)[4].rates.int8 - 0.1).abs() < 1e-12, "unseen");
    }

    #[test]
    fn what_little_money_says_and_what_is_old_does_not_outweigh() {
        let trust = Trust::default();
        let share = |observations: &[Observation]| trust.share(observations).expect("all are numbers");
        assert_eq!(share(&[seen(0.1, 0.5, 0.0)]), 1.0, "half a unit against a claim");
        assert_eq!(share(&[seen(0.9, 10.0, 0.0), seen(0.1, 3.0, 0.0)]), 0.9, "slander");
        assert_eq!(share(&[seen(0.4, 4.0, 0.0), seen(0.9, 8.0, 4.0 * trust.half_life)]), 0.4, "old praise");
        assert_eq!(share(&[seen(3.0, 10.0, 0.0)]), 1.0, "more than claimed");
        assert_eq!(share(&[]), trust.unseen);
    }

    #[test]
    fn a_claim_is_cut_and_a_number_that_is_none_refused() {
        let trust = Trust::default();
        let mut claims = World::generate(1, 60).nodes;
        claims[0] = faster(&claims[0], 1_000.0);
        let capped = trust.capped(&claims);
        assert!(capped[0].rates.int16 < claims[0].rates.int16 / 20.0);
        assert!(capped.iter().zip(&claims).filter(|(capped, claim)| capped == claim).count() > 50);
        assert!(trust.share(&[seen(f64::NAN, 1.0, 0.0)]).is_err());
        assert!(trust.share(&[seen(0.0, 1.0, 0.0)]).is_err());
        assert!(Trust { half_life: 0.0, ..trust }.share(&[]).is_err());
    }
}
