"""A model's parameters as one flat vector of fp32 values in host memory.

Parameters are PyTorch tensors on any device, or objects with the buffer protocol (NumPy arrays,
array.array("f")): fp32, contiguous and writable.
"""

import array
import ctypes
import sys
from collections.abc import Iterable
from typing import Any

from farstep.errors import ConfigError


def is_tensor(thing: Any) -> bool:
    """Whether it is a PyTorch tensor; does not import PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)


def bytes_of(thing: Any, what: str) -> tuple[Any, int, int]:
    """An object that keeps fp32 values where they are, their address and their number of bytes.

    Raises ConfigError for what has no such values.
    """
    try:
        view = memoryview(thing)
    except TypeError as error:
        raise ConfigError(f"{what} is a {type(thing).__name__}: it must be a PyTorch tensor, or have the "
                          "buffer protocol, as NumPy arrays do") from error
    if view.format != "f" or not view.c_contiguous or view.readonly:
        raise ConfigError(f"{what} has values of format '{view.format}': they must be fp32 ('f'), "
                          "contiguous and writable")
    if view.nbytes == 0:
        return view, 0, 0
    keeper = ctypes.c_char.from_buffer(view.cast("B"))
    return keeper, ctypes.addressof(keeper), view.nbytes


class FlatValues:
    """`size` fp32 values in host memory, zero at first."""

    def __init__(self, size: int):
        self.memory = (ctypes.c_float * size)()
        self._tensor = None

    def __len__(self) -> int:
        return len(self.memory)

    def tensor(self) -> Any:
        """The same memory as a PyTorch tensor."""
        if self._tensor is None:
            torch = sys.modules["torch"]
            self._tensor = torch.frombuffer(self.memory, dtype=torch.float32)
        return self._tensor

    def copy_from(self, values: Any, what: str):
        """Takes as many values from a tensor or buffer. Raises ConfigError."""
        count = values.numel() if is_tensor(values) else bytes_of(values, what)[2] // 4
        if count != len(self):
            raise ConfigError(f"{what} has {count} values, and the parameters have {len(self)}")
        if is_tensor(values):
            self.tensor().copy_(values.detach().reshape(-1))
        else:
            keeper, address, size = bytes_of(values, what)
            ctypes.memmove(self.memory, address, size)
            del keeper

    def copy(self, as_tensor: bool) -> Any:
        """A copy: a tensor, or an array.array of type "f"."""
        return self.tensor().clone() if as_tensor else array.array("f", bytes(self.memory))


class TensorPart:
    """One PyTorch tensor and its place in the flat vector."""

    def __init__(self, tensor: Any, what: str):
        torch = sys.modules["torch"]
        exact = (torch.float32, torch.float64)
        if tensor.dtype not in (*exact, torch.bfloat16, torch.float16):
            raise ConfigError(f"{what} has type {tensor.dtype}: it must be float32, float64, bfloat16 or "
                              "float16")
        self._tensor, self._is_rounded = tensor, tensor.dtype not in exact
        self.count = tensor.numel()

    def read(self, begin: int, local: FlatValues, shared: FlatValues):
        """Copies the tensor's values to `local`, seen from the shared values that were written.

        A tensor of 16 bits has the shared values rounded. Its change since then is added to the
        unrounded ones: else each sync would round what no inner step has changed.
        """
        tensor = self._tensor.detach()
        here = local.tensor()[begin:begin + self.count].view(tensor.shape)
        here.copy_(tensor)
        if self._is_rounded:
            master = shared.tensor()[begin:begin + self.count].view(tensor.shape)
            here.sub_(master.to(tensor.dtype)).add_(master)

    def write(self, begin: int, shared: FlatValues):
        """Copies shared values to the tensor, rounded to its type."""
        tensor = self._tensor.detach()
        tensor.copy_(shared.tensor()[begin:begin + self.count].view(tensor.shape))


class BufferPart:
    """One fp32 buffer and its place in the flat vector."""

    def __init__(self, buffer: Any, what: str):
        self._keeper, self._address, self._bytes = bytes_of(buffer, what)
        self.count = self._bytes // 4

    def read(self, begin: int, local: FlatValues, shared: FlatValues):
        """Copies the buffer's values to `local`."""
        del shared
        ctypes.memmove(ctypes.addressof(local.memory) + 4 * begin, self._address, self._bytes)

    def write(self, begin: int, shared: FlatValues):
        """Copies shared values to the buffer."""
        ctypes.memmove(self._address, ctypes.addressof(shared.memory) + 4 * begin, self._bytes)


class FlatParameters:
    """All parameters in the order in which they were given; each counts once."""

    def __init__(self, parameters: Iterable[Any]):
        self._parts, self._begins, self.size, self.are_tensors = [], [], 0, False
        seen = set()
        for number, parameter in enumerate(parameters):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            what = f"parameter {number}"
            part = TensorPart(parameter, what) if is_tensor(parameter) else BufferPart(parameter, what)
            self.are_tensors = self.are_tensors or is_tensor(parameter)
            self._parts.append(part)
            self._begins.append(self.size)
            self.size += part.count
        if self.size == 0:
            raise ConfigError("there are no parameters to train")

    def read(self, local: FlatValues, shared: FlatValues):
        """Copies what inner steps have made of the shared values to `local`."""
        for begin, part in zip(self._begins, self._parts):
            part.read(begin, local, shared)

    def write(self, shared: FlatValues):
        """Gives the parameters the shared values."""
        for begin, part in zip(self._begins, self._parts):
            part.write(begin, shared)
