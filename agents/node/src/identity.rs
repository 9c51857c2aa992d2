//! The node's key. One secp256k1 key is its Ethereum account, its libp2p identity and the signer of its statements.

use std::fmt;

use k256::ecdsa::SigningKey;
use tensorlink_proof::commit::sign::{self, SignatureError, address_of};
use tensorlink_types::{Address, B256, ClaimId, keccak256};
use thiserror::Error;
use zeroize::Zeroizing;

/// The bytes are not a secp256k1 secret key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("not a secp256k1 secret key: it must be 32 bytes between 1 and the group order")]
pub struct InvalidKey;

/// A node's key. Never printed; wiped from memory when dropped.
#[derive(Clone)]
pub struct Identity {
    key: SigningKey,
    address: Address,
}

impl Identity {
    /// Takes a secret key.
    ///
    /// # Errors
    /// [`InvalidKey`] if it is zero or not below the group order.
    pub fn new(secret: &[u8; 32]) -> Result<Self, InvalidKey> {
        let key = SigningKey::from_slice(secret).map_err(|_| InvalidKey)?;
        let address = address_of(&key);
        Ok(Self { key, address })
    }

    /// The Ethereum address.
    pub const fn address(&self) -> Address {
        self.address
    }

    /// The secret bytes, for the adapters that need the key in their own form.
    pub fn secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.key.to_bytes().into())
    }

    /// Signs a digest (rule C-9): `r ‖ s ‖ v`, low `s`.
    ///
    /// # Errors
    /// When the curve arithmetic fails, which a valid key and digest do not cause.
    pub fn sign(&self, digest: B256) -> Result<[u8; 65], SignatureError> {
        sign::sign(&self.key, digest)
    }

    /// A secret of this key about a claim, for one purpose: its signature, which nobody else can make and which needs
    /// no disk.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub fn salt(&self, purpose: &str, claim: ClaimId) -> Result<B256, SignatureError> {
        let ticket = keccak256([purpose.as_bytes(), claim.0.as_slice()].concat());
        Ok(keccak256(self.sign(ticket)?))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.address)
    }
}
