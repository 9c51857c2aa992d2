//! Keys: made, taken over from other tools and given to them, never shown, never overwritten.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The first account of anvil's words, which anybody knows.
const WORDS: &str = "test test test test test test test test test test test junk";
const FIRST: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const SECOND: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const DIGITS: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// A user's home, with a password in the environment or none.
struct Home {
    folder: tempfile::TempDir,
    password: &'static str,
}

impl Home {
    fn new(password: &'static str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), password }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a command says: on the standard output, or why it fails.
    fn run(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = crate::tensorlink(self.folder.path());
        command.env("TENSORLINK_PASSWORD", self.password);
        command.args(["--data-dir", self.path("data").to_str().unwrap()]).args(arguments);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Who refuses beforehand does not read it.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        let output = process.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn words_digits_and_keystores_are_taken_over_and_given_away() {
    let home = Home::new("correct horse");
    assert_eq!(home.run(&["key", "import"], WORDS).unwrap(), FIRST);
    assert_eq!(home.run(&["key", "address"], "").unwrap(), FIRST);
    let again = home.run(&["key", "import"], WORDS).unwrap_err();
    assert!(again.contains("exists"), "{again}");

    let digits = home.path("digits");
    assert_eq!(home.run(&["key", "export", shown(&digits)], "").unwrap(), FIRST);
    assert_eq!(fs::read_to_string(&digits).unwrap(), format!("0x{DIGITS}\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&digits).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let again = home.run(&["key", "export", shown(&digits)], "").unwrap_err();
    assert!(again.contains("digits"), "{again}");

    let copies = [home.path("copy-1"), home.path("copy-2"), home.path("copy-3")];
    let keystore = home.path("data/key.json");
    let import = |from: &Path, to: &Path| home.run(&["key", "import", shown(from), "--to", shown(to)], "");
    assert_eq!(import(&digits, &copies[0]).unwrap(), FIRST);
    assert_eq!(import(&keystore, &copies[1]).unwrap(), FIRST);
    fs::write(&digits, format!("0X{}", DIGITS.to_uppercase())).unwrap();
    assert_eq!(import(&digits, &copies[2]).unwrap(), FIRST);
    for copy in &copies {
        assert_eq!(home.run(&["--keystore", shown(copy), "key", "address"], "").unwrap(), FIRST);
    }
    let second =
        ["key", "import", "--to", shown(&home.path("second")), "--derivation", "m/44'/60'/0'/0/1"].map(str::to_owned);
    assert_eq!(home.run(&second.each_ref().map(String::as_str), WORDS).unwrap(), SECOND);
}

#[test]
fn what_is_no_key_and_an_empty_password_are_refused_and_nothing_is_written() {
    let home = Home::new("");
    for arguments in [&["key", "new"][..], &["key", "import"]] {
        let error = home.run(arguments, WORDS).unwrap_err();
        assert!(error.contains("empty password"), "{error}");
    }
    let home = Home { password: "correct horse", ..home };
    for (input, reason) in
        [("test junk", "no key"), ("12ab", "64 hex digits"), ("", "no key"), ("{}", "name the keystore")]
    {
        let error = home.run(&["key", "import"], input).unwrap_err();
        assert!(error.contains(reason), "{input:?}: {error}");
        assert!(input.len() < 4 || !error.contains(input), "a secret is shown: {error}");
    }
    assert!(!home.path("data/key.json").exists());
}

/// One digit is another: the checksum tells it, before the chain or a key is asked for.
#[test]
fn a_mistyped_address_is_refused() {
    let home = Home::new("correct horse");
    let mistyped = FIRST.replace("b92266", "b92267");
    for arguments in [&["balance", &mistyped][..], &["native", "work", "--for", &mistyped]] {
        let error = home.run(arguments, "").unwrap_err();
        assert!(error.contains("checksum"), "{error}");
    }
}
