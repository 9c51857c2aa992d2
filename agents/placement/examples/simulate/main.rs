//! Prints the figures of `docs/src/benchmarks/placement.md`.
//!
//! `cargo run --release -p tensorlink-placement --example simulate [PART...]`; without a part, all of them. Every
//! number follows from seeds but the times.
//!
//! | part | what it shows |
//! |---|---|
//! | `small` | the joint search against the exact best and the rules of others, 4 to 8 nodes, 1,000 seeds |
//! | `large` | one chain of 100 to 300 nodes against Parallax and Petals |
//! | `packed` | as many chains as pay, of 100 to 1,000 nodes |
//! | `time` | how long planning takes |
//! | `liars` | workers that claim three times and ten times their speed |
//! | `churn` | α, β and γ, while nodes leave and others come |
//! | `discovery` | how an address is found, by Kademlia and by Chord |
//! | `picture` | one plan as text |

mod churn;
mod discovery;
mod large;
mod liars;
mod packed;
mod small;
mod table;
mod time;

use tensorlink_placement::generate::small as instance;
use tensorlink_placement::model::Kind;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::{Request, Strategy, explain, place};

/// Each objective with the work that it is asked for: single tokens for latency and energy, prompts for the rest.
const ASKED: [(Objective, Kind); 4] = [
    (Objective::Latency, Kind::Decode),
    (Objective::Throughput, Kind::Prefill),
    (Objective::Price, Kind::Prefill),
    (Objective::Energy, Kind::Decode),
];

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let parts: [(&str, fn()); 8] = [
        ("small", small::run),
        ("large", large::run),
        ("packed", packed::run),
        ("time", time::run),
        ("liars", liars::run),
        ("churn", churn::run),
        ("discovery", discovery::run),
        ("picture", picture),
    ];
    for (name, run) in parts {
        if asked.is_empty() || asked.iter().any(|part| part == name) {
            println!("\n## {name}\n");
            run();
        }
    }
}

fn picture() {
    let (world, model) = instance(3);
    let fleet = world.fleet();
    let request = Request::new(&fleet, &model, Kind::Decode, Objective::Latency);
    match place(Strategy::Best, &request).map(|plan| explain(&request, &plan, &|node| format!("node {node}"))) {
        Ok(Ok(text)) => println!("{text}"),
        Ok(Err(broken)) => println!("{broken}"),
        Err(refusal) => println!("{refusal}"),
    }
}
