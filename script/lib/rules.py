"""Writes docs/src/reference/rules.md: every rule of the specifications in order of number, with a link to its section.

    rules.py            writes the page
    rules.py --check    writes nothing; fails where the page is stale

Both fail on a rule that is defined twice, or cited in a tracked file and defined nowhere. A list item
`- **P-1 title.** text` defines a rule; `P-1` anywhere cites it.
"""

import os
import re
import sys
from dataclasses import dataclass

from repository import ROOT, files

PAGE = ROOT / "docs/src/reference/rules.md"
# Letter, specification, what its rules are about.
FAMILIES = [
    ("P", "contracts/SPEC.md", "Protocol: who may do what, when, and what it costs"),
    ("N", "agents/num/SPEC.md", "Numbers: exact arithmetic and operators"),
    ("C", "agents/proof/SPEC.md", "Commitments: what is hashed and signed"),
]
HEADING = re.compile(r"#{1,6} (.+)")
DEFINITION = re.compile(r"- \*\*([A-Z])-(\d+)(?: ([^*]+?))?\.?\*\*(.*)")
CITATION = re.compile(r"\b([PNC])-(\d+)\b")
INTRODUCTION = """\
# Rules

<!-- Written by script/lib/rules.py from the specifications. -->

Code, tests and test vectors cite the rules of the specifications by these numbers. A number is never given to another
rule.
"""


@dataclass
class Rule:
    family: str
    number: int
    title: str
    specification: str
    section: str
    line: int

    @property
    def name(self) -> str:
        return f"{self.family}-{self.number}"


def plain(markdown: str) -> str:
    """A heading's text."""
    return re.sub(r"[*`]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)).strip()


def anchor(heading: str) -> str:
    """The fragment by which GitHub links to a heading."""
    return re.sub(r"[^\w\- ]", "", plain(heading).lower()).replace(" ", "-")


def rules_of(specification: str) -> list[Rule]:
    found, section = [], ""
    lines = (ROOT / specification).read_text().split("\n")
    for number, line in enumerate(lines, 1):
        if match := HEADING.match(line):
            section = match[1]
        elif match := DEFINITION.match(line):
            title = match[3] or re.split(r"[.:;,](?: |$)", match[4].strip())[0]
            found.append(Rule(match[1], int(match[2]), plain(title), specification, section, number))
    return found


def page(rules: dict[str, Rule]) -> str:
    parts = [INTRODUCTION]
    for family, specification, about in FAMILIES:
        here = os.path.relpath(ROOT / specification, PAGE.parent)
        parts.append(f"\n## {family}: {about}\n\nDefined in [`{specification}`]({here}).\n")
        parts.append("\n| rule | about | section |\n|---|---|---|\n")
        for rule in sorted((rule for rule in rules.values() if rule.family == family), key=lambda rule: rule.number):
            title = rule.title[0].upper() + rule.title[1:]
            parts.append(f"| {rule.name} | {title} | [{plain(rule.section)}]({here}#{anchor(rule.section)}) |\n")
    return "".join(parts)


def citations() -> dict[str, str]:
    """Where each rule is cited first."""
    found: dict[str, str] = {}
    for name in files():
        if name.suffix == ".lock":
            continue
        try:
            text = (ROOT / name).read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for match in CITATION.finditer(line):
                found.setdefault(match[0], f"{name}:{number}")
    return found


def main() -> None:
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: rules.py [--check]")
    errors: list[str] = []
    rules: dict[str, Rule] = {}
    for family, specification, _ in FAMILIES:
        for rule in rules_of(specification):
            place = f"{specification}:{rule.line}"
            if rule.family != family:
                errors.append(f"{place}: {rule.name} is defined among the rules {family}-n")
            if other := rules.get(rule.name):
                errors.append(f"{place}: {rule.name} is defined before, in line {other.line} of {other.specification}")
            rules[rule.name] = rule
        if not any(rule.family == family for rule in rules.values()):
            errors.append(f"{specification}: no rules {family}-n found")
    for name, place in citations().items():
        if name not in rules:
            errors.append(f"{place}: {name} is cited, and defined nowhere")

    text = page(rules)
    if not sys.argv[1:]:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text)
    elif not PAGE.is_file() or PAGE.read_text() != text:
        errors.append(f"{PAGE.relative_to(ROOT)}: stale, run script/lib/rules.py")
    if errors:
        print("\n".join(errors))
        sys.exit(1)


if __name__ == "__main__":
    main()
