#!/usr/bin/env python3
"""Our inner step against transformers' LlamaForCausalLM, eager and compiled, in one run.

All take turns, step by step, on the same machine, shape, dtype (bf16 autocast over fp32 weights),
clipping and AdamW (fused). Prints each one's median step and the ratios of medians. Needs torch
2.11.0 and transformers from PyPI, a C++ compiler for torch.compile, and the program step.

  python3 tests/bench/peer_step.py build/release/step [--preset 7m|150m] [--turns N] [--threads N]
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


class Peer:
    """One model of transformers and its optimizer."""

    def __init__(self, preset: str, compiled: bool):
        batch, length = BATCHES[preset]
        torch.manual_seed(1)
        model = LlamaForCausalLM(LlamaConfig(**SHAPES[preset], max_position_embeddings=length,
                                             attn_implementation="sdpa", use_cache=False))
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=4e-4, betas=(0.9, 0.95),
                                           weight_decay=0.1, fused=True)
        self.model = torch.compile(model) if compiled else model
        self.tokens = torch.randint(0, SHAPES[preset]["vocab_size"], (batch, length + 1))

    def step(self) -> float:
        """Seconds of one inner step."""
        began = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.model(input_ids=self.tokens[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1),
                                                     self.tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss.item()
        return time.perf_counter() - began


class Ours:
    """The program step, one step for every line it is sent."""

    def __init__(self, program: str, preset: str, threads: int):
        batch, length = BATCHES[preset]
        self.process = subprocess.Popen(
            [program, "--serve", "--preset", preset, "--batch", str(batch), "--length",
             str(length), "--threads", str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def step(self) -> float:
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
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    runners = {"ours": Ours(arguments.program, arguments.preset, arguments.threads),
               "eager": Peer(arguments.preset, compiled=False),
               "compiled": Peer(arguments.preset, compiled=True)}
    times = {name: [] for name in runners}
    for turn in range(arguments.turns + 3):
        for name, runner in runners.items():
            seconds = runner.step()
            if turn >= 3:
                times[name].append(seconds)
    batch, length = BATCHES[arguments.preset]
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"{name:>9}: median {median * 1e3:8.1f} ms  best {min(times[name]) * 1e3:8.1f} ms  "
              f"{batch * length / median:8.0f} tokens/s")
    for name in ("compiled", "eager"):
        print(f"ours / {name}: {medians[name] / medians['ours']:.2f}")


if __name__ == "__main__":
    main()
