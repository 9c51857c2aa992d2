"""Cuts the folder that torch-sys links against (`include/`, `lib/`) out of PyPI wheels.

    libtorch.py cpu|cuda WHEELS TARGET

`cpu` keeps what libtorch_cpu needs and leaves 1 GB of GPU code behind; `cuda` keeps every library of the wheels.
"""

import fnmatch
import pathlib
import shutil
import sys
import zipfile

HEADERS = "torch/include/*"
LIBRARIES = {
    # libtorch_cpu of the CUDA build names the CUDA runtime and its profiler, though it calls neither without a GPU.
    "cpu": [
        "torch/lib/libc10.so",
        "torch/lib/libtorch_cpu.so",
        "torch/lib/libgomp.so.1",
        "nvidia/*/libcudart.so.13",
        "nvidia/*/libcupti.so.13",
    ],
    "cuda": ["torch/lib/*.so*", "nvidia/*/lib/*.so*"],
}
# Needs a Python interpreter to load.
LEFT_OUT = "torch/lib/libtorch_python.so"


def destination(member: str, kind: str) -> str | None:
    """Where a member of a wheel goes below the target; None if it is not wanted. Libraries share one folder."""
    if fnmatch.fnmatch(member, HEADERS):
        return member.removeprefix("torch/")
    if member != LEFT_OUT and any(fnmatch.fnmatch(member, pattern) for pattern in LIBRARIES[kind]):
        return "lib/" + member.rsplit("/", 1)[-1]
    return None


def extract(wheel: pathlib.Path, target: pathlib.Path, kind: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = destination(member, kind)
            if name is None or member.endswith("/"):
                continue
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, open(path, "wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)


def main() -> None:
    kind, wheels, target = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    for wheel in sorted(wheels.glob("*.whl")):
        extract(wheel, target, kind)
    # torch-sys always links -lgomp: give it the very copy that libtorch_cpu loads.
    (target / "lib/libgomp.so").symlink_to("libgomp.so.1")
    if kind == "cpu":
        # torch-sys always links -ltorch, an empty umbrella over the CPU and the CUDA library.
        (target / "lib/libtorch.so").symlink_to("libtorch_cpu.so")


main()
