//! What gossip makes of peers by what they send: who sends malformed messages is soon not listened to.
//!
//! Counted are messages that did not check, and breaches of gossipsub itself. Not counted are how many messages a peer
//! delivers, since a topic may be silent, and how many peers share an address: [`crate::admission`] bounds these.

use std::time::Duration;

use libp2p::gossipsub::{IdentTopic, PeerScoreParams, PeerScoreThresholds, TopicScoreParams, score_parameter_decay};
use tensorlink_node::wire::gossip::{PROGRESS, SPEEDS, WORKERS};

/// How long a malformed message is held against who sent it: after that its weight is a tenth.
const MEMORY: Duration = Duration::from_secs(3600);
/// The same for breaches of gossipsub, which happen to honest peers whose messages are lost.
const BREACH: Duration = Duration::from_secs(60);
/// Breaches that cost nothing.
const FORGIVEN: f64 = 6.0;
/// The square of the malformed messages is multiplied by this: three are still borne, the fourth silences.
const MALFORMED: f64 = -8.0;

pub(crate) fn params() -> PeerScoreParams {
    let topic = TopicScoreParams {
        topic_weight: 1.0,
        // At most 3, after five minutes: no credit for a lie.
        time_in_mesh_weight: 0.01,
        time_in_mesh_quantum: Duration::from_secs(1),
        time_in_mesh_cap: 300.0,
        // At most 5.
        first_message_deliveries_weight: 0.1,
        first_message_deliveries_decay: score_parameter_decay(BREACH),
        first_message_deliveries_cap: 50.0,
        mesh_message_deliveries_weight: 0.0,
        mesh_failure_penalty_weight: 0.0,
        invalid_message_deliveries_weight: MALFORMED,
        invalid_message_deliveries_decay: score_parameter_decay(MEMORY),
        ..TopicScoreParams::default()
    };
    PeerScoreParams {
        topics: [WORKERS, PROGRESS, SPEEDS].map(|name| (IdentTopic::new(name).hash(), topic.clone())).into(),
        ip_colocation_factor_weight: 0.0,
        behaviour_penalty_threshold: FORGIVEN,
        behaviour_penalty_decay: score_parameter_decay(BREACH),
        retain_score: MEMORY,
        ..PeerScoreParams::default()
    }
}

/// gossipsub's own: gossip is withheld below -10, nothing is published to whom is below -50, and nothing is heard from
/// whom is below -80.
pub(crate) fn thresholds() -> PeerScoreThresholds {
    PeerScoreThresholds::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_malformed_message_silences_whatever_came_before() {
        params().validate().unwrap();
        thresholds().validate().unwrap();
        for topic in params().topics.values() {
            let credit = topic.time_in_mesh_weight * topic.time_in_mesh_cap
                + topic.first_message_deliveries_weight * topic.first_message_deliveries_cap;
            let malformed = |n: f64| topic.invalid_message_deliveries_weight * n.powi(2);
            assert!(malformed(3.0) > thresholds().graylist_threshold);
            // With the best credit of both topics, and after some seconds of forgetting.
            assert!(2.0 * credit + malformed(4.0 * 0.99) < thresholds().graylist_threshold);
        }
    }
}
