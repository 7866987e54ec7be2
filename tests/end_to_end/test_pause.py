"""A run that waits while too few of its sites are there: real processes, frozen, killed, stopped."""

import signal
import unittest

from cluster import PATIENCE_SECONDS, WATCHFUL, Cluster, ClusterTest, by_event, wait_until

# By default all sites must be there.
RUN = {"outer": {"rounds": 16}, "plan": {"base_steps": 30, "base_batch": 1},
       "deadlines": WATCHFUL | {"pause_seconds": 60}}
# Rounds of 0.6 s, so that the run lasts until all has happened to it.
PACED = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.02}}]}


class Pause(ClusterTest):
    def start_in_round_2(self, run: dict | None = None) -> tuple[Cluster, dict]:
        cluster = Cluster(self.folder, 3, RUN | (run or {}), dict.fromkeys(range(3), PACED))
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2)
        return cluster, started

    def wait_for_pause(self, cluster: Cluster, times: int = 1):
        for name in ("node1", "node3"):
            wait_until(lambda name=name: cluster.log(name).count("the run pauses") >= times,
                       PATIENCE_SECONDS, f"{name} to hear of the pause")

    def test_a_frozen_site_goes_on_and_a_killed_one_joins_again(self):
        """Then the site that hosts the coordinator is killed: this goes on by its journal."""
        cluster, started = self.start_in_round_2()
        started["node2"].send_signal(signal.SIGSTOP)
        self.wait_for_pause(cluster)
        started["node2"].send_signal(signal.SIGCONT)
        self.wait_for_rounds(cluster, len(by_event(cluster, "node1", "round")) + 2)
        for name in cluster.names:
            # Nobody was left out, and every step counts.
            self.assertEqual({event["local_steps"] for event in by_event(cluster, name, "round")},
                             {30})
            self.assertNotIn("left behind", cluster.log(name))

        started["node2"].kill()
        started["node2"].wait()
        self.wait_for_pause(cluster, times=2)
        done = len(by_event(cluster, "node1", "round"))
        started["node2"] = self.start_site(cluster, "node2", "--resume=auto")
        self.wait_for_rounds(cluster, done + 2, "node1")
        self.assertIn("the run goes on", cluster.log("node1"))
        self.assert_no_step_twice(cluster, "node1", "node3")

        started["node1"].kill()
        started["node1"].wait()
        started["node1"] = self.start_site(cluster, "node1", "--resume=auto")
        self.assert_end(cluster, started)
        self.assert_one_theta(cluster, absent=("node1", "node2"))
        self.assert_no_step_twice(cluster, "node3")

    def test_a_stop_ends_a_site_that_waits(self):
        cluster, started = self.start_in_round_2()
        started["node2"].kill()
        started["node2"].wait()
        self.wait_for_pause(cluster)
        for name in ("node3", "node1"):
            started[name].send_signal(signal.SIGINT)
            self.assert_end(cluster, {name: started[name]}, 130)

    def test_a_pause_has_an_end(self):
        cluster, started = self.start_in_round_2({"deadlines": WATCHFUL | {"pause_seconds": 2}})
        started["node2"].kill()
        started["node2"].wait()
        for name in ("node1", "node3"):
            self.assert_end(cluster, {name: started[name]}, 4)
            self.assertIn("has waited 2 s for enough sites", cluster.log(name))


if __name__ == "__main__":
    unittest.main()
