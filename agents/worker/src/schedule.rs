//! The order in which a stage works on its micro-batches: one forward, one backward (1F1B; Narayanan et al., PipeDream, SOSP 2019).

use tensorlink_node::interval::Work;

/// The work of one step of stage `stage` of `stages` with `micro_batches` micro-batches.
///
/// A stage runs ahead by as many forward passes as there are stages after it, then alternates; so at most that many micro-batches are
/// held at once, however many there are.
pub fn one_forward_one_backward(stage: u16, stages: u16, micro_batches: u32) -> Vec<Work> {
    let ahead = u32::from(stages.saturating_sub(stage).saturating_sub(1)).min(micro_batches);
    let mut work: Vec<Work> = (0..ahead).map(Work::Forward).collect();
    for i in 0..micro_batches {
        if ahead + i < micro_batches {
            work.push(Work::Forward(ahead + i));
        }
        work.push(Work::Backward(i));
    }
    work
}

#[cfg(test)]
mod tests {
    use super::Work::{Backward as B, Forward as F};
    use super::*;

    #[test]
    fn last_stage_alternates() {
        assert_eq!(one_forward_one_backward(2, 3, 3), [F(0), B(0), F(1), B(1), F(2), B(2)]);
    }

    #[test]
    fn first_stage_runs_ahead() {
        assert_eq!(one_forward_one_backward(0, 3, 4), [F(0), F(1), F(2), B(0), F(3), B(1), B(2), B(3)]);
    }

    /// Runs all stages against each other with unbounded channels: every order of stages must finish.
    #[test]
    fn pipelines_never_deadlock() {
        for stages in 1..6u16 {
            for micro_batches in 1..9 {
                let mut queues: Vec<_> = (0..stages)
                    .map(|s| {
                        let mut work = one_forward_one_backward(s, stages, micro_batches);
                        work.reverse();
                        work
                    })
                    .collect();
                let mut forwards = vec![0; usize::from(stages)];
                let mut backwards = vec![0; usize::from(stages)];
                let mut moved = true;
                while moved {
                    moved = false;
                    for s in 0..usize::from(stages) {
                        let ready = match queues[s].last() {
                            Some(F(mb)) => s == 0 || forwards[s - 1] > *mb,
                            Some(B(mb)) => {
                                forwards[s] > *mb && (s + 1 == usize::from(stages) || backwards[s + 1] > *mb)
                            }
                            None => false,
                        };
                        if ready {
                            match queues[s].pop() {
                                Some(F(_)) => forwards[s] += 1,
                                _ => backwards[s] += 1,
                            }
                            moved = true;
                        }
                    }
                }
                assert!(queues.iter().all(Vec::is_empty), "{stages} stages, {micro_batches} micro-batches");
            }
        }
    }
}
