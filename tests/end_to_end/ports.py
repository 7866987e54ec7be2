"""Ports for processes that tests start later: nobody else on the machine takes them meanwhile."""

import fcntl
import os
import socket
import tempfile
import urllib.parse
from pathlib import Path

COUNT = 10_000
BLOCK = 16  # a run may listen on the ports that follow its own
# Below the range from which the kernel gives ports to whoever connects, or asks for any.
GIVEN = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
LAST = max(GIVEN - 1, 2 * COUNT)


def endpoint_of(address: str, port: int) -> str:
    """The endpoint of a coordinator, as a config has it. `address` is an IP address or a name."""
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"


def port_of(endpoint: str) -> int:
    """The port of an endpoint."""
    return urllib.parse.urlsplit(endpoint).port


def has_ipv6() -> bool:
    """Whether the loopback has an address of IPv6."""
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


def is_free(port: int) -> bool:
    """Whether nobody listens there on the loopback now."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on now, and that no other test gets soon, nor those that
    follow it: all tests of the machine take blocks of them in turn."""
    path = Path(tempfile.gettempdir()) / f"farstep-test-port-{os.getuid()}"
    with open(path, "a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        turn = int(file.read() or "0")
        for turn in range(turn + 1, turn + COUNT // BLOCK + 1):
            port = LAST - BLOCK * (1 + turn % (COUNT // BLOCK))
            if is_free(port):
                file.truncate(0)
                file.write(str(turn))
                return port
    raise AssertionError(f"no port from {LAST - COUNT} to {LAST} is free")
