#!/usr/bin/env python3
"""Our inner step against transformers' LlamaForCausalLM, eager and compiled, in one run.

All take turns on the same machine, shape, dtype (bf16 autocast over fp32 weights), clipping and
AdamW (fused): step by step on a CPU, ten steps a turn on a GPU, which waits at their end alone.
The compiled peer is model and loss in one graph. Prints each one's median step and the ratios of
medians. Needs torch and transformers from PyPI, in the versions of scripts/python_*.txt (others are
marked), what torch.compile needs (a C++ compiler; on a GPU Triton), and the program step or step_gpu.
The Python in .deps lacks some of it. Each runs in a process of its own.

--instructions limits both sides to what a lesser processor has: ours by its own flag, the peers by
the variables that LibTorch, oneDNN, MKL and the compiler read. Without AVX-512 the peers train in
fp32, as LibTorch's bf16 products take minutes there; --peer-compute chooses otherwise. With AVX-512
but no bf16 instructions either may be faster: try both.

  python3 tests/bench/peer_step.py build/release/step [--preset 7m|150m] [--turns N] [--threads N]
      [--instructions avx2|avx512|avx512_bf16|amx] [--peer-compute bf16|fp32]
  python3 tests/bench/peer_step.py build/release/step_gpu --gpu [--turns N]
"""

import argparse
import getpass
import json
import os
import re
import select
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from peer_versions import described

BATCHES = {"7m": (8, 256), "150m": (2, 512)}
GPU_PRESET, GPU_BATCH, GPU_STEPS = "150m", (16, 1024), 10  # as step_gpu serves them
WARM_UP_TURNS = 3
DEADLINE_SECONDS = 400  # for a turn: the first one compiles

# Narrowest first: the flags by which Linux names what a set needs, and what limits the peers to it.
INSTRUCTIONS = {
    "avx2": (("avx2", "fma"), {
        "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2"}),
    "avx512": (("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"), {
        "ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512"}),
    "avx512_bf16": (("avx512_bf16",), {
        "ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512_E3"}),
    "amx": (("amx_bf16", "amx_tile"), {
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_AMX", "MKL_ENABLE_INSTRUCTIONS": "AVX512_E4"}),
}


def peer_limits(instructions: str, folder: Path) -> dict[str, str]:
    """The environment that limits a peer; `folder` may hold what it names."""
    limits = dict(INSTRUCTIONS[instructions][1])
    # torch.compile keeps what it made for other instructions.
    limits["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(
        tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}_{instructions}")
    if instructions == "avx2":  # the peer's own code is compiled with -march=native
        compiler = folder / "c++"
        compiler.write_text('#!/bin/sh\nexec c++ "$@" -mno-avx512f\n', encoding="utf-8")
        compiler.chmod(0o755)
        limits["CXX"] = str(compiler)
    return limits


def widest_instructions(cpu_flags: set[str]) -> str:
    """The widest set that a processor with these flags has."""
    widest = "less than avx2"
    for name, (needed, _) in INSTRUCTIONS.items():
        if not cpu_flags.issuperset(needed):
            break
        widest = name
    return widest


def processor(cpuinfo: str) -> tuple[str, str]:
    """Its name, and the widest set that it has, from the text of /proc/cpuinfo."""
    def field(name: str) -> str:
        found = re.search(rf"^{name}\s*: (.*)$", cpuinfo, re.M)
        return found.group(1) if found else "?"
    name = f"{field('model name')} (family {field('cpu family')}, model {field('model')})"
    return name, widest_instructions(set(field("flags").split()))


def this_processor() -> tuple[str, str]:
    """The same of this machine."""
    return processor(Path("/proc/cpuinfo").read_text(encoding="utf-8"))


class Runner:
    """A program that takes its steps for every line it is sent, and says how long one took."""

    def __init__(self, *command: object, **environment: str):
        self.command = list(map(str, command))
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, **environment})

    def line(self) -> str:
        """What it prints next."""
        if not select.select([self.process.stdout], [], [], DEADLINE_SECONDS)[0]:
            self.process.kill()
            sys.exit(f"peer_step: silent for {DEADLINE_SECONDS} s: {' '.join(self.command)}")
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"peer_step: ended with code {self.process.wait()}: {' '.join(self.command)}")
        return line

    def step(self) -> float:
        """Seconds of one inner step."""
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # line() tells how it ended
        return float(self.line())

    def end(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait()


def start_all(arguments: argparse.Namespace, folder: Path) -> dict[str, Runner]:
    """Ours and the two peers."""
    preset, (batch, length), device, steps = (
        (GPU_PRESET, GPU_BATCH, "cuda", GPU_STEPS) if arguments.gpu else
        (arguments.preset, BATCHES[arguments.preset], "cpu", 1))
    ours = ["--serve", steps] if arguments.gpu else [
        "--serve", "--preset", preset, "--batch", batch, "--length", length,
        "--threads", arguments.threads]
    limits = {}
    if arguments.instructions:
        ours += ["--instructions", arguments.instructions]
        limits = peer_limits(arguments.instructions, folder)
    libraries = {"LD_LIBRARY_PATH": arguments.program_libraries} if arguments.program_libraries else {}
    peer = [sys.executable, Path(__file__).resolve().with_name("peer_model.py"), "--preset", preset,
            "--batch", batch, "--length", length, "--device", device, "--threads",
            arguments.threads, "--steps", steps, "--compute", arguments.peer_compute]
    return {"ours": Runner(arguments.program, *ours, **libraries), "eager": Runner(*peer, **limits),
            "compiled": Runner(*peer, "--compiled", **limits)}


def faster_compute(instructions: str) -> str:
    """In what the peers are to train on a processor with these instructions."""
    return "bf16" if instructions in list(INSTRUCTIONS)[1:] else "fp32"


def describe(arguments: argparse.Namespace, peer: dict) -> str:
    """What a table is for."""
    preset, (batch, length) = ((GPU_PRESET, GPU_BATCH) if arguments.gpu else
                               (arguments.preset, BATCHES[arguments.preset]))
    versions = described({name: peer[name] for name in ("torch", "transformers")})
    text = f"{preset}, {batch} x {length}: ours in bf16, {versions} in {arguments.peer_compute}, on "
    if arguments.gpu:
        return text + peer["gpu"]
    name, widest = this_processor()
    limit = (f"both sides limited to {arguments.instructions}" if arguments.instructions else
             "no limit")
    return (f"{text}{arguments.threads} threads of {name}; instructions: {widest}, {limit}, "
            f"LibTorch's vectors {peer['vectors']}")


def take_turns(runners: dict[str, Runner], turns: int) -> dict[str, list[float]]:
    """Seconds of each one's steps."""
    times = {name: [] for name in runners}
    for turn in range(turns + WARM_UP_TURNS):
        for name, runner in runners.items():
            seconds = runner.step()
            if turn >= WARM_UP_TURNS:
                times[name].append(seconds)
    return times


def main() -> None:
    """Takes turns and prints."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--preset", choices=BATCHES, default="7m")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--instructions", choices=INSTRUCTIONS)
    parser.add_argument("--peer-compute", choices=("bf16", "fp32"))
    parser.add_argument("--gpu", action="store_true", help="the 150m preset on the first GPU")
    parser.add_argument("--program-libraries", help="LD_LIBRARY_PATH of the program, not of the peers")
    arguments = parser.parse_args()
    if arguments.gpu and arguments.instructions:
        parser.error("--instructions is for processors")
    if not arguments.peer_compute:
        arguments.peer_compute = "bf16" if arguments.gpu else faster_compute(
            arguments.instructions or this_processor()[1])
    with tempfile.TemporaryDirectory() as folder:
        runners = start_all(arguments, Path(folder))
        try:
            told = [json.loads(runners[name].line()) for name in ("eager", "compiled")]
            print(f"result: {describe(arguments, told[0])}", flush=True)
            times = take_turns(runners, arguments.turns)
        finally:
            for runner in runners.values():
                runner.end()
    batch, length = GPU_BATCH if arguments.gpu else BATCHES[arguments.preset]
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"result: {name:>8}: median {median * 1e3:8.1f} ms  "
              f"best {min(times[name]) * 1e3:8.1f} ms  {batch * length / median:8.0f} tokens/s")
    for name in ("compiled", "eager"):
        print(f"result: ours / {name}: {medians[name] / medians['ours']:.2f}")


if __name__ == "__main__":
    main()
