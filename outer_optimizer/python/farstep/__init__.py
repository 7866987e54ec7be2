"""The outer optimizer of Farstep for training loops in Python, such as PyTorch's.

Each of N sites is one process. It takes inner steps with an optimizer of its own. After `every` of them
the sites' changes are averaged, one outer Nesterov step is taken, and all sites go on from the same
bits: DiLoCo (Douillard et al. 2023, https://arxiv.org/abs/2311.08105). docs/python.md has an example.

Needs libfarstep_outer.so, and neither PyTorch nor NumPy: parameters are PyTorch tensors, or anything
with the buffer protocol and fp32 values, such as NumPy arrays.
"""

from farstep.errors import (ConfigError, DataError, DivergenceError, FarstepError, InternalError,
                            PeerError, Stopped)
from farstep.library import Round, version
from farstep.outer_optimizer import OuterOptimizer

__all__ = ["ConfigError", "DataError", "DivergenceError", "FarstepError", "InternalError",
           "OuterOptimizer", "PeerError", "Round", "Stopped", "version"]
