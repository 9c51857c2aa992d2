"""The links of the project's Markdown: each must lead to a file, and to a heading, that exist.

    python3 script/lib/links.py [--external]

Reads every page that git knows, or would; fails with a line for each broken link.
"""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote

from repository import ROOT, files

BOOK = Path("docs/src")
SUMMARY = BOOK / "SUMMARY.md"

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# [text](target "title"), [name]: target, <https://…>, href="target"
LINK = re.compile(
    r"\]\(\s*<?(?P<inline>[^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)"
    r"|^ {0,3}\[[^\]^]+\]:\s*<?(?P<definition>\S+?)>?(?:\s+\"[^\"]*\")?\s*$"
    r"|<(?P<bare>(?:https?|mailto):[^>\s]+)>"
    r"|(?:href|src)=\"(?P<html>[^\"]*)\"",
    re.MULTILINE,
)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(?P<text>.+?)\s*#*\s*$", re.MULTILINE)
IDENTIFIER = re.compile(r"\b(?:id|name)=\"(?P<id>[^\"]+)\"")


def blank(match):
    """As many characters, and the same lines."""
    return re.sub(r"[^\n]", " ", match.group())


def prose(text):
    """The text with code and comments blanked out, so that places stay what they are."""
    for pattern in (COMMENT, FENCE, SPAN):
        text = pattern.sub(blank, text)
    return text


def links(text):
    """Spans and targets of all links, in order."""
    for match in LINK.finditer(prose(text)):
        if match.group(match.lastgroup):
            yield match.span(match.lastgroup), match.group(match.lastgroup)


def external(target):
    """Whether a link leaves the project."""
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", target) is not None


def anchors(text):
    """The names that headings get, on forges and in the book alike, and those that HTML gives."""
    found = set()
    headings = COMMENT.sub(blank, FENCE.sub(blank, text))
    for match in HEADING.finditer(headings):
        title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match["text"])
        title = re.sub(r"[`*]", "", title).lower()
        name = re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title))
        unique, number = name, 0
        while unique in found:
            number += 1
            unique = f"{name}-{number}"
        found.add(unique)
    return found | {match["id"] for match in IDENTIFIER.finditer(headings)}


def place(root, page, target):
    """What a link of a page names: a path relative to the root, None outside it, and the name after the #."""
    path, _, name = target.partition("#")
    if not path:
        return page, unquote(name)
    named = os.path.normpath(page.parent / unquote(path))
    outside = named.startswith("..") or os.path.isabs(named) or not (root / named).exists()
    return None if outside else Path(named), unquote(name)


def check():
    """Lines about what is wrong, external links with their pages, and how many links there are in how many pages."""
    wrong, outside, known, count = [], [], {}, 0
    listed = files("*.md")
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in listed}
    for page, text in texts.items():
        for (start, _), target in links(text):
            line, count = text.count("\n", 0, start) + 1, count + 1
            if external(target):
                outside.append(f"{page}:{line}: {target}")
                continue
            path, name = place(ROOT, page, target)
            if path is None:
                wrong.append(f"{page}:{line}: link target {target} does not exist")
            elif (ROOT / path).is_dir() and (name or BOOK in page.parents):
                wrong.append(f"{page}:{line}: link target {target} is a folder; link to a file of it")
            elif name and path.suffix == ".md":
                if path not in known:
                    known[path] = anchors(texts.get(path) or (ROOT / path).read_text(encoding="utf-8"))
                if name not in known[path]:
                    wrong.append(f"{page}:{line}: link target {target}: {path} has no heading #{name}")
    if SUMMARY in texts:
        chapters = {place(ROOT, SUMMARY, target)[0] for _, target in links(texts[SUMMARY])}
        lost = [page for page in listed if BOOK in page.parents and page != SUMMARY and page not in chapters]
        wrong += [f"{page}:1: {SUMMARY} does not list this page" for page in lost]
    return wrong, outside, count, len(listed)


def main():
    wrong, outside, count, number = check()
    for line in wrong:
        print(line, file=sys.stderr)
    if "--external" in sys.argv[1:]:
        print("\n".join(outside))
    print(f"{count} links in {number} pages: {len(wrong)} broken; {len(outside)} lead elsewhere and were not followed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
