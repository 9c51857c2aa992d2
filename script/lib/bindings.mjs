// Trims forge's artifacts to what bindings/src/lib.rs takes in. Run by script/bindings, from the root of
// the repository.
import { readFileSync, readdirSync, rmSync } from "node:fs";

import { report, stale } from "./write-fresh.mjs";

const CONTRACTS = ["SNO", "Staking", "Jobs", "Checkpoints", "Channels", "Disputes", "Challenges", "Custody", "Audits", "Beacon", "StepVerifier"];
const FOLDER = "bindings/abi";
const check = process.argv.includes("--check");

// An enum that stands in no contract appears as its number: alloy defines it in one contract's scope, where the structs
// of others do not find it.
function plain(key, value) {
  return key === "internalType" && /^enum \w+$/.test(value) ? "uint8" : value;
}

function trimmed(name) {
  const { abi, bytecode, deployedBytecode } = JSON.parse(readFileSync(`out/${name}.sol/${name}.json`, "utf8"), plain);
  if (Object.keys(bytecode.linkReferences).length > 0) throw new Error(`${name} must be linked with a library`);
  // One entry a line, so that a change of the interface shows in a diff.
  const entries = abi.map((entry) => `    ${JSON.stringify(entry)}`).join(",\n");
  const code = [`"bytecode": "${bytecode.object}"`, `"deployedBytecode": "${deployedBytecode.object}"`];
  return `{\n  "abi": [\n${entries}\n  ],\n  ${code.join(",\n  ")}\n}\n`;
}

const files = new Map(CONTRACTS.map((name) => [`${FOLDER}/${name}.json`, trimmed(name)]));
const strays = readdirSync(FOLDER).map((file) => `${FOLDER}/${file}`).filter((path) => !files.has(path));
const changed = stale(files, check);
if (!check) strays.forEach((path) => rmSync(path));
report("bindings", [...changed, ...strays], check);
