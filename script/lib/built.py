"""Whether every link between the pages of a built book leads somewhere.

    python3 script/lib/built.py FOLDER
"""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote

from links import external

# Copies of all pages in one, the page of errors, and the list of chapters: their links are relative to other places.
ASIDE = ("print.html", "404.html", "toc.html")


def main():
    out = Path(sys.argv[1])
    texts = {page: page.read_text(encoding="utf-8") for page in out.rglob("*.html") if page.name not in ASIDE}
    names = {page: set(re.findall(r"\b(?:id|name)=\"([^\"]+)\"", text)) for page, text in texts.items()}
    wrong = set()
    for page, text in texts.items():
        for target in re.findall(r"\b(?:href|src)=\"([^\"]+)\"", text):
            if external(target):
                continue
            path, _, name = target.partition("#")
            other = Path(os.path.normpath(page.parent / unquote(path))) if path else page
            if not other.is_file() or (other in names and name and unquote(name) not in names[other]):
                wrong.add(f"{page.relative_to(out)}: link target {target} does not exist")
    print("\n".join(sorted(wrong)), end="\n" if wrong else "", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
