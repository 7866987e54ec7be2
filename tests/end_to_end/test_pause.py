"""A run that waits while too few of its sites are there: real processes, frozen, killed, stopped."""

import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, wait_until

# By default all sites must be there.
RUN = {"outer": {"rounds": 8}, "plan": {"base_steps": 30, "base_batch": 1},
       "deadlines": {"pause_seconds": 60}}


class Pause(ClusterTest):
    def start_in_round_2(self, run: dict | None = None) -> tuple[Cluster, dict]:
        cluster = Cluster(self.folder, 3, RUN | (run or {}))
        started = self.start_all(cluster)
        wait_until(lambda: len(by_event(cluster, "node2", "round")) >= 2, 60, "two rounds")
        return cluster, started

    def wait_for_pause(self, cluster: Cluster):
        for name in ("node1", "node3"):
            wait_until(lambda name=name: "the run pauses" in cluster.log(name), 30,
                       f"{name} to hear of the pause")

    def assert_completed(self, cluster: Cluster, started: dict):
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=120), 0, cluster.log(name))
        hashes = [by_event(cluster, name, "round")[-1]["theta_hash"] for name in cluster.names]
        self.assertEqual(len(set(hashes)), 1)
        for name in ("node1", "node3"):
            events = by_event(cluster, name, "round")
            self.assertEqual([event["round"] for event in events], list(range(1, 9)))
            steps = [(event["round"], event["step"]) for event in by_event(cluster, name, "step")]
            self.assertEqual(len(steps), len(set(steps)), "no step is done twice")

    def test_a_frozen_site_goes_on_where_it_was(self):
        cluster, started = self.start_in_round_2()
        started["node2"].send_signal(signal.SIGSTOP)
        self.wait_for_pause(cluster)
        started["node2"].send_signal(signal.SIGCONT)
        self.assert_completed(cluster, started)
        for name in cluster.names:
            # Nobody was left out, and every step counts.
            self.assertEqual({event["local_steps"] for event in by_event(cluster, name, "round")},
                             {30})
            self.assertNotIn("left behind", cluster.log(name))

    def test_a_killed_site_is_waited_for_and_joins_again(self):
        cluster, started = self.start_in_round_2()
        started["node2"].kill()
        started["node2"].wait()
        self.wait_for_pause(cluster)
        started["node2"] = cluster.start("node2", "--resume=auto")
        self.assert_completed(cluster, started)
        self.assertIn("the run goes on", cluster.log("node1"))

    def test_a_killed_site_that_hosts_the_coordinator_is_started_again(self):
        """Its coordinator goes on by the journal, and the site joins the others again."""
        cluster, started = self.start_in_round_2()
        started["node1"].kill()
        started["node1"].wait()
        started["node1"] = cluster.start("node1", "--resume=auto")
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=120), 0, cluster.log(name))
        hashes = [by_event(cluster, name, "round")[-1]["theta_hash"] for name in cluster.names]
        self.assertEqual(len(set(hashes)), 1)
        for name in ("node2", "node3"):
            self.assertEqual([event["round"] for event in by_event(cluster, name, "round")],
                             list(range(1, 9)))

    def test_a_stop_ends_a_site_that_waits(self):
        cluster, started = self.start_in_round_2()
        started["node2"].kill()
        started["node2"].wait()
        self.wait_for_pause(cluster)
        for name in ("node3", "node1"):
            started[name].send_signal(signal.SIGINT)
            self.assertEqual(started[name].wait(timeout=30), 130, cluster.log(name))

    def test_a_pause_has_an_end(self):
        cluster, started = self.start_in_round_2({"deadlines": {"pause_seconds": 2}})
        started["node2"].kill()
        started["node2"].wait()
        for name in ("node1", "node3"):
            self.assertEqual(started[name].wait(timeout=60), 4, cluster.log(name))
            self.assertIn("has waited 2 s for enough sites", cluster.log(name))


if __name__ == "__main__":
    unittest.main()
