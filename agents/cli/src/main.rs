//! The `tensorlink` program: every role and every call of the network, from one command line.

use clap::Parser;
use tensorlink::args::Cli;

fn main() -> ! {
    tensorlink_node::memory::share();
    let cli = Cli::parse();
    tensorlink::process::log(cli.common.verbose);
    tensorlink::process::raise_file_limit();
    tensorlink::process::run(|shutdown| tensorlink::commands::run(cli, shutdown))
}
