"""What the experiments share: simulated runs, their rows and pages, drawings, and the command line.

An experiment measures, and then writes. What it measured is a *record*: its rows and their source (machine, date,
commit and command). A page follows from a record alone, so that --from writes it again without measuring anew.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PARAMETERS = 214_983_680  # of the 150M model, with its embedding and head


def make_parser(description: str) -> argparse.ArgumentParser:
    """The command line: where the program is, where the results go, and whether to measure."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--binary", default=str(REPOSITORY / "build/release/farstep"))
    parser.add_argument("--output", type=Path, default=REPOSITORY / "docs" / "results")
    parser.add_argument("--from", dest="recorded", type=Path, metavar="ROWS.json",
                        help="write page and drawing of these rows again, and measure nothing")
    return parser


def machine(uses_gpu: bool = False) -> str:
    """The cores that this process may use, their processor, and the GPU that an experiment uses."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^(\w[\w ]*\w)\s*: (.+)$", cpuinfo, re.MULTILINE))
    name = fields.get("model name", platform.machine())
    text = f"{len(os.sched_getaffinity(0))} cores of {name}"
    if "cpu family" in fields:  # a hypervisor may hide the name
        text += f" (family {fields['cpu family']}, model {fields['model']})"
    if uses_gpu:
        query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        text += ", " + subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()[0]
    return text


def commit() -> str:
    """That of the tree; "+ changes" if other files than documents differ from it."""
    git = ["git", "-C", str(REPOSITORY)]
    name = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], check=True, capture_output=True, text=True).stdout
    status = [*git, "status", "--porcelain", "--", ".", ":!docs"]
    changes = subprocess.run(status, check=True, capture_output=True, text=True).stdout
    return f"commit {name.strip()}{' + changes' if changes else ''}"


def source(kind: str = "Measured") -> dict[str, str]:
    """Where the rows of this process come from. `kind` is "Simulated" where no machine counts."""
    command = [str(Path(sys.argv[0]).resolve().relative_to(REPOSITORY)), *sys.argv[1:]]
    return {"kind": kind, "machine": machine() if kind == "Measured" else "any machine",
            "date": datetime.date.today().isoformat(), "commit": commit(), "command": shlex.join(command)}


def wrap(text: str, later_indent: str = "") -> str:
    """Lines of at most 120 columns."""
    return textwrap.fill(text, 120, subsequent_indent=later_indent, break_long_words=False,
                         break_on_hyphens=False) + "\n"


def source_line(of: dict[str, str]) -> str:
    """The paragraph above a table."""
    return wrap(f"{of['kind']}: {of['machine']} · {of['date']} · {of['commit']} · `{of['command']}`") + "\n"


def publish(name: str, options: argparse.Namespace, measure: Callable[[], dict], page: Callable[[dict], str],
            draw: Callable[[dict, Path], None]):
    """Measures and keeps the record, or reads one; then writes page and drawing."""
    if options.recorded:
        record = json.loads(options.recorded.read_text(encoding="utf-8"))
    else:
        text = json.dumps(measure(), indent=1)
        # A list of numbers is one line.
        text = re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text)
        path = options.output / "rows" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
        record = json.loads(text)
    write(options.output / f"{name}.md", page(record))
    draw(record, options.output / f"{name}.svg")


def site(name: str, step_seconds: float, **more: object) -> dict:
    """A site of one GPU that takes `step_seconds` for 4 sequences."""
    return {"profile": {"site": name, "links": [], "devices": [
        {"name": "GPU", "fp16_tflops": None, "bf16_tflops": None, "memory_bytes": None, "max_micro_batch": None,
         "step_seconds": [{"micro_batch": size, "seconds": step_seconds * size / 4} for size in (1, 4, 16)]}]}} | more


def simulate(binary: str, scenario: dict | Path, *arguments: str) -> tuple[dict, list[dict]]:
    """What `farstep simulate --json` prints, and the events of all sites."""
    with tempfile.TemporaryDirectory(prefix="farstep-experiment-") as temporary:
        folder = Path(temporary)
        if isinstance(scenario, dict):
            path = folder / "scenario.json"
            path.write_text(json.dumps(scenario), encoding="utf-8")
            scenario = path
        result = subprocess.run([binary, "simulate", "--scenario", scenario, "--out", folder / "events", "--json",
                                 *arguments], capture_output=True, text=True, check=False, timeout=600)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        events = [json.loads(line) for path in sorted((folder / "events").glob("*/events.jsonl"))
                  for line in path.read_text(encoding="utf-8").splitlines()]
        return json.loads(result.stdout), events


def tokens_per_second(events: list[dict]) -> float:
    """Of all sites together."""
    times = [event["time"] for event in events]
    return sum(event["tokens"] for event in events if event["event"] == "step") / (max(times) - min(times))


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(line) + " |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) + "\n"


def write(path: Path, text: str):
    """Writes a page of results, and prints it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(text)


def pyplot_for(path: Path):
    """The drawing library; ends the program if it is missing."""
    try:
        import matplotlib
    except ImportError:
        sys.exit(f"{path} is not drawn: install python3-matplotlib and start this with /usr/bin/python3")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "farstep"  # the same figures give the same file
    from matplotlib import pyplot
    return pyplot


def save(figure, path: Path):
    """Writes the drawing without a date, so that the same figures give the same file."""
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
