"""Sites that cannot reach each other in a run that goes on: the others train on, and who must end is
told why."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import unittest

from cluster import FARSTEP, WATCHFUL, Cluster, ClusterTest, by_event, free_port, wait_until
from slow_line import Line

# Until they are stopped: how fast the machine is decides nothing.
RUN = {"min_sites": 2, "outer": {"rounds": 100_000}, "plan": {"base_steps": 60, "base_batch": 1},
       "evaluate": {"every_rounds": 0}, "deadlines": WATCHFUL | {"connect_seconds": 4}}
ADDRESS = "127.0.0.3"  # of the third site
LANES = 2              # between two of three sites
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
CLOSED = """
table ip closed {{
  chain input {{
    type filter hook input priority 0; policy accept;
    ip daddr {address} tcp dport {port} drop
  }}
}}
"""
NEAR, FAR = "127.0.0.5", "127.0.0.6"  # where peers connect to the first site, and where it listens


def enter_new_network() -> str:
    """Gives this process a network of its own; returns what keeps it from that, empty if nothing."""
    if os.geteuid() != 0:
        return "a network namespace needs root"
    missing = [program for program in ("ip", "nft") if not shutil.which(program)]
    if missing:
        return f"there is no {', '.join(missing)}"
    call = ctypes.CDLL(None, use_errno=True)
    if call.unshare(NEW_NETWORK) != 0:
        return f"this root may not make network namespaces: {os.strerror(ctypes.get_errno())}"
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=10)
    return ""


class Unreachable(ClusterTest):
    """Three sites, of which two go on whatever happens to the third one's links."""

    def rounds(self, cluster: Cluster, name: str) -> int:
        """The site's rounds so far."""
        return len(by_event(cluster, name, "round"))

    def wait_for_more_rounds(self, cluster: Cluster, more: int = 2):
        """Waits until the first two sites have done some more rounds."""
        goals = {name: self.rounds(cluster, name) + more for name in cluster.names[:2]}
        wait_until(lambda: all(self.rounds(cluster, name) >= goal for name, goal in goals.items()),
                   120, "more rounds")

    def lose_third(self, cluster: Cluster, started: dict):
        """Kills the third site in mid-run; returns when the others go on."""
        self.wait_for_more_rounds(cluster)
        started["node3"].kill()
        started["node3"].wait(timeout=120)
        wait_until(lambda: "generation 2 goes on" in cluster.log("node1"), 120, "the loss")

    def start_third(self, cluster: Cluster, started: dict):
        """Starts the third site again."""
        started["node3"] = cluster.start("node3", "--resume=auto")
        self.processes.append(started["node3"])

    def stop(self, cluster: Cluster, started: dict, names: list[str]):
        """Stops these sites; they end well, with the same values in every round and no step twice."""
        for name in names:
            started[name].send_signal(signal.SIGINT)
        for name in names:
            self.assertEqual(started[name].wait(timeout=120), 130, cluster.log(name))
        hashes = [{event["round"]: event["theta_hash"] for event in by_event(cluster, name, "round")}
                  for name in names]
        for other in hashes[1:]:
            for number in hashes[0].keys() & other.keys():
                self.assertEqual(hashes[0][number], other[number], number)
        for name in names[:2]:
            steps = [(event["round"], event["step"]) for event in by_event(cluster, name, "step")]
            self.assertEqual(len(steps), len(set(steps)), "a step was done twice")

    def with_ports(self) -> tuple[Cluster, int]:
        """A cluster whose third site has chosen ports; and the one at which the second one calls."""
        port = free_port()
        cluster = Cluster(self.folder, 3, RUN,
                          {2: {"network": {"address": ADDRESS, "port": port}}}, secure=False)
        return cluster, port + LANES

    def assert_comes_back(self, cluster: Cluster, started: dict):
        """The third site comes again, and trains with the others."""
        rounds = self.rounds(cluster, "node3")
        self.start_third(cluster, started)
        wait_until(lambda: any(event["local_steps"] > 0
                               for event in by_event(cluster, "node3", "round")[rounds:]), 120,
                   "the third site trains again")
        self.stop(cluster, started, cluster.names)

    def test_a_newcomer_behind_a_closed_port_is_told_which_and_the_others_go_on(self):
        """A firewall has opened too few ports of it. With all of them open it takes part."""
        if obstacle := enter_new_network():
            self.skipTest(obstacle)
        cluster, port = self.with_ports()
        started = self.start_all(cluster)
        self.lose_third(cluster, started)
        subprocess.run(["nft", "-f", "-"], input=CLOSED.format(address=ADDRESS, port=port),
                       text=True, check=True, timeout=10)
        self.start_third(cluster, started)
        self.assertEqual(started["node3"].wait(timeout=120), 2, cluster.log("node3"))
        told = f"node3 advertises {ADDRESS}:{port}, which node2 cannot reach (timed out"
        for name in ("node2", "node3"):
            self.assertIn(told, cluster.log(name))
        self.assertIn(f"open TCP port {port} there", cluster.log("node3"))
        self.wait_for_more_rounds(cluster)
        last = by_event(cluster, "node1", "view")[-1]
        self.assertEqual((last["members"], last["lost"]), (["node1", "node2"], "node3"))
        self.assertIn(told, last["reason"])
        subprocess.run(["nft", "delete", "table", "ip", "closed"], check=True, timeout=10)
        self.assert_comes_back(cluster, started)

    def test_a_newcomer_whose_port_is_taken_may_try_later_and_the_others_go_on(self):
        """Another process has it: a restart may help, and does when that has ended."""
        cluster, port = self.with_ports()
        started = self.start_all(cluster)
        self.lose_third(cluster, started)
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind((ADDRESS, port))
            holder.listen()
            self.start_third(cluster, started)
            self.assertEqual(started["node3"].wait(timeout=120), 4, cluster.log("node3"))
            self.assertIn(f"network.port: cannot listen on {ADDRESS}:{port} (Address already in use)",
                          cluster.log("node3"))
            self.wait_for_more_rounds(cluster)
            self.assertEqual(by_event(cluster, "node1", "view")[-1]["lost"], "node3")
        self.assert_comes_back(cluster, started)

    def test_a_link_that_is_out_when_a_third_site_dies_costs_its_time_only(self):
        """For longer than the check of a new view waits; both reach the coordinator all the while."""
        port = free_port()
        cluster = Cluster(self.folder, 3, RUN, {
            0: {"coordinator": {"host": False},
                "network": {"address": NEAR, "listen": FAR, "port": port}},
            1: {"network": {"address": ""}}}, secure=True)
        line = Line(NEAR, FAR, port)
        self.addCleanup(line.close)
        with open(self.folder / "coordinator.txt", "w", encoding="utf-8") as log:
            self.processes.append(subprocess.Popen(
                [str(FARSTEP), "coordinator", "--config", str(cluster.write_coordinator_config())],
                stdout=log, stderr=log))
        started = self.start_all(cluster)
        self.wait_for_more_rounds(cluster)
        line.may_pass.clear()
        for name, peer in (("node1", "node2"), ("node2", "node1")):
            wait_until(lambda n=name, p=peer: f"secure link to {p}, lane 2: nothing has come"
                       in cluster.log(n), 120, "the outage is noticed")
        started["node3"].kill()
        started["node3"].wait(timeout=120)
        for name in ("node1", "node2"):
            wait_until(lambda n=name: cluster.log(n).count("no secure link between node1") >= 2, 120,
                       "two views without the link")
        line.may_pass.set()
        self.wait_for_more_rounds(cluster)
        views = by_event(cluster, "node1", "view")
        self.assertEqual({view["lost"] for view in views} - {None}, {"node3"})
        self.assertEqual(views[-1]["members"], ["node1", "node2"])
        self.stop(cluster, started, cluster.names[:2])


if __name__ == "__main__":
    unittest.main()
