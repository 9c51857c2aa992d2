"""The project's own files, as git tells them."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def files(*patterns):
    """Every file that git knows, or would, relative to the root and in order; of those patterns, if any are given."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()})
