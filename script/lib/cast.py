#!/usr/bin/env python3
"""Records what a command prints, with times, and renders the record as an animated SVG of a terminal.

    COMMAND | cast.py record >LOG
        a line of LOG: the seconds since the start, a tab, a line of COMMAND; the latter goes to stderr as well
    cast.py render [--prompt TEXT] [--from TEXT] [--live TEXT] LOG >SVG
        --prompt: the command, as typed; --from: how the first line begins that is shown; --live: how lines begin that
        take the place of the one before, as where a terminal shows progress

The picture has a dark background of its own, legible on any page. Readers who prefer reduced motion see its end.
"""

import argparse
import itertools
import re
import sys
import time
from html import escape

COLUMNS, ROWS = 100, 30
CHARACTER, LINE, SIZE = 7.8, 18, 13  # width of a character, height of a line, size of the font; pixels
MARGIN, BAR = 16, 34  # around the text; height of the title bar
LONGEST_WAIT, SHORTEST_WAIT, LAST_WAIT = 1.2, 0.06, 6.0  # seconds that a line stands before the next; the last one
LONGEST = 50.0  # seconds of the whole cast, without the last wait
FIXED_SPACES = "\u00a0\u00a0"  # pictures run others together
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")
STYLES = [  # the first that matches
    ("prompt", re.compile(r"^\$ ")),
    ("head", re.compile(r"^== ")),
    ("good", re.compile(r"^ *ok  ")),
    ("bad", re.compile(r"^ *FAIL  |^error:")),
    ("found", re.compile(r"convicted|slashed|, who lies")),
]


def record():
    """Copies lines from stdin to stdout with the seconds since the start before each."""
    began = time.monotonic()
    for line in sys.stdin:
        print(f"{time.monotonic() - began:.2f}\t{line.rstrip()}", flush=True)
        print(line, end="", file=sys.stderr, flush=True)


def read(path, first):
    """The lines of a record as a terminal shows them, (seconds, text), from the first that begins with `first`."""
    lines = []
    with open(path, encoding="utf-8", errors="replace") as log:
        for entry in log:
            seconds, _, text = entry.rstrip("\n").partition("\t")
            text = ESCAPES.sub("", text).split("\r")[-1].expandtabs().rstrip()
            lines.append((float(seconds), "".join(c for c in text if c.isprintable())))
    begins = [n for n, (_, text) in enumerate(lines) if text.startswith(first)]
    if not begins:
        sys.exit(f"no line of {path} begins with {first!r}")
    return lines[begins[0] :]


def wrap(text):
    """A line as the rows it fills, cut between words where it can be; those after the first are indented."""
    indent = " " * (len(text) - len(text.lstrip()) + 4)
    rows = []
    while len(text) > COLUMNS:
        cut = text.rfind(" ", len(indent) + 1, COLUMNS + 1)
        cut = cut if cut > 0 else COLUMNS
        rows.append(text[:cut].rstrip())
        text = indent + text[cut:].lstrip()
    return [*rows, text]


def times(lines):
    """When each line of the cast comes, seconds: waits are cut, and all is faster where it would be too long."""
    before = [lines[0][0], *(seconds for seconds, _ in lines)]
    waits = [min(max(seconds - last, SHORTEST_WAIT), LONGEST_WAIT) for last, (seconds, _) in zip(before, lines)]
    waits[0] = 1.0  # the command is read
    faster = max(1.0, sum(waits) / LONGEST)
    return [wait / faster for wait in itertools.accumulate(waits)]


def lay_out(lines, prompt, live):
    """Where each line stands and when: [(first row, rows, seconds)], and the rows of all."""
    placed, end, was_live = [(0, ["$ " + prompt], 0.0)], 1, False
    for seconds, (_, text) in zip(times(lines), lines):
        rows, is_live = wrap(text), bool(live) and text.startswith(live)
        start = placed[-1][0] if was_live and is_live else end
        placed.append((start, rows, seconds))
        end, was_live = max(end, start + len(rows)), is_live
    return placed, end


def keyframes(name, frames, length):
    """An animation of steps: [(seconds, CSS)], the last of which stays."""
    steps = "".join(f"{100 * seconds / length:.2f}%{{{css}}}" for seconds, css in frames)
    return f"@keyframes {name}{{{steps}100%{{{frames[-1][1]}}}}}\n"


def moved(pixels):
    """CSS: moved down by so many pixels."""
    return f"transform:translateY({pixels}px)"


def render(path, prompt, first, live):
    """The SVG of a record."""
    placed, count = lay_out(read(path, first), prompt, live)
    length = placed[-1][2] + LAST_WAIT
    width, height = 2 * MARGIN + COLUMNS * CHARACTER, BAR + 2 * MARGIN + ROWS * LINE
    # A sheet with all rows is moved up behind a window, and a cover on it moved down: below what is there already.
    reached = list(itertools.accumulate((start + len(rows) for start, rows, _ in placed), max))
    seen = [(seconds, rows) for (_, _, seconds), rows in zip(placed, reached)]
    sheet = [(seconds, moved(-LINE * max(0, rows - ROWS))) for seconds, rows in seen]
    cover = [(seconds, moved(LINE * rows)) for seconds, rows in seen]
    animations, texts = keyframes("sheet", sheet, length) + keyframes("cover", cover, length), []
    for number, (start, rows, seconds) in enumerate(placed):
        replaced = placed[number + 1][2] if number + 1 < len(placed) and placed[number + 1][0] == start else None
        follows = number > 0 and placed[number - 1][0] == start
        style = next((name for name, pattern in STYLES if pattern.search(rows[0])), "")
        if replaced is not None or follows:
            begins, ends = (seconds, "opacity:1"), [] if replaced is None else [(replaced, "opacity:0")]
            animations += keyframes(f"line{number}", [(0, "opacity:0"), begins, *ends], length)
            timing = f"animation:line{number} {length:.2f}s step-end infinite"
            opening = f'<g class="live{" gone" if ends else ""} {style}" style="{timing}">'
        else:
            opening = f'<g class="{style}">' if style else "<g>"
        shown = "".join(drawn(start + n, row) for n, row in enumerate(rows))
        if shown:
            texts.append(f"{opening}{shown}</g>")
    print(f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">
<title>{escape(prompt)}, as a terminal shows it</title>
<style>
text{{font:{SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}}
.sheet{{fill:#d0d7de;animation:sheet {length:.2f}s step-end infinite}}
.cover{{fill:#0d1117;animation:cover {length:.2f}s step-end infinite}}
.prompt,.head{{font-weight:bold}}.prompt{{fill:#fff}}.head{{fill:#79c0ff}}
.good{{fill:#7ee787}}.bad,.found{{fill:#ff9492}}.gone{{opacity:0}}
{animations}@media (prefers-reduced-motion:reduce){{
.sheet,.cover,.live{{animation:none!important}}.sheet{{{sheet[-1][1]}}}.cover{{{cover[-1][1]}}}}}
</style>
<rect width="{width:g}" height="{height:g}" rx="8" fill="#0d1117"/>
<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="none" stroke="#30363d"/>
<g fill="#30363d"><circle cx="20" cy="18" r="6"/><circle cx="40" cy="18" r="6"/><circle cx="60" cy="18" r="6"/></g>
<clipPath id="window"><rect width="{width:g}" height="{ROWS * LINE + 4}"/></clipPath>
<g transform="translate(0 {BAR + MARGIN // 2})" clip-path="url(#window)"><g class="sheet">""")
    print("\n".join(texts))
    print(f'<rect class="cover" width="{width:g}" height="{(count + ROWS) * LINE}"/>\n</g></g>\n</svg>')


def drawn(number, row):
    """A row of the sheet, as wide as its characters whatever the font is."""
    text = row.lstrip()
    if not text:
        return ""
    at = f'x="{MARGIN + (len(row) - len(text)) * CHARACTER:g}" y="{number * LINE + SIZE + 1}"'
    shown = escape(text.replace("  ", FIXED_SPACES), quote=False)
    return f'<text {at} textLength="{len(text) * CHARACTER:g}">{shown}</text>'


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("record")
    rendering = verbs.add_parser("render")
    rendering.add_argument("--prompt", default="")
    rendering.add_argument("--from", dest="first", default="")
    rendering.add_argument("--live", default="")
    rendering.add_argument("log")
    arguments = parser.parse_args()
    if arguments.verb == "record":
        record()
    else:
        render(arguments.log, arguments.prompt, arguments.first, arguments.live)


if __name__ == "__main__":
    main()
