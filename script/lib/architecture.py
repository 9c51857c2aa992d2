#!/usr/bin/env python3
"""Checks how the code is cut, as ARCHITECTURE.md says it.

Crates use each other along the arrows below only, and no files of a crate use each other in a circle, but for a module
and what it is the parent of, to any depth. Tests are not looked at, nor is what a module only passes on (`pub use`).
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What a crate may use: crates named before it. `of` is the crate with all that it may use itself.
ARROWS: dict[str, set[str]] = {}


def of(*crates: str) -> set[str]:
    return set(crates).union(*(ARROWS[crate] for crate in crates))


ARROWS["types"] = set()
ARROWS["num"] = of("types")
ARROWS["program"] = of("num")
ARROWS["model"] = of("program")
ARROWS["training"] = of("model")
ARROWS["proof"] = of("num")
ARROWS["tensor"] = of("training")
ARROWS["draws"] = set()
ARROWS["economics"] = of("draws")
ARROWS["placement"] = of("draws")
ARROWS["node"] = of("training", "proof", "placement")
ARROWS["bindings"] = set()
ARROWS["chain"] = of("node", "bindings")
for crate in ("net", "store", "user", "worker", "validator", "folder"):
    ARROWS[crate] = of("node")
ARROWS["native"] = of("node") - {"proof"}
ARROWS["gateway"] = of("user") - {"proof"}
ARROWS["bench"] = of("net", "store", "user", "worker", "native", "folder", "tensor")
ARROWS["cli"] = of("chain", "validator", "gateway", "bench") - {"bindings"}

Module = tuple[str, ...]


def wrong_arrows() -> list[str]:
    """Packages of ours that use what they may not; those that are for tests only may use anything."""
    command = ["cargo", "metadata", "--format-version=1", "--no-deps", "--offline"]
    read = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    # By folder: the package of `agents/cli` is `tensorlink`.
    folders = {package["name"]: Path(package["manifest_path"]).parent for package in read["packages"]}
    found = []
    for package in read["packages"]:
        folder = folders[package["name"]]
        if folder.parent.name == "tests":
            continue
        if folder.name not in ARROWS:
            found.append(f"{folder.name} has no arrows: say in {Path(__file__).name} what it may use")
            continue
        for dependency in package["dependencies"]:
            used = folders.get(dependency["name"])
            if dependency["kind"] is None and used and used.name not in ARROWS[folder.name]:
                found.append(f"{folder.name} uses {used.name}")
    return found


def modules(source: Path) -> dict[Module, Path]:
    """The file of every module of a crate, by its path."""
    found: dict[Module, Path] = {}

    def visit(file: Path, path: Module, folder: Path) -> None:
        found[path] = file
        for name in re.findall(r"^\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", file.read_text(), re.M):
            candidates = (folder / f"{name}.rs", folder / name / "mod.rs")
            for candidate in filter(Path.exists, candidates):
                if name != "tests":
                    visit(candidate, (*path, name), folder / name)

    visit(source / "lib.rs", (), source)
    return found


def spread(body: str, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """`a::{b, c::d}` as paths."""
    found, depth, item = [], 0, ""
    for letter in body + ",":
        if letter != "," or depth:
            depth += (letter == "{") - (letter == "}")
            item += letter
            continue
        item = item.strip()
        group = re.fullmatch(r"((?:\w+::)*)\{(.*)\}", item, re.S)
        if group:
            found += spread(group[2], (*prefix, *group[1].split("::")[:-1]))
        elif item:
            found.append((*prefix, *(part.split(" as ")[0].strip() for part in item.split("::"))))
        item = ""
    return found


def paths(text: str) -> list[tuple[str, ...]]:
    """Every path that a file names within its crate."""
    text = re.split(r"\n#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{", text)[0]
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"\bpub(?:\([^)]*\))? use [^;]+;", "", text)
    named = [path for body in re.findall(r"\buse ([^;]+);", text) for path in spread(body)]
    text = re.sub(r"\buse [^;]+;", "", text)
    return named + [tuple(path.split("::")) for path in re.findall(r"\b(?:crate|super|self)(?:::\w+)+", text)]


def resolved(path: tuple[str, ...], within: Module, known: dict[Module, Path]) -> Module | None:
    """The module that a path leads into; none outside of the crate."""
    if path[0] == "crate":
        target = path[1:]
    elif path[0] in ("self", "super"):
        base, rest = within, path
        while rest and rest[0] in ("self", "super"):
            base, rest = (base[:-1] if rest[0] == "super" else base), rest[1:]
        target = base + rest
    elif (*within, path[0]) in known:
        target = within + path
    else:
        return None
    while target not in known:
        target = target[:-1]
    return target


def circles(source: Path) -> list[list[Module]]:
    """Modules that use each other in circles (strongly connected; Tarjan 1972), parents and children apart."""
    known = modules(source)
    uses: dict[Module, set[Module]] = {}
    for module, file in known.items():
        targets = {resolved(path, module, known) for path in paths(file.read_text())} - {None}
        uses[module] = {t for t in targets if t != module[: len(t)] and module != t[: len(module)]}
    number: dict[Module, int] = {}
    lowest: dict[Module, int] = {}
    stack: list[Module] = []
    found = []

    def visit(module: Module) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for used in uses[module]:
            if used not in number:
                visit(used)
            if used in stack:
                lowest[module] = min(lowest[module], lowest[used])
        if lowest[module] == number[module]:
            at = stack.index(module)
            circle, stack[at:] = stack[at:], []
            if len(circle) > 1:
                found.append(circle)

    for module in known:
        if module not in number:
            visit(module)
    return [
        [f"{'::'.join(m)} -> {', '.join(sorted('::'.join(u) for u in uses[m] & set(circle)))}" for m in sorted(circle)]
        for circle in found
    ]


def main() -> None:
    sys.setrecursionlimit(10_000)
    found = wrong_arrows()
    for library in sorted(ROOT.glob("agents/*/src/lib.rs")):
        for circle in circles(library.parent):
            found.append(f"a circle in agents/{library.parts[-3]}: " + "; ".join(circle))
    print("\n".join(found) or "crates follow the arrows, and no files stand in a circle")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
