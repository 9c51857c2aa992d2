// Trims forge's artifacts to what bindings/src/lib.rs takes in. Run by script/bindings, from the root of
// the repository.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";

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

function current(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

mkdirSync(FOLDER, { recursive: true });
const files = new Map(CONTRACTS.map((name) => [`${name}.json`, trimmed(name)]));
const strays = readdirSync(FOLDER).filter((file) => !files.has(file));
const stale = [...files].filter(([file, text]) => current(`${FOLDER}/${file}`) !== text).map(([file]) => file);

if (check && stale.length + strays.length > 0) {
  console.error(`error: ${FOLDER} does not fit the contracts (${[...stale, ...strays].join(", ")}): run script/bindings`);
  process.exit(1);
}
if (!check) {
  for (const file of strays) rmSync(`${FOLDER}/${file}`);
  for (const file of stale) writeFileSync(`${FOLDER}/${file}`, files.get(file));
}
console.log(check || stale.length === 0 ? "bindings: fresh" : `bindings: wrote ${stale.join(", ")}`);
