//! Which chain a data folder belongs to: written down when it is first used, compared at every start. A chain that was
//! started anew has the same id, and contracts at the same addresses; what a node remembers of the former one would be
//! wrong in every detail.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tensorlink_chain::AlloyChain;
use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::Deployment;
use tensorlink_node::{Journal, history};
use tensorlink_types::{Address, B256};

use crate::config::Config;
use crate::keys;

/// Name of the record, in the data folder itself.
const RECORD: &str = "chain";
/// Blocks after which the deployment's own block is taken for one that stays.
const DEEP: u64 = 64;

/// What tells one chain from another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Origin {
    chain_id: u64,
    /// Hash of block 0.
    genesis: B256,
    /// Address of the contract `Jobs`.
    jobs: Address,
    /// Hash of the block from which on there are events of the contracts, once it is deep enough to stay.
    deployed_in: Option<B256>,
}

impl Origin {
    async fn of(chain: &AlloyChain) -> Result<Self> {
        let Deployment { chain_id, jobs, block, .. } = *chain.deployment();
        let deep = chain.head().await?.number >= block.saturating_add(DEEP);
        let deployed_in = if deep { chain.block_hash(block).await? } else { None };
        Ok(Self { chain_id, genesis: chain.genesis(), jobs, deployed_in })
    }

    /// Whether nothing speaks against their being one chain.
    fn agrees(&self, other: &Self) -> bool {
        let same = |(a, b): (Option<B256>, Option<B256>)| a.zip(b).is_none_or(|(a, b)| a == b);
        (self.chain_id, self.genesis, self.jobs) == (other.chain_id, other.genesis, other.jobs)
            && same((self.deployed_in, other.deployed_in))
    }

    fn words(&self) -> String {
        format!("chain {} whose first block is {}, with Jobs at {}", self.chain_id, self.genesis, self.jobs)
    }
}

/// What the data folder says; none of a new one.
fn record(config: &Config) -> Result<Option<Origin>> {
    // Who only looks has no folder made for it.
    if !config.data_dir.is_dir() {
        return Ok(None);
    }
    Ok(Journal::open(&config.data_dir)?.read(RECORD)?)
}

/// Whether what is in the data folder is of this chain, as far as that is known.
///
/// # Errors
/// When the chain or the disk fails.
pub async fn is_of(config: &Config, chain: &AlloyChain) -> Result<bool> {
    let now = Origin::of(chain).await?;
    match record(config)? {
        Some(then) => Ok(then.agrees(&now)),
        None => remembers(config, chain).await,
    }
}

/// Whether the oldest event that is remembered is one of this chain, or none is: of folders without a record.
async fn remembers(config: &Config, chain: &AlloyChain) -> Result<bool> {
    let oldest = history::oldest(chain.deployment(), &config.data_dir);
    let oldest = oldest.with_context(|| format!("cannot read what {} remembers", config.data_dir.display()))?;
    Ok(match oldest {
        Some(at) => is_same(chain.block_hash(at.block).await?, at.block_hash),
        None => true,
    })
}

/// Whether a block may be the one that is remembered: an endpoint that lags, or has forgotten old blocks, says nothing.
fn is_same(now: Option<B256>, then: B256) -> bool {
    now.is_none_or(|now| now == then)
}

/// Refuses a data folder of another chain, and writes down which chain a new one belongs to. Changes nothing else.
///
/// # Errors
/// If it is of another chain: what to do; or when the chain or the disk fails.
pub async fn check(config: &Config, chain: &AlloyChain) -> Result<()> {
    let now = Origin::of(chain).await?;
    let then = record(config)?;
    let known = match &then {
        Some(then) if !then.agrees(&now) => bail!(refusal(config, &then.words(), &now)),
        None if !remembers(config, chain).await? => {
            bail!(refusal(config, "another chain, whose blocks it remembers", &now))
        }
        Some(then) => then.deployed_in.is_some() || now.deployed_in.is_none(),
        None => false,
    };
    if !known {
        Journal::open(&config.data_dir)?.write(RECORD, &now)?;
    }
    Ok(())
}

/// What is said to who starts on a folder of another chain.
fn refusal(config: &Config, then: &str, now: &Origin) -> String {
    let folder = config.data_dir.display();
    let key = keys::default_path(config);
    let key = if config.keystore.is_none() && key.exists() {
        format!(" Its key is worth keeping: go on with it by `--keystore {folder}.old/key.json`.")
    } else {
        String::new()
    };
    format!(
        "the data folder {folder} belongs to {then}; {} serves {}. Nothing was changed. If that chain was started anew, \
         move the folder away, `mv {folder} {folder}.old`, or name a new one by --data-dir.{key} If it was not, check \
         --rpc and --deployment",
        config.rpc.join(", "),
        now.words()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        Origin { chain_id: 7, genesis: B256::repeat_byte(1), jobs: Address::repeat_byte(2), deployed_in: None }
    }

    #[test]
    fn a_chain_is_told_from_another_by_all_that_is_known_of_both() {
        let deep = |byte| Origin { deployed_in: Some(B256::repeat_byte(byte)), ..origin() };
        assert!(origin().agrees(&origin()) && origin().agrees(&deep(3)) && deep(3).agrees(&deep(3)));
        for other in [
            Origin { chain_id: 8, ..origin() },
            Origin { genesis: B256::repeat_byte(9), ..origin() },
            Origin { jobs: Address::repeat_byte(9), ..origin() },
        ] {
            assert!(!origin().agrees(&other), "{other:?}");
        }
        assert!(!deep(3).agrees(&deep(4)), "the same first block, and another deployment");
    }

    #[test]
    fn a_block_that_the_endpoint_does_not_know_speaks_against_nothing() {
        let then = B256::repeat_byte(1);
        assert!(is_same(None, then) && is_same(Some(then), then) && !is_same(Some(B256::ZERO), then));
    }

    #[test]
    fn who_is_refused_is_told_what_to_do_and_keeps_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { data_dir: folder.path().join("data"), ..Config::defaults().unwrap() };
        assert_eq!(record(&config).unwrap(), None);
        assert!(!config.data_dir.exists(), "who only looks has no folder made for it");
        let told = refusal(&config, &origin().words(), &Origin { genesis: B256::repeat_byte(9), ..origin() });
        assert!(told.contains("--data-dir") && told.contains("data.old") && !told.contains("--keystore"), "{told}");
        std::fs::create_dir(&config.data_dir).unwrap();
        std::fs::write(config.data_dir.join("key.json"), "").unwrap();
        let told = refusal(&config, &origin().words(), &origin());
        assert!(told.contains("--keystore") && told.contains("data.old/key.json"), "{told}");
    }
}
