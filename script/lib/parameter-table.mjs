// The table of the contracts' parameters: what each is, as its comment says, its value in the files of deploy, and its
// bound, which is the part of the comment after "Bound:".
import { readFileSync } from "node:fs";

const FILES = ["deploy/parameters.toml", "deploy/local-parameters.toml"];
const SPANS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

function values(path) {
  const all = readFileSync(path, "utf8").matchAll(/^(\w+) = ([\d_]+)/gm);
  return new Map([...all].map(([, key, value]) => [key, Number(value.replaceAll("_", ""))]));
}

const grouped = (number) => number.toLocaleString("en-US");

// In the longest unit of which it is a whole number.
function span(seconds) {
  const [name, length] = SPANS.find(([, length]) => seconds % length === 0) ?? ["s", 1];
  const count = seconds / length;
  return `${grouped(count)} ${name}${length > 1 && count !== 1 ? "s" : ""}`;
}

function shown({ key, unit }, path, file) {
  if (!file.has(key)) {
    console.error(`error: ${path} lacks ${key}`);
    process.exit(1);
  }
  const value = file.get(key);
  if (unit === "seconds") return span(value);
  return grouped(value) + (unit === "wei of sno" ? " SNO" : "");
}

/** Its lines, of fields as parameters.mjs reads them. */
export function table(fields) {
  const files = FILES.map((path) => [path, values(path)]);
  const row = (field) => {
    const [what, bound = ""] = field.doc.join(" ").split(" Bound: ");
    const cells = [what, ...files.map(([path, file]) => shown(field, path, file)), bound];
    return `| ${[field.name, ...cells].map((cell) => cell.replace(/\.$/, "")).join(" | ")} |\n`;
  };
  return `| name | what | default | local chains | bound |\n|---|---|---|---|---|\n${fields.map(row).join("")}`;
}
