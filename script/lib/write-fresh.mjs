// Writes files whose text has changed, or, to check, says which would be.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

function current(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** The files, by their texts, that are not as they should be; written unless `check`. */
export function stale(files, check) {
  const changed = [...files].filter(([path, text]) => current(path) !== text);
  for (const [path, text] of check ? [] : changed) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return changed.map(([path]) => path);
}

/** A file's text with these lines between its comments `<!-- what: ... -->` and `<!-- /what -->`. */
export function between(path, what, lines) {
  const marked = new RegExp(`^(<!-- ${what}: .*-->\n)[^]*?^(<!-- /${what} -->\n)`, "m");
  const text = readFileSync(path, "utf8");
  if (!marked.test(text)) {
    console.error(`error: ${path} has not both the comments <!-- ${what}: ... --> and <!-- /${what} -->`);
    process.exit(1);
  }
  return text.replace(marked, (_, begin, end) => begin + lines + end);
}

/** Ends the process where not every field of a struct was read: each needs a comment, and a type that is known here. */
export function every(where, body, read) {
  const written = body.replace(/\/\/.*/g, "").split(";").length - 1;
  if (written === read.length) return;
  console.error(`error: ${where} has ${written} fields, of which ${read.length} have a comment and a known type`);
  process.exit(1);
}

/** Says what was written, or ends the process where a file is stale that should not be. */
export function report(what, paths, check) {
  if (check && paths.length > 0) {
    console.error(`error: not as ${what} are: ${paths.join(", ")}; run script/bindings`);
    process.exit(1);
  }
  console.log(paths.length === 0 ? `${what}: fresh` : `${what}: wrote ${paths.join(", ")}`);
}
