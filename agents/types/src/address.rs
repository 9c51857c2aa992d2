//! Addresses as people type them.

use alloy_primitives::{Address, AddressError};
use thiserror::Error;

/// Why a text is not taken for an address.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BadAddress {
    /// It is not `0x` and 40 hexadecimal digits.
    #[error("{0:?} is no address: it must be 0x and 40 hexadecimal digits")]
    Form(String),
    /// Its upper and lower case are not those of its checksum (EIP-55).
    #[error("{0} has a wrong checksum (EIP-55): a digit is mistyped. Copy the address again")]
    Checksum(String),
}

/// Reads an address; its checksum (EIP-55) must be right, unless all letters are of one case, which has none.
///
/// ```
/// use tensorlink_types::address;
///
/// assert!(address::parse("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266").is_ok());
/// assert!(address::parse("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266").is_ok());
/// // The last digit is another.
/// assert!(address::parse("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92267").is_err());
/// ```
///
/// # Errors
/// [`BadAddress`].
pub fn parse(text: &str) -> Result<Address, BadAddress> {
    let form = || BadAddress::Form(text.to_owned());
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).ok_or_else(form)?;
    if digits.len() != 40 {
        return Err(form());
    }
    let address = digits.parse::<Address>().map_err(|_| form())?;
    let has = |case: fn(&char) -> bool| digits.chars().any(|digit| case(&digit));
    if !(has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase)) {
        return Ok(address);
    }
    match Address::parse_checksummed(format!("0x{digits}"), None) {
        Ok(address) => Ok(address),
        Err(AddressError::InvalidChecksum) => Err(BadAddress::Checksum(text.to_owned())),
        Err(AddressError::Hex(_)) => Err(form()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From EIP-55.
    const VALID: [&str; 8] = [
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
        "0xde709f2102306220921060314715629080e2fb77",
        "0x27b1fdb04752bbc536007a920d24acb045561c26",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ];

    #[test]
    fn a_right_checksum_and_none_are_taken() {
        for text in VALID {
            let address = parse(text).unwrap();
            assert_eq!(parse(&text.to_ascii_lowercase()), Ok(address));
            assert_eq!(parse(&text.replacen("0x", "0X", 1)), Ok(address));
            assert_eq!(parse(&format!("0x{}", text[2..].to_ascii_uppercase())), Ok(address));
        }
    }

    #[test]
    fn a_wrong_checksum_and_other_texts_are_refused() {
        for text in &VALID[4..] {
            let at = text.rfind(|digit: char| digit.is_ascii_lowercase()).unwrap();
            let wrong = format!("{}{}{}", &text[..at], text[at..=at].to_ascii_uppercase(), &text[at + 1..]);
            assert_eq!(parse(&wrong), Err(BadAddress::Checksum(wrong.clone())));
        }
        let long = format!("{}0", VALID[0]);
        for text in ["", "0x", "0x12", &VALID[0][2..], &long, "0xde709f2102306220921060314715629080e2fb7g", "name.eth"]
        {
            assert_eq!(parse(text), Err(BadAddress::Form(text.to_owned())));
        }
        let accented = "0xde709f2102306220921060314715629080e2fbé";
        assert_eq!(parse(accented), Err(BadAddress::Form(accented.to_owned())));
    }
}
