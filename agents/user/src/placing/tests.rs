//! Who is chosen, and for which layers.

use tensorlink_model::Setting;
use tensorlink_model::fixture::integers::quantized;
use tensorlink_model::random::{Dimensions, llama, weights};
use tensorlink_node::footprint::Footprint;
use tensorlink_node::link::Link;
use tensorlink_node::price::{Prices, multiply_adds};
use tensorlink_node::speed::{Measured, Speed};
use tensorlink_node::wire::gossip::WorkerAdvert;
use tensorlink_placement::measured::Observation;
use tensorlink_placement::model::{Cost, Kind, Layer, ModelProfile};
use tensorlink_placement::node::Precision;
use tensorlink_training::calibrate::Calibration;
use tensorlink_training::model::language::Origin;
use tensorlink_training::{LanguageModel, Training};
use tensorlink_types::{Address, Program};

use super::fleet::ASSUMED;
use super::*;
use crate::hire::Candidate;
use crate::prepare::Draft;
use crate::serving::PreparedServing;

/// Number, multiply-adds a second in billions, and memory in bytes.
fn candidate((number, rate, memory): (u8, u64, u64)) -> Candidate {
    let rate = rate * 1_000_000_000;
    let speed = Measured { fast: rate, standard: rate / 2, reference: rate / 4, memory: 10_000_000_000 };
    Candidate {
        address: Address::with_last_byte(number),
        advert: WorkerAdvert {
            memory,
            disk: 1 << 40,
            free_lanes: 1,
            prices: Prices { sno: 1, eth: None },
            speed: Speed::try_from(speed).unwrap(),
            engine: String::new(),
        },
        price_per_gmac: 1,
    }
}

/// Layers of a billion multiply-adds and a thousand bytes each.
fn work(layers: usize, setting: Setting) -> Work {
    let cost = Cost { macs: 1e9, reads: 1.0, state: 0.0, activations: 1.0 };
    let layer = Layer { weights: 1_000.0, decode: cost, prefill: cost, training: cost };
    let model = ModelProfile {
        name: "even".into(),
        precision: Precision::Int16,
        micro_batch: 1.0,
        layers: vec![layer; layers],
    };
    Work { model, kind: Kind::Decode, setting, beside: 500, together: 1 }
}

fn wish(objective: Objective, stages: Option<usize>, chains: usize) -> Wish {
    Wish { objective, strategy: Strategy::Best, stages, chains, bandwidth: 0.0 }
}

fn seen(candidate: &Candidate, away: f64, link: Option<Link>) -> Seen<'_> {
    Seen { candidate, reach: Reach { away, link }, observed: Vec::new() }
}

/// The placement on candidates that are as far as this, by address and end.
fn placed(work: &Work, candidates: &[Candidate], away: &[f64], wish: Wish) -> Result<Vec<(u8, usize)>, Refusal> {
    let seen: Vec<Seen<'_>> =
        candidates.iter().zip(away).map(|(candidate, away)| seen(candidate, *away, None)).collect();
    let Placement { lanes, cut } = Market::new(work, &seen).place(&wish)?;
    let lane = |(node, layers): (&usize, &Range<usize>)| (candidates[*node].address.as_slice()[19], layers.end);
    Ok(lanes.iter().zip(cut.iter().cycle()).map(lane).collect())
}

#[test]
fn who_is_three_times_as_fast_has_three_times_the_layers() {
    let candidates = [(1, 10, 1 << 20), (2, 30, 1 << 20)].map(candidate);
    let found = placed(&work(8, Setting::Fast), &candidates, &[0.0; 2], wish(Objective::Throughput, Some(2), 1));
    let mut found = found.unwrap();
    let slow = found.iter().position(|(number, _)| *number == 1).unwrap();
    assert_eq!(found[0].1, if slow == 0 { 2 } else { 6 });
    found.sort_unstable();
    assert_eq!([found[0].0, found[1].0], [1, 2]);
}

#[test]
fn whoever_was_seen_to_be_slower_than_it_says_is_placed_by_what_it_did() {
    let candidates = [(1, 10, 1 << 20), (2, 30, 1 << 20)].map(candidate);
    let work = work(8, Setting::Fast);
    let fastest = |share: Option<f64>| {
        let observed = share.map(|share| Observation { share, paid: 4.0, age: 0.0 }).into_iter().collect();
        let liar = Seen { observed, ..seen(&candidates[1], 0.0, None) };
        assert_eq!(liar.believed(), share);
        let market = Market::new(&work, &[seen(&candidates[0], 0.0, None), liar]);
        market.place(&wish(Objective::Latency, Some(1), 1)).unwrap().lanes
    };
    assert_eq!([None, Some(1.0), Some(0.4), Some(0.3)].map(fastest), [[1], [1], [1], [0]].map(Vec::from));
}

#[test]
fn nobody_is_believed_more_than_four_medians_whatever_was_seen_of_it() {
    let candidates = [(1, 10, 1 << 20), (2, 10, 1 << 20), (3, 1_000, 1 << 20)].map(candidate);
    let rate = |share: Option<f64>| {
        let observed = share.map(|share| Observation { share, paid: 4.0, age: 0.0 }).into_iter().collect();
        let fast = Seen { observed, ..seen(&candidates[2], 0.0, None) };
        let all = [seen(&candidates[0], 0.0, None), seen(&candidates[1], 0.0, None), fast];
        fleet(&work(8, Setting::Fast), &all).nodes[2].rates.int8 / 1e9
    };
    assert_eq!([None, Some(1.0), Some(0.03125)].map(rate), [40.0, 40.0, 31.25]);
}

#[test]
fn whoever_is_far_is_left_out_where_latency_counts_and_not_where_throughput_does() {
    let candidates = [(1, 10, 1 << 20), (2, 10, 1 << 20)].map(candidate);
    let away = [0.001, 5.0];
    let of = |objective| placed(&work(8, Setting::Standard), &candidates, &away, wish(objective, None, 1)).unwrap();
    assert_eq!(of(Objective::Latency), [(1, 8)]);
    assert_eq!(of(Objective::Throughput).len(), 2);
}

/// Bytes a second to a worker, and from it.
fn link(to: f64, from: f64) -> Option<Link> {
    Some(Link { to, from })
}

/// Who has the first layers of two stages, and whether anybody has.
fn of_two(work: &Work, seen: &[Seen<'_>], bandwidth: f64) -> Result<Vec<usize>, Refusal> {
    let wish = Wish { bandwidth, ..wish(Objective::Latency, Some(2), 1) };
    Market::new(work, seen).place(&wish).map(|placement| placement.lanes)
}

#[test]
fn whoever_receives_slowly_is_first_and_whoever_sends_slowly_is_last() {
    let candidates = [(1, 10, 1 << 20), (2, 10, 1 << 20)].map(candidate);
    let mut work = work(8, Setting::Standard);
    work.model.layers.iter_mut().for_each(|layer| layer.decode.activations = 1e6);
    for (one, other, first) in [
        (link(1e6, 1e9), link(1e9, 1e9), 0),
        (link(1e9, 1e6), link(1e9, 1e9), 1),
        (link(1e9, 1e9), link(1e6, 1e9), 1),
        (link(1e9, 1e9), link(1e9, 1e6), 0),
    ] {
        let seen = [seen(&candidates[0], 0.001, one), seen(&candidates[1], 0.001, other)];
        assert_eq!(of_two(&work, &seen, 0.0).unwrap()[0], first, "{one:?} {other:?}");
    }
}

#[test]
fn who_does_not_let_its_link_be_measured_is_taken_for_the_slowest() {
    let candidates = [(1, 10, 1 << 20), (2, 10, 1 << 20), (3, 10, 1 << 20)].map(candidate);
    let [secret, slow, fast] = [None, link(4e6, 8e6), link(1e9, 1e9)];
    let seen = [seen(&candidates[0], 0.0, secret), seen(&candidates[1], 0.0, slow), seen(&candidates[2], 0.0, fast)];
    let rate = |from, to| fleet(&work(8, Setting::Fast), &seen).proximity.link(from, to).unwrap().rate;
    assert_eq!([rate(0, 2), rate(2, 0)], [rate(1, 2), rate(2, 1)]);
    assert!((rate(1, 0) - 1e6 * 8.0 / 3.0).abs() < 1.0, "{}: from one and then to the other", rate(1, 0));
    let alone = [seen[0].clone(), seen[0].clone()];
    let rate = fleet(&work(8, Setting::Fast), &alone).proximity.link(0, 1).unwrap().rate;
    assert!((rate - ASSUMED / 2.0).abs() < 1.0, "{rate}");
}

#[test]
fn a_least_bandwidth_leaves_out_who_has_not_got_it_and_says_which_would_do() {
    let candidates = [(1, 90, 1 << 20), (2, 10, 1 << 20), (3, 10, 1 << 20)].map(candidate);
    let [slow, fast] = [link(1e6, 1e6), link(1e8, 1e8)];
    let seen = [seen(&candidates[0], 0.0, slow), seen(&candidates[1], 0.0, fast), seen(&candidates[2], 0.0, fast)];
    let work = work(8, Setting::Fast);
    assert!(of_two(&work, &seen, 0.0).unwrap().contains(&0));
    assert!(!of_two(&work, &seen, 4e7).unwrap().contains(&0));
    let refusal = of_two(&work, &seen, 9e7).unwrap_err().to_string();
    assert!(refusal.starts_with("bandwidth: too few links have 90000000"), "{refusal}");
}

#[test]
fn nobody_gets_more_than_its_memory_holds_beside_what_every_worker_needs() {
    // Three layers and 500 bytes, and 499 bytes less than six layers and 500.
    let candidates = [(1, 10, 3_500), (2, 90, 6_001)].map(candidate);
    let of = |candidates: &[Candidate]| {
        placed(&work(8, Setting::Fast), candidates, &[0.0; 2], wish(Objective::Throughput, Some(2), 1))
    };
    let mut found = of(&candidates).unwrap();
    found.sort_unstable();
    let ends: Vec<usize> = found.iter().map(|(_, end)| *end).collect();
    assert!(ends == [8, 5] || ends == [3, 8], "{found:?}");
    let tight = [(1, 10, 2_500), (2, 90, 6_001)].map(candidate);
    let refusal = of(&tight).unwrap_err().to_string();
    assert!(refusal.starts_with("memory: "), "{refusal}");
    let refusal = placed(&work(8, Setting::Fast), &candidates, &[0.0; 2], wish(Objective::Latency, Some(3), 1));
    assert!(refusal.unwrap_err().to_string().starts_with("stages: "), "three stages of two workers");
}

#[test]
fn replicas_have_the_same_cut_and_stand_one_after_the_other() {
    let candidates = [(1, 10, 1 << 20), (2, 30, 1 << 20), (3, 10, 1 << 20), (4, 30, 1 << 20)].map(candidate);
    let found = placed(&work(8, Setting::Fast), &candidates, &[0.0; 4], wish(Objective::Throughput, Some(2), 2));
    let found = found.unwrap();
    let mut who: Vec<u8> = found.iter().map(|(number, _)| *number).collect();
    assert_eq!([found[0].1, found[1].1], [found[2].1, found[3].1]);
    who.sort_unstable();
    assert_eq!(who, [1, 2, 3, 4]);
}

#[test]
fn the_picture_names_workers_and_tells_who_is_the_bottleneck() {
    let candidates = [(1, 10, 1 << 20), (2, 30, 1 << 20), (3, 20, 1 << 20)].map(candidate);
    let seen: Vec<Seen<'_>> = candidates.iter().map(|candidate| seen(candidate, 0.001, None)).collect();
    let work = work(8, Setting::Fast);
    let market = Market::new(&work, &seen);
    let wish = wish(Objective::Throughput, Some(2), 1);
    let placement = market.place(&wish).unwrap();
    let text = market.explain(&wish, &placement).unwrap();
    for lane in &placement.lanes {
        assert!(text.contains(&short(candidates[*lane].address)), "{text}");
    }
    assert!(text.contains("the bottleneck") && text.contains("runner-up, without 0x"), "{text}");
    let ring = market.ring(&wish, &placement).unwrap();
    let layers: Vec<_> = ring.iter().map(|lane| (lane.stage.node, lane.stage.first..lane.stage.end)).collect();
    assert_eq!(layers, placement.lanes.iter().copied().zip(placement.cut.clone()).collect::<Vec<_>>());
    assert!(ring[0].hop.is_some() && ring[1].hop.is_none(), "the last stage has no next one: {ring:?}");
    let figures = market.figures(&wish, &placement).unwrap();
    let slowest = ring.iter().map(|lane| lane.seconds).fold(0.0, f64::max);
    assert!((slowest / figures.bottleneck - 1.0).abs() < 1e-9, "{ring:?}");
    assert!(figures.bottleneck > 0.15 && figures.latency > figures.bottleneck, "{figures:?}");
}

/// A draft of a small decoder with so many shares.
fn draft(shares: u16) -> Draft {
    let json = r#"{ "name": "small", "decoder": { "width": 16, "layers": 2, "heads": 2, "hidden": 24, "context": 8,
        "tied": false }, "optimizer": { "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 },
        "sequences": 4, "steps": 2, "operand_bits": 8, "seed": 7 }"#;
    let model = LanguageModel::parse("m.json", json.as_bytes()).unwrap();
    let Origin::Decoder(decoder) = model.origin() else { panic!("{:?}", model.origin()) };
    let draft = Draft::language(&model, decoder, "In the beginning God created. ".repeat(8).as_bytes()).unwrap();
    draft.shared(shares).unwrap()
}

#[test]
fn a_trainings_layers_cost_what_its_programs_multiply() {
    for shares in [1, 2] {
        let draft = draft(shares);
        let work = Work::training(&draft, 2);
        let ranges = draft.cut(&vec![1 << 30; 2 * usize::from(shares)]).unwrap();
        let prepared = draft.compile(&ranges, Training::calibrate).unwrap();
        let passes = f64::from(work.together);
        for (stage, compiled) in prepared.stages.iter().enumerate() {
            let layers = &work.model.layers[ranges[stage % ranges.len()].clone()];
            let foretold = layers.iter().map(|layer| layer.training.macs).sum::<f64>() * passes;
            let multiplied = multiply_adds(&compiled.program) as f64;
            assert!((foretold / multiplied - 1.0).abs() < 1e-3, "{shares} {stage}: {foretold} {multiplied}");
        }
        assert_eq!(work.setting, Setting::Fast);
        assert!(work.seconds(1.0, 0.5) == 1.0 + 0.5 * (passes - 1.0));
    }
}

/// A draft, what was calibrated for it, and its layers.
struct Calibrated {
    draft: Draft,
    calibration: Calibration,
    layers: usize,
}

impl Calibrated {
    fn new() -> Self {
        let draft = draft(1);
        let calibration = draft.training.calibrate(&draft.data.training, 2, 1).unwrap();
        let layers = draft.training.layers.len();
        Self { draft, calibration, layers }
    }

    /// Programs of these stages.
    fn programs(&self, cut: &[Range<usize>]) -> Vec<Program> {
        let prepared = self.draft.compile(cut, |_, _, _, _| Ok(self.calibration.clone())).unwrap();
        prepared.stages.into_iter().map(|stage| stage.program).collect()
    }

    /// The program of each layer alone.
    fn alone(&self) -> Vec<Program> {
        self.programs(&(0..self.layers).map(|layer| layer..layer + 1).collect::<Vec<_>>())
    }
}

#[test]
fn a_stage_that_is_cut_anew_needs_no_more_memory_than_its_layers_are_said_to() {
    let calibrated = Calibrated::new();
    let (count, layers) = (calibrated.layers, calibrated.alone());
    for steps in [1, 400] {
        let work = Work::resumed("small", &layers, steps);
        assert_eq!((work.model.layers.len(), work.setting), (count, Setting::Fast));
        let said = |range: &Range<usize>| {
            let layers = work.model.layers[range.clone()].iter();
            layers.map(|layer| layer.training.state as u64).sum::<u64>() + work.beside
        };
        let needed = |program: &Program| Footprint::training(program, steps).alone();
        for first in 0..count {
            for end in first + 1..=count {
                let cut: Vec<Range<usize>> =
                    [0..first, first..end, end..count].into_iter().filter(|stage| !stage.is_empty()).collect();
                for (program, range) in calibrated.programs(&cut).iter().zip(&cut) {
                    let (needed, said) = (needed(program), said(range));
                    assert!(needed <= said, "{range:?} of {steps} steps needs {needed} bytes, said is {said}");
                }
                let memories: Vec<u64> = cut.iter().map(said).collect();
                assert!(work.cut(&memories).is_ok(), "{cut:?} of {steps} steps");
            }
        }
        // What neighbours tell each other in an interval is not counted where they are one.
        let one_by_one: u64 = layers.iter().map(needed).sum();
        assert!(steps == 1 || said(&(0..count)) * 2 < one_by_one, "{} of {one_by_one}", said(&(0..count)));
    }
}

#[test]
fn what_is_left_of_a_training_is_placed_by_what_its_programs_multiply() {
    let calibrated = Calibrated::new();
    let count = calibrated.layers;
    let work = Work::resumed("small", &calibrated.alone(), 10);
    let whole = calibrated.programs(&[Range { start: 0, end: count }]);
    let foretold = work.model.layers.iter().map(|layer| layer.training.macs).sum::<f64>() * f64::from(work.together);
    let multiplied = multiply_adds(&whole[0]) as f64;
    assert!((foretold / multiplied - 1.0).abs() < 0.01, "{foretold} {multiplied}");
    // Of two workers, one of which is ten times as fast, that one has all, or most of it.
    let candidates = [candidate((1, 1, 1 << 30)), candidate((2, 10, 1 << 30))];
    let near = [0.000_001; 2];
    assert_eq!(placed(&work, &candidates, &near, wish(Objective::Latency, None, 1)).unwrap(), [(2, count)]);
    let two = placed(&work, &candidates, &near, wish(Objective::Throughput, Some(2), 1)).unwrap();
    assert_eq!((two.len(), two[1].1), (2, count));
}

#[test]
fn a_served_stage_needs_no_more_memory_than_its_layers_are_said_to() {
    for setting in Setting::ALL {
        let size = Dimensions { vocabulary: 50, width: 32, layers: 4, heads: 4, kv_heads: 2, hidden: 48, context: 16 };
        let architecture = llama(size);
        let model = quantized(&architecture, setting, &weights(&architecture, 1).unwrap()).unwrap();
        let (longest, layers) = (8, architecture.layers);
        let work = Work::serving("tiny", &model, longest).unwrap();
        assert_eq!(work.model.layers.len(), layers as usize);
        for first in 0..layers {
            for end in first + 1..=layers {
                let cut = [0..first, first..end, end..layers].into_iter().filter(|stage| !stage.is_empty());
                let prepared = PreparedServing::new(&model, &cut.collect::<Vec<_>>(), longest).unwrap();
                for stage in &prepared.stages {
                    let range = stage.plan.layers();
                    let said = &work.model.layers[range.start as usize..range.end as usize];
                    let said: f64 = said.iter().map(|layer| layer.weights + layer.decode.state).sum();
                    let needed = stage.memory(longest).unwrap();
                    assert!(needed as f64 <= said + work.beside as f64, "{setting} {range:?}: {needed} {said}");
                }
            }
        }
    }
}
