"""What strangers at the coordinator's port can do to a run: nothing that matters."""

import random
import re
import signal
import socket
import unittest

from cluster import Cluster, ClusterTest, by_event

MIB = 1 << 20


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


class Strangers(ClusterTest):
    """Connections to the coordinator of a run that trains."""

    def test_floods_fill_neither_memory_nor_log(self):
        """200 MB of one byte and random bytes: little memory, few lines, and the run trains on."""
        # Plain: a secure port turns them away before, which test_secure has.
        cluster = Cluster(self.folder, 2, {"outer": {"rounds": 100_000}, "plan": {"base_steps": 20},
                                           "evaluate": {"every_rounds": 0}}, secure=False)
        port = int(cluster.endpoint.rsplit(":", 1)[1])
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


if __name__ == "__main__":
    unittest.main()
