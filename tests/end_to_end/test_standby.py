"""A run whose coordinator is lost for good, and that goes on at a stand-by: real processes."""

import signal
import subprocess
import unittest

from cluster import FARSTEP, PATIENCE_SECONDS, UNENDING, WATCHFUL, Cluster, ClusterTest, by_event, wait_until

RUN = {"outer": {"rounds": 12}, "plan": {"base_steps": 30, "base_batch": 1},
       "min_sites": 2, "deadlines": WATCHFUL | {"pause_seconds": 60}}
# Rounds of 0.6 s, and so many that a site which comes back finds the run under way.
LONG = {"run": {"outer": {"rounds": 50}},
        "sites": dict.fromkeys(range(3), {"devices": [{"kind": "cpu", "threads": 1,
                                                       "emulate": {"step_seconds": 0.02}}]})}


class StandBy(ClusterTest):
    def start_in_round_2(self, hosts: list[str], **options) -> tuple[Cluster, dict]:
        cluster = Cluster(self.folder, 3, RUN | options.pop("run", {}), hosts=hosts, **options)
        started = {}
        if "coordinator" in hosts:
            config = cluster.write_coordinator_config(output="coordinator")
            with open(self.folder / "coordinator.txt", "w", encoding="utf-8") as log:
                started["coordinator"] = subprocess.Popen(
                    [str(FARSTEP), "coordinator", "--config", str(config)], stdout=log, stderr=log)
            self.processes.append(started["coordinator"])
        started |= self.start_all(cluster)
        self.wait_for_rounds(cluster, 2, "node2")
        return cluster, started

    def wait_for_stand_by(self, cluster: Cluster, *names: str):
        for name in names:
            wait_until(lambda name=name: "the run has a new coordinator" in cluster.log(name),
                       PATIENCE_SECONDS, f"{name} to go on at the stand-by")

    def assert_completed(self, cluster: Cluster, started: dict, *undisturbed: str):
        """All end well, with one theta_global; these sites did each step once."""
        self.assert_end(cluster, started)
        left = [name for name in cluster.names if name in started]
        self.assert_one_theta(cluster, *left, absent=tuple(set(left) - set(undisturbed)))
        self.assert_no_step_twice(cluster, *undisturbed)

    def test_a_hosting_site_is_killed_for_good(self):
        """The stand-by sees that its process has ended, and does not wait for it."""
        folder = self.folder
        for secure in (False, True):
            with self.subTest(secure=secure):
                self.folder = folder / f"secure-{secure}"
                self.folder.mkdir()
                cluster, started = self.start_in_round_2(["node1", "node2"], run={
                    "deadlines": UNENDING}, secure=secure)
                started["node1"].kill()
                started.pop("node1").wait()
                self.assert_completed(cluster, started, "node2", "node3")
                self.wait_for_stand_by(cluster, "node2", "node3")

    def test_a_killed_hosting_site_joins_again_and_hosts_the_next_stand_by_over_secure_links(self):
        """The second one hands over before it ends, as it is asked to stop."""
        cluster, started = self.start_in_round_2(["node1", "node2"], secure=True, **LONG)
        started["node1"].kill()
        started["node1"].wait()
        self.wait_for_stand_by(cluster, "node2", "node3")
        done = len(by_event(cluster, "node3", "round"))
        started["node1"] = self.start_site(cluster, "node1", "--resume=auto")
        self.wait_for_rounds(cluster, done + 2, "node1")
        silences = cluster.log("node3").count("has been silent")
        started["node2"].send_signal(signal.SIGTERM)
        self.assert_end(cluster, {"node2": started.pop("node2")}, 130)
        self.assert_completed(cluster, started, "node3")
        log = cluster.log("node3")
        self.assertEqual(log.count("the run has a new coordinator"), 2, log)
        self.assertEqual(log.count("has been silent"), silences, log)

    def test_a_frozen_hosting_site_wakes_and_does_not_split_the_run(self):
        cluster, started = self.start_in_round_2(["node1", "node2"], **LONG)
        started["node1"].send_signal(signal.SIGSTOP)
        self.wait_for_stand_by(cluster, "node2", "node3")
        started["node1"].send_signal(signal.SIGCONT)
        self.assert_completed(cluster, started, "node2", "node3")
        self.assertIn("only the newest serves the run", cluster.log("node1"))

    def test_a_coordinator_of_its_own_is_killed_for_good(self):
        """No site is lost, and all stay members."""
        cluster, started = self.start_in_round_2(["coordinator", "node1"], run={"min_sites": 3})
        started["coordinator"].kill()
        started.pop("coordinator").wait()
        self.assert_completed(cluster, started, "node1", "node2", "node3")
        self.wait_for_stand_by(cluster, "node1", "node2", "node3")

    def test_a_stand_by_of_its_own_ends_with_the_run(self):
        cluster, started = self.start_in_round_2(["node1", "coordinator"])
        self.assert_completed(cluster, started, "node1", "node2", "node3")
        self.assertNotIn("has a new coordinator", cluster.log("node2"))


if __name__ == "__main__":
    unittest.main()
