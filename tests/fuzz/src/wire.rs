//! Messages: what is decoded is encoded in no more bytes, and decoded to the same again.

use std::collections::BTreeSet;

use cid::Cid;
use futures::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tensorlink_native::wire::Answer;
use tensorlink_native::{Interval, State, Task};
use tensorlink_node::Games;
use tensorlink_node::ports::Event;
use tensorlink_node::ports::chain::EventAt;
use tensorlink_node::wire::frame::{self, Frame};
use tensorlink_node::wire::gossip::{Progress, WorkerAdvert};
use tensorlink_node::wire::manifest::{MANIFEST_VERSION, Manifest, StageFiles, parse_cid};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_proof::challenge::{Game, Turn};
use tensorlink_user::serving::archive::Receipts;

/// Most bytes of a tensor that the frames' reader waits for.
const MAX_TENSOR: usize = 1 << 10;

/// A message by postcard. Compared as bytes: a float that is no number equals nothing.
pub(crate) fn message<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value: T = decode("message", bytes).ok()?;
    let encoded = encode("message", &value).expect("what was decoded has an encoding");
    assert!(encoded.len() <= bytes.len(), "{} bytes decoded, {} encoded", bytes.len(), encoded.len());
    let again: T = decode("message", &encoded).expect("an encoding is decoded");
    assert_eq!(encode("message", &again).expect("a second encoding"), encoded);
    Some(value)
}

/// A record in JSON: written and read, it is the same.
fn json<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let text = serde_json::to_vec(&value).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<T>(&text).expect("what was written can be read"), value);
    Some(value)
}

/// Frames between stages, one after another.
///
/// # Panics
/// Where a rule is broken.
pub fn frame(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let before = rest.len();
        let read = frame::read(&mut rest, MAX_TENSOR).now_or_never().expect("bytes in memory are there at once");
        let Ok(frame) = read else { return };
        let taken = before - rest.len();
        let most = match &frame {
            Frame::Tensor { data, .. } => {
                assert!(data.len() <= MAX_TENSOR);
                data.len() + 16
            }
            _ => taken,
        };
        let mut written = Vec::new();
        frame::write(&mut written, &frame)
            .now_or_never()
            .expect("memory takes it at once")
            .expect("a frame is written");
        assert!(written.len() <= most, "{most} bytes at most, {} written", written.len());
        let again = frame::read(&mut written.as_slice(), MAX_TENSOR).now_or_never().expect("bytes are there");
        assert_eq!(again.expect("what was written is read"), frame);
    }
}

/// Questions and answers.
///
/// # Panics
/// Where a rule is broken.
pub fn rpc(bytes: &[u8]) {
    message::<Request>(bytes);
    message::<Response>(bytes);
}

/// What is published to everybody.
///
/// # Panics
/// Where a rule is broken.
pub fn gossip(bytes: &[u8]) {
    message::<WorkerAdvert>(bytes);
    message::<Progress>(bytes);
}

/// A job's manifest.
///
/// # Panics
/// Where a rule is broken.
pub fn manifest(bytes: &[u8]) {
    let Ok(manifest) = Manifest::parse(bytes) else { return };
    assert_eq!(manifest.version, MANIFEST_VERSION);
    let text = serde_json::to_vec(&manifest).expect("a manifest is written");
    assert_eq!(Manifest::parse(&text), Ok(manifest.clone()));
    for (stage, files) in (0..).zip(&manifest.stages) {
        let training = matches!(files, StageFiles::Training(_));
        assert_eq!((manifest.training(stage).is_ok(), manifest.serving(stage).is_ok()), (training, !training));
        let constants = match files {
            StageFiles::Training(files) => &files.constants,
            StageFiles::Serving(files) => &files.constants,
        };
        for cid in constants.iter().filter_map(|text| parse_cid(text).ok()) {
            assert_eq!(parse_cid(&cid.to_string()), Ok(cid));
        }
    }
}

/// A file of receipts.
///
/// # Panics
/// Where a rule is broken.
pub fn receipts(bytes: &[u8]) {
    json::<Receipts>(bytes);
}

/// Native mode: questions, answers, tasks, states.
///
/// # Panics
/// Where a rule is broken.
pub fn native(bytes: &[u8]) {
    if let Some(interval) = message::<Interval>(bytes) {
        assert_eq!(Cid::try_from(interval.task.to_bytes().as_slice()).ok(), Some(interval.task));
    }
    message::<Answer>(bytes);
    message::<State>(bytes);
    let Ok(task) = Task::from_bytes(bytes) else { return };
    for (id, node) in task.graph.nodes() {
        assert!(node.inputs.iter().all(|input| *input < id), "{} reads what comes after it", node.site);
    }
    let written = task.to_bytes().expect("a task that was read is written");
    let again = Task::from_bytes(&written).expect("a task that was written is read");
    assert_eq!(again.to_bytes().expect("a task is written again"), written);
}

/// Remembered events, one a line; the games that they tell of.
///
/// # Panics
/// Where a rule is broken.
pub fn events(bytes: &[u8]) {
    let events: Vec<EventAt> = bytes.split(|byte| *byte == b'\n').map_while(json).collect();
    let players = events.iter().filter_map(|at| match &at.event {
        Event::ChallengeOpened { challenger, worker, .. } => Some([*challenger, *worker]),
        _ => None,
    });
    for own in players.flatten().collect::<BTreeSet<_>>() {
        let games = Games::new(own);
        events.iter().for_each(|at| games.apply(at));
        for (number, game) in games.to_answer() {
            assert_eq!((game.worker, game.turn), (own, Turn::Answering));
            assert_eq!(games.get(number), Some(game.clone()));
            let text = serde_json::to_vec(&game).expect("a game is written");
            assert_eq!(json::<Game>(&text), Some(game));
        }
    }
}
