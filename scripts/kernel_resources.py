#!/usr/bin/env python3
"""Prints what every CUDA kernel of the tree takes of a multiprocessor, as ptxas says it.

One row a kernel, one column an architecture: registers of a thread, then bytes of shared memory
that the kernel has at compile time, then bytes of registers that do not fit and are spilled. Exits
1 if a kernel spills or has a stack frame. Needs nvcc and c++filt; standard library only.

    scripts/kernel_resources.py [--architectures 80,86,89,90,100,120] [FILE.cu ...]
"""

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def compile_file(source: Path, architectures: list[str], folder: str) -> str:
    """What ptxas says of one file."""
    codes = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in architectures]
    command = ["nvcc", "-std=c++20", "-O3", "--expt-relaxed-constexpr", f"-I{ROOT}", *codes,
               "-Xptxas=-v", "-c", str(source), "-o", f"{folder}/{source.stem}.o"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def kernels_of(text: str) -> dict[tuple[str, str], dict[str, int]]:
    """(mangled name, architecture) -> its figures."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in text.splitlines():
        if match := ENTRY.search(line):
            current = found[match.group(1), match.group(2)] = {}
        elif match := FRAME.search(line):
            current["frame"] = int(match.group(1))
            current["spilled"] = int(match.group(2)) + int(match.group(3))
        elif match := USED.search(line):
            current["registers"] = int(match.group(1))
            shared = SHARED.search(line)
            current["shared"] = int(shared.group(1)) if shared else 0
    return found


def short_names(mangled: list[str]) -> dict[str, str]:
    """Names for people: without namespaces, parameters and the types in CUB's templates."""
    plain = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    names = {}
    for name, full in zip(mangled, plain):
        own = re.sub(r"\(anonymous namespace\)::", "", full)
        own = re.sub(r"^void ", "", own)
        own = re.sub(r"\((farstep::\w+)\)(\d+)", r"\2", own)
        head = own.split("(")[0]
        if head.startswith("cub::"):
            names[name] = "CUB's " + head.split("<")[0].split("::")[-1]
        else:
            names[name] = head.replace("farstep::", "")
    return names


def cell(figures: dict[str, int] | None) -> str:
    if figures is None:
        return ""
    text = str(figures["registers"])
    if figures["shared"] or figures["spilled"]:
        text += f", {figures['shared']}"
    if figures["spilled"]:
        text += f", {figures['spilled']} spilled"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--architectures", default="80,86,89,90,100,120")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    architectures = arguments.architectures.split(",")
    files = arguments.files or [
        ROOT / name for name in subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.cu"],
                                               capture_output=True, text=True,
                                               check=True).stdout.split()]
    print("| kernel | " + " | ".join(f"sm_{a}" for a in architectures) + " |")
    print("|" + "---|" * (len(architectures) + 1))
    bad = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        texts = pool.map(lambda source: compile_file(source, architectures, folder), files)
        for text in texts:
            found = kernels_of(text)
            # CUB gives a kernel another name on every architecture.
            rows: dict[str, dict[str, dict[str, int]]] = {}
            names = short_names(sorted({name for name, _ in found}))
            for (name, architecture), figures in found.items():
                rows.setdefault(names[name], {})[architecture] = figures
                bad += figures["spilled"] > 0 or figures["frame"] > 0
            for name in sorted(rows):
                cells = [cell(rows[name].get(a)) for a in architectures]
                print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)
    if bad:
        print(f"{bad} kernels spill registers or have a stack frame", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
