"""What the experiments share: simulated runs, Markdown tables, drawings, and the command line."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PARAMETERS = 214_983_680  # of the 150M model, with its embedding and head


def make_parser(description: str) -> argparse.ArgumentParser:
    """The command line: where the program is, and where the results go."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--binary", default=str(REPOSITORY / "build/release/farstep"))
    parser.add_argument("--output", type=Path, default=REPOSITORY / "docs" / "results")
    return parser


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
