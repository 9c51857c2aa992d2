//! `tensorlink bench` as `cargo bench -p tensorlink --bench figures`, with its options after `--`.
//! `cargo test --benches` tries every row on next to nothing.

use clap::Parser;
use tensorlink::args::Cli;

fn main() -> ! {
    let mut arguments: Vec<String> = std::env::args().collect();
    // A process of one row is started with the command's name, as the program itself is.
    if arguments.get(1).is_none_or(|first| first != "bench") {
        // `cargo bench` passes --bench; anything else is a test of the bench itself.
        let count = arguments.len();
        arguments.retain(|argument| argument != "--bench");
        let quick = (arguments.len() == count).then(|| "--quick".to_owned());
        arguments.splice(1..1, ["bench".to_owned()].into_iter().chain(quick));
    }
    let cli = Cli::parse_from(arguments);
    tensorlink::process::log(cli.common.verbose);
    tensorlink::process::run(|shutdown| tensorlink::commands::run(cli, shutdown))
}
