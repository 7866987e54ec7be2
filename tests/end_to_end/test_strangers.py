"""What strangers at the coordinator's port can do to a run: nothing that matters."""

import concurrent.futures
import json
import random
import re
import signal
import socket
import struct
import unittest
import weakref

from cluster import REPOSITORY, Cluster, ClusterTest, by_event
from ports import port_of

MIB = 1 << 20
PROTOCOL = int(re.search(r"kProtocolVersion = (\d+)",
                         (REPOSITORY / "wan/protocol/protocol.h").read_text(encoding="utf-8"))[1])


def flood(port: int, chunk: bytes, chunks: int) -> int:
    """Sends `chunk` that many times on one connection, or until it is closed. Returns the chunks that went out."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for sent in range(chunks):
            try:
                connection.sendall(chunk)
            except (BrokenPipeError, ConnectionResetError):
                return sent
    return chunks


def peak_bytes(pid: int) -> int:
    """The largest memory that the process has used so far."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1])


class Peer:
    """A connection that speaks ZeroMQ's ZMTP 3.0 with PLAIN, as every site without keys (rfc.zeromq.org/spec/23)."""

    def __init__(self, port: int):
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        weakref.finalize(self, self.connection.close)
        greeting = b"\xff" + b"\0" * 8 + b"\x7f\3\0" + b"PLAIN".ljust(20, b"\0") + b"\0" * 32
        self.connection.sendall(greeting)
        self.receive(64)
        self.command(b"HELLO", b"\7farstep\7farstep")
        self.receive(2 + 8)  # WELCOME
        self.command(b"INITIATE", b"\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER")
        self.receive(self.receive(2)[1])  # READY

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.connection.recv(size - len(data))
            if not piece:
                raise ConnectionResetError
            data += piece
        return data

    def command(self, name: bytes, body: bytes) -> None:
        content = bytes([len(name)]) + name + body
        self.connection.sendall(b"\4" + bytes([len(content)]) + content)


def register_often(port: int, message: bytes, times: int) -> int:
    """Sends a message that often, over a new connection where the old one is closed; returns how often that was."""
    closed, peer = 0, None
    for _ in range(times):
        try:
            peer = peer or Peer(port)
            peer.connection.sendall(b"\2" + struct.pack(">Q", len(message)) + message)
        except OSError:
            closed, peer = closed + 1, None
    return closed


class Strangers(ClusterTest):
    """Connections to the coordinator of a run that trains."""

    def test_floods_fill_neither_memory_nor_log(self):
        """200 MB of one byte and random bytes: little memory, few lines, and the run trains on."""
        # Plain: a secure port turns them away before, which test_secure has.
        cluster = Cluster(self.folder, 2, {"outer": {"rounds": 100_000}, "plan": {"base_steps": 20},
                                           "evaluate": {"every_rounds": 0}}, secure=False)
        port = port_of(cluster.endpoint)
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2, "node1")
        before = peak_bytes(started["node1"].pid)
        lines = len(cluster.log("node1").splitlines())
        self.assertLess(flood(port, b"a" * MIB, 200), 200)
        noise = random.Random(1)
        for _ in range(20):
            flood(port, noise.randbytes(MIB), 10)
        self.assertLess(peak_bytes(started["node1"].pid) - before, 30 * MIB)
        strange = [line for line in cluster.log("node1").splitlines()[lines:] if "stranger" in line]
        self.assertLessEqual(len(strange), 2)
        self.wait_for_rounds(cluster, len(by_event(cluster, "node2", "round")) + 2, "node2")
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)
        for name in cluster.names:
            self.assertEqual(by_event(cluster, name, "view"), [])

    def test_registrations_of_strangers_take_neither_time_nor_memory(self):
        """Well-formed ones of every size, 20 connections at once: the sites do not seem silent meanwhile."""
        cluster = Cluster(self.folder, 3, {"outer": {"rounds": 100_000}, "plan": {"base_steps": 20},
                                           "evaluate": {"every_rounds": 0}}, secure=False)
        port = port_of(cluster.endpoint)
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2, "node1")
        before = peak_bytes(started["node1"].pid)

        def registration(size: int) -> bytes:
            return json.dumps({"protocol": PROTOCOL, "type": "register", "site": "x" * size, "term": 0}).encode()

        for size, often_closed in ((60_000, False), (3 * MIB, True), (15 * MIB, True)):
            rounds = len(by_event(cluster, "node1", "round"))
            with concurrent.futures.ThreadPoolExecutor(20) as strangers:
                sent = [strangers.submit(register_often, port, registration(size), 20) for _ in range(20)]
                # In the middle of it.
                self.wait_for_rounds(cluster, rounds + 2, "node1")
                closed = sum(one.result() for one in sent)
            # Small ones are on their way before the connection is closed.
            self.assertTrue(closed > 10 or not often_closed, (size, closed))
        self.assertLess(peak_bytes(started["node1"].pid) - before, 300 * MIB)
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)
        for name in cluster.names:
            self.assertEqual(by_event(cluster, name, "view"), [])
        self.assertNotIn("no site is heard of", cluster.log("node1"))


if __name__ == "__main__":
    unittest.main()
