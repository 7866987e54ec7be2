#!/usr/bin/env python3
"""How fast the exchange is over links of 200 Mbit/s and 80 ms: real TCP between namespaces.

Needs root, and the release build with its wan_lab and exchange_bench. Every row is a lab of its
own. `ratio` is the time over what the bytes on the wire (TCP and IP headers included) need at the
uplink's rate. Standard library only.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
WIRE_PER_PAYLOAD = 1500 / 1448  # bytes of a full packet over those of its TCP payload
MODEL_150M = 214_983_680

# Name -> sites, Mbit/s, round trip in ms, loss, values of the model, options of exchange_bench.
ROWS = {
    "four": (4, 200, 80, 0, 25_000_000, []),
    "four, Gloo's ring": (4, 200, 80, 0, 25_000_000, ["--ring"]),
    "four, a parameter server": (4, 200, 80, 0, 25_000_000, ["--servers", "1"]),
    "four, 0.1 % loss": (4, 200, 80, 0.001, 25_000_000, []),
    "four, 0.1 % loss, Gloo's ring": (4, 200, 80, 0.001, 25_000_000, ["--ring"]),
    "two": (2, 200, 80, 0, 25_000_000, []),
    "two, Gloo's ring": (2, 200, 80, 0, 25_000_000, ["--ring"]),
    "two, 0.1 % loss": (2, 200, 80, 0.001, 25_000_000, []),
    "four, int8": (4, 200, 80, 0, 100_000_000, ["--codec", "int8"]),
    "four, int4": (4, 200, 80, 0, MODEL_150M, ["--codec", "int4"]),
    "2 sites at 25 Mbit/s": (2, 25, 80, 0, 5_000_000, []),
    "4 sites at 25 Mbit/s": (4, 25, 80, 0, 5_000_000, []),
    "8 sites at 25 Mbit/s": (8, 25, 80, 0, 5_000_000, []),
    "16 sites at 25 Mbit/s": (16, 25, 80, 0, 5_000_000, []),
    "2 sites at 10 Mbit/s": (2, 10, 80, 0, 5_000_000, []),
    "16 sites at 10 Mbit/s": (16, 10, 80, 0, 5_000_000, []),
}


def measure(arguments: argparse.Namespace, name: str) -> dict:
    """One lab, one exchange_bench inside it."""
    sites, mbit, rtt_ms, loss, values, options = ROWS[name]
    command = [REPOSITORY / "scripts" / "wan_lab", "run", "--sites", sites, "--rate", f"{mbit}M",
               "--rtt", f"{rtt_ms}ms", "--loss", loss, "--",
               arguments.bench, "--sites", sites, "--values", values, "--repeats",
               arguments.repeats, "--json", *options, *arguments.options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          timeout=arguments.seconds)
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
    return json.loads(line)


def main() -> None:
    """Prints a Markdown row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path,
                        default=REPOSITORY / "build" / "release" / "exchange_bench")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=600, help="longest time of a row")
    parser.add_argument("options", nargs="*", help="more options of exchange_bench, after --")
    arguments = parser.parse_args()
    print("| sites | a site sends | seconds, median (least to most) | ratio |\n|---|---|---|---|")
    for name in arguments.rows:
        _, mbit, _, _, _, _ = ROWS[name]
        measured = measure(arguments, name)
        seconds = measured["seconds"]
        median = statistics.median(seconds)
        ideal = 8 * measured["socket_bytes"] * WIRE_PER_PAYLOAD / (mbit * 1e6)
        print(f"| {name} | {measured['payload_bytes'] / 1e6:.2f} MB "
              f"(sockets {measured['socket_bytes'] / 1e6:.2f}) | {median:.2f} ({min(seconds):.2f} "
              f"to {max(seconds):.2f}) | {median / ideal:.3f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
