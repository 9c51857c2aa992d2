#!/usr/bin/env python3
"""Records what a command prints, with times, and renders the record as an animated SVG of a terminal.

    COMMAND | cast.py record >LOG
        a line of LOG: the seconds since the start, a tab, a line of COMMAND; the latter goes to stderr as well
    cast.py render [--prompt TEXT] [--from TEXT] LOG >SVG
        --prompt: the command, as typed; --from: how the first line begins that is shown

The picture has a dark background of its own, legible on any page. Readers who prefer reduced motion see its end.
"""

import argparse
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


def screens(lines, prompt):
    """All rows, each with its style, and when how many of them are there: [(seconds, rows)]."""
    rows, times, now, last = [("prompt", "$ " + prompt)], [(0.0, 1)], 0.0, lines[0][0]
    waits = []
    for seconds, _ in lines:
        waits.append(min(max(seconds - last, SHORTEST_WAIT), LONGEST_WAIT))
        last = seconds
    waits[0] = 1.0
    faster = max(1.0, sum(waits) / LONGEST)
    for wait, (_, text) in zip(waits, lines):
        now += wait / faster
        style = next((name for name, pattern in STYLES if pattern.search(text)), "plain")
        rows += [(style, row) for row in wrap(text)]
        times.append((now, len(rows)))
    return rows, times


def render(path, prompt, first):
    """The SVG of a record."""
    rows, times = screens(read(path, first), prompt)
    length = times[-1][0] + LAST_WAIT
    width, height = 2 * MARGIN + COLUMNS * CHARACTER, BAR + 2 * MARGIN + ROWS * LINE
    # The sheet of all rows is moved up behind a window: the newest row is at its bottom, or the first at its top.
    shift = [(seconds, max(0, count - ROWS) * LINE, count * LINE) for seconds, count in times]
    frames = "".join(f"{100 * s / length:.2f}%{{transform:translateY(-{up}px)}}" for s, up, _ in shift)
    covers = "".join(f"{100 * s / length:.2f}%{{transform:translateY({down}px)}}" for s, _, down in shift)
    end_up, end_down = shift[-1][1:]
    frames += f"100%{{transform:translateY(-{end_up}px)}}"
    covers += f"100%{{transform:translateY({end_down}px)}}"
    print(f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">
<title>{escape(prompt)}, as a terminal shows it</title>
<style>
text{{font:{SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d0d7de}}
.prompt{{fill:#fff;font-weight:bold}}.head{{fill:#79c0ff;font-weight:bold}}
.good{{fill:#7ee787}}.bad,.found{{fill:#ff9492}}
.sheet{{animation:sheet {length:.2f}s step-end infinite}}
.cover{{fill:#0d1117;animation:cover {length:.2f}s step-end infinite}}
@keyframes sheet{{{frames}}}
@keyframes cover{{{covers}}}
@media (prefers-reduced-motion:reduce){{
.sheet{{animation:none;transform:translateY(-{end_up}px)}}.cover{{animation:none;transform:translateY({end_down}px)}}}}
</style>
<rect width="{width:g}" height="{height:g}" rx="8" fill="#0d1117"/>
<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="none" stroke="#30363d"/>
<g fill="#30363d"><circle cx="20" cy="18" r="6"/><circle cx="40" cy="18" r="6"/><circle cx="60" cy="18" r="6"/></g>
<clipPath id="window"><rect width="{width:g}" height="{ROWS * LINE + 4}"/></clipPath>
<g transform="translate(0 {BAR + MARGIN // 2})" clip-path="url(#window)"><g class="sheet">""")
    for number, (style, row) in enumerate(rows):
        text = row.lstrip()
        if text:
            at = MARGIN + (len(row) - len(text)) * CHARACTER
            kind = "" if style == "plain" else f' class="{style}"'
            where = f'x="{at:g}" y="{number * LINE + SIZE + 1}" textLength="{len(text) * CHARACTER:g}"'
            shown = escape(text.replace("  ", FIXED_SPACES))
            print(f"<text {where}{kind}>{shown}</text>")
    print(f'<rect class="cover" width="{width:g}" height="{(len(rows) + ROWS) * LINE}"/>\n</g></g>\n</svg>')


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("record")
    rendering = verbs.add_parser("render")
    rendering.add_argument("--prompt", default="")
    rendering.add_argument("--from", dest="first", default="")
    rendering.add_argument("log")
    arguments = parser.parse_args()
    if arguments.verb == "record":
        record()
    else:
        render(arguments.log, arguments.prompt, arguments.first)


if __name__ == "__main__":
    main()
