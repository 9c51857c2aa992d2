//! `tensorlink bench` as its user meets it: every row on next to nothing. What the figures are says nothing here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensorlink"));
    command.current_dir(root()).env("TENSORLINK_HOME", "/nonexistent").args(["bench", "--quick"]).args(arguments);
    command.output().unwrap()
}

fn figures(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_row_has_figures_and_each_figure_its_verdict() {
    let output = bench(&["--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let figures = figures(&output);
    let of = |what: &str| {
        let said =
            |figure: &&Value| figure["row"] == "native" && figure["what"].as_str().is_some_and(|w| w.contains(what));
        figures.iter().filter(said).count()
    };
    let (native, pairs) = (of("not provable"), of("largest distance"));
    assert_eq!((of("accuse"), of("found")), (2, 9), "{said}");
    assert!(pairs >= 2 && native == pairs + 11, "{said}");
    // Of 32 bits honest pairs are far within their tolerance, and cheats far beyond it: that holds of a few
    // intervals, too.
    let strict =
        |figure: &&Value| figure["unit"] == "share" && figure["what"].as_str().is_some_and(|w| w.contains(", f32:"));
    for figure in figures.iter().filter(|figure| figure["row"] == "native").filter(strict) {
        let due = if figure["what"].as_str().is_some_and(|what| what.contains("accuse")) { 0.0 } else { 1.0 };
        assert!(figure["measured"].as_f64().is_none_or(|share| share == due), "{figure}");
    }
    // Who has fetched llama.cpp finds its figures there.
    let peer = root().join(".toolchain/llamacpp/node_modules").is_dir();
    for (row, count) in [
        ("model", 2),
        ("logits", 2),
        ("prefill", 6),
        ("decode", 8),
        ("llamacpp", if peer { 4 } else { 1 }),
        ("train", 6),
        // Of its two precisions as many pairs as the machine has classes.
        ("native", native),
        ("pipeline", 6),
        ("receipts", 6),
        ("memory", 1),
    ] {
        assert_eq!(figures.iter().filter(|figure| figure["row"] == row).count(), count, "{row}: {said}");
    }
    assert!(figures.iter().filter(|figure| figure["row"] == "gas").count() > 5);
    for figure in figures {
        let (goal, measured) = (&figure["goal"], figure["measured"].as_f64());
        let met = |least: &Value, most: &Value| {
            measured.zip(least.as_f64()).is_some_and(|(measured, least)| measured >= least)
                || measured.zip(most.as_f64()).is_some_and(|(measured, most)| measured <= most)
        };
        let due = match (measured, goal) {
            (None, _) => "not_measured",
            (Some(_), Value::Null) => "no_goal",
            (Some(_), goal) if met(&goal["at_least"], &goal["at_most"]) => "met",
            (Some(_), _) => "missed",
        };
        assert_eq!(figure["verdict"], due, "{figure}");
        let what = figure["what"].as_str().unwrap();
        assert!(!what.is_empty(), "{figure}");
        // Next to nothing may take less than a tick of the kernel's clock, and is no measure then; classes of devices
        // whose tolerance nobody has measured have none.
        let may_lack = what.contains("processor time") || figure["row"] == "native";
        if !may_lack || measured.is_some() {
            assert_eq!(measured.is_none(), figure["row"] == "llamacpp" && !peer, "{figure}");
        }
    }
}

#[test]
fn rows_are_picked_and_what_fails_is_named() {
    let output = bench(&["gas"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && table.starts_with("what") && table.contains("gas: redeem"), "{table}");

    let output = bench(&["--json", "model", "gas", "--model", "/nowhere"]);
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!output.status.success() && said.contains("/nowhere") && said.contains("1 of 2 rows"), "{said}");
    let figures = figures(&output);
    assert_eq!((&figures[0]["row"], &figures[0]["verdict"]), (&"model".into(), &"not_measured".into()));
    assert!(figures.len() > 5, "the other row is measured all the same");
}

#[test]
fn a_profile_is_measured_anew_and_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let profile = |caches: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorlink"));
        command.current_dir(folder.path()).env("TENSORLINK_HOME", "/nonexistent").env_remove("TENSORLINK_DEVICE");
        command.env_remove("HOME").env_remove("XDG_CACHE_HOME");
        command.envs(caches.map(|caches| ("XDG_CACHE_HOME", caches)));
        command.args(["bench", "profile", "--device", "cpu", "--json"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        figures(&output).remove(0)
    };
    let found = profile(Some(folder.path()));
    for rate in ["fast", "standard", "reference", "memory", "free_memory"] {
        assert!(found[rate].as_u64().is_some_and(|rate| rate > 0), "{found}");
    }
    let path = folder.path().join("tensorlink/speed.json");
    assert_eq!(found["cache"].as_str(), path.to_str());
    let remembered: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for of in ["fast", "standard", "reference", "memory"] {
        assert_eq!(remembered[0]["speed"][of], found[of]);
    }
    // What is remembered is not believed, but replaced.
    std::fs::write(&path, "[").unwrap();
    let again = profile(Some(folder.path()));
    let remembered: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((remembered.as_array().unwrap().len(), &remembered[0]["speed"]["fast"]), (1, &again["fast"]));
    assert_eq!(profile(None)["cache"], Value::Null, "nobody's home");
}
