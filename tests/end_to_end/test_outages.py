"""Lines that fail and come back, in the lab, with the default deadlines: sites wait, and go on soon.

FARSTEP_OUTAGES says how often the lines of a run fail; the figures are printed.
"""

import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import lab
from cluster import FARSTEP, Cluster, ClusterTest, by_event, wait_until
from ports import endpoint_of

OUTAGES = int(os.environ.get("FARSTEP_OUTAGES", "2"))
OUTAGE_SECONDS = 30
# A busy machine adds to it; without the repairs an outage of 30 s cost up to 30 s more, or a site.
SOON_SECONDS = 15
PORT = 29500
RUN = {"min_sites": 2, "outer": {"rounds": 100_000}, "plan": {"base_steps": 10, "base_batch": 1},
       "evaluate": {"every_rounds": 0},
       "deadlines": {"join_seconds": 300, "heartbeat_seconds": 1, "lost_after_seconds": 45,
                     "pause_seconds": 600}}
PACED = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.05}}]}
CUT_PAIR = """
table ip pair {{
  chain input {{
    type filter hook input priority 0; policy accept;
    ip saddr {peer} drop
  }}
  chain output {{
    type filter hook output priority 0; policy accept;
    ip daddr {peer} drop
  }}
}}
"""


def setUpModule():
    """A lab needs root and TUN devices, and a pair is cut by nft."""
    if lacks := lab.obstacle():
        raise unittest.SkipTest(lacks)
    if not shutil.which("nft"):
        raise unittest.SkipTest("there is no nft")


class LabCluster(Cluster):
    """Three sites, each in a namespace of a lab; the first hosts the coordinator."""

    def __init__(self, folder: Path, party: lab.Lab, run: dict, secure: bool):
        endpoint = endpoint_of(party.addresses[0], PORT)
        super().__init__(folder, 3, run, {
            index: {"coordinator": {"endpoint": endpoint}, "network": {"address": address}, **PACED}
            for index, address in enumerate(party.addresses)}, secure=secure)
        self.lab = party

    def inside(self, name: str, *words: object) -> list[str]:
        """The command line that becomes these words at the site."""
        return self.lab.command(self.names.index(name) + 1, *words)

    def start(self, name: str, *options: str) -> subprocess.Popen:
        """As Cluster's, within the site's namespace."""
        self.begun[name] = len(self.events(name))
        with open(self.folder / f"{name}.txt", "w", encoding="utf-8") as log:
            return subprocess.Popen(self.inside(name, FARSTEP, "train", "--config", self.folder / f"{name}.json",
                                                *options), stdout=log, stderr=log)


class Outages(ClusterTest):
    """Three sites that train until they are stopped."""

    def start_sites(self, secure: bool, rate: str = "100M", run: dict | None = None) -> tuple[LabCluster, dict]:
        """Starts a lab, and all sites in it, which train when this returns."""
        folder = self.make_folder(f"run{len(list(self.folder.iterdir()))}")
        party = lab.Lab(folder / "lab", "--sites", "3", "--rate", rate, "--rtt", "20ms")
        self.processes.append(party.process)
        cluster = LabCluster(folder, party, RUN | (run or {}), secure)
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2)
        return cluster, started

    def seconds_to_a_round(self, cluster: LabCluster, *names: str) -> float:
        """Waits until these have done two more rounds, of which one began later; returns how long."""
        begun = time.monotonic()
        goals = {name: len(by_event(cluster, name, "round")) + 2 for name in names}
        wait_until(lambda: all(len(by_event(cluster, name, "round")) >= goal
                               for name, goal in goals.items()), 110, f"rounds of {names}")
        return time.monotonic() - begun

    def stop(self, cluster: LabCluster, started: dict):
        """All sites live, and end well."""
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)

    def lose_lines(self, secure: bool, rate: str):
        """Cuts the lines of all sites but the host's, again and again: nobody is lost."""
        cluster, started = self.start_sites(secure, rate)
        took = []
        for _ in range(OUTAGES):
            for site in (2, 3):
                cluster.lab.control("cut", site)
            time.sleep(OUTAGE_SECONDS)  # the length of the outage itself
            for site in (2, 3):
                cluster.lab.control("heal", site)
            took.append(self.seconds_to_a_round(cluster, *cluster.names))
        print(f"seconds to two rounds after {len(took)} outages:", [round(seconds, 1) for seconds in took])
        for name in cluster.names:
            self.assertEqual({view["lost"] for view in by_event(cluster, name, "view")} - {None}, set(),
                             cluster.log(name))
        self.assertLess(min(took), SOON_SECONDS)
        self.stop(cluster, started)

    def test_outages_of_plain_lines_lose_nobody(self):
        """In mid-round, mostly."""
        self.lose_lines(secure=False, rate="100M")

    def test_outages_of_plain_lines_in_an_exchange_lose_nobody(self):
        """On lines so slow that an exchange takes as long as the steps."""
        self.lose_lines(secure=False, rate="2M")

    def cut_pair(self, secure: bool):
        """The third site and the second one lose each other for good, and later no more."""
        cluster, started = self.start_sites(secure)
        subprocess.run(cluster.inside("node3", "nft", "-f", "-"), check=True, timeout=10, text=True,
                       input=CUT_PAIR.format(peer=cluster.lab.addresses[1]))
        took = self.seconds_to_a_round(cluster, "node1", "node2")
        print(f"seconds to two rounds after a pair was cut: {took:.1f}")
        views = by_event(cluster, "node1", "view")
        self.assertEqual(views[-1]["lost"], "node3")
        self.assertLess(took, 90)  # 45 s on an idle machine
        # It tries to join again, in vain, and the others lose no step by that.
        wait_until(lambda: "node3 does not reach node2, as it did before; this site joins again"
                   in cluster.log("node3"), 110, "the third site has tried in vain")
        self.seconds_to_a_round(cluster, "node1", "node2")
        self.assertIsNone(started["node3"].poll(), cluster.log("node3"))
        subprocess.run(cluster.inside("node3", "nft", "delete", "table", "ip", "pair"), check=True, timeout=10)
        before = len(by_event(cluster, "node3", "round"))
        wait_until(lambda: any(event["local_steps"] > 0 for event in by_event(cluster, "node3", "round")[before:]),
                   150, "the third site trains again")
        self.assert_no_step_twice(cluster, "node1", "node2")
        self.stop(cluster, started)

    def test_a_pair_that_loses_only_each_other_costs_one_of_the_two(self):
        """It comes back when its line does."""
        self.cut_pair(secure=False)

    def test_a_pair_that_loses_only_each_other_costs_one_of_the_two_with_keys(self):
        """The same over secure links."""
        self.cut_pair(secure=True)

    def test_each_side_of_a_divided_network(self):
        """The host alone pauses or goes on, as min_sites says; the others wait for it, and all come together."""
        deadlines = RUN["deadlines"] | {"lost_after_seconds": 6}
        for min_sites in (2, 1):
            with self.subTest(min_sites=min_sites):
                cluster, started = self.start_sites(True, run={"min_sites": min_sites, "deadlines": deadlines})
                cluster.lab.control("cut", 1)
                if min_sites == 2:
                    wait_until(lambda: "the run pauses" in cluster.log("node1"), 60, "a pause")
                else:
                    wait_until(lambda: "the work of node2, node3 is not counted until they are back"
                               in cluster.log("node1"), 60, "the host goes on alone")
                    self.seconds_to_a_round(cluster, "node1")
                for name, process in started.items():
                    self.assertIsNone(process.poll(), cluster.log(name))
                cluster.lab.control("heal", 1)
                before = {name: len(by_event(cluster, name, "round")) for name in cluster.names}
                wait_until(lambda: all(any(event["local_steps"] > 0 for event in by_event(cluster, name, "round")[count:])
                                       for name, count in before.items()), 110, "all train together")
                lost = {view["lost"] for view in by_event(cluster, "node1", "view")} - {None}
                # With two the run could go on, until the second one fell silent too.
                self.assertLessEqual(len(lost), 3 - min_sites)
                self.assert_no_step_twice(cluster, "node1")
                self.stop(cluster, started)


if __name__ == "__main__":
    unittest.main()
