//! One secp256k1 key is the Ethereum account and the libp2p identity.
//!
//! The PeerId of such a key carries the public key itself (multihash `identity`), so the address of whoever completed
//! the handshake follows from the PeerId alone. The other direction needs `directory`.

use libp2p::identity::{Keypair, PublicKey, secp256k1};
use libp2p::multihash::Multihash;
use libp2p::{Multiaddr, PeerId, multiaddr};
use tensorlink_types::Address;
use thiserror::Error;

/// Multihash code of `identity`: the digest is the message.
const IDENTITY_HASH: u64 = 0;

/// Why a key or a PeerId names nobody.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum IdentityError {
    /// The 32 bytes are zero or not below the order of the curve. Give another key.
    #[error("the secret is not a secp256k1 key: it must be between 1 and the order of the curve")]
    Secret,
    /// The PeerId belongs to another kind of key, which no Ethereum account can have.
    #[error("peer {0} has no secp256k1 key, so no Ethereum address")]
    Kind(PeerId),
}

/// The key of this node.
#[derive(Clone)]
pub struct Identity {
    keypair: Keypair,
    address: Address,
}

// The secret stays out of logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Identity {
    /// Takes the 32 big-endian bytes of an Ethereum secret key, which are wiped.
    pub fn from_secret(mut secret: [u8; 32]) -> Result<Self, IdentityError> {
        let key = secp256k1::SecretKey::try_from_bytes(&mut secret).map_err(|_| IdentityError::Secret)?;
        let pair = secp256k1::Keypair::from(key);
        Ok(Self { address: address_of_key(pair.public()), keypair: pair.into() })
    }

    /// The Ethereum address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// The libp2p name.
    pub fn peer_id(&self) -> PeerId {
        self.keypair.public().to_peer_id()
    }

    pub(crate) fn keypair(&self) -> &Keypair {
        &self.keypair
    }
}

fn address_of_key(key: &secp256k1::PublicKey) -> Address {
    // SEC1 uncompressed: 0x04, then the 64 bytes that Ethereum hashes.
    Address::from_raw_public_key(&key.to_bytes_uncompressed()[1..])
}

/// The Ethereum address whose key a PeerId carries.
pub fn address_of(peer: &PeerId) -> Result<Address, IdentityError> {
    let hash: &Multihash<64> = peer.as_ref();
    if hash.code() != IDENTITY_HASH {
        return Err(IdentityError::Kind(*peer));
    }
    let key = PublicKey::try_decode_protobuf(hash.digest()).map_err(|_| IdentityError::Kind(*peer))?;
    let key = key.try_into_secp256k1().map_err(|_| IdentityError::Kind(*peer))?;
    Ok(address_of_key(&key))
}

/// The PeerId at the end of `/…/p2p/<id>`.
pub(crate) fn peer_in(address: &Multiaddr) -> Option<PeerId> {
    match address.iter().last() {
        Some(multiaddr::Protocol::P2p(peer)) => Some(peer),
        _ => None,
    }
}

/// The Ethereum address of who is at the end of `/…/p2p/<id>`; none without an id, or for one of another kind of key.
pub fn address_in(address: &Multiaddr) -> Option<Address> {
    address_of(&peer_in(address)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_anvil_account_keeps_its_address_through_the_peer_id() {
        // The well-known development key; its address is in anvil's banner.
        let secret = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
        let bytes: Vec<u8> = (0..32).map(|i| u8::from_str_radix(&secret[2 * i..2 * i + 2], 16).unwrap()).collect();
        let identity = Identity::from_secret(bytes.try_into().unwrap()).unwrap();
        let expected: Address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap();
        assert_eq!(identity.address(), expected);
        assert_eq!(address_of(&identity.peer_id()), Ok(expected));
        assert!(identity.peer_id().to_base58().starts_with("16Uiu2"));
        let at: Multiaddr = format!("/ip4/127.0.0.1/tcp/1/p2p/{}", identity.peer_id()).parse().unwrap();
        assert_eq!(address_in(&at), Some(expected));
        assert_eq!(address_in(&"/ip4/127.0.0.1/tcp/1".parse().unwrap()), None);
    }

    #[test]
    fn other_keys_have_no_address() {
        let ed = Keypair::generate_ed25519().public().to_peer_id();
        assert_eq!(address_of(&ed), Err(IdentityError::Kind(ed)));
        assert_eq!(Identity::from_secret([0; 32]).err(), Some(IdentityError::Secret));
        assert_eq!(Identity::from_secret([0xff; 32]).err(), Some(IdentityError::Secret));
        assert!(address_of(&PeerId::random()).is_err());
    }
}
