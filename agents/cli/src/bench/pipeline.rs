//! What a token takes through two workers, against one worker with all layers: time that passes for the user, who
//! carries the tensors between them over the network, here the loopback interface.

use std::time::Duration;

use anyhow::Result;
use tensorlink_user::serving::Text;

use super::figure::{Figure, Goal, Unit};
use super::serving::{Cluster, step};
use super::subject::text;
use super::time::{median, millis};
use super::{Measure, Row};

/// Time through two workers against one.
const GOAL: f64 = 1.15;
/// Turns of each, and tokens of a turn: a token of either finds the processor's caches as its own last one left them.
const TURNS: usize = 15;
const TURN: usize = 4;

pub(super) async fn measure(measure: &Measure<'_>) -> Result<Vec<Figure>> {
    let extent = measure.extent;
    let size = extent.size();
    let model = measure.quantized()?;
    let (turns, lengths) = (extent.rounds(TURNS), extent.lengths());
    let longest = lengths[1] + ((turns + 1) * TURN) as u32;
    let one = Cluster::start(measure, &model, 1, longest).await?;
    let two = Cluster::start(measure, &model, 2, longest).await?;
    drop(model);
    let mut figures = Vec::new();
    for count in lengths {
        let ids = text(count, size.vocabulary);
        let (mut alone, mut both) = (Decoding::begin(&one, &ids).await?, Decoding::begin(&two, &ids).await?);
        // The first turn of each is not counted.
        for turn in 0..=turns {
            alone.turn(turn > 0).await?;
            both.turn(turn > 0).await?;
        }
        let (one, two) = (millis(median(&mut alone.times)), millis(median(&mut both.times)));
        let what = format!("time of the token after {count} through 2 workers, against 1");
        let figure = Figure::new(Row::Pipeline, what, (two / one, Unit::Times), Some(Goal::AtMost(GOAL)));
        figures.push(figure.from(format!("{two:.2} ms against {one:.2}")));
    }
    one.stop().await?;
    two.stop().await?;
    Ok(figures)
}

/// A text that goes on.
struct Decoding {
    text: Text,
    /// The last token chosen.
    token: u32,
    times: Vec<Duration>,
}

impl Decoding {
    async fn begin(cluster: &Cluster, ids: &[u32]) -> Result<Self> {
        let mut text = cluster.begin().await?;
        let (token, _) = step(&mut text, ids, false).await?;
        Ok(Self { text, token, times: Vec::new() })
    }

    async fn turn(&mut self, counts: bool) -> Result<()> {
        for _ in 0..TURN {
            let (token, took) = step(&mut self.text, &[self.token], false).await?;
            self.token = token;
            if counts {
                self.times.push(took);
            }
        }
        Ok(())
    }
}
