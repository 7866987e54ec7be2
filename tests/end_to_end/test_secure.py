"""Runs over secure links: one port a site, TLS, and nobody without a key of the run."""

import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import unittest
from pathlib import Path

from cluster import (FARSTEP, UNENDING, Cluster, ClusterTest, by_event, farstep, free_port, validation_losses,
                     wait_until)
from ports import endpoint_of, port_of
from slow_line import Line

RUN = {"outer": {"rounds": 12}, "plan": {"base_steps": 20}, "evaluate": {"every_rounds": 0},
       "deadlines": {"lost_after_seconds": 30}}
NEAR, FAR = "127.0.0.3", "127.0.0.2"  # where peers connect to the first site, and where it listens


def visit(port: int, certificate: str | None = None, key: str | None = None) -> bytes:
    """Greets a secure port by TLS, trusting everybody; returns what it answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key)
    answer = b""
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), timeout=120) as plain:
            with context.wrap_socket(plain) as channel:
                answer = channel.recv(100)
    return answer


def open_ports(process: subprocess.Popen) -> set[int]:
    """The TCP ports at which the process takes connections, but the inner ends of its secure links.

    These are at 127.0.0.1 and at 127.77.0.0/16, which the kernel writes from the last byte on.
    """
    inner = ("0100007F", "4D7F")
    ports = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process.pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            address, port = fields[1].split(":")
            if fields[3] == "0A" and not address.endswith(inner):  # it listens
                ports[f"socket:[{fields[9]}]"] = int(port, 16)
    found = set()
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            found.add(ports.get(os.readlink(descriptor)))
    return found - {None}


class SecureRuns(ClusterTest):
    """Whole runs of two and three sites."""

    def behind_a_line(self, secure: bool, run: dict) -> tuple[Cluster, Line]:
        """Two sites; all that the second one sends to the first one crosses the line."""
        folder = self.folder / f"secure-{secure}"
        folder.mkdir()
        port = free_port()
        near, far = endpoint_of(NEAR, port), endpoint_of(FAR, port)
        first = {"coordinator": {"endpoint": far}}
        if secure:
            first["network"] = {"address": NEAR, "listen": FAR}
        # Nobody connects to the second one, so everything crosses the line.
        second = {"coordinator": {"endpoint": near}}
        if secure:
            second["network"] = {"address": ""}
        cluster = Cluster(folder, 2, run, {0: first, 1: second}, secure=secure)
        line = Line(NEAR, FAR, port)
        self.addCleanup(line.close)
        return cluster, line

    def assert_all_end(self, cluster: Cluster, started: dict):
        """Checks that every site trains to its end in the first generation."""
        self.assert_end(cluster, started)
        self.assert_one_theta(cluster)
        for name in cluster.names:
            self.assertEqual({event["generation"] for event in by_event(cluster, name, "round")}, {1})
            self.assertEqual(by_event(cluster, name, "view"), [])

    def test_weights_are_those_of_plain_links_and_nothing_is_readable(self):
        """The same losses to the last bit; the line carries no message that can be read."""
        losses, heard = {}, {}
        for secure in (False, True):
            cluster, line = self.behind_a_line(secure, {"evaluate": {"every_rounds": 1}})
            self.assert_end(cluster, self.start_all(cluster))
            losses[secure], heard[secure] = validation_losses(cluster), bytes(line.heard)
        self.assertEqual(losses[True], losses[False])
        # Plain: the control plane. Secure: that, and all the deltas.
        for text in (b'"type"', b"heartbeat", b"node2"):
            self.assertIn(text, heard[False])
            self.assertNotIn(text, heard[True])
        self.assertGreater(len(heard[True]), 3 * 4 * 51360)

    def test_a_dead_line_costs_its_time_only(self):
        """For longer than the silence by which a tunnel knows it, at several times of a round."""
        cluster, line = self.behind_a_line(True, RUN | {"outer": {"rounds": 40}})
        started = self.start_all(cluster)
        for rounds in (3, 9):
            self.wait_for_rounds(cluster, rounds, "node1")
            line.may_pass.clear()
            time.sleep(7)  # the length of the outage itself
            line.may_pass.set()
        self.assert_all_end(cluster, started)

    def test_cut_connections_cost_nothing(self):
        """Ten times, in the steps and in the exchange."""
        cluster, line = self.behind_a_line(True, RUN | {"outer": {"rounds": 40}})
        started = self.start_all(cluster)
        for rounds in range(2, 32, 3):
            self.wait_for_rounds(cluster, rounds, "node1")
            line.cut()
        self.assert_all_end(cluster, started)
        self.assertIn("connected again", cluster.log("node2"))

    def test_a_coordinator_of_its_own_serves_a_run_with_keys(self):
        """Its key names it, and no site's process hosts it."""
        away = {"coordinator": {"host": False}}
        cluster = Cluster(self.folder, 2, RUN, {0: away, 1: away}, secure=True)
        coordinator = self.start_coordinator(cluster)
        self.assert_all_end(cluster, self.start_all(cluster))
        self.assert_end(cluster, {"coordinator": coordinator})

    def start_coordinator(self, cluster: Cluster) -> subprocess.Popen:
        """Starts `farstep coordinator`, whose process ends with the test."""
        with open(cluster.folder / "coordinator.txt", "w", encoding="utf-8") as log:
            coordinator = subprocess.Popen(
                [str(FARSTEP), "coordinator", "--config", str(cluster.write_coordinator_config())],
                stdout=log, stderr=log)
        self.processes.append(coordinator)
        return coordinator

    def test_a_killed_site_is_missed_soon_though_the_coordinator_cannot_dial_it(self):
        """A coordinator of its own dials nobody; the one of a site dials none that has no address."""
        away = {"coordinator": {"host": False}}
        for case, sites in (("own", dict.fromkeys(range(3), away)),
                            ("hosted", {2: {"network": {"address": ""}}})):
            with self.subTest(case):
                cluster = Cluster(self.make_folder(case), 3, RUN | {
                    "min_sites": 2, "outer": {"rounds": 100_000},
                    "deadlines": UNENDING}, sites, secure=True)
                if case == "own":
                    self.start_coordinator(cluster)
                started = self.start_all(cluster)
                self.wait_for_rounds(cluster, 2)
                started["node3"].kill()
                told = "coordinator" if case == "own" else "node1"
                lost = re.compile(r"site node3: silent for ([0-9.]+) s")
                wait_until(lambda told=told, cluster=cluster: lost.search(cluster.log(told)), 90, "its loss")
                # 2.5 heartbeats, and what a busy machine adds; silence alone would take minutes.
                self.assertLess(float(lost.search(cluster.log(told))[1]), 10)
                self.wait_for_rounds(cluster, len(by_event(cluster, "node2", "round")) + 2, "node2")
                self.end_processes()

    def test_a_site_without_an_address_opens_no_port(self):
        """It connects to all others, each of which has one port for all that it does."""
        port = free_port()
        coordinator = {"endpoint": endpoint_of(NEAR, port)}
        cluster = Cluster(self.folder, 3, RUN | {"outer": {"rounds": 100_000}}, {
            0: {"coordinator": coordinator, "network": {"address": NEAR}},
            1: {"coordinator": coordinator, "network": {"address": ""}},
            2: {"coordinator": coordinator, "network": {"address": FAR}}}, secure=True)
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2)
        ports = {name: open_ports(process) for name, process in started.items()}
        self.assertEqual(ports["node1"], {port})
        self.assertEqual(ports["node2"], set())
        self.assertEqual(len(ports["node3"]), 1, ports)
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)
        hashes = [[event["theta_hash"] for event in by_event(cluster, name, "round")][:2]
                  for name in cluster.names]
        self.assertEqual(hashes, [hashes[0]] * 3)

    def test_two_sites_that_nobody_can_connect_to_are_named(self):
        """Each reaches the first site, but not the other."""
        hidden = {"network": {"address": ""}}
        cluster = Cluster(self.folder, 3, sites={1: hidden, 2: hidden}, secure=True)
        result = cluster.launch()
        self.assertEqual(result.returncode, 2)
        self.assertIn("network.address: node2 and node3 have none", result.stdout + result.stderr)


class Refusals(ClusterTest):
    """Who is not let in."""

    def test_strangers_learn_and_disturb_nothing(self):
        """Plain bytes, no certificate, another authority's, connections held open: training goes on."""
        cluster = Cluster(self.folder, 2, RUN | {"outer": {"rounds": 100_000}}, secure=True)
        port = port_of(cluster.endpoint)
        other = self.folder / "other"
        self.assertEqual(
            farstep("keys", "--folder", other, "--run", "test", "--sites", "node2").returncode, 0)
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2, "node1")
        held = contextlib.ExitStack()
        self.addCleanup(held.close)
        for _ in range(200):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        certificate = other / "sites" / "node2"
        for _ in range(5):
            self.assertEqual(visit(port), b"")
            self.assertEqual(visit(port, certificate / "site.crt", certificate / "site.key"), b"")
            with socket.create_connection(("127.0.0.1", port), timeout=120) as plain:
                plain.sendall(b"GET / HTTP/1.1\r\n\r\n" * 1000)
                with contextlib.suppress(ConnectionResetError):
                    while plain.recv(1 << 16):
                        pass  # at most a TLS alert, then the end
        known = cluster.folder / "keys" / "sites" / "node2"
        self.assertIn(b"farstep", visit(port, known / "site.crt", known / "site.key"))
        self.wait_for_rounds(cluster, len(by_event(cluster, "node2", "round")) + 2, "node2")
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)
        for name in cluster.names:
            self.assertEqual(by_event(cluster, name, "view"), [])
        refused = [line for line in cluster.log("node1").splitlines() if "secure port:" in line]
        self.assertTrue(any("refused at the TLS handshake" in line for line in refused), refused)
        self.assertLess(len(refused), 30)

    def join(self, cluster: Cluster, code: int) -> str:
        """Starts all; returns the second one's output, after it has ended with `code`."""
        started = self.start_all(cluster)
        self.assert_end(cluster, {"node2": started["node2"]}, code)
        started["node1"].wait(timeout=120)
        return cluster.log("node2")

    def secured(self, changes: dict | None = None) -> Cluster:
        """Two sites with little patience."""
        return Cluster(self.folder, 2, {"deadlines": {"join_seconds": 5, "connect_seconds": 5}},
                       {1: changes or {}}, secure=True)

    def test_a_revoked_site_is_told(self):
        """It has the old list, on which it is not."""
        cluster = self.secured()
        old = (self.folder / "keys" / "revoked.crl").read_bytes()
        self.assertEqual(
            farstep("keys", "--folder", self.folder / "keys", "--revoke", "node2").returncode, 0)
        (self.folder / "keys" / "sites" / "node2" / "revoked.crl").write_bytes(old)
        self.assertIn("revoked", self.join(cluster, 4))
        self.assertIn("revoked", cluster.log("node1"))

    def test_a_site_with_anothers_keys_is_refused_before_it_joins(self):
        """Its certificate names it."""
        cluster = self.secured({"network": {"keys": "keys/sites/coordinator"}})
        self.assertIn("has the keys of site coordinator", self.join(cluster, 2))

    def test_a_plain_site_does_not_join_a_secure_run(self):
        """It waits for an answer that does not come, and says what may be missing."""
        cluster = self.secured()
        path = self.folder / "node2.json"
        path.write_text(re.sub(r'"keys": "[^"]*"', '"keys": ""', path.read_text()))
        self.assertIn("network.keys", self.join(cluster, 4))


if __name__ == "__main__":
    unittest.main()
