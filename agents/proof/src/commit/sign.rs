//! Signatures (C-9): 65 bytes `r ‖ s ‖ v`, low `s`, `v` 27 or 28.

use alloy_primitives::{Address, B256, Signature};
use k256::ecdsa::SigningKey;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, SECP256K1};
use thiserror::Error;

/// Length of a signature.
pub const SIGNATURE_BYTES: usize = 65;

/// Why a signature was refused. Refuse the message that it came with.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SignatureError {
    /// Not [`SIGNATURE_BYTES`] bytes.
    #[error("a signature of {0} bytes, not {SIGNATURE_BYTES}")]
    Length(usize),
    /// `v` is neither 27 nor 28.
    #[error("v is {0}, neither 27 nor 28")]
    Parity(u8),
    /// `s` is in the upper half: the other of two valid forms, which the contracts refuse.
    #[error("s is not the lower of its two values")]
    HighS,
    /// No key can have made it.
    #[error("r and s are no signature")]
    Invalid,
    /// The key could not sign this digest.
    #[error("the key cannot sign this digest")]
    Unsignable,
    /// Somebody else signed.
    #[error("signed by {actual}, not by {expected}")]
    Signer {
        /// Who should have signed.
        expected: Address,
        /// Who did.
        actual: Address,
    },
}

/// Signs a digest (RFC 6979, so the same key and digest give the same bytes).
///
/// # Errors
/// [`SignatureError::Unsignable`], with a probability that never occurs.
pub fn sign(key: &SigningKey, digest: B256) -> Result<[u8; SIGNATURE_BYTES], SignatureError> {
    let signed = key.sign_prehash_recoverable(digest.as_slice()).map_err(|_| SignatureError::Unsignable)?;
    // k256 has normalised s, and the parity with it.
    Ok(Signature::from(signed).as_bytes())
}

/// Address of a key.
pub fn address_of(key: &SigningKey) -> Address {
    Address::from_private_key(key)
}

/// Who signed a digest.
///
/// # Errors
/// [`SignatureError`] for everything that the contracts refuse as well.
pub fn recover(signature: &[u8], digest: B256) -> Result<Address, SignatureError> {
    let bytes: &[u8; SIGNATURE_BYTES] = signature.try_into().map_err(|_| SignatureError::Length(signature.len()))?;
    let [r_and_s @ .., v] = bytes;
    let parity = match v {
        27 => RecoveryId::Zero,
        28 => RecoveryId::One,
        _ => return Err(SignatureError::Parity(*v)),
    };
    let signature = RecoverableSignature::from_compact(r_and_s, parity).map_err(|_| SignatureError::Invalid)?;
    let standard = signature.to_standard();
    let mut normalised = standard;
    normalised.normalize_s();
    if normalised != standard {
        return Err(SignatureError::HighS);
    }
    let key =
        SECP256K1.recover_ecdsa(Message::from_digest(digest.0), &signature).map_err(|_| SignatureError::Invalid)?;
    Ok(Address::from_raw_public_key(&key.serialize_uncompressed()[1..]))
}

/// Checks that `signer` signed a digest.
///
/// # Errors
/// As [`recover`], and [`SignatureError::Signer`].
pub fn verify_signer(signature: &[u8], digest: B256, expected: Address) -> Result<(), SignatureError> {
    let actual = recover(signature, digest)?;
    if actual == expected { Ok(()) } else { Err(SignatureError::Signer { expected, actual }) }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{U256, uint};

    use super::*;

    /// Order of the secp256k1 group.
    const ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

    #[test]
    fn recovers_its_signer_for_any_key_and_digest() {
        for i in 1..=32u8 {
            let key = SigningKey::from_slice(&[i; 32]).unwrap();
            let digest = B256::repeat_byte(i.wrapping_mul(37));
            let signature = sign(&key, digest).unwrap();
            assert!(matches!(signature[64], 27 | 28));
            assert_eq!(recover(&signature, digest), Ok(address_of(&key)));
            verify_signer(&signature, digest, address_of(&key)).unwrap();
        }
    }

    #[test]
    fn refuses_the_second_form_of_a_signature() {
        let key = SigningKey::from_slice(&[7; 32]).unwrap();
        let mut signature = sign(&key, B256::ZERO).unwrap();
        let high = ORDER - U256::from_be_slice(&signature[32..64]);
        signature[32..64].copy_from_slice(&high.to_be_bytes::<32>());
        signature[64] ^= 27 ^ 28;
        assert_eq!(recover(&signature, B256::ZERO), Err(SignatureError::HighS));
    }

    #[test]
    fn refuses_other_encodings() {
        let key = SigningKey::from_slice(&[7; 32]).unwrap();
        let good = sign(&key, B256::ZERO).unwrap();
        assert_eq!(recover(&good[..64], B256::ZERO), Err(SignatureError::Length(64)));
        for v in [0, 1, 26, 29, 35] {
            let mut signature = good;
            signature[64] = v;
            assert_eq!(recover(&signature, B256::ZERO), Err(SignatureError::Parity(v)));
        }
        let mut zero = [0; 65];
        zero[64] = 27;
        assert_eq!(recover(&zero, B256::ZERO), Err(SignatureError::Invalid));
        let other = Address::repeat_byte(1);
        assert!(matches!(verify_signer(&good, B256::ZERO, other), Err(SignatureError::Signer { .. })));
    }

    #[test]
    fn any_flipped_byte_names_another_signer_or_none() {
        let key = SigningKey::from_slice(&[9; 32]).unwrap();
        let digest = B256::repeat_byte(3);
        let good = sign(&key, digest).unwrap();
        for at in 0..65 {
            for flip in [1, 0x80] {
                let mut bad = good;
                bad[at] ^= flip;
                assert!(verify_signer(&bad, digest, address_of(&key)).is_err(), "byte {at}");
            }
        }
    }
}
