"""Keeps comments within 120 columns.

    wrap.py --check [FILE...]   names every wider comment line, and fails if there is one
    wrap.py --write [FILE...]   wraps the paragraphs that have such a line; fails on what is left for people

Without files it takes every Rust, Solidity, JavaScript, Python, shell and TOML file. It reads comments as
Markdown, as rustdoc and NatSpec do. A paragraph that is wrapped keeps its words; list items keep their indentation, and
`INVARIANT:`, `SAFETY:`, tags and the like stay at the beginning of a line. Code blocks, columns, quotes, tables,
headings, directives of tools, and a single word that is too long (an address, say) are left as they are; of these code
blocks, columns and quotes count as too wide. A comment behind code moves above it where that is safe.
"""

import io
import pathlib
import re
import sys
import tokenize
from dataclasses import dataclass

from repository import ROOT, files

WIDTH = 120
SLASHES = {".rs", ".sol", ".mjs", ".js"}
HASHES = {".sh", ".toml", ".py"}

DIRECTIVE = re.compile(r"(slither-|forge-(lint|config)|shellcheck |SPDX-|eslint|prettier|rustfmt|cspell|noqa|fmt:|@ts-)")
FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])( +)(?=\S)")
VERBATIM = re.compile(r"\s*(\||#{1,6} |>|\[[^\]]+\]: |[-=*_ ]{3,}$)")
# What stays at the beginning of its line: `@param`, `INVARIANT:`, `Requirements:`, `Effects, of every proof:`.
LABEL = re.compile(r"(@[a-z]|[A-Z]{3,}[A-Za-z ]*:( |$)|[A-Z][a-z]+(, [^:.]{1,30})?:( |$))")
# What would mean something else at the beginning of a line.
SPECIAL = re.compile(r"([-+*>|=#]$|[-+*=_]{2,}$|\||>|#{1,6}$|\d{1,9}[.)]$|`{3}|~{3}|@[a-z]|\[[^\]]+\]:)")
WORD = re.compile(r"(?:`+[^`]+`+|[^\s`]|`)+")


@dataclass
class Comment:
    """A comment that is alone on its line."""

    indent: str
    marker: str
    text: str

    @property
    def kind(self) -> tuple[str, str]:
        return self.indent, self.marker


def comments_of_slashes(source: str) -> dict[int, int]:
    """Column of the `//` comment of each line that has one, by line from 0. Knows strings and block comments."""
    found = {}
    line = 0
    start = 0
    i = 0
    token = re.compile(
        r'(?P<raw>\bb?r(?P<hashes>#*)")|(?P<string>")|(?P<char>\'(?:\\.[^\']*|[^\'\\\n])\')'
        r"|(?P<line>//)|(?P<block>/\*)|(?P<end>\n)"
    )
    while match := token.search(source, i):
        i = match.end()
        kind = match.lastgroup
        if match["raw"]:
            end = source.find('"' + match["hashes"], i)
            stop = len(source) if end < 0 else end + 1 + len(match["hashes"])
        elif kind == "string":
            end = re.compile(r'(?:[^"\\]|\\.)*"', re.S).match(source, i)
            stop = end.end() if end else len(source)
        elif kind == "block":
            depth, stop = 1, i
            while depth and (step := re.compile(r"/\*|\*/").search(source, stop)):
                depth += 1 if step[0] == "/*" else -1
                stop = step.end()
            if depth:
                stop = len(source)
        elif kind == "line":
            found[line] = match.start() - start
            end = source.find("\n", i)
            stop = len(source) if end < 0 else end
        elif kind == "end":
            line, start = line + 1, i
            continue
        else:
            continue
        passed = source.count("\n", i, stop)
        if passed:
            line, start = line + passed, source.rfind("\n", i, stop) + 1
        i = stop
    return found


def comments_of_hashes(source: str, suffix: str) -> dict[int, int]:
    """The same of `#` comments. In shell and TOML of those only that are alone on their line."""
    if suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        return {token.start[0] - 1: token.start[1] for token in tokens if token.type == tokenize.COMMENT}
    found = {}
    until = None
    for number, line in enumerate(source.split("\n")):
        if until is not None:
            if (line.strip() == until) if suffix != ".toml" else (until in line):
                until = None
            continue
        if re.match(r"\s*#(?!!)", line):
            found[number] = line.index("#")
        elif suffix == ".toml":
            quotes = re.search(r"\"\"\"|'''", line)
            if quotes and line.count(quotes[0]) == 1:
                until = quotes[0]
        elif here := re.search(r"<<-?\s*(['\"]?)(\w+)\1", line):
            until = here[2]
    return found


def parse(line: str, column: int, suffix: str) -> Comment | None:
    """The comment of a line, if nothing stands before it."""
    if line[:column].strip():
        return None
    marker = re.match(r"///(?!/)|//!|//|#", line[column:])[0] if suffix in SLASHES else "#"
    return Comment(line[:column], marker, line[column + len(marker) :])


def content(text: str) -> str:
    return text[1:] if text.startswith(" ") else text


def words_of(text: str) -> list[str]:
    """Words, code spans among them, each with what must not be parted from it."""
    words: list[str] = []
    for word in WORD.findall(text):
        if words and SPECIAL.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


def fill(words: list[str], first: str, rest: str, width: int = WIDTH) -> list[str]:
    """Lines of the words, after `first` and `rest`, both of which end with a space."""
    lines, line, empty = [], first, True
    for word in words:
        if not empty and len(line) + 1 + len(word) > width:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    return [*lines, line]


def fill_evenly(words: list[str], first: str, rest: str) -> list[str]:
    """The same, a little narrower where that brings company to a last line of one word."""
    lines = fill(words, first, rest)
    for width in range(WIDTH - 1, WIDTH - 20, -1):
        if len(lines) == 1 or len(words_of(lines[-1][len(rest) :])) > 1:
            break
        narrower = fill(words, first, rest, width)
        if len(narrower) == len(lines):
            lines = narrower
    return lines


class Block:
    """Consecutive comment lines of one kind."""

    def __init__(self, comments: list[Comment], marks: bool):
        self.comments = comments
        self.marks = marks
        self.head = comments[0].indent + comments[0].marker

    def width(self, i: int) -> int:
        return len(self.head + self.comments[i].text)

    def paragraphs(self) -> list[tuple[int, int, bool]]:
        """Spans of lines, and whether they can be wrapped."""
        spans: list[tuple[int, int, bool]] = []
        fence = None
        blank = True
        for i, comment in enumerate(self.comments):
            text = content(comment.text)
            opens = FENCE.match(text)
            if fence or opens:
                spans.append((i, i + 1, False))
                if opens and not fence:
                    fence = opens[1]
                elif opens and fence == opens[1]:
                    fence = None
                blank = True
                continue
            if not text.strip():
                spans.append((i, i + 1, False))
                blank = True
                continue
            fixed = VERBATIM.match(text) or DIRECTIVE.match(text.strip()) or self.drawn(i)
            code = blank and text.startswith("    ") and not ITEM.match(text) and not self.in_list(i)
            if fixed or code or (blank and spans and not spans[-1][2] and text.startswith("    ") and self.was_code(i)):
                spans.append((i, i + 1, False))
                # What stands under text may be its underline.
                if re.match(r"\s*[-=]{3,}$", text) and len(spans) > 1 and spans[-2][2]:
                    spans[-2] = (*spans[-2][:2], False)
                blank = bool(fixed) or code
                continue
            starts = blank or ITEM.match(text) or LABEL.match(text) or not spans or not spans[-1][2] or self.parted(i)
            if starts:
                spans.append((i, i + 1, True))
            else:
                spans[-1] = (spans[-1][0], i + 1, True)
            blank = False
        return spans

    def in_list(self, i: int) -> bool:
        """Whether an indented line goes on with a list item above."""
        for comment in reversed(self.comments[:i]):
            text = content(comment.text)
            if ITEM.match(text):
                return True
            if text.strip() and not text.startswith("  "):
                return False
        return False

    def was_code(self, i: int) -> bool:
        return i > 0 and content(self.comments[i - 1].text).startswith("    ") and not self.in_list(i)

    def drawn(self, i: int) -> bool:
        """Whether a line's words stand in columns, or it is set off in a plain comment, as a usage is."""
        text = content(self.comments[i].text)
        if re.search(r"\S {2,}\S", re.sub(r"`[^`]*`", "x", ITEM.sub("", text))):
            return True
        if not self.marks or ITEM.match(text) or not text.startswith("  "):
            return False
        return not self.in_list(i)

    def parted(self, i: int) -> bool:
        """Whether the line before was ended on purpose: by two spaces or a backslash; in plain comments by a sentence."""
        before, text = self.comments[i - 1].text, content(self.comments[i].text)
        if before.endswith(("  ", "\\")):
            return True
        return self.marks and len(self.head + before) < 80 and before.rstrip()[-1:] in ".:" and text[:1].isupper()

    def wrap(self, start: int, end: int) -> list[str]:
        texts = [content(comment.text) for comment in self.comments[start:end]]
        item = ITEM.match(texts[0])
        lead = item[0] if item else re.match(r" *", texts[0])[0]
        if len(texts) > 1 and not (item and not texts[1].startswith(" ")):
            rest = re.match(r" *", texts[1])[0]
        else:
            rest = " " * len(lead)
        words = words_of(" ".join([texts[0][len(lead) :], *texts[1:]]))
        return fill_evenly(words, f"{self.head} {lead}", f"{self.head} {rest}")

    def wrapped(self) -> list[str]:
        lines = []
        for start, end, loose in self.paragraphs():
            if loose and any(self.width(i) > WIDTH for i in range(start, end)):
                lines += self.wrap(start, end)
            else:
                lines += [self.head + comment.text for comment in self.comments[start:end]]
        return lines


def is_allowed(text: str) -> bool:
    """Whether a comment line may be wider: a table's row, a heading, a directive, one long word."""
    text = content(text)
    if re.match(r"\s*(\||#{1,6} |\[[^\]]+\]: )", text) or DIRECTIVE.match(text.strip()):
        return True
    return len(words_of(ITEM.sub("", text))) <= 1


def blocks_of(lines: list[str], columns: dict[int, int], suffix: str) -> list[tuple[int, list[Comment]]]:
    """Runs of comment lines, each with the number of its first line."""
    blocks: list[tuple[int, list[Comment]]] = []
    for number in sorted(columns):
        comment = parse(lines[number], columns[number], suffix)
        if comment is None:
            continue
        if blocks and blocks[-1][0] + len(blocks[-1][1]) == number and blocks[-1][1][0].kind == comment.kind:
            blocks[-1][1].append(comment)
        else:
            blocks.append((number, [comment]))
    return blocks


def columns_of(source: str, suffix: str) -> dict[int, int]:
    return comments_of_slashes(source) if suffix in SLASHES else comments_of_hashes(source, suffix)


def lift(source: str, suffix: str) -> str:
    """Moves comments behind code above it where the line is too wide and ends a statement, a field or an item."""
    lines = source.split("\n")
    for number, column in sorted(columns_of(source, suffix).items(), reverse=True):
        line = lines[number]
        code, comment = line[:column].rstrip(), line[column:]
        if len(line) <= WIDTH or not code or DIRECTIVE.match(comment.lstrip("/# ")) or comment.startswith("///"):
            continue
        before = lines[number - 1].strip() if number else ""
        whole = not before or before.endswith((";", "{", "}", ",", "[", "(")) or before.startswith("//")
        if code.endswith((";", ",")) and whole:
            indent = code[: len(code) - len(code.lstrip())]
            lines[number : number + 1] = [indent + comment, code]
    return "\n".join(lines)


def write(source: str, suffix: str) -> str:
    source = lift(source, suffix)
    lines = source.split("\n")
    for number, comments in reversed(blocks_of(lines, columns_of(source, suffix), suffix)):
        plain = comments[0].marker in ("//", "#")
        lines[number : number + len(comments)] = Block(comments, plain).wrapped()
    return "\n".join(lines)


def too_wide(source: str, suffix: str) -> list[tuple[int, int]]:
    """Numbers, from 1, and widths of the lines whose comments are too wide."""
    lines = source.split("\n")
    found = []
    for number, column in sorted(columns_of(source, suffix).items()):
        line = lines[number]
        comment = parse(line, column, suffix)
        if len(line) > WIDTH and not (comment and is_allowed(comment.text)):
            found.append((number + 1, len(line)))
    return found


def suffix_of(path: pathlib.Path) -> str | None:
    if path.suffix in SLASHES | HASHES:
        return path.suffix
    if not path.suffix and path.is_file() and path.open("rb").read(2) == b"#!":
        return ".sh"
    return None


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in ("--check", "--write"):
        sys.exit("usage: wrap.py --check|--write [FILE...]")
    paths = [pathlib.Path(name) for name in sys.argv[2:]] or [ROOT / name for name in files()]
    failed = 0
    for path in paths:
        suffix = suffix_of(path)
        if suffix is None or path.is_symlink():
            continue
        source = path.read_text()
        if sys.argv[1] == "--write":
            changed = write(source, suffix)
            if changed != source:
                path.write_text(changed)
            source = changed
        for number, width in too_wide(source, suffix):
            print(f"{path}:{number}: comment of {width} columns, {WIDTH} are allowed")
            failed += 1
    if failed:
        sys.exit(f"{failed} comment lines are too wide")


if __name__ == "__main__":
    main()
