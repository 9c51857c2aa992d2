"""Lays the book out for mdBook: its pages, and beside them every file of the repository that they link to.

    python3 script/lib/book.py FOLDER    writes FOLDER/book.toml and FOLDER/src

Pages link to specifications and code where these are, which works wherever the repository is read. In the book those
files lie under `repository/`; Markdown among them becomes chapters, with the links that it has itself.
"""

import shutil
import sys
from pathlib import Path

from links import BOOK, SUMMARY, external, links, place

ROOT = Path(__file__).resolve().parents[2]
# What mdBook shows first, and so what a link to the list of chapters leads to.
FIRST = BOOK / "introduction.md"


def home(path):
    """Where a file of the repository lies in the book's sources."""
    if BOOK in path.parents:
        return path.relative_to(BOOK)
    # mdBook calls the page of a README index, but not in links to it.
    if path.name == "README.md":
        path = path.with_name("index.md")
    return Path("repository") / (path / "index.md" if (ROOT / path).is_dir() else path)


def up(start, end):
    """The way from a page to another."""
    steps, common = list(end.parts), 0
    for one, other in zip(start.parent.parts, end.parts[:-1]):
        if one != other:
            break
        common += 1
    return "/".join([".."] * (len(start.parent.parts) - common) + steps[common:])


def rewritten(page, text):
    """A page as the book has it, and the files that it links to."""
    made, last, found = [], 0, []
    for (start, end), target in links(text):
        if external(target) or target.startswith("#"):
            continue
        path, name = place(ROOT, page, target)
        if path is None:
            continue
        if (ROOT / path / "README.md").is_file():
            path /= "README.md"
        path = FIRST if path == SUMMARY else path
        found.append(path)
        made += [text[last:start], up(home(page), home(path)), f"#{name}" if name else ""]
        last = end
    return "".join(made) + text[last:], found


def listing(folder):
    """A page for a folder that has none: its files."""
    names = sorted(path.name for path in (ROOT / folder).iterdir() if path.is_file())
    return f"# {folder}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)


def title(text):
    """The first heading."""
    first = next((line for line in text.splitlines() if line.startswith("# ")), "# Untitled")
    return first[2:].replace("`", "")


def main():
    out = Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    source = out / "src"
    source.mkdir(parents=True)
    shutil.copy(ROOT / "docs/book.toml", out / "book.toml")
    waiting = sorted(path.relative_to(ROOT) for path in (ROOT / BOOK).rglob("*") if path.is_file())
    seen, chapters = set(waiting), []
    while waiting:
        page = waiting.pop()
        path = source / home(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = (ROOT / page).is_dir()
        if page.suffix != ".md" and not folder:
            shutil.copyfile(ROOT / page, path)
            continue
        text = listing(page) if folder else (ROOT / page).read_text(encoding="utf-8")
        made, found = rewritten(page / "README.md" if folder else page, text)
        path.write_text(made, encoding="utf-8")
        if BOOK not in page.parents:
            chapters.append((title(text), home(page)))
        new = list(dict.fromkeys(other for other in found if other not in seen))
        seen.update(new)
        waiting += new
    with open(source / home(SUMMARY), "a", encoding="utf-8") as summary:
        summary.write("\n# The repository\n\n")
        for name, path in sorted(chapters, key=lambda chapter: chapter[1].as_posix()):
            summary.write(f"- [{name}]({path.as_posix()})\n")


if __name__ == "__main__":
    main()
