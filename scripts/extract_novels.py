#!/usr/bin/env python3
"""Writes the six novels of the R package janeaustenr as plain text files.

The package keeps each novel as a vector of lines in R's lazy-load database: data/Rdata.rdx is an
index of names to (offset, length) in data/Rdata.rdb, whose blocks are a big-endian length and a
zlib stream. Index and blocks hold R's XDR serialisation, of which this reads what occurs there.
"""

import argparse
import gzip
import struct
import zlib
from pathlib import Path
from typing import Any


class XdrReader:
    """Reads one object of R's serialisation format, versions 2 and 3, in its XDR encoding."""

    SYMBOL, PAIRLIST, STRING, LOGICALS, INTEGERS, STRINGS, LIST = 1, 2, 9, 10, 13, 16, 19
    NULL, REFERENCE = 254, 255
    HAS_ATTRIBUTES, HAS_TAG = 0x200, 0x400

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.offset = 0
        self.symbols: list[Any] = []

    def read(self) -> Any:
        """The object: lists with names become dictionaries, other vectors become lists."""
        if self.take(2) != b"X\n":
            raise ValueError("not R's XDR serialisation")
        version, _, _ = self.integer(), self.integer(), self.integer()
        if version == 3:
            self.take(self.integer())  # the native encoding's name
        return self.item()

    def take(self, count: int) -> bytes:
        piece = self.content[self.offset : self.offset + count]
        if len(piece) != count:
            raise ValueError(f"ends at byte {len(self.content)}, in the middle of an object")
        self.offset += count
        return piece

    def integer(self) -> int:
        return struct.unpack(">i", self.take(4))[0]

    def item(self) -> Any:
        flags = self.integer()
        kind = flags & 0xFF
        if kind == self.NULL:
            return None
        if kind == self.REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        if kind == self.SYMBOL:
            self.symbols.append(self.item())
            return self.symbols[-1]
        if kind == self.PAIRLIST:
            return self.pairs(flags)
        if kind == self.STRING:
            length = self.integer()
            return None if length < 0 else self.take(length).decode("utf-8")
        length = self.integer()
        if kind in (self.INTEGERS, self.LOGICALS):
            values: list[Any] = list(struct.unpack(f">{length}i", self.take(4 * length)))
        elif kind in (self.STRINGS, self.LIST):
            values = [self.item() for _ in range(length)]
        else:
            raise ValueError(f"object of unknown type {kind} at byte {self.offset}")
        attributes = self.item() if flags & self.HAS_ATTRIBUTES else None
        if kind == self.LIST and attributes and "names" in attributes:
            return dict(zip(attributes["names"], values))
        return values

    def pairs(self, flags: int) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        while flags & 0xFF == self.PAIRLIST:
            if flags & self.HAS_ATTRIBUTES:
                self.item()
            tag = self.item() if flags & self.HAS_TAG else None
            result[tag] = self.item()
            flags = self.integer()
        return result


def read_novels(package: Path) -> dict[str, list[str]]:
    """Lines of every novel in the package, by the novel's name."""
    index = XdrReader(gzip.decompress((package / "data/Rdata.rdx").read_bytes())).read()
    database = (package / "data/Rdata.rdb").read_bytes()
    novels = {}
    for name, (start, length) in index["variables"].items():
        block = database[start : start + length]
        content = zlib.decompress(block[4:])
        if len(content) != struct.unpack(">I", block[:4])[0]:
            raise ValueError(f"{name}: block at byte {start} does not hold what its length says")
        novels[name] = XdrReader(content).read()
    return novels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("out", type=Path)
    out = (arguments := parser.parse_args()).out
    out.mkdir(parents=True, exist_ok=True)
    for name, lines in read_novels(arguments.package).items():
        (out / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
