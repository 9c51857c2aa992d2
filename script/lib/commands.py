"""The commands that the project tells people to run: each must exist, with every flag that is shown.

    python3 script/lib/commands.py

Reads every file that git knows, or would. In Markdown, commands are lines of `sh` blocks and spans of code; elsewhere
they are text between backticks, as in an error that says "run `tensorlink balance`". What `tensorlink` takes is told
by docs/src/reference/cli.md, which is written from the program itself; what a script takes, by its opening comment.
"""

import re
import sys

from links import FENCE, blank
from repository import ROOT, files

REFERENCE = "docs/src/reference/cli.md"
# What holds text of ours: Markdown, code, scripts.
KINDS = {".md", ".rs", ".sh", ".py", ".toml", ".sol", ".yml", ".mjs", ""}
# What is generated, what tells of the past, and what fuzzers read.
SKIPPED = re.compile(re.escape(REFERENCE) + r"|CHANGELOG\.md|tests/fuzz/corpus/.*")

SECTION = re.compile(r"## (.+)")
# | `-v, --verbose` | …, | `--memory <SIZE>` | …
OPTION = re.compile(r"^\| `(?P<names>-[^`<]*?)(?P<value> ?<[^`]*)?` \|")
SHELL = re.compile(r" *[`~]+(?:ba)?sh\b")
# Lines that end in a backslash are one with the next.
LINE = re.compile(r"(?:[^\n]*\\\n)*[^\n]*\n")
SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
# Where one command of a line begins after another, in a pipe, a list or a substitution.
APART = re.compile(r"\s[|&]{1,2}\s|;|\(")
# At most after variables that are set for it, and by its path.
PROGRAM = re.compile(r"\s*(?:\w+=\S*\s+)*(?:[^\s=]*/)?tensorlink(?=\s|$)")
# Where a command ends: at a comment, a pipe, a list, a redirection.
END = re.compile(r"\s(?:#|\||&|;|>|<(?=\s))|[;)]|$", re.MULTILINE)
SCRIPT = re.compile(r"(?<![\w./-])(?:\./)?(?P<name>script/[a-z][a-z-]*)(?![\w./-])(?P<rest>[^`\n]*)")
PLACEHOLDER = re.compile(r"[^a-z]|.*[<{…]")
COMMON = {"--help", "-h", "--version", "-V"}
# The head of a table of arguments, which are no flags. A command that has some may have others below it as well.
ARGUMENT = "| argument |"


def program():
    """By its words, the flags of each command, and whether they take a value; those of all under (). Beside them stands
    ARGUMENT for those that take arguments."""
    known, words = {}, None
    for line in (ROOT / REFERENCE).read_text(encoding="utf-8").splitlines():
        if section := SECTION.match(line):
            title = section[1].split()
            words = tuple(title[1:]) if title[0] == "tensorlink" else ()
            known[words] = {}
        elif words is not None and line.startswith(ARGUMENT):
            known[words][ARGUMENT] = True
        elif words is not None and (option := OPTION.match(line)):
            for name in option["names"].split(","):
                known[words][name.strip()] = option["value"] is not None
    return known


def scripts():
    """By its path, the opening comment of each script."""
    found = [path for path in (ROOT / "script").iterdir() if path.is_file()]
    opening = re.compile(r"(?:#[^\n]*\n)*")
    return {f"script/{path.name}": opening.match(path.read_text(encoding="utf-8")).group() for path in found}


def of_program(known, command):
    """What is wrong with the words after `tensorlink`, if anything is."""
    path, skip = (), False
    for word in command:
        if skip:
            skip = False
        elif word == "--":
            break
        elif word.startswith("-"):
            name, _, value = word.partition("=")
            flags = {**known[()], **known.get(path, {})}
            if name in COMMON:
                continue
            if name not in flags:
                return f"`tensorlink {' '.join(path)}` has no {name}"
            skip = flags[name] and not value
        elif any(other[:-1] == path for other in known if other):
            if path + (word,) not in known and ARGUMENT in known.get(path, {}):
                continue
            for choice in word.split("|"):
                if path + (choice,) not in known and not PLACEHOLDER.match(choice):
                    return f"`tensorlink {' '.join((*path, choice))}` is no command"
            path += (word.split("|")[0],)
            if path not in known:
                return None
    return None


def of_script(known, name, rest):
    """What is wrong with a script and what follows it, if anything is."""
    if name not in known:
        return None if (ROOT / name).exists() else f"there is no {name}"
    flags = re.findall(r"(?<=\s)--[a-z][a-z-]*", END.split(rest, maxsplit=1)[0])
    wrong = [flag for flag in flags if flag not in COMMON and flag not in known[name]]
    return f"{name} has no {wrong[0]}" if wrong else None


def shown(path, text):
    """Where each piece of text starts that shows a command, and the piece, its lines joined."""
    if path.suffix == ".md":
        for block in FENCE.finditer(text):
            if SHELL.match(block.group()):
                for line in LINE.finditer(block.group()):
                    yield block.start() + line.start(), line.group().replace("\\\n", " ")
        text = FENCE.sub(blank, text)
    for span in SPAN.finditer(text):
        yield span.start(), re.sub(r"\n[\s/#*]*", " ", span[1])


def commands(piece):
    """The words after each `tensorlink` in a piece of text."""
    for part in APART.split(piece):
        if start := PROGRAM.match(part):
            yield END.split(part[start.end() :], maxsplit=1)[0].split()


def check(path, known, known_scripts):
    """Lines about what is wrong in a file, and how many commands it shows."""
    wrong, count = [], 0
    text = (ROOT / path).read_text(encoding="utf-8")
    for start, piece in shown(path, text):
        found = [of_program(known, command) for command in commands(piece)]
        found += [of_script(known_scripts, match["name"], match["rest"]) for match in SCRIPT.finditer(piece)]
        count += len(found)
        wrong += [f"{path}:{text.count(chr(10), 0, start) + 1}: {what}" for what in found if what]
    return wrong, count


def main():
    known, known_scripts = program(), scripts()
    wrong, count = [], 0
    for path in files():
        if path.suffix in KINDS and not SKIPPED.fullmatch(str(path)):
            here, number = check(path, known, known_scripts)
            wrong, count = wrong + here, count + number
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{count} commands shown: {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
