//! Messages that are published to everybody and may be lost.

use serde::{Deserialize, Serialize};
use tensorlink_types::{JobId, Lane};

use crate::price::Prices;
use crate::speed::Speed;

use super::decode;
use crate::bounds::Excess;
use crate::observed::SignedSpeed;

/// Topic of [`WorkerAdvert`].
pub const WORKERS: &str = "tensorlink/workers/2";
/// Topic of [`Progress`].
pub const PROGRESS: &str = "tensorlink/progress/1";

/// Topic of [`SignedSpeed`]s, a list of them.
pub const SPEEDS: &str = "tensorlink/speeds/1";

/// Most speeds in one message.
pub const MOST_SPEEDS: usize = 16;
/// Most bytes in which a worker names its engine.
const MAX_ENGINE: usize = 1024;

/// Whether a message is what its topic is for. Nodes pass on nothing else, and think worse of who sends it.
pub fn is_well_formed(topic: &str, message: &[u8]) -> bool {
    match topic {
        WORKERS => decode::<WorkerAdvert>("advert", message).is_ok_and(|advert| advert.engine.len() <= MAX_ENGINE),
        PROGRESS => decode::<Progress>("progress", message).is_ok(),
        SPEEDS => decode::<Vec<SignedSpeed>>("speeds", message).is_ok_and(|speeds| {
            (1..=MOST_SPEEDS).contains(&speeds.len()) && speeds.iter().all(SignedSpeed::is_possible)
        }),
        // Nothing is known of what else somebody here subscribed to.
        _ => true,
    }
}

/// What a worker offers. Its address is the publisher's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerAdvert {
    /// Memory that one more lane may take, bytes.
    pub memory: u64,
    /// Disk that the files of more lanes may take, bytes.
    pub disk: u64,
    /// How fast it computes. What no device has is no advert.
    pub speed: Speed,
    /// Lanes it can take now.
    pub free_lanes: u16,
    /// What it asks for a billion multiply-adds.
    pub prices: Prices,
    /// Engine, for people.
    pub engine: String,
}

/// How a lane gets on. For people; nothing is paid or proven by it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// The lane.
    pub lane: Lane,
    /// Steps done.
    pub step: u32,
    /// Mean cross-entropy over the steps since the last message, nats; last stage only.
    pub loss: Option<f32>,
    /// Share of training rows predicted right since the last message; last stage only.
    pub accuracy: Option<f32>,
    /// Largest share of elements of a weight that are too large for the types of its operands, after the last step.
    pub saturation: Option<f32>,
    /// Steps per second since the last message.
    pub steps_per_second: f32,
    /// Bytes of tensors sent and received since the job began.
    pub bytes_moved: u64,
    /// Share of time spent on commitments and signatures since the job began.
    pub commitment_share: f32,
    /// Which of the job's bounds the last interval exceeded: the lane computes no further one. It says so until the job
    /// is closed.
    pub halted: Option<Excess>,
}

impl Progress {
    /// The job.
    pub const fn job(&self) -> JobId {
        self.lane.job
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;
    use crate::speed::Measured;

    #[test]
    fn only_what_a_topic_is_for_is_well_formed() {
        let advert = |engine: usize| {
            let (prices, engine) = (Prices { sno: 1, eth: None }, "x".repeat(engine));
            let advert = WorkerAdvert { memory: 1, disk: 1, speed: Speed::LEAST, free_lanes: 1, prices, engine };
            encode("advert", &advert).unwrap()
        };
        assert!(is_well_formed(WORKERS, &advert(MAX_ENGINE)) && !is_well_formed(WORKERS, &advert(MAX_ENGINE + 1)));
        let trailing = [&advert(1)[..], &[0]].concat();
        assert!(!is_well_formed(WORKERS, &trailing) && !is_well_formed(PROGRESS, &advert(1)));
    }

    #[test]
    fn no_worker_computes_nothing_or_more_than_any_device() {
        /// An advert as whoever builds another program may send it.
        #[derive(Serialize)]
        struct Forged {
            memory: u64,
            disk: u64,
            speed: Measured,
            free_lanes: u16,
            prices: Prices,
            engine: String,
        }
        let well_formed = |speed| {
            let (prices, engine) = (Prices { sno: 1, eth: None }, String::new());
            let forged = Forged { memory: 1, disk: 0, speed, free_lanes: 1, prices, engine };
            is_well_formed(WORKERS, &encode("advert", &forged).unwrap())
        };
        let honest = Measured { fast: 4, standard: 3, reference: 2, memory: 1 };
        assert!(well_formed(honest));
        assert!(!well_formed(Measured { standard: 0, ..honest }) && !well_formed(Measured { memory: 0, ..honest }));
        assert!(!well_formed(Measured { fast: u64::MAX, ..honest }));
    }
}
