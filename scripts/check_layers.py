#!/usr/bin/env python3
"""Checks the house rules that a compiler does not: who may include whom, who may see LibTorch and
the settings of a whole run, whose namespace a name is in, how many units a folder has, and how long
files are.

Prints every violation as FILE:LINE with what mends it, and exits 1 if there is one. Standard library
only.
"""

import argparse
import re
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path

# Folder -> folders it may include, besides itself. The tree's floors, lowest first; a folder that
# is not listed may not exist.
MAY_INCLUDE = {
    "trainer/base": "",
    "trainer/base/memory": "base",
    "trainer/base/system": "base",
    "trainer/base/processor": "base system",
    "trainer/cuda": "base",
    "trainer/config": "base system",
    "trainer/data": "base memory config",
    "trainer/data/text": "base system",
    "trainer/data/pieces": "base text",
    "trainer/data/tokenizer_json": "base text pieces",
    "trainer/data/tokenizer": "base system config text pieces tokenizer_json",
    "trainer/data/parquet": "base",
    "trainer/data/documents": "base text parquet",
    "trainer/data/tokens": "base processor system config data text documents tokenizer",
    "trainer/data/images": "base memory data documents",
    "trainer/model/shape": "base config images",
    "trainer/kernels/numbers": "base processor",
    "trainer/kernels": "base processor numbers",
    "trainer/kernels/products": "base memory processor numbers kernels",
    "trainer/kernels/gpu": "base memory processor cuda numbers kernels",
    "trainer/reduction": "base cuda",
    "outer_optimizer/schedule": "base processor config",
    "outer_optimizer/codec": "base processor config",
    "outer_optimizer": "base config schedule codec",
    "trainer/telemetry": "base system config codec",
    "trainer/account": "base config telemetry",
    "trainer/series": "base system config telemetry account",
    "trainer/report": "base config telemetry account",
    "trainer/charts": "base config telemetry account report",
    "wan/link": "base config",
    "heterogeneity/knowledge": "base processor config telemetry",
    "heterogeneity/policy": "base config telemetry knowledge",
    "heterogeneity/plan": "base config telemetry schedule codec link outer_optimizer knowledge policy",
    "heterogeneity/simulate": "base system config telemetry schedule codec link outer_optimizer knowledge policy "
    "plan",
    "wan/sockets": "base system",
    "wan/transport": "base config sockets",
    "wan/transport/lines": "base sockets",
    "wan/transport/gloo": "base sockets transport lines",
    "wan/secure": "base system sockets",
    "wan/tunnel": "base sockets transport secure",
    "wan/collective": "base sockets transport",
    "wan/emulate": "base link sockets transport",
    "wan/lab": "base system config link",
    "wan/protocol": "base config schedule knowledge",
    "wan/admission": "base config protocol",
    "wan/roster": "base config protocol admission",
    "wan/membership": "base system config protocol admission roster sockets transport",
    "trainer/model/parameters": "base memory numbers",
    "trainer/model": "base processor config data parameters",
    "trainer/model/matmul": "base processor config numbers kernels products shape model",
    "trainer/model/llama": "base config parameters shape model",
    "trainer/model/fused": "base memory numbers kernels parameters shape model llama",
    "trainer/model/cpu_ops": "base memory numbers kernels products model matmul llama fused",
    "trainer/model/gpu_ops": "base cuda numbers kernels gpu llama fused",
    "trainer/rate": "base config",
    "trainer/validation": "base config knowledge",
    "trainer/checkpoint": "base memory system config data rate validation numbers knowledge",
    "heterogeneity/profile": "base memory system config knowledge sockets transport collective",
    "trainer/inner/optimizer": "base memory config kernels parameters",
    "trainer/inner/muon": "base memory config numbers parameters matmul optimizer",
    "trainer/inner/gpu": "base memory cuda data knowledge gpu parameters model gpu_ops optimizer",
    "trainer/inner": "base memory processor config data gpu reduction parameters shape model rate knowledge optimizer muon",
    "outer_optimizer/exchange": "base schedule codec sockets transport collective",
    "trainer/strategy/outer_sync": "base memory config telemetry rate schedule codec exchange outer_optimizer protocol",
    "trainer/strategy": "base memory config telemetry reduction schedule codec exchange outer_optimizer protocol "
    "sockets transport outer_sync",
    "trainer/scatter": "base data transport exchange",
    "trainer/settings": "base config data schedule outer_optimizer policy link sockets protocol admission shape model validation checkpoint inner "
    "outer_sync strategy",
    "trainer/model/language": "base system config text tokenizer documents tokens settings shape model llama fused cpu_ops gpu_ops checkpoint",
    "trainer/model/convnet": "base config images settings parameters shape model checkpoint",
    "trainer/tasks": "base config telemetry tokens images settings codec outer_optimizer knowledge policy parameters shape model llama fused "
    "cpu_ops language convnet checkpoint",
    "trainer/peers": "base config settings rate shape outer_optimizer knowledge policy plan sockets transport gloo secure "
    "tunnel link collective emulate protocol membership exchange",
    "trainer/facade": "base system config telemetry schedule codec protocol settings outer_optimizer outer_sync peers",
    "trainer/site": "base memory config telemetry data reduction rate knowledge policy strategy",
    "trainer/round": "base config settings telemetry data rate validation knowledge plan sockets transport protocol peers site strategy",
    "trainer/watch": "base system config telemetry account report charts sockets",
    "trainer/launch": "base system config settings telemetry account watch link sockets checkpoint",
    "trainer/probe": "base processor system config data tokens images settings knowledge profile sockets model matmul llama "
    "language convnet tasks inner peers",
    "trainer/run": "base processor system config settings telemetry data schedule knowledge plan link sockets transport protocol "
    "membership parameters model matmul language tasks validation checkpoint rate inner strategy scatter peers site round launch",
    "trainer/manual": "base config",
    "trainer/doctor": "base processor system config settings telemetry inner model knowledge sockets transport secure peers "
    "probe tasks run",
    "trainer/init": "base system config settings shape model link sockets secure",
    "trainer/commands": "base processor system config manual settings telemetry series report charts watch tokenizer tokens "
    "outer_optimizer knowledge policy plan simulate shape sockets secure protocol membership peers launch init",
    "trainer/commands/torch": "base processor system config manual settings telemetry report watch text tokenizer documents tokens images "
    "knowledge simulate commands model matmul language convnet tasks checkpoint launch probe run doctor",
    "trainer": "commands torch",
    "docs/examples/outer_loop": "",  # sees what is installed, and no folder of the tree
}

# What from outside only some places may include: pattern -> places.
ONLY_IN = {
    r"<gloo/|\"gloo/": ("wan/transport/gloo/", "tests/"),
    r"<openssl": ("wan/secure/", "tests/"),
    r"<zmq": ("wan/membership", "tests/"),
    r"<microhttpd": ("trainer/watch/http_server",),
    r"<cuda": ("trainer/cuda", "trainer/kernels/gpu", "trainer/model/gpu_ops/", "trainer/reduction/nccl_",
               "tests/"),
    r"<nccl": ("trainer/reduction/nccl_",),
    r"<arrow/|<parquet/": ("trainer/data/parquet/", "tests/"),
    r"<sentencepiece": ("trainer/data/tokenizer/",),
    r"<pcre2|<utf8proc": ("trainer/data/text/",),
    r"<catch2/": ("tests/support/catch",),
}

# Folders whose files may see LibTorch, by whatever way: the others compile in seconds and run under
# ThreadSanitizer.
LIBTORCH = re.compile(r"<(ATen|torch|c10)/")
MAY_SEE_LIBTORCH = ("trainer/model", "trainer/tasks", "trainer/inner", "trainer/probe", "trainer/run",
                    "trainer/doctor", "trainer/commands/torch", "docs/examples/")

# Components that can be used without the trainer: each states its own settings, so they see nothing
# of the folder that puts those of a whole run together, and has the namespace of its own name.
OWN_LIBRARIES = ("wan", "outer_optimizer", "heterogeneity")
SETTINGS = "trainer/settings"
OPENED = re.compile(r"^namespace (farstep(?:::\w+)*) \{")

# A unit is a header with its source. Folders with more or fewer, and how many they may have.
UNITS = (3, 10)
OTHER_UNITS = {
    "trainer/inner": (3, 13),
    "trainer/commands": (3, 17),  # one a subcommand, and what some of them share
    "trainer/commands/torch": (3, 13),
    "trainer/data/parquet": (1, 10),
    "trainer/kernels/products": (3, 13),  # a table of kernels for each set of instructions
    "wan/roster": (3, 13),  # most are parts of one class
    "outer_optimizer/codec": (3, 12),
    "wan/collective": (1, 10),
    "wan/emulate": (1, 10),
    "trainer": (1, 2),  # the main functions
    "docs/examples/outer_loop": (1, 1),
}

MOST_LINES = 400
MOST_MEDIAN_LINES = 120  # of the product's files
INCLUDE = re.compile(r'^\s*#include\s+(?:"([^"]+)"|(<[^>]+>))')
LIBRARY = re.compile(r"farstep_library\((\w+)([^)]*)\)")
FOLDER_OF_LIBRARY = {"gpu_kernels": "gpu", "inner_gpu": "gpu", "torch_commands": "torch"}  # where the names differ


def tracked(*patterns: str) -> list[Path]:
    """The files of the working tree that are not ignored."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
                            check=True, capture_output=True, text=True).stdout.split()
    return [Path(name) for name in listed if Path(name).exists()]


@cache
def lines_of(source: Path) -> list[str]:
    return source.read_text(encoding="utf-8").splitlines()


@cache
def includes_of(source: Path) -> list[tuple[int, str]]:
    """Line number and what stands between #include's quotes, or with its angle brackets."""
    matches = ((number, INCLUDE.match(line)) for number, line in enumerate(lines_of(source), 1))
    return [(number, match.group(1) or match.group(2)) for number, match in matches if match]


def way_to(source: Path, is_goal, seen: set[Path] | None = None) -> list[tuple[int, str]]:
    """The includes that lead from `source` to something that `is_goal` takes; empty if none do."""
    seen = set() if seen is None else seen
    for number, target in includes_of(source):
        if is_goal(target):
            return [(number, target)]
        path = Path(target)
        if path in seen or not path.exists():
            continue
        seen.add(path)
        if rest := way_to(path, is_goal, seen):
            return [(number, target), *rest]
    return []


def is_test(source: Path) -> bool:
    return str(source).startswith("tests/")


def allowed_in(folder: str) -> list[str]:
    return MAY_INCLUDE[folder].split()


def check_include(source: Path, target: str) -> str | None:
    """Why `source` may not include the project's file `target`; None if it may."""
    if not Path(target).exists():
        return f"includes {target}, which does not exist from the root of the tree"
    folder, target_folder = str(source.parent), str(Path(target).parent)
    if is_test(source) or folder == target_folder:
        return None
    if target_folder.startswith("tests"):
        return "includes a test; move what it needs of it into the product, or itself into tests/"
    if target_folder not in MAY_INCLUDE or Path(target_folder).name not in allowed_in(folder):
        return (f"includes {target}, but {folder} may include {', '.join(allowed_in(folder)) or 'nothing'}: take a "
                "value or a callable instead, or move the code to a higher folder")
    return None


def check_ways(source: Path) -> list[str]:
    """Includes that lead, over other headers, to what the file's folder may not see."""
    rules = [(not str(source.parent).startswith(MAY_SEE_LIBTORCH), "LibTorch", LIBTORCH.match,
              "take a callable or plain values instead"),
             (str(source).startswith(tuple(f"{folder}/" for folder in OWN_LIBRARIES)), SETTINGS,
              lambda target: target.startswith(f"{SETTINGS}/"), "take the component's own settings instead")]
    found = []
    for holds, what, is_goal, remedy in rules:
        if holds and (way := way_to(source, is_goal)):
            names = " -> ".join(target for _, target in way)
            found.append(f"{source}:{way[0][0]}: sees {what} through {names}: {remedy}")
    return found


def check_namespaces(source: Path) -> list[str]:
    """Where a file puts more than declarations of classes into a namespace that is not its folder's."""
    library = source.parts[0]
    own = f"farstep::{library}" if library in OWN_LIBRARIES else "farstep"
    others = tuple(f"farstep::{other}::" for other in OWN_LIBRARIES if other != library)
    found = []
    for number, line in enumerate(lines_of(source), 1):
        opened = OPENED.match(line)
        if not opened:
            continue
        name = opened.group(1) + "::"
        if name.startswith(own + "::") and not name.startswith(others):
            continue
        block = lines_of(source)[number:]
        block = block[:next((end for end, text in enumerate(block) if text.startswith("}")), len(block))]
        if not all(re.fullmatch(r"((class|struct) \w+;)?", text) for text in block):
            found.append(f"{source}:{number}: declares names in {opened.group(1)}: the folder's are in {own}")
    return found


def check_file(source: Path) -> list[str]:
    """All violations of one file."""
    folder = str(source.parent)
    if not is_test(source) and folder not in MAY_INCLUDE:
        return [f"{source}:1: {folder} is not a folder of the tree: give it a row in {sys.argv[0]} and in "
                "ARCHITECTURE.md"]
    found = []
    lines = lines_of(source)
    if source.suffix == ".h" and "#pragma once" not in lines:
        found.append(f"{source}:1: header without #pragma once")
    if len(lines) > MOST_LINES:
        found.append(f"{source}:{MOST_LINES}: has {len(lines)} lines, {MOST_LINES} at most: split it by what it is "
                     "for")
    for number, target in includes_of(source):
        if not target.startswith("<") and (problem := check_include(source, target)):
            found.append(f"{source}:{number}: {problem}")
        for pattern, places in ONLY_IN.items():
            if re.search(pattern, lines[number - 1]) and not str(source).startswith(places):
                found.append(f"{source}:{number}: only {' and '.join(places)} may include {target}: go through them")
    return found if is_test(source) else found + check_ways(source) + check_namespaces(source)


def check_rows() -> list[str]:
    """Rows of MAY_INCLUDE that name a floor below them: includes could go round in circles."""
    above, found = set(), []
    for folder in MAY_INCLUDE:
        for name in allowed_in(folder):
            if name not in above:
                found.append(f"{sys.argv[0]}:1: {folder} may include {name}, which has no row above it: let "
                             f"{folder} do without, or move its row down")
        above.add(Path(folder).name)
    return found


def check_library(build_file: Path) -> list[str]:
    """What a folder's CMakeLists.txt gives its library, against what its files may include."""
    folder, text, found = str(build_file.parent), build_file.read_text(encoding="utf-8"), []
    if folder not in MAY_INCLUDE:
        return []
    for library in LIBRARY.finditer(text):
        place = f"{build_file}:{text.count(chr(10), 0, library.start()) + 1}"
        words = library.group(2).split()
        if "TORCH" in words and not folder.startswith(MAY_SEE_LIBTORCH):
            found.append(f"{place}: gets LibTorch, which only {', '.join(MAY_SEE_LIBTORCH)} may see")
        after = words[words.index("DEPS") + 1:] if "DEPS" in words else []
        for name in after:
            if name.isupper():
                break
            if not name.startswith("$") and FOLDER_OF_LIBRARY.get(name, name) not in allowed_in(folder):
                found.append(f"{place}: depends on {name}, which {folder} may not include: take it from DEPS")
    return found


def check_sizes(sources: list[Path]) -> list[str]:
    """Units of each folder, and the median length of the product's files."""
    product = [source for source in sources if not is_test(source)]
    found = []
    for folder in MAY_INCLUDE:
        units = {source.stem for source in product if str(source.parent) == folder}
        least, most = OTHER_UNITS.get(folder, UNITS)
        if len(units) > most:
            found.append(f"{folder}:1: has {len(units)} units, {most} at most: make a folder of those that belong "
                         "together")
        if len(units) < least:
            found.append(f"{folder}:1: has {len(units)} units, {least} at least: join it with the folder that it "
                         "serves")
    median = statistics.median(len(lines_of(source)) for source in product)
    if median > MOST_MEDIAN_LINES:
        found.append(f".:1: half of the files have more than {median:.0f} lines; {MOST_MEDIAN_LINES} at most")
    return found


def main() -> int:
    """Checks every file; returns the exit code."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    sources = tracked("*.h", "*.cpp", "*.cu")
    violations = check_rows()
    violations += [violation for source in sources for violation in check_file(source)]
    violations += [violation for file in tracked("*CMakeLists.txt") for violation in check_library(file)]
    violations += check_sizes(sources)
    print("\n".join(violations) or f"{len(sources)} files: every include goes down")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
