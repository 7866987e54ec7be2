#!/usr/bin/env python3
"""Our inner step against transformers' LlamaForCausalLM, eager and compiled, in one run.

All take turns on the same machine, shape, dtype (bf16 autocast over fp32 weights), clipping and
AdamW (fused): step by step on a CPU, ten steps a turn on a GPU, which waits at their end alone.
Prints each one's median step and the ratios of medians. Needs torch 2.11.0 and transformers from
PyPI, what torch.compile needs (a C++ compiler; on a GPU Triton), and the program step or step_gpu.

  python3 tests/bench/peer_step.py build/release/step [--preset 7m|150m] [--turns N] [--threads N]
  python3 tests/bench/peer_step.py build/release/step_gpu --gpu [--turns N]
"""

import argparse
import statistics
import subprocess
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SHAPES = {
    "7m": dict(vocab_size=4096, hidden_size=256, intermediate_size=688, num_hidden_layers=6,
               num_attention_heads=4),
    "150m": dict(vocab_size=32000, hidden_size=1024, intermediate_size=2688, num_hidden_layers=12,
                 num_attention_heads=16),
}
BATCHES = {"7m": (8, 256), "150m": (2, 512)}
GPU_PRESET, GPU_BATCH, GPU_STEPS = "150m", (16, 1024), 10  # as step_gpu serves them


class Peer:
    """One model of transformers and its optimizer."""

    def __init__(self, preset: str, shape: tuple[int, int], device: str, compiled: bool):
        batch, length = shape
        self.device = device
        torch.manual_seed(1)
        model = LlamaForCausalLM(LlamaConfig(**SHAPES[preset], max_position_embeddings=length,
                                             attn_implementation="sdpa", use_cache=False)).to(device)
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=4e-4, betas=(0.9, 0.95),
                                           weight_decay=0.1, fused=True)
        self.model = torch.compile(model) if compiled else model
        self.tokens = torch.randint(0, SHAPES[preset]["vocab_size"], (batch, length + 1)).to(device)

    def step(self, steps: int = 1) -> float:
        """Seconds of one inner step, of so many that are waited for at their end."""
        began = time.perf_counter()
        for _ in range(steps):
            with torch.autocast(self.device, dtype=torch.bfloat16):
                logits = self.model(input_ids=self.tokens[:, :-1]).logits
                loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1),
                                                         self.tokens[:, 1:].flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        loss.item()
        return (time.perf_counter() - began) / steps


class Ours:
    """A program that takes its steps for every line it is sent, and says how long one took."""

    def __init__(self, *command: object):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def step(self, _steps: int = 1) -> float:
        """Seconds of one inner step."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main() -> None:
    """Takes turns and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--preset", choices=SHAPES, default="7m")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--gpu", action="store_true", help="the 150m preset on the first GPU")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.gpu:
        preset, (batch, length), device, steps = GPU_PRESET, GPU_BATCH, "cuda", GPU_STEPS
        ours = Ours(arguments.program, "--serve", steps)
    else:
        preset, device, steps = arguments.preset, "cpu", 1
        batch, length = BATCHES[preset]
        ours = Ours(arguments.program, "--serve", "--preset", preset, "--batch", batch, "--length",
                    length, "--threads", arguments.threads)
    runners = {"ours": ours,
               "eager": Peer(preset, (batch, length), device, compiled=False),
               "compiled": Peer(preset, (batch, length), device, compiled=True)}
    times = {name: [] for name in runners}
    for turn in range(arguments.turns + 3):
        for name, runner in runners.items():
            seconds = runner.step(steps)
            if turn >= 3:
                times[name].append(seconds)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"result: {name:>8}: median {median * 1e3:8.1f} ms  best {min(times[name]) * 1e3:8.1f} ms  "
              f"{batch * length / median:8.0f} tokens/s")
    for name in ("compiled", "eager"):
        print(f"result: ours / {name}: {medians[name] / medians['ours']:.2f}")


if __name__ == "__main__":
    main()
