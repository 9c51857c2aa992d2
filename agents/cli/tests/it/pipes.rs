//! Standard output and error that nobody reads, as after `| head`, or that lead to a full disk.

use std::fs::File;
use std::io::pipe;
use std::process::{Output, Stdio};

/// A pipe whose reader is gone.
fn unread() -> Stdio {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer.into()
}

/// What becomes of a command with these as its standard output and error.
fn run(arguments: &[&str], out: Stdio, errors: Stdio) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = crate::tensorlink(home.path());
    command.current_dir(home.path()).args(arguments).stdin(Stdio::null()).stdout(out).stderr(errors).output().unwrap()
}

fn words(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn who_has_read_enough_ends_the_program_quietly() {
    for arguments in [&["completions", "bash"][..], &["check"], &["check", "--json"], &["model", "import", "."]] {
        let output = run(arguments, unread(), Stdio::piped());
        let said = words(output.stderr);
        assert!(output.status.success() && !said.contains("error") && !said.contains("panic"), "{arguments:?}: {said}");
    }
}

#[test]
fn work_goes_on_where_nobody_hears_of_it() {
    let output = run(&["-vv", "check"], Stdio::piped(), unread());
    let printed = words(output.stdout);
    assert_eq!(output.status.code(), Some(1), "without a key: {printed}");
    assert!(printed.contains("FAIL key") && printed.contains("ok   peers"), "{printed}");
    let output = run(&["model", "import", "."], Stdio::piped(), unread());
    let printed = words(output.stdout);
    assert_eq!((output.status.code(), printed.lines().count()), (Some(1), 2), "{printed}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_takes_no_more_is_an_error() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = run(&["completions", "bash"], full.into(), Stdio::piped());
    let said = words(output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: cannot write to standard output: No space left on device"), "{said}");
}
