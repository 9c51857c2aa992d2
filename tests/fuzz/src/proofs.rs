//! Proofs that convict, from `proofs.json` and `training-proofs.json` of `tests/vectors`, with bytes changed: they are
//! refused, or say the same.

use std::sync::LazyLock;

use alloy_primitives::{Address, B256, Bytes};
use alloy_sol_types::SolValue;
use serde::Deserialize;
use tensorlink_proof::commit::{Contracts, record_hash};
use tensorlink_proof::fraud::{
    Case, Conviction, ElementProof, Refusal, Work, bytes, verify_contradiction_proof, verify_element_proof,
    verify_wiring_proof,
};
use tensorlink_types::JobKey;
use tensorlink_types::abi::{Claim, ContradictionProof, WiringProof};

use crate::feed::Feed;

/// Most bytes that are changed.
const MAX_CHANGES: usize = 8;

#[derive(Deserialize)]
struct File {
    element: Vec<Vector>,
    #[serde(default)]
    wiring: Vec<Vector>,
    #[serde(default)]
    contradiction: Vec<Vector>,
}

/// A proof and what the chain knows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    proof: Bytes,
    chain_id: u64,
    checkpoints: Address,
    disputes: Address,
    worker: Address,
    kind: u8,
    steps_per_interval: u32,
    job_key: B256,
    program: B256,
    auditor: Address,
    step: u32,
}

static FILE: LazyLock<File> = LazyLock::new(|| {
    let read = |text| serde_json::from_str::<File>(text).expect("the vectors are what their README says");
    let mut file = read(include_str!("../../vectors/proofs.json"));
    file.element.extend(read(include_str!("../../vectors/training-proofs.json")).element);
    file
});

impl Vector {
    fn contracts(&self) -> Contracts {
        Contracts {
            chain_id: self.chain_id,
            jobs: Address::ZERO,
            checkpoints: self.checkpoints,
            channels: Address::ZERO,
            disputes: self.disputes,
            custody: Address::ZERO,
        }
    }

    fn case(&self, claim: &Claim, committed_at: u64) -> Case {
        let contracts = self.contracts();
        let work = match self.kind {
            0 => Work::Training {
                steps_per_interval: self.steps_per_interval,
                program: self.program,
                record: record_hash(claim, committed_at),
            },
            _ => Work::Serving { longest: self.steps_per_interval, programs: self.program },
        };
        Case { contracts, worker: self.worker, lineage: JobKey(self.job_key).into(), work }
    }

    /// The proof with some bytes changed.
    fn changed(&self, feed: &mut Feed<'_>) -> Vec<u8> {
        let mut bytes = self.proof.to_vec();
        for _ in 0..MAX_CHANGES {
            if feed.is_over() {
                break;
            }
            let at = usize::from(u16::from_le_bytes([feed.byte(), feed.byte()]));
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= feed.byte();
            }
        }
        bytes
    }
}

/// A kind of proof.
trait Proof: Sized + PartialEq + std::fmt::Debug {
    fn decode(bytes: &[u8], contracts: &Contracts) -> Option<Self>;
    fn encode(&self) -> Vec<u8>;
    fn claim(&self) -> (&Claim, u64);
    fn verify(&self, case: &Case) -> Result<Conviction, Refusal>;
}

macro_rules! proof {
    ($name:ident, $verify:ident) => {
        impl Proof for $name {
            fn decode(bytes: &[u8], _: &Contracts) -> Option<Self> {
                Self::abi_decode(bytes).ok()
            }
            fn encode(&self) -> Vec<u8> {
                self.abi_encode()
            }
            fn claim(&self) -> (&Claim, u64) {
                (&self.claim, self.committedAt)
            }
            fn verify(&self, case: &Case) -> Result<Conviction, Refusal> {
                $verify(case, self)
            }
        }
    };
}

impl Proof for ElementProof {
    fn decode(bytes: &[u8], contracts: &Contracts) -> Option<Self> {
        bytes::decode(bytes, contracts).ok()
    }
    fn encode(&self) -> Vec<u8> {
        bytes::encode(self).expect("what was decoded has bytes")
    }
    fn claim(&self) -> (&Claim, u64) {
        (&self.claim, self.committed_at)
    }
    fn verify(&self, case: &Case) -> Result<Conviction, Refusal> {
        verify_element_proof(case, self)
    }
}

proof!(WiringProof, verify_wiring_proof);
proof!(ContradictionProof, verify_contradiction_proof);

fn check<P: Proof>(vector: &Vector, feed: &mut Feed<'_>) {
    let contracts = vector.contracts();
    let original = P::decode(&vector.proof, &contracts).expect("a vector is a proof");
    let (claim, committed_at) = original.claim();
    let case = vector.case(claim, committed_at);
    let Some(proof) = P::decode(&vector.changed(feed), &contracts) else { return };
    assert_eq!(P::decode(&proof.encode(), &contracts).as_ref(), Some(&proof));
    let verdict = proof.verify(&case);
    assert!(proof != original || verdict.is_ok(), "the vector convicts");
    if let Ok(conviction) = verdict {
        assert_eq!(proof.claim().0, claim, "nobody is convicted over another claim");
        assert_eq!((conviction.auditor, conviction.step), (vector.auditor, vector.step), "what is signed stays");
    }
}

/// Which proof, and which of its bytes are changed.
///
/// # Panics
/// Where a rule is broken.
pub fn proof(bytes: &[u8]) {
    let mut feed = Feed::new(bytes);
    let file = &*FILE;
    match feed.below(3) {
        0 => check::<ElementProof>(&file.element[feed.below(file.element.len())], &mut feed),
        1 => check::<WiringProof>(&file.wiring[feed.below(file.wiring.len())], &mut feed),
        _ => check::<ContradictionProof>(&file.contradiction[feed.below(file.contradiction.len())], &mut feed),
    }
}
