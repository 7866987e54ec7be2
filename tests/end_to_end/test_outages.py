"""Lines that fail and come back, in the lab, with the default deadlines: sites wait, and go on soon.

FARSTEP_OUTAGES says how often the lines of a run fail; the figures are printed.
"""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from cluster import FARSTEP, REPOSITORY, Cluster, ClusterTest, by_event, wait_until

WAN_LAB = REPOSITORY / "scripts" / "wan_lab"
OUTAGES = int(os.environ.get("FARSTEP_OUTAGES", "2"))
OUTAGE_SECONDS = 30
# A busy machine adds to it; without the repairs an outage of 30 s cost up to 30 s more, or a site.
SOON_SECONDS = 15
ADDRESSES = ["10.77.0.1", "10.77.0.2", "10.77.0.3"]
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
    """A lab needs root and TUN devices."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("network namespaces need root")
    if not Path("/dev/net/tun").exists():
        raise unittest.SkipTest("there is no /dev/net/tun")
    if missing := [program for program in ("nft", "nsenter") if not shutil.which(program)]:
        raise unittest.SkipTest(f"there is no {', '.join(missing)}")


class LabCluster(Cluster):
    """Three sites, each in a namespace of a lab; the first hosts the coordinator."""

    def __init__(self, folder: Path, holders: list[int], secure: bool):
        endpoint = f"tcp://{ADDRESSES[0]}:{PORT}"
        super().__init__(folder, 3, RUN, {
            index: {"coordinator": {"endpoint": endpoint}, "network": {"address": address}, **PACED}
            for index, address in enumerate(ADDRESSES)}, secure=secure)
        self.holders = dict(zip(self.names, holders))

    def inside(self, name: str) -> list[str]:
        """The command line before a command that runs at the site."""
        return ["nsenter", f"--net=/proc/{self.holders[name]}/ns/net"]

    def start(self, name: str, *options: str) -> subprocess.Popen:
        """As Cluster's, within the site's namespace."""
        self.begun[name] = len(self.events(name))
        with open(self.folder / f"{name}.txt", "w", encoding="utf-8") as log:
            return subprocess.Popen([*self.inside(name), FARSTEP, "train", "--config",
                                     self.folder / f"{name}.json", *options], stdout=log, stderr=log)


class Outages(ClusterTest):
    """Three sites that train until they are stopped."""

    def start_sites(self, secure: bool, rate: str) -> tuple[LabCluster, dict]:
        """Starts a lab, and all sites in it, which train when this returns."""
        self.lab_folder = self.folder / "lab"
        self.processes.append(subprocess.Popen(
            [WAN_LAB, "up", "--folder", self.lab_folder, "--sites", "3", "--rate", rate, "--rtt", "20ms"],
            stderr=subprocess.DEVNULL))
        file = self.lab_folder / "lab.json"
        wait_until(file.exists, 60, "a lab")
        holders = [site["pid"] for site in json.loads(file.read_text())["sites"]]
        cluster = LabCluster(self.make_folder("run"), holders, secure)
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2)
        return cluster, started

    def control(self, verb: str, site: int):
        """Cuts or heals all of a site's lines."""
        subprocess.run([WAN_LAB, verb, "--folder", self.lab_folder, str(site)], capture_output=True,
                       timeout=30, check=True)

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
                self.control("cut", site)
            time.sleep(OUTAGE_SECONDS)  # the length of the outage itself
            for site in (2, 3):
                self.control("heal", site)
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
        cluster, started = self.start_sites(secure, "100M")
        inside = cluster.inside("node3")
        subprocess.run([*inside, "nft", "-f", "-"], input=CUT_PAIR.format(peer=ADDRESSES[1]), text=True,
                       check=True, timeout=10)
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
        subprocess.run([*inside, "nft", "delete", "table", "ip", "pair"], check=True, timeout=10)
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


if __name__ == "__main__":
    unittest.main()
