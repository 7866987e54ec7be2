#!/usr/bin/env python3
"""Checks the house rules that a compiler does not: who may include whom, and who may see what.

Prints every violation as FILE:LINE and exits 1 if there is one. Standard library only.
"""

import re
import subprocess
import sys
from pathlib import Path

# Folder -> folders it may include, besides itself. The tree's floors, lowest first; a folder that
# is not listed may not exist.
MAY_INCLUDE = {
    "trainer/base": "",
    "trainer/cuda": "base",
    "trainer/config": "base",
    "trainer/telemetry": "base config",
    "trainer/report": "base config telemetry",
    "trainer/data": "base config",
    "trainer/kernels": "base",
    "trainer/kernels/gpu": "base cuda kernels",
    "trainer/reduction": "base cuda",
    "outer_optimizer/schedule": "base config",
    "outer_optimizer/codec": "base config cuda",
    "heterogeneity/plan": "base config schedule codec",
    "heterogeneity/simulate": "base config telemetry schedule plan",
    "wan/transport": "base config",
    "wan/collective": "base transport",
    "wan/link": "base config transport",
    "wan/lab": "base config link",
    "wan/membership": "base config transport",
    "trainer/model": "base config cuda kernels gpu",
    "trainer/checkpoint": "base config",
    "heterogeneity/profile": "base config plan transport collective",
    "trainer/inner": "base config cuda data kernels gpu reduction model plan",
    "outer_optimizer/exchange": "base schedule codec transport collective",
    "outer_optimizer": "base schedule",
    "trainer/strategy": "base config telemetry schedule codec exchange outer_optimizer membership transport",
    "trainer/run": "base config telemetry data schedule codec plan profile transport link membership model checkpoint "
    "inner exchange outer_optimizer strategy",
    "trainer/commands": "base config telemetry report data schedule plan simulate model checkpoint membership run",
    "trainer": "base commands",
}

# What from outside only some places may include: pattern -> places.
ONLY_IN = {
    r"<gloo/|\"gloo/": ("wan/transport/gloo_", "tests/"),
    r"<zmq": ("wan/membership", "tests/"),
    r"<cuda": ("trainer/cuda", "trainer/kernels/gpu", "trainer/model/gpu_", "outer_optimizer/codec/device_", "trainer/reduction/nccl_", "tests/"),
    r"<nccl": ("trainer/reduction/nccl_",),
    r"<(ATen|torch|c10)/": ("trainer/model", "trainer/inner", "trainer/run", "trainer/strategy",
                              "heterogeneity/profile", "tests/"),
    r"<sentencepiece": ("trainer/data/tokenizer",),
    r"<catch2/": ("tests/support/catch",),
}

MAX_LINES = 500
INCLUDE = re.compile(r'^\s*#include\s+(?:"([^"]+)"|(<[^>]+>))')


def tracked_sources() -> list[Path]:
    """The C++ files of the working tree that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp", "*.cu"],
        check=True, capture_output=True, text=True).stdout.split()
    return [Path(name) for name in listed if Path(name).exists()]


def check_include(source: Path, target: str) -> str | None:
    """Why `source` may not include the project's file `target`; None if it may."""
    if not Path(target).exists():
        return f"includes {target}, which does not exist from the root of the tree"
    folder, target_folder = str(source.parent), str(Path(target).parent)
    if folder.startswith("tests"):
        return None
    if target_folder.startswith("tests"):
        return "includes a test"
    if folder == target_folder:
        return None
    allowed = MAY_INCLUDE[folder].split()
    if target_folder not in MAY_INCLUDE or Path(target_folder).name not in allowed:
        return f"includes {target}: {folder} may include {', '.join(allowed) or 'nothing'}"
    return None


def check_file(source: Path) -> list[str]:
    """All violations of one file."""
    folder = str(source.parent)
    if not folder.startswith("tests") and folder not in MAY_INCLUDE:
        return [f"{source}:1: {folder} is not a folder of the tree in {sys.argv[0]}"]
    lines = source.read_text(encoding="utf-8").splitlines()
    found = []
    if source.suffix == ".h" and "#pragma once" not in lines:
        found.append(f"{source}:1: header without #pragma once")
    if len(lines) > MAX_LINES:
        found.append(f"{source}:{MAX_LINES}: {len(lines)} lines, {MAX_LINES} at most")
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        if match.group(1) and (problem := check_include(source, match.group(1))):
            found.append(f"{source}:{number}: {problem}")
        for pattern, places in ONLY_IN.items():
            if re.search(pattern, line) and not str(source).startswith(places):
                found.append(f"{source}:{number}: only {' and '.join(places)} may include this")
    return found


def main() -> int:
    """Checks every file; returns the exit code."""
    sources = tracked_sources()
    violations = [violation for source in sources for violation in check_file(source)]
    print("\n".join(violations) or f"{len(sources)} files: every include goes down")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
