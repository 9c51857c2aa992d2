//! Which contracts: the file that the deploy script writes.

use std::io;
use std::path::{Path, PathBuf};

use tensorlink_bindings::Creation;
use tensorlink_node::ports::chain::Deployment;
use tensorlink_types::{Address, address};
use thiserror::Error;

/// Why a deployment file was not taken.
#[derive(Debug, Error)]
pub enum DeploymentError {
    /// It could not be read.
    #[error(
        "cannot read the deployment file {path}: {source}; name one of deploy/<chain id>.toml by --deployment, or start a \
         network on this machine with `tensorlink localnet up`"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It does not hold a chain id, a block and eleven addresses.
    #[error("{path} is not a deployment file as script/Deploy.s.sol writes it: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Reads `deploy/<chain id>.toml`.
///
/// # Errors
/// [`DeploymentError`] if there is no such file, or if it lacks an entry or has an address that is mistyped, zero
/// or used twice.
pub fn read_deployment(path: &Path) -> Result<Deployment, DeploymentError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| DeploymentError::Unreadable { path: path.to_owned(), source })?;
    let malformed = |reason| DeploymentError::Malformed { path: path.to_owned(), reason };
    let deployment: Deployment = toml::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    let typed: toml::Table = toml::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    let named = addresses(&deployment);
    for (name, _) in named {
        if let Some(text) = typed.get(name).and_then(toml::Value::as_str) {
            address::parse(text).map_err(|error| malformed(format!("`{name}`: {error}")))?;
        }
    }
    for (position, (name, address)) in named.iter().enumerate() {
        if *address == Address::ZERO {
            return Err(malformed(format!("`{name}` is the zero address")));
        }
        if let Some((other, _)) = named.iter().take(position).find(|(_, earlier)| earlier == address) {
            return Err(malformed(format!("`{name}` and `{other}` are the same address")));
        }
    }
    Ok(deployment)
}

/// Writes a deployment file, as the deploy script does.
///
/// # Errors
/// If the file cannot be written.
pub fn write_deployment(path: &Path, deployment: &Deployment) -> io::Result<()> {
    let text = toml::to_string(deployment).map_err(io::Error::other)?;
    std::fs::write(path, text)
}

/// What a creation deploys, on a chain that holds nothing of it before its first block.
pub const fn created(creation: &Creation, chain_id: u64) -> Deployment {
    Deployment {
        chain_id,
        block: 0,
        sno: creation.sno,
        staking: creation.staking,
        jobs: creation.jobs,
        checkpoints: creation.checkpoints,
        channels: creation.channels,
        disputes: creation.disputes,
        challenges: creation.challenges,
        custody: creation.custody,
        audits: creation.audits,
        beacon: creation.beacon,
        step_verifier: creation.step_verifier,
    }
}

/// The contracts by their names in the file.
pub(crate) const fn addresses(deployment: &Deployment) -> [(&'static str, Address); 11] {
    [
        ("sno", deployment.sno),
        ("staking", deployment.staking),
        ("jobs", deployment.jobs),
        ("checkpoints", deployment.checkpoints),
        ("channels", deployment.channels),
        ("disputes", deployment.disputes),
        ("challenges", deployment.challenges),
        ("custody", deployment.custody),
        ("audits", deployment.audits),
        ("beacon", deployment.beacon),
        ("step_verifier", deployment.step_verifier),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        chain_id = 31337
        block = 3
        sno = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
        staking = "0x9fE46736679d2D9a65F0992F2272dE9f3c7fa6e0"
        jobs = "0xCf7Ed3AccA5a467e9e704C703E8D87F634fB0Fc9"
        checkpoints = "0xDc64a140Aa3E981100a9becA4E685f962f0cF6C9"
        channels = "0x0165878A594ca255338adfa4d48449f69242Eb8F"
        disputes = "0x5FC8d32690cc91D4c39d9d3abcBD16989F875707"
        challenges = "0x610178dA211FEF7D417bC0e6FeD39F05609AD788"
        custody = "0x0DCd1Bf9A1b36cE34237eEaFef220932846BCD82"
        audits = "0xA51c1fc2f0D1a1b8494Ed1FE312d7C3a78Ed91C0"
        beacon = "0xB7f8BC63BbcaD18155201308C8f3540b07f84F5e"
        step_verifier = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
    "#;

    fn read(text: &str) -> Result<Deployment, DeploymentError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.toml");
        std::fs::write(&path, text).unwrap();
        read_deployment(&path)
    }

    #[test]
    fn reads_what_the_script_writes() {
        let deployment = read(GOOD).unwrap();
        assert_eq!((deployment.chain_id, deployment.block), (31337, 3));
    }

    #[test]
    fn says_what_is_wrong() {
        let missing = read(&GOOD.replace("jobs =", "job =")).unwrap_err().to_string();
        assert!(missing.contains("missing field `jobs`"), "{missing}");
        let twice =
            GOOD.replace("0xCf7Ed3AccA5a467e9e704C703E8D87F634fB0Fc9", "0x9fE46736679d2D9a65F0992F2272dE9f3c7fa6e0");
        let twice = read(&twice).unwrap_err().to_string();
        assert!(twice.contains("`jobs` and `staking` are the same"), "{twice}");
        let zero =
            GOOD.replace("0xCf7Ed3AccA5a467e9e704C703E8D87F634fB0Fc9", "0x0000000000000000000000000000000000000000");
        assert!(read(&zero).unwrap_err().to_string().contains("`jobs` is the zero address"));
        let absent = read_deployment(Path::new("/nonexistent/1.toml")).unwrap_err().to_string();
        assert!(absent.contains("--deployment"), "{absent}");
    }
}
