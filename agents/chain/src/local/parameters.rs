//! The parameters of `deploy/local-parameters.toml`, which is part of the program: a local chain needs no checkout.

use tensorlink_bindings::creation::Parameters;

use super::LocalError;
use crate::parameters::on_chain;

const FILE: &str = include_str!("../../../../deploy/local-parameters.toml");

/// As the contracts take them; who gets the first SNO is the caller's choice.
pub(super) fn parameters() -> Result<Parameters, LocalError> {
    let file = toml::from_str(FILE).map_err(|error| LocalError::Parameters(error.to_string()))?;
    Ok(on_chain(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_in_the_program_is_read() {
        let parameters = parameters().unwrap();
        assert_eq!(parameters.validatorCollateral.to_string(), "10000000000000000000000");
        assert!(parameters.minChallengeWindow <= parameters.maxChallengeWindow);
    }
}
