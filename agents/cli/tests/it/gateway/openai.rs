//! OpenAI's own Python client against the gateway: `tests/openai`.

use std::process::Command;
use std::sync::Arc;

use tensorlink_gateway::Limits;
use tensorlink_gateway::generation::batch::Capacity;
use tensorlink_gateway::local::Local;

use crate::root;
use crate::served::{KEY, OTHER_KEY, Words, limits, model, start};
use crate::speaker::{Bytes, Speaker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_works() {
    let packages = root().join(".toolchain/python-openai");
    assert!(packages.join("openai").is_dir(), "{} holds no openai package: run script/setup", packages.display());
    let mut local = Local::new();
    local.add(model("words"), Words::default(), 64).unwrap();
    let folder = tempfile::tempdir().unwrap();
    crate::gateway::decoder::write(folder.path(), true);
    crate::gateway::decoder::add(&mut local, folder.path());
    let capacity = Capacity { queue: 64, texts: 4 };
    local.add_decoder(crate::speaker::shape(), Arc::new(Bytes), Speaker::default(), capacity).unwrap();
    let server = start(Arc::new(local), limits()).await;
    let mut hasty = Local::new();
    hasty.add(model("words"), Words::default(), 64).unwrap();
    let limited = start(Arc::new(hasty), Limits { per_minute: Some(10), ..Limits::default() }).await;

    let mut command = Command::new("python3");
    command
        .args(["-B", "-m", "unittest", "-v", "test_gateway", "test_generation"])
        .current_dir(root().join("tests/openai"))
        .env("PYTHONPATH", &packages)
        .env("NO_PROXY", "*")
        .env("GATEWAY", server.url("/v1"))
        .env("GATEWAY_LIMITED", limited.url("/v1"))
        .env("GATEWAY_KEY", KEY)
        .env("GATEWAY_OTHER_KEY", OTHER_KEY);
    let run = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    let output = run.expect("python3 cannot be started: install it, then run script/setup");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // An empty suite succeeds too.
    for test in ["test_vectors_agree_in_both_encodings", "test_a_stream_says_what_a_whole_answer_says"] {
        assert!(said.contains(test), "{said}");
    }
    assert!(said.trim_end().ends_with("OK"), "{said}");
}
