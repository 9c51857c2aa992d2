// Writes what mirrors Solidity's types: the structs that agents share with the contracts, and the numbers of operators.
// Run by script/bindings, from the root of the repository.
import { readFileSync } from "node:fs";

import { every, report, stale } from "./write-fresh.mjs";

const FOLDER = "contracts/types";
const SOURCES = ["Types", "Audit", "Challenge", "Custody"].map((name) => `${FOLDER}/${name}.sol`);
const OPERATORS = "agents/types/src/operator.rs";
const COLUMNS = 120;

const text = SOURCES.map((path) => readFileSync(path, "utf8")).join("\n");
// A type by another name, and an enum, are the numbers that they are on the wire.
const numbers = new Map([
  ...[...text.matchAll(/^type (\w+) is (\w+);/gm)].map(([, name, of]) => [name, of]),
  ...[...text.matchAll(/^enum (\w+) /gm)].map(([, name]) => [name, "uint8"]),
]);

// A comment as Rust has it, of lines as long as they may be.
function comment(solidity, indent) {
  const words = solidity.replace(/^\s*\/\/\/ ?(@dev )?/gm, "").split(/\s+/).filter(Boolean);
  const lines = [`${indent}///`];
  for (const word of words) {
    if (lines.at(-1).length + 1 + word.length > COLUMNS) lines.push(`${indent}///`);
    lines[lines.length - 1] += ` ${word}`;
  }
  return lines.join("\n");
}

function struct([, doc, name, body]) {
  const all = [...body.matchAll(/((?:\s*\/\/\/ .*\n)+)\s*(\w+)((?:\[\])?) (\w+);/g)];
  every(name, body, all);
  const fields = all.map(
    ([, doc, type, array, field]) =>
      `${comment(doc, "        ")}\n        ${numbers.get(type) ?? type}${array} ${field};`,
  );
  const derives = "    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]";
  return `${comment(doc, "    ")}\n${derives}\n    struct ${name} {\n${fields.join("\n")}\n    }`;
}

const structs = () => `//! The structs that are shared with Solidity.
//! Written by script/bindings from \`${FOLDER}\`. An enum is its number here.

use alloy_sol_types::sol;

sol! {
${[...text.matchAll(/((?:^\/\/\/ .*\n)+)struct (\w+) \{\n([^}]*)\}/gm)].map(struct).join("\n\n")}
}
`;

function opcodes() {
  const table = readFileSync(OPERATORS, "utf8").split("\nopcodes! {")[1].split("\n}")[0];
  const constants = [...table.matchAll(/^ {4}(\w+) = (\d+),/gm)].map(([, name, number]) => {
    const upper = name.replace(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
    return `    uint8 internal constant ${upper} = ${number};`;
  });
  return `// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Numbers of the operators
/// @notice Rule N-(opcode + 10) of \`agents/num/SPEC.md\`. 0 is invalid.
/// @dev Written by script/bindings from \`${OPERATORS}\`.
library Opcodes {
${constants.join("\n")}
}
`;
}

const mirrors = new Map([
  ["agents/types/src/abi/structs.rs", structs()],
  ["contracts/libraries/operators/Opcodes.sol", opcodes()],
]);
const check = process.argv.includes("--check");
report("types", stale(mirrors, check), check);
