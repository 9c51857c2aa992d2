//! llama.cpp as a peer, in a process of its own: `benches/llamacpp.py` under the Python that `LLAMACPP_PYTHON` names.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tensorlink_graph::transformer::random::Dimensions;

/// A running peer with a model of its own, of the same sizes.
pub(crate) struct LlamaCpp {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl LlamaCpp {
    /// Starts the peer, if the environment names a Python that has llama-cpp-python, gguf and numpy.
    pub(crate) fn start(size: Dimensions) -> Option<Self> {
        let python = std::env::var_os("LLAMACPP_PYTHON")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/llamacpp.py");
        let Dimensions { vocabulary, width, layers, heads, groups, hidden, context } = size;
        let sizes = [vocabulary, width, layers, heads, groups, hidden, context].map(|n| n.to_string());
        let mut command = Command::new(python);
        command.arg(script).args(sizes).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("LLAMACPP_PYTHON names a Python");
        let questions = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut peer = Self { process, questions, answers };
        assert_eq!(peer.line(), "ready", "llama.cpp does not start: is llama-cpp-python installed?");
        Some(peer)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line.trim().to_owned()
    }

    /// Microseconds of reading a text of so many tokens (logits of the last one), or of one token more than so many.
    pub(crate) fn micros(&mut self, what: &str, tokens: u32) -> f64 {
        writeln!(self.questions, "{what} {tokens}").expect("a question");
        self.line().parse().expect("microseconds")
    }
}

impl Drop for LlamaCpp {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }
}
