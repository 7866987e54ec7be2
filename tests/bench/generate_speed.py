#!/usr/bin/env python3
"""Tokens a second of farstep generate and of transformers, eager and compiled, in one run.

All continue the same ids by the likeliest tokens, from one model of SmolLM2-135M's shape with random
weights: speed does not depend on them. They take turns, and the medians are printed with their
ratios. transformers uses its static cache where it is compiled. Needs torch, transformers and
sentencepiece from PyPI, what torch.compile needs, and a dataset folder for its tokenizer.

  python3 tests/bench/generate_speed.py build/release/farstep DATA [--compute bf16|fp32]
      [--tokens N] [--turns N] [--threads N]
"""

import argparse
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import sentencepiece
import torch
import transformers

from peer_versions import described

PROMPT = "It is a truth universally acknowledged, that a single man in possession of a good fortune"
SHAPE = dict(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
             num_attention_heads=9, num_key_value_heads=3, tie_word_embeddings=True,
             rope_theta=100000.0, max_position_embeddings=2048)
DEADLINE_SECONDS = 900


class Peer:
    """transformers' generate()."""

    def __init__(self, folder: str, ids: list[int], arguments: argparse.Namespace,
                 compiled: bool):
        dtype = torch.bfloat16 if arguments.compute == "bf16" else torch.float32
        self.model = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=dtype)
        self.ids, self.tokens = torch.tensor([ids]), arguments.tokens
        self.options = {}
        if compiled:
            self.model.forward = torch.compile(self.model.forward, fullgraph=True)
            self.options["cache_implementation"] = "static"

    def seconds(self, tokens: int) -> float:
        """Of so many new tokens, prompt included."""
        began = time.perf_counter()
        self.model.generate(self.ids, attention_mask=torch.ones_like(self.ids), do_sample=False,
                            min_new_tokens=tokens, max_new_tokens=tokens, pad_token_id=0,
                            **self.options)
        return time.perf_counter() - began

    def speed(self) -> float:
        """Tokens a second after the first, as farstep tells it."""
        return (self.tokens - 1) / (self.seconds(self.tokens) - self.seconds(1))


def our_speed(folder: str, arguments: argparse.Namespace) -> float:
    """What farstep tells."""
    done = subprocess.run(
        [arguments.binary, "generate", folder, "--data", arguments.data, "--prompt", PROMPT,
         "--tokens", str(arguments.tokens), "--temperature", "0", "--compute", arguments.compute,
         "--threads", str(arguments.threads)],
        capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS)
    found = re.search(r"then ([0-9.]+) tokens/s", done.stderr)
    if found is None:
        raise RuntimeError(f"farstep generate told no speed: {done.stderr}")
    return float(found[1])


def main() -> None:
    """Compares."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("--compute", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(Path(arguments.data) / "tokenizer.model"))
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)).save_pretrained(folder)
        ids = tokenizer.encode(PROMPT)
        peers = {name: Peer(folder, ids, arguments, name == "compiled")
                 for name in ("eager", "compiled")}
        for peer in peers.values():
            peer.speed()  # compiles
        speeds: dict[str, list[float]] = {"farstep": [], "eager": [], "compiled": []}
        for _ in range(arguments.turns):
            speeds["farstep"].append(our_speed(folder, arguments))
            for name, peer in peers.items():
                speeds[name].append(peer.speed())
    ours = statistics.median(speeds["farstep"])
    versions = described({"torch": torch.__version__, "transformers": transformers.__version__})
    print(f"{versions}, {arguments.compute}, {arguments.threads} threads, medians of {arguments.turns} turns")
    for name, values in speeds.items():
        median = statistics.median(values)
        print(f"{name}: {median:.1f} tokens/s ({min(values):.1f} to {max(values):.1f}), "
              f"farstep is {ours / median:.2f} times as fast")


if __name__ == "__main__":
    main()
