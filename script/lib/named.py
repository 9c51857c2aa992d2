"""The files that documents, comments and scripts name by their path: each must exist, from the root or from a folder
above the file that names it.

    python3 script/lib/named.py
"""

import re
import sys

from repository import ROOT, files

FOLDERS = "agents|bindings|contracts|deploy|docs|examples|script|tests"
PATH = re.compile(rf"(?<![\w/.$-])(?:{FOLDERS})/[\w./-]*\w\.(?:rs|sol|md|py|sh|toml|json|mjs|txt|gz)\b")
READ = ["*.rs", "*.sol", "*.md", "*.py", "*.sh", "*.toml", "*.mjs", "*.yml"]
# What a reader is asked to write, and what a deployment writes.
TO_COME = {"agents/cli/src/commands/epoch.rs", "deploy/31337.toml", "tests/NAME/requirements.txt"}


def main() -> None:
    count, wrong = 0, []
    for file in files(*READ):
        for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
            for path in PATH.findall(line):
                count += 1
                if path not in TO_COME and not any((ROOT / above / path).exists() for above in file.parents):
                    wrong.append(f"{file}:{number}: there is no {path}")
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{count} files named: {len(wrong)} missing")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
