//! How the contracts are put together: the same circle as `script/Deployer.sol`, for tests and tools that deploy
//! without forge.

use alloy::primitives::{Address, Bytes};
use alloy::sol_types::{SolConstructor, SolType, SolValue};

use crate::{Audits, Beacon, Challenges, Channels, Checkpoints, Custody, Disputes, Jobs, SNO, Staking, StepVerifier};

/// What [`Creation`] takes: the parameters in the form that `Staking` does.
pub use crate::staking::Staking::Parameters;

/// The contracts of one deployment: their addresses, which follow from the deployer's nonces, and their creation code
/// in the order of those nonces.
#[derive(Clone, Debug)]
pub struct Creation {
    pub sno: Address,
    pub step_verifier: Address,
    pub staking: Address,
    pub jobs: Address,
    pub checkpoints: Address,
    pub channels: Address,
    pub disputes: Address,
    pub challenges: Address,
    pub custody: Address,
    pub beacon: Address,
    pub audits: Address,
    /// One transaction each.
    pub code: Vec<Bytes>,
}

impl Creation {
    /// From an account whose next nonce is `nonce`; `genesis` get the first SNO.
    pub fn new(deployer: Address, nonce: u64, parameters: &Parameters, genesis: &[Address]) -> Self {
        let at = |offset: u64| deployer.create(nonce + offset);
        let [sno, step_verifier, staking, jobs, checkpoints, channels, disputes, challenges, custody, beacon, audits] =
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(at);
        let verifier = step_verifier;
        let code = vec![
            with(&SNO::BYTECODE, &SNO::constructorCall { recipients: genesis.to_vec() }),
            StepVerifier::BYTECODE.clone(),
            with(&Staking::BYTECODE, &Staking::constructorCall { sno, jobs, disputes, audits, p: parameters.clone() }),
            with(&Jobs::BYTECODE, &Jobs::constructorCall { sno, staking, checkpoints, channels, disputes, audits }),
            with(
                &Checkpoints::BYTECODE,
                &Checkpoints::constructorCall {
                    jobs,
                    disputes,
                    challenges,
                    custody,
                    sealWindow: parameters.sealWindow,
                },
            ),
            with(&Channels::BYTECODE, &Channels::constructorCall { jobs }),
            with(
                &Disputes::BYTECODE,
                &Disputes::constructorCall { staking, jobs, checkpoints, verifier, challenges, custody, audits },
            ),
            with(
                &Challenges::BYTECODE,
                &Challenges::constructorCall { sno, jobs, checkpoints, disputes, p: recode(parameters) },
            ),
            with(
                &Custody::BYTECODE,
                &Custody::constructorCall { sno, jobs, checkpoints, disputes, p: recode(parameters) },
            ),
            with(&Beacon::BYTECODE, &Beacon::constructorCall { period: parameters.beaconPeriod }),
            with(
                &Audits::BYTECODE,
                &Audits::constructorCall { staking, jobs, checkpoints, channels, disputes, beacon },
            ),
        ];
        Self {
            sno,
            step_verifier,
            staking,
            jobs,
            checkpoints,
            channels,
            disputes,
            challenges,
            custody,
            beacon,
            audits,
            code,
        }
    }
}

fn with(bytecode: &Bytes, constructor: &impl SolConstructor) -> Bytes {
    [bytecode.as_ref(), &constructor.abi_encode()].concat().into()
}

/// The same struct, as the bindings of another contract have it.
fn recode<B>(parameters: &Parameters) -> B
where
    B: SolValue + From<<<B as SolValue>::SolType as SolType>::RustType>,
{
    B::abi_decode(&parameters.abi_encode()).expect("one struct of Solidity, in two of Rust")
}
