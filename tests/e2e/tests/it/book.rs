//! The documents, walked literally: every block of shell that follows a line `<!-- walk -->`, in the order of its page,
//! each page from an empty folder and an empty home, with the checkout as `$TENSORLINK` and the programs in the path.
//! Pages are walked side by side: each has a port of its own in the place of the gateway's.
//! It takes minutes, and so is named to be among the first: tests start in the order of their names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;

use crate::harness::{run, shell, tensorlink};
use crate::localnet::{Home, free_port};

const MARK: &str = "<!-- walk -->";
/// Where the documents find the local network's gateway.
const GATEWAY: &str = "127.0.0.1:8090";
/// Pages that are walked side by side. Each brings up a network: more take the processors from tests that have clocks.
const AT_ONCE: usize = 3;
/// A block is done within.
const BLOCK: Duration = Duration::from_secs(600);

/// A block of shell.
#[derive(PartialEq, Eq, Debug)]
struct Block {
    /// Of its first command in the page, from 1.
    line: usize,
    script: String,
}

/// The marked blocks of a page.
///
/// # Errors
/// Where a mark is followed by something else, or a block does not end.
fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((at, line)) = lines.next() {
        if line.trim() != MARK {
            continue;
        }
        let fence = lines.by_ref().find(|(_, line)| !line.trim().is_empty());
        let Some((fence, "```sh")) = fence.map(|(at, line)| (at, line.trim())) else {
            return Err(format!("line {at}: no block of ```sh follows {MARK}"));
        };
        let mut script = String::new();
        loop {
            match lines.next() {
                Some((_, line)) if line.trim() == "```" => break,
                Some((_, line)) => script += &format!("{line}\n"),
                None => return Err(format!("line {fence}: the block does not end")),
            }
        }
        blocks.push(Block { line: fence + 1, script });
    }
    Ok(blocks)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The README, and every page of the book.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs/src")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Walks a page; says where it fails, and how.
async fn walk(page: &Path) -> Result<usize, String> {
    let shown = page.strip_prefix(root()).unwrap_or(page).display().to_string();
    let text = std::fs::read_to_string(page).map_err(|error| format!("{shown}: {error}"))?;
    let blocks = blocks(&text).map_err(|error| format!("{shown}, {error}"))?;
    if blocks.is_empty() {
        return Ok(0);
    }
    let home = Home::new();
    let gateway = format!("127.0.0.1:{}", free_port());
    let programs = PathBuf::from(tensorlink().get_program()).parent().unwrap().to_owned();
    let path =
        std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())));
    // What a block leaves in the shell, the folder it goes to among it, the next one finds.
    let state = home.folder().with_file_name("shell");
    for block in &blocks {
        let script = format!(
            "[[ ! -f {0} ]] || {{ set +u; . {0}; set -u; }}\n{1}\n{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} >{0}\n",
            state.display(),
            block.script.replace(GATEWAY, &gateway)
        );
        let mut command = home.at_home(shell(&script));
        command.env("TENSORLINK", root()).env("PATH", path.as_ref().unwrap()).env("TENSORLINK_HTTP", &gateway);
        let output = run(command, BLOCK).await;
        if !output.ok {
            let end = |text: &str| {
                text.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
            };
            return Err(format!(
                "{shown}:{}: this fails:\n{}\n{}\n{}",
                block.line,
                block.script,
                end(&output.stdout),
                end(&output.stderr)
            ));
        }
        eprintln!("{shown}:{} took {:.1} s", block.line, output.took.as_secs_f64());
    }
    Ok(blocks.len())
}

#[test]
fn only_marked_blocks_are_walked() {
    let text = "# A\n```sh\nnot this\n```\n<!-- walk -->\n\n```sh\na\n  b\n```\ntext\n<!-- walk -->\n```sh\nc\n```\n";
    let found = blocks(text).unwrap();
    let expected = [Block { line: 8, script: "a\n  b\n".into() }, Block { line: 14, script: "c\n".into() }];
    assert_eq!(found, expected);
    assert!(blocks("<!-- walk -->\ntext\n").unwrap_err().contains("line 1"));
    assert!(blocks("<!-- walk -->\n```sh\na\n").unwrap_err().contains("line 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documents_can_be_walked() {
    let pages = pages();
    let walks: Vec<_> = stream::iter(&pages).map(|page| walk(page)).buffer_unordered(AT_ONCE).collect().await;
    let (walked, failed): (Vec<_>, Vec<_>) = walks.into_iter().partition(Result::is_ok);
    let failed: Vec<_> = failed.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(walked.into_iter().flatten().sum::<usize>() > 0, "no block is marked to be walked");
}
