// Writes what mirrors contracts/types/Parameters.sol, field by field: the immutables of Staking, the reader of the
// files in deploy, the agents' struct, what turns one into the other, and the table of the specification. A field's
// comment gives its unit, and with it its key in the files. Run by script/bindings, from the root of the repository.
import { readFileSync } from "node:fs";

import { table } from "./parameter-table.mjs";
import { between, every, report, stale } from "./write-fresh.mjs";

const SOURCE = "contracts/types/Parameters.sol";
const SPECIFICATION = "contracts/SPEC.md";
const WRITTEN = `Written by script/bindings from \`${SOURCE}\`.`;

function fields() {
  const body = readFileSync(SOURCE, "utf8").split("struct Parameters {")[1].split("\n}")[0];
  const all = [...body.matchAll(/((?: {4}\/\/\/ .*\n)+) {4}uint(\d+) (\w+);/g)];
  every(SOURCE, body, all);
  return all.map(([, comment, bits, name]) => {
    const doc = comment.trim().split("\n").map((line) => line.trim().slice("/// ".length));
    const unit = doc.join(" ").match(/seconds|blocks|wei of SNO/i)?.[0].toLowerCase();
    const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const key = snake + ({ seconds: "_seconds", "wei of sno": "_sno" }[unit] ?? "");
    return { doc, bits: Number(bits), name, unit, snake, key };
  });
}

// Numbers of Rust's that hold a field; times and blocks have 64 bits wherever agents compute with them.
const plain = ({ bits }) => `u${Math.max(16, 2 ** Math.ceil(Math.log2(bits)))}`;
const held = (field) => (["seconds", "blocks"].includes(field.unit) ? "u64" : plain(field));
const inFile = ({ unit, ...field }) => (unit === "wei of sno" ? "u64" : field.bits === 40 ? "u32" : plain(field));

const lines = (each) => fields().map(each).join("\n");

const immutables = () => `// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../interfaces/IStaking.sol";
import {Parameters} from "../../types/Parameters.sol";

/// @title The deployment's parameters, fixed
/// @dev ${WRITTEN}
abstract contract FixedParameters is IStaking {
${lines(({ bits, snake }) => `    uint${bits} internal immutable _${snake.toUpperCase()};`)}

    constructor(Parameters memory p) {
${lines(({ name, snake }) => `        _${snake.toUpperCase()} = p.${name};`)}
    }

    /// @inheritdoc IStaking
    function parameters() external view returns (Parameters memory) {
        return Parameters({
${fields().map(({ name, snake }) => `            ${name}: _${snake.toUpperCase()}`).join(",\n")}
        });
    }
}
`;

const value = ({ bits, key, unit }) =>
  `uint${bits}(${unit === "wei of sno" ? "_sno" : "_bounded"}(toml, ".${key}", type(uint${bits}).max))`;

const file = () => `// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {stdToml} from "forge-std/StdToml.sol";

import {Parameters} from "../contracts/types/Parameters.sol";

/// @title A file of parameters: \`deploy/parameters.toml\`
/// @dev ${WRITTEN}
library ParametersFile {
    using stdToml for string;

    error ParameterTooLarge(string key, uint256 value);

    /// @notice Parameters as a TOML file gives them.
    function parse(string memory toml) internal pure returns (Parameters memory p) {
${lines((field) => `        p.${field.name} = ${value(field)};`)}
    }

    /// @dev Wei, of whole SNO.
    function _sno(string memory toml, string memory key, uint256 limit) private pure returns (uint256) {
        return _bounded(toml, key, limit / 1 ether) * 1 ether;
    }

    function _bounded(string memory toml, string memory key, uint256 limit) private pure returns (uint256 value) {
        value = toml.readUint(key);
        // INVARIANT: a slip in the file is not cut to size in silence.
        if (value > limit) revert ParameterTooLarge(key, value);
    }
}
`;

const documented = (field) =>
  [...field.doc.map((line) => `    /// ${line}`), `    pub ${field.snake}: ${held(field)},`].join("\n");

const struct = () => `//! Parameters of a deployment.
//! ${WRITTEN}

use serde::{Deserialize, Serialize};

/// Parameters fixed at deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
${lines(documented)}
}
`;

const seen = (field) => {
  const { bits, name } = field;
  if (bits === 40) return `p.${name}.to()`;
  return held(field) === `u${bits}` ? `p.${name}` : `p.${name}.into()`;
};

const onChain = ({ bits, key, unit }) => {
  if (unit === "wei of sno") return `u128::from(file.${key}) * SNO`;
  return bits === 40 ? `U40::from(file.${key})` : `file.${key}`;
};

const conversions = () => `//! Parameters as the contracts return them, and as the files in \`deploy\` give them.
//! ${WRITTEN}

use alloy::primitives::aliases::U40;
use serde::Deserialize;
use tensorlink_bindings::staking::Staking;
use tensorlink_node::ports::chain::Parameters;

/// Wei of one SNO.
const SNO: u128 = 10u128.pow(18);

/// A file of parameters.
#[derive(Deserialize)]
pub(crate) struct File {
${lines((field) => `    ${field.key}: ${inFile(field)},`)}
}

/// As the agents know them.
pub(crate) fn seen(p: &Staking::Parameters) -> Parameters {
    Parameters {
${lines((field) => `        ${field.snake}: ${seen(field)},`)}
    }
}

/// As the contracts take them.
pub(crate) fn on_chain(file: &File) -> Staking::Parameters {
    Staking::Parameters {
${lines((field) => `        ${field.name}: ${onChain(field)},`)}
    }
}
`;

const mirrors = new Map([
  ["contracts/core/staking/FixedParameters.sol", immutables()],
  ["script/ParametersFile.sol", file()],
  ["agents/node/src/ports/parameters.rs", struct()],
  ["agents/chain/src/parameters.rs", conversions()],
  [SPECIFICATION, between(SPECIFICATION, "parameters", table(fields()))],
]);
const check = process.argv.includes("--check");
report("parameters", stale(mirrors, check), check);
