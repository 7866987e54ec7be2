"""How `farstep launch` ends its sites: when one of them fails, and when it is killed."""

import signal
import subprocess
import unittest
from pathlib import Path

from cluster import FARSTEP, Cluster, ClusterTest, by_event, wait_until

ENDLESS = {"outer": {"rounds": 100000}, "plan": {"base_steps": 20, "base_batch": 1},
           "evaluate": {"every_rounds": 0}}
# node2 is refused before it joins; node1 would wait for it for ten minutes.
REFUSED = {1: {"network": {"address": "192.0.2.7"}}}
PATIENT = {"deadlines": {"join_seconds": 600}}


def children_of(pid: int) -> list[int]:
    """The processes that the process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def has_ended(pid: int) -> bool:
    """The process is gone, or waits for its parent to look at its exit code."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rsplit(")", 1)[1].split()[0] == "Z"


class Launch(ClusterTest):
    """A launcher never leaves sites behind, nor waits for those that wait for a failed one."""

    def assert_ends_soon(self, cluster: Cluster):
        """The launcher ends long before join_seconds, and shows what the refused site said."""
        result = cluster.launch(timeout=120)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("node2 ended with exit code 4", result.stderr)
        self.assertIn("192.0.2.7", result.stderr)

    def test_a_refused_site_ends_those_who_wait_for_it(self):
        """One site waits for the refused one, in the coordinator's process."""
        self.assert_ends_soon(Cluster(self.folder, 2, PATIENT, REFUSED))

    def test_a_refused_site_ends_a_coordinator_of_its_own(self):
        """The coordinator is a process that would wait for sites forever."""
        no_host = {"coordinator": {"host": False}}
        cluster = Cluster(self.folder, 2, PATIENT, {0: no_host, 1: {**no_host, **REFUSED[1]}})
        cluster.write_coordinator_config()
        self.assert_ends_soon(cluster)

    def test_a_killed_launcher_ends_its_sites(self):
        """SIGKILL: the kernel sends SIGHUP to the sites, which save and end."""
        cluster = Cluster(self.folder, 2, ENDLESS)
        launcher = subprocess.Popen([str(FARSTEP), "launch", str(cluster.folder)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(launcher)
        wait_until(lambda: all(len(by_event(cluster, name, "round")) >= 2
                               for name in cluster.names), 120, "two rounds at all sites")
        sites = children_of(launcher.pid)
        self.assertEqual(len(sites), len(cluster.names))
        launcher.send_signal(signal.SIGKILL)
        wait_until(lambda: all(map(has_ended, sites)), 120, "the end of all sites")
        for name in cluster.names:
            console = (cluster.output / name / "console.txt").read_text(encoding="utf-8")
            self.assertTrue(by_event(cluster, name, "end"), console)
            end = by_event(cluster, name, "end")[-1]
            self.assertIn(end["outcome"], ("interrupted", "peer_lost"), end)
        done = max(event["round"] for event in by_event(cluster, "node1", "round"))
        self.assert_success(cluster.launch("--resume", "--set", f"run.outer.rounds={done + 2}"))

    def test_repeated_hang_ups_do_not_stop_saving(self):
        """A dying launcher sends a signal for each of its threads; the second is no haste."""
        cluster = Cluster(self.folder, 1, ENDLESS)
        site = self.start_all(cluster)["node1"]
        wait_until(lambda: by_event(cluster, "node1", "round"), 120, "a round")
        site.send_signal(signal.SIGHUP)
        wait_until(lambda: "interrupted: " in cluster.log("node1"), 120, "the first signal's effect")
        site.send_signal(signal.SIGHUP)
        self.assertEqual(site.wait(timeout=120), 130)
        self.assertEqual(by_event(cluster, "node1", "end")[-1]["outcome"], "interrupted")


if __name__ == "__main__":
    unittest.main()
