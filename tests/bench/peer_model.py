#!/usr/bin/env python3
"""transformers' LlamaForCausalLM in training, served to peer_step.py, which starts this program.

bf16 autocast over fp32 weights (or fp32 alone), clipping, AdamW (fused). Compiled, the model and
its loss are one graph, so that fp32 logits need not be stored. Prints a line of JSON that says what
runs here; then, for every line of its input, takes some steps and prints the seconds of one.
"""

import argparse
import json
import sys
import time

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

SHAPES = {
    "7m": dict(vocab_size=4096, hidden_size=256, intermediate_size=688, num_hidden_layers=6,
               num_attention_heads=4),
    "150m": dict(vocab_size=32000, hidden_size=1024, intermediate_size=2688, num_hidden_layers=12,
                 num_attention_heads=16),
}


class Peer:
    """One model of transformers and its optimizer."""

    def __init__(self, arguments: argparse.Namespace):
        shape, self.device = SHAPES[arguments.preset], arguments.device
        self.mixed = arguments.compute == "bf16"
        torch.manual_seed(1)
        self.model = LlamaForCausalLM(
            LlamaConfig(**shape, max_position_embeddings=arguments.length,
                        attn_implementation="sdpa", use_cache=False)).to(self.device)
        self.parameters = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=4e-4, betas=(0.9, 0.95),
                                           weight_decay=0.1, fused=True)
        self.loss = self.take_loss
        if arguments.compiled:
            self.loss = torch.compile(self.take_loss, fullgraph=True)
        self.tokens = torch.randint(
            0, shape["vocab_size"], (arguments.batch, arguments.length + 1)).to(self.device)

    def take_loss(self, tokens: torch.Tensor) -> torch.Tensor:
        """The mean cross-entropy of what follows each token, its logits in fp32."""
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.mixed):
            logits = self.model(input_ids=tokens[:, :-1]).logits
            return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1),
                                                     tokens[:, 1:].flatten())

    def step(self, steps: int) -> float:
        """Seconds of one inner step, of so many that are waited for at their end."""
        began = time.perf_counter()
        for _ in range(steps):
            loss = self.loss(self.tokens)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        loss.item()
        return (time.perf_counter() - began) / steps


def main() -> None:
    """Serves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=SHAPES, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="for a line of the input")
    parser.add_argument("--compute", choices=("bf16", "fp32"), required=True)
    parser.add_argument("--compiled", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    peer = Peer(arguments)
    print(json.dumps({
        "torch": torch.__version__, "transformers": transformers.__version__,
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if arguments.device == "cuda" else None}), flush=True)
    for _ in sys.stdin:
        print(peer.step(arguments.steps), flush=True)


if __name__ == "__main__":
    main()
