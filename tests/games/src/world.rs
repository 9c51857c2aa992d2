//! The contracts in revm, funded and staked, with jobs to act on.

use alloy::primitives::aliases::U40;
use alloy::primitives::{Log, address};
use alloy::sol_types::SolCall;
use k256::ecdsa::SigningKey;
use revm::context::result::{ExecutionResult, HaltReason};
use revm::context::{BlockEnv, CfgEnv, Context, Journal, TxEnv};
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::{TxKind, hardfork::SpecId};
use revm::{ExecuteCommitEvm, MainBuilder};
use tensorlink_bindings::creation::Parameters;
use tensorlink_bindings::{Creation, Disputes, SNO};
use tensorlink_chain::calls::{PutUp, action, proof};
use tensorlink_chain::deployment::created;
use tensorlink_chain::event::decode;
use tensorlink_chain::local::LocalChain;
use tensorlink_chain::revert::Revert;
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{Deployment, Event, Role};
use tensorlink_proof::challenge::cost;
use tensorlink_proof::commit::Contracts;
use tensorlink_proof::commit::sign::{address_of, sign};
use tensorlink_types::abi::{JobTerms, Offer};
use tensorlink_types::{Address, B256, Bytes, JobId, Lineage, U256};

/// Deploys, holds the first SNO, and posts jobs.
pub const USER: Address = address!("0x00000000000000000000000000000000000000a1");
/// Challenges.
pub const CHALLENGER: Address = address!("0x00000000000000000000000000000000000000a2");
/// Wei of SNO locked for a lane.
pub const STAKE: u64 = 1_000_000;
/// Wei of SNO of a bond.
pub const BOND: u64 = 10_000;
/// Seconds in which a claim can be challenged.
pub const WINDOW: u32 = 1_000;

/// Wei of ETH for a unit of gas.
pub const BASE_FEE: U256 = U256::from_limbs([7, 0, 0, 0]);

const CHAIN: u64 = 31_337;
const GENESIS: u64 = 1_800_000_000;

/// The state of a chain, and what is needed to go on with it. Cheap to clone: games begin from one world.
#[derive(Clone, Debug)]
pub struct World {
    state: CacheDB<EmptyDB>,
    /// Which contracts these are.
    pub deployment: Deployment,
    /// Block time, seconds.
    pub now: u64,
    /// Height.
    pub block: u64,
}

/// The stage of three whose worker is challenged; the others are its neighbours.
pub const STAGE: u16 = 1;

/// The key of a stage's worker.
pub fn key_of(stage: u16) -> SigningKey {
    SigningKey::from_slice(&[0x41 + stage as u8; 32]).expect("a key")
}

/// A stage's worker.
pub fn worker_of(stage: u16) -> Address {
    address_of(&key_of(stage))
}

/// The worker that is challenged.
pub fn worker() -> Address {
    worker_of(STAGE)
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// Deploys everything, and gives everybody what it needs.
    pub fn new() -> Self {
        let parameters = Parameters {
            unbondingDelay: U40::from(100_000),
            validatorCollateral: 1,
            disputeClock: 3_600,
            moveGrace: 60,
            moveBlocks: 2,
            disputeBond: BOND.into(),
            maxChallengeWindow: WINDOW,
            minStakeIntervals: 0,
            auditsPerClaimBps: 0,
            auditFeeBps: 0,
            auditPenaltyBps: 0,
            ..LocalChain::parameters().expect("the file in the program is read")
        };
        let creation = Creation::new(USER, 0, &parameters, &[USER]);
        let deployment = created(&creation, CHAIN);
        let Creation { sno, staking, challenges, code, .. } = creation;
        let mut world = Self { state: CacheDB::new(EmptyDB::new()), deployment, now: GENESIS, block: 1 };
        for (nonce, code) in (0..).zip(code) {
            world.transact(USER, TxKind::Create, (nonce, U256::ZERO), code).expect("a contract is created");
        }
        let workers = [0, 1, 2].map(worker_of);
        let funds = workers.map(|worker| (worker, 10 * STAKE)).into_iter().chain([(CHALLENGER, 10 * BOND)]);
        for (nonce, (to, amount)) in (10..).zip(funds) {
            let transfer = SNO::transferCall { to, value: U256::from(amount) };
            world
                .transact(USER, TxKind::Call(sno), (nonce, U256::ZERO), transfer.abi_encode().into())
                .expect("SNO is transferred");
        }
        for (from, spender) in workers.map(|worker| (worker, staking)).into_iter().chain([(CHALLENGER, challenges)]) {
            let approve = SNO::approveCall { spender, value: U256::MAX };
            world
                .transact(from, TxKind::Call(sno), (0, U256::ZERO), approve.abi_encode().into())
                .expect("SNO is approved");
        }
        let stake = Call::Stake { role: Role::Worker, amount: U256::from(STAKE) };
        for worker in workers {
            world.call(worker, &stake).expect("a worker has its stake");
        }
        world
    }

    /// Addresses and chain, as signatures name them.
    pub fn contracts(&self) -> Contracts {
        self.deployment.contracts()
    }

    /// Starts a job of three stages that counts its steps from `first_step`: in place of another, if that is not 0,
    /// which is over.
    pub fn start_job(&mut self, terms: &JobTerms, first_step: u32) -> (JobId, Lineage) {
        if first_step == 0 {
            return self.start(terms.clone());
        }
        let (former, _) = self.start(terms.clone());
        self.call(USER, &Call::Cancel { job: former }).expect("the former job ends");
        self.call(USER, &Call::Settle { job: former }).expect("nothing is left of the former job");
        self.start(JobTerms { continues: former.0, firstStep: first_step, ..terms.clone() })
    }

    /// Posts a job of three stages, has it accepted and starts it.
    fn start(&mut self, terms: JobTerms) -> (JobId, Lineage) {
        let (first_step, named) = (terms.firstStep, terms.hash_of(USER));
        let posted = self.call(USER, &Call::Post { terms, deposit: U256::from(1_000) }).expect("the job is posted").1;
        let job = posted.iter().find_map(|event| match event {
            Event::JobPosted { job, .. } => Some(*job),
            _ => None,
        });
        let job = job.expect("the job has a number");
        let offers = [0, 1, 2].map(|stage| Offer {
            job: job.0,
            terms: named,
            stage,
            replica: 0,
            worker: worker_of(stage),
            pricePerInterval: 10,
            expires: U40::from(self.now + 60),
        });
        let signed = |offer: &Offer| sign(&key_of(offer.stage), self.contracts().offer(offer)).expect("a signature");
        let signatures = offers.iter().map(|offer| Bytes::from(signed(offer))).collect();
        let accept = Call::Accept { job, offers: offers.to_vec(), signatures };
        self.call(USER, &accept).expect("the offer is accepted");
        let started = self.call(USER, &Call::Start { job }).expect("the job starts").1;
        let key = started.iter().find_map(|event| match event {
            Event::JobStarted { job_key, .. } => Some(*job_key),
            _ => None,
        });
        (job, Lineage { key: key.expect("the job has a key"), first_step })
    }

    /// A call in a block of its own, a second after the last; the gas it used and what it told.
    ///
    /// # Errors
    /// The contract's revert.
    pub fn call(&mut self, from: Address, call: &Call) -> Result<(u64, Vec<Event>), Revert> {
        self.now += 1;
        self.block += 1;
        let put_up = PutUp { bond: U256::from(BOND), deposit: cost::deposit(BASE_FEE) };
        let action = action(&self.deployment, call, put_up).expect("the call fits the ABI");
        if matches!(call, Call::Prove(_) | Call::ProveWiring(_) | Call::ProveContradiction(_)) {
            let read = proof(&self.deployment, action.to, &action.data);
            assert_eq!(read.as_ref(), Some(call), "a proof is read back as it was sent");
        }
        let (gas, logs) = self.transact(from, TxKind::Call(action.to), (0, action.value), action.data)?;
        let decoded = logs.iter().filter_map(|log| decode(&self.deployment, log, self.now).expect("our own log"));
        Ok((gas, decoded.collect()))
    }

    /// Sends bytes as a proof of a wrong element.
    ///
    /// # Errors
    /// The contract's revert.
    pub fn prove(&mut self, proof: Bytes) -> Result<(), Revert> {
        let call = Disputes::proveSignedCall { proof };
        let to = TxKind::Call(self.deployment.disputes);
        self.transact(CHALLENGER, to, (0, U256::ZERO), call.abi_encode().into()).map(drop)
    }

    /// Time passes without a block's being used.
    pub fn wait(&mut self, seconds: u64, blocks: u64) {
        self.now += seconds;
        self.block += blocks;
    }

    /// Balance in wei of SNO.
    pub fn sno(&mut self, account: Address) -> U256 {
        let call = SNO::balanceOfCall { account };
        let to = TxKind::Call(self.deployment.sno);
        let result = self.execute(account, to, (0, U256::ZERO), call.abi_encode().into());
        let output = result.output().map(|output| output.to_vec()).unwrap_or_default();
        SNO::balanceOfCall::abi_decode_returns(&output).expect("a balance")
    }

    fn transact(
        &mut self,
        from: Address,
        to: TxKind,
        terms: (u64, U256),
        data: Bytes,
    ) -> Result<(u64, Vec<Log>), Revert> {
        match self.execute(from, to, terms, data) {
            ExecutionResult::Success { gas, logs, .. } => Ok((gas.tx_gas_used(), logs)),
            ExecutionResult::Revert { output, .. } => Err(Revert::decode(&output)),
            ExecutionResult::Halt { reason, .. } => {
                Err(Revert { name: "Halt".into(), arguments: format!("({reason:?})") })
            }
        }
    }

    /// `nonce`, which names what is created, and `value`, wei of ETH.
    fn execute(
        &mut self,
        from: Address,
        to: TxKind,
        (nonce, value): (u64, U256),
        data: Bytes,
    ) -> ExecutionResult<HaltReason> {
        let mut context: Context<BlockEnv, TxEnv, CfgEnv, _, Journal<_>, ()> =
            Context::new(&mut self.state, SpecId::PRAGUE);
        context.cfg.chain_id = CHAIN;
        context.cfg.disable_nonce_check = true;
        context.cfg.disable_balance_check = true;
        context.cfg.disable_base_fee = true;
        context.cfg.disable_block_gas_limit = true;
        context.block.number = U256::from(self.block);
        context.block.timestamp = U256::from(self.now);
        context.block.basefee = BASE_FEE.to();
        context.block.prevrandao = Some(B256::repeat_byte(7));
        // That of a transaction (EIP-7825): what does not fit cannot be said.
        let transaction = TxEnv {
            caller: from,
            kind: to,
            nonce,
            value,
            data,
            gas_limit: 1 << 24,
            chain_id: Some(CHAIN),
            ..TxEnv::default()
        };
        context.build_mainnet().transact_commit(transaction).expect("the state is here")
    }
}
