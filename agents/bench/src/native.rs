//! Native mode: how far honest results of different classes of devices are apart, and which cheats are further.
//!
//! Each class is a process of its own, as libtorch chooses its kernels when it is loaded: its instruction sets are made
//! narrower (`ATEN_CPU_CAPABILITY`, and what MKL and oneDNN have for the same), its threads fewer. All begin at the
//! same states of the same trainings, and take an interval of the largest size.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | classes, pairs, figures |
//! | `subject` | what is trained |
//! | `cheats` | what is done in place of it |

mod cheats;
mod subject;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tensorlink_native::task::state_bytes;
use tensorlink_native::wire::MAX_STEPS;
use tensorlink_native::{DeviceClass, Floats, Precision, State, Task, allowed, distance};
use tensorlink_tensor::float::hardware::Capability;

use self::cheats::Cheat;
use self::subject::Kind;
use super::figure::{Figure, Goal, Unit};
use super::{Bench, Part, Row};

const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::Bf16];
/// Steps after which intervals begin: the first ones, within the warm-up and after it.
const POINTS: [u32; 3] = [0, 8, 48];
const SEEDS: u32 = 6;
/// Of so many of them intervals are cheated in as well.
const CHEATED_SEEDS: u32 = 2;
/// File of a class's own name for itself.
const CLASS: &str = "class.json";
/// File of what is measured.
const PLAN: &str = "plan.json";

/// An interval that all take.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
struct Item {
    /// Its file begins with it.
    name: String,
    /// The task's file.
    task: String,
    /// First step.
    first: u32,
    /// Whether it is cheated in, too.
    cheated: bool,
}

impl Item {
    const fn steps(&self) -> std::ops::Range<u32> {
        self.first..self.first.saturating_add(MAX_STEPS)
    }

    /// Name of the file of the state after it.
    fn after(&self, precision: Precision) -> String {
        format!("{}-{precision}", self.name)
    }

    fn read(&self, folder: &Path) -> Result<(Task, State)> {
        let task = Task::from_bytes(&std::fs::read(folder.join(&self.task))?)?;
        let before = task.state(&std::fs::read(folder.join(&self.name))?)?;
        Ok((task, before))
    }
}

/// A class of devices that this machine can be.
struct Setting {
    name: String,
    device: &'static str,
    environment: Vec<(&'static str, String)>,
}

/// All of this machine's.
fn settings(bench: &Bench<'_>) -> Vec<Setting> {
    let most = Capability::of_processor();
    let of = |capability: Capability| match capability {
        Capability::Default => ["SSE4_2", "SSE41"],
        Capability::Avx2 => ["AVX2", "AVX2"],
        Capability::Avx512 => ["AVX512", "AVX512_CORE_AMX"],
    };
    let mut settings = Vec::new();
    for capability in [Capability::Default, Capability::Avx2, Capability::Avx512] {
        let [mkl, onednn] = of(capability);
        for threads in [1, 2] {
            let environment = vec![
                (Capability::VARIABLE, capability.name().to_owned()),
                ("MKL_ENABLE_INSTRUCTIONS", mkl.to_owned()),
                ("ONEDNN_MAX_CPU_ISA", onednn.to_owned()),
                ("OMP_NUM_THREADS", threads.to_string()),
                // On a busy machine they would wait for each other with all their might.
                ("OMP_WAIT_POLICY", "passive".to_owned()),
            ];
            settings.push(Setting { name: format!("{}-{threads}", capability.name()), device: "cpu", environment });
        }
        if capability == most {
            break;
        }
    }
    if bench.binary.floats("cuda").is_ok() {
        settings.push(Setting { name: "cuda".to_owned(), device: "cuda", environment: Vec::new() });
    }
    settings
}

/// Takes all intervals of a folder, as the class that this process is; the states after them go to `out`.
pub(super) fn be_a_class(bench: &Bench<'_>, folder: &Path, out: &Path) -> Result<()> {
    let floats = bench.binary.floats(bench.device)?;
    let items: Vec<Item> = serde_json::from_slice(&std::fs::read(folder.join(PLAN))?)?;
    std::fs::create_dir_all(out)?;
    std::fs::write(out.join(CLASS), serde_json::to_vec(&floats.class())?)?;
    for item in items {
        let (task, before) = item.read(folder)?;
        for precision in PRECISIONS {
            let (after, _) = floats.run(&task, &before, item.steps(), precision)?;
            std::fs::write(out.join(item.after(precision)), state_bytes(&after)?)?;
        }
    }
    Ok(())
}

/// Trains each subject, and writes down the states that intervals begin with.
fn plan(folder: &Path, floats: &dyn Floats, quick: bool) -> Result<Vec<Item>> {
    let (seeds, points) = if quick { (1, &POINTS[..1]) } else { (SEEDS, &POINTS[..]) };
    let mut items = Vec::new();
    for (kind, seed) in Kind::ALL.into_iter().flat_map(|kind| (1..=seeds).map(move |seed| (kind, seed))) {
        let (task, mut state) = kind.begun(seed)?;
        let subject = format!("{kind:?}-{seed}").to_lowercase();
        let file = format!("{subject}.task");
        std::fs::write(folder.join(&file), task.to_bytes()?)?;
        let mut step = 0;
        for first in points {
            if *first > step {
                state = floats.run(&task, &state, step..*first, Precision::F32)?.0;
                step = *first;
            }
            let name = format!("{subject}-{first}");
            std::fs::write(folder.join(&name), state_bytes(&state)?)?;
            items.push(Item { name, task: file.clone(), first: *first, cheated: seed <= CHEATED_SEEDS });
        }
    }
    std::fs::write(folder.join(PLAN), serde_json::to_vec(&items)?)?;
    Ok(items)
}

/// Distances of one pair, or of one cheat, sorted; how many are beyond the tolerance.
#[derive(Default)]
struct Distances {
    all: Vec<f64>,
    beyond: usize,
    /// Of those that have a tolerance.
    judged: usize,
}

impl Distances {
    fn add(&mut self, distance: f64, allowed: Option<f64>) {
        self.all.push(distance);
        if let Some(allowed) = allowed {
            self.judged += 1;
            self.beyond += usize::from(distance > allowed);
        }
    }

    fn quantile(&mut self, share: f64) -> f64 {
        self.all.sort_unstable_by(f64::total_cmp);
        // SAFETY of the casts: few, and not negative.
        let at = (share * self.all.len().saturating_sub(1) as f64).ceil() as usize;
        self.all.get(at).copied().unwrap_or(f64::NAN)
    }

    fn share(&self) -> f64 {
        self.beyond as f64 / self.judged as f64
    }

    fn note(&mut self) -> String {
        let [least, half, most] = [0.0, 0.5, 0.99].map(|share| self.quantile(share));
        format!("{} pairs; least {least:.1e}, median {half:.1e}, 99 % {most:.1e}", self.all.len())
    }
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let floats = bench.binary.floats("cpu")?;
    let items = tokio::task::block_in_place(|| plan(folder.path(), floats.as_ref(), bench.extent.quick))?;
    let mut classes = Vec::new();
    for Setting { name, device, environment } in settings(bench) {
        let out = folder.path().join(&name);
        let part = Part::Class { folder: folder.path().to_owned(), out: out.clone() };
        let mut command = Bench { device, ..*bench }.process(&part)?;
        command.envs(environment);
        let status = command.stdin(Stdio::null()).status().await?;
        ensure!(status.success(), "the process of class {name} ended with {status}: see above");
        let class: DeviceClass = serde_json::from_slice(&std::fs::read(out.join(CLASS))?)?;
        classes.push((name, class, out));
    }
    tokio::task::block_in_place(|| figures(folder.path(), floats.as_ref(), &items, &classes))
}

type Classes = [(String, DeviceClass, std::path::PathBuf)];

fn figures(folder: &Path, floats: &dyn Floats, items: &[Item], classes: &Classes) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for precision in PRECISIONS {
        let mut pairs: BTreeMap<(usize, usize), Distances> = BTreeMap::new();
        let mut found: Vec<(Cheat, Distances)> =
            Cheat::ALL.into_iter().filter(|cheat| cheat.saves(precision)).map(|c| (c, Distances::default())).collect();
        for item in items {
            let (task, before) = item.read(folder)?;
            let after = |(name, class, out): &(String, DeviceClass, std::path::PathBuf)| {
                let bytes = std::fs::read(out.join(item.after(precision))).with_context(|| name.clone())?;
                Ok((*class, task.state(&bytes)?))
            };
            let states: Vec<(DeviceClass, State)> = classes.iter().map(after).collect::<Result<_>>()?;
            for (b, (class_b, after_b)) in states.iter().enumerate() {
                for (a, (class_a, after_a)) in states.iter().enumerate().take(b) {
                    let allowed = allowed(*class_a, *class_b, precision);
                    pairs.entry((a, b)).or_default().add(distance(&before, after_a, after_b), allowed);
                }
            }
            for (cheat, distances) in found.iter_mut().filter(|_| item.cheated) {
                let cheated = cheat.run(floats, (&task, &before), item.steps(), precision)?;
                for (class, honest) in &states {
                    let allowed = allowed(*class, floats.class(), precision);
                    distances.add(distance(&before, &cheated, honest), allowed);
                }
            }
        }
        let label = format!("native (not provable), {precision}");
        let mut honest = Distances::default();
        for ((a, b), mut distances) in pairs {
            let [a, b] = [a, b].map(|i| classes.get(i).map_or("", |class| class.0.as_str()));
            let what = format!("{label}: largest distance, {a} and {b}");
            figures.push(
                Figure::new(Row::Native, what, (distances.quantile(1.0), Unit::Distance), None).from(distances.note()),
            );
            honest.judged += distances.judged;
            honest.beyond += distances.beyond;
        }
        let what = format!("{label}: honest pairs that the tolerance would accuse");
        // None among so many: fewer than 3/n, with 95 % confidence (rule of three). Pairs of one interval are
        // not independent.
        let note = format!(
            "{} of {} pairs of {} intervals; if none: below {:.1} % of intervals with 95 % confidence",
            honest.beyond,
            honest.judged,
            items.len(),
            300.0 / items.len().max(1) as f64
        );
        figures.push(Figure::new(Row::Native, what, (honest.share(), Unit::Share), Some(Goal::AtMost(0.0))).from(note));
        for (cheat, mut distances) in found {
            let what = format!("{label}: found, {}", cheat.name());
            let note = distances.note();
            figures.push(Figure::new(Row::Native, what, (distances.share(), Unit::Share), None).from(note));
        }
    }
    Ok(figures)
}
