//! The order in which a stage works on its micro-batches: one forward, one backward (1F1B; Narayanan et al., PipeDream,
//! SOSP 2019).

use std::ops::Range;

use tensorlink_node::interval::Work;
use tensorlink_program::check::{only_exchanges, rounds};
use tensorlink_types::Program;

use super::link::QUEUE;

/// The work of one step of stage `stage` of `stages` on its program, round after round.
///
/// Stages that only sum up in their passes have nothing to compute while a tensor is on its way, so that each is as far
/// ahead of the next as a link's queue is long: sums go one way and totals the other at the same time, and a round trip
/// is not waited for with each.
pub fn of_program(program: &Program, stage: u16, stages: u16) -> Vec<Work> {
    let round = |round: Range<u32>| {
        // What a stage is ahead by waits on its link, at most: a longer lead could have both ends wait for each
        // other's queue.
        let lead = if only_exchanges(program, &round) { QUEUE as u32 } else { 1 };
        one_forward_one_backward(stage, stages, round, lead)
    };
    rounds(program).into_iter().flat_map(round).collect()
}

/// A stage runs ahead of the next one by `lead` forward passes, then alternates; so of each stage after it at most that
/// many micro-batches are held at once, however many there are.
pub fn one_forward_one_backward(stage: u16, stages: u16, micro_batches: Range<u32>, lead: u32) -> Vec<Work> {
    let after = u32::from(stages.saturating_sub(stage).saturating_sub(1));
    let mut forward = micro_batches.clone().map(Work::Forward);
    let mut work: Vec<Work> = forward.by_ref().take(after.saturating_mul(lead) as usize).collect();
    for backward in micro_batches.map(Work::Backward) {
        work.extend(forward.next());
        work.push(backward);
    }
    work
}

#[cfg(test)]
mod tests {
    use super::Work::{Backward as B, Forward as F};
    use super::*;

    #[test]
    fn last_stage_alternates() {
        assert_eq!(one_forward_one_backward(2, 3, 0..3, 1), [F(0), B(0), F(1), B(1), F(2), B(2)]);
    }

    #[test]
    fn first_stage_runs_ahead() {
        assert_eq!(one_forward_one_backward(0, 3, 0..4, 1), [F(0), F(1), F(2), B(0), F(3), B(1), B(2), B(3)]);
    }

    #[test]
    fn a_lead_is_kept_to_each_stage_after() {
        assert_eq!(one_forward_one_backward(1, 3, 0..4, 2), [F(0), F(1), F(2), B(0), F(3), B(1), B(2), B(3)]);
        assert_eq!(one_forward_one_backward(2, 3, 0..2, 2), [F(0), B(0), F(1), B(1)]);
    }

    /// Runs all stages against each other, each over a queue of `lead` at both ends of a link, a round of computing and
    /// one of exchanges: every order of stages must finish.
    #[test]
    fn pipelines_never_deadlock() {
        for (stages, micro_batches, lead) in
            (1..6u16).flat_map(|s| (1..12).flat_map(move |m| [1, 2, 4].map(|lead| (s, m, lead))))
        {
            let mut work: Vec<_> = (0..stages)
                .map(|s| {
                    let mut work = one_forward_one_backward(s, stages, 0..micro_batches, 1);
                    work.extend(one_forward_one_backward(s, stages, micro_batches..2 * micro_batches, lead));
                    work.into_iter().peekable()
                })
                .collect();
            // What waits between a stage and the next one: going forward, going backward.
            let mut links = [vec![0; work.len() - 1], vec![0; work.len() - 1]];
            let mut moved = true;
            while moved {
                moved = false;
                for s in 0..work.len() {
                    let (before, after) = (s.checked_sub(1), (s + 1 < work.len()).then_some(s));
                    let (link, from, to) = match work[s].peek() {
                        Some(F(_)) => (&mut links[0], before, after),
                        Some(B(_)) => (&mut links[1], after, before),
                        None => continue,
                    };
                    if from.is_none_or(|from| link[from] > 0) && to.is_none_or(|to| link[to] < 2 * lead) {
                        from.into_iter().for_each(|from| link[from] -= 1);
                        to.into_iter().for_each(|to| link[to] += 1);
                        work[s].next();
                        moved = true;
                    }
                }
            }
            let over = work.iter_mut().all(|work| work.peek().is_none());
            assert!(over, "{stages} stages, {micro_batches} micro-batches, lead {lead}");
        }
    }
}
