"""Checks that the contracts' interfaces are documented.

    natspec.py [FILE...]    by default those in contracts/interfaces and contracts/types

Every function, event and error has a `@notice`, a `@param` for each parameter and, if a function, a `@return` for each
return value, named where the value is; no `@param` or `@return` is about nothing. Every field of a struct has a comment
above it. `script/bindings --check` runs this.
"""

import pathlib
import re
import sys
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECLARATION = re.compile(r"\s*(function|event|error|struct) (\w+)")
RETURNS = re.compile(r"\)[^()]*\breturns\s*\(")


@dataclass
class Declaration:
    kind: str
    name: str
    line: int
    docs: list[str]
    text: str = ""
    fields: list[tuple[int, str, bool]] = field(default_factory=list)


def declarations(source: str) -> list[Declaration]:
    """What a file declares, each with the NatSpec lines above it."""
    found: list[Declaration] = []
    docs: list[str] = []
    open_: Declaration | None = None
    for number, raw in enumerate(source.split("\n"), 1):
        line = raw.strip()
        if line.startswith("///"):
            docs.append(line.removeprefix("///").strip())
            continue
        if line.startswith("//"):
            continue
        if open_ is None and (match := DECLARATION.match(raw)):
            open_ = Declaration(match[1], match[2], number, docs)
            found.append(open_)
            raw = raw[match.end() :]
            if open_.kind == "struct":
                docs = []
                continue
        if open_ is None:
            docs = []
        elif open_.kind != "struct":
            open_.text += raw + " "
            if line.endswith(";"):
                open_ = None
        elif line == "}":
            open_ = None
        elif line:
            open_.fields.append((number, line.rstrip(";").split()[-1], any(docs)))
        docs = []
    return found


def names(parameters: str) -> list[str]:
    """Names of a list of parameters; empty for one that has none."""
    parameters = parameters.strip()
    if not parameters:
        return []
    words = [parameter.split() for parameter in parameters.split(",")]
    modifiers = {"calldata", "memory", "storage", "indexed", "payable"}
    return [word[-1] if len(word) > 1 and word[-1] not in modifiers else "" for word in words]


def signature(text: str) -> tuple[list[str], list[str]]:
    """Names of a declaration's parameters and of its return values."""
    start = text.index("(")
    parameters = text[start + 1 : text.index(")", start)]
    match = RETURNS.search(text)
    returned = text[match.end() : text.index(")", match.end())] if match else ""
    return names(parameters), names(returned)


def tags(docs: list[str]) -> list[tuple[str, str]]:
    """Tags of a comment with their texts."""
    found: list[tuple[str, str]] = []
    for line in docs:
        if match := re.match(r"@(\w+)\s*(.*)", line):
            found.append((match[1], match[2]))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line}".strip())
        elif line:
            found.append(("notice", line))
    return found


def faults(declaration: Declaration) -> list[tuple[int, str]]:
    """Lines, and what is missing there."""
    what = f"{declaration.kind} {declaration.name}"
    if declaration.kind == "struct":
        lacking = [(line, name) for line, name, documented in declaration.fields if not documented]
        return [(line, f"{what} lacks a comment above {name}") for line, name in lacking]

    parameters, returned = signature(declaration.text)
    found = tags(declaration.docs)
    lacks = []
    if not any(tag == "notice" and text for tag, text in found):
        lacks.append("@notice")
    described = [text.split(" ", 1) for tag, text in found if tag == "param"]
    for name in parameters:
        if not any(words[0] == name and len(words) > 1 for words in described):
            lacks.append(f"@param {name}".rstrip())
    results = [text for tag, text in found if tag == "return"]
    for i, name in enumerate(returned):
        text = results[i] if i < len(results) else ""
        if not text or (name and not text.startswith(name + " ")):
            lacks.append(f"@return {name}".rstrip())
    wrong = [(declaration.line, f"{what} lacks {tag}") for tag in lacks]
    for words in described:
        if words[0] not in parameters:
            wrong.append((declaration.line, f"{what} has no parameter {words[0]}"))
    if len(results) > len(returned):
        wrong.append((declaration.line, f"{what} has a @return too many"))
    return wrong


def main() -> None:
    folders = ("contracts/interfaces", "contracts/types")
    files = [pathlib.Path(name) for name in sys.argv[1:]] or [
        path for folder in folders for path in sorted((ROOT / folder).rglob("*.sol"))
    ]
    total = failed = 0
    for path in files:
        for declaration in declarations(path.read_text()):
            total += 1
            for line, message in faults(declaration):
                name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
                print(f"{name}:{line}: {message}")
                failed += 1
    if not total:
        sys.exit("no declarations found")
    if failed:
        sys.exit(f"{failed} gaps in {total} declarations")


if __name__ == "__main__":
    main()
