"""Sites that come back into a run that goes on: real processes, killed and started again."""

import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, validation_losses, wait_until

RUN = {"min_sites": 1, "outer": {"rounds": 40}, "plan": {"base_steps": 60, "base_batch": 1}}


class Rejoin(ClusterTest):
    """Who was killed is started again, takes the others' state, and trains with them to the end."""

    def come_back(self, run: dict, how: signal.Signals = signal.SIGKILL, num_sites: int = 3,
                  victim: str = "node2") -> Cluster:
        """Starts a run, ends the victim, starts it again once the others go on, and waits."""
        folder = self.folder / f"{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        cluster = Cluster(folder, num_sites, RUN | run)
        started = self.start_all(cluster)
        wait_until(lambda: len(by_event(cluster, victim, "round")) >= 3, 60, "some rounds")
        started[victim].send_signal(how)
        started[victim].wait(timeout=30)
        first = next(name for name in cluster.names if name != victim)
        wait_until(lambda: "generation 2 goes on" in cluster.log(first), 60, "the loss")
        started[victim] = cluster.start(victim, "--resume=auto")
        self.processes.append(started[victim])
        for name in cluster.names:
            self.assertEqual(started[name].wait(timeout=240), 0, cluster.log(name))
        return cluster

    def assert_together(self, cluster: Cluster, victim: str = "node2"):
        """All ended with one theta_global, and the victim trained again after it came back."""
        rounds = {name: by_event(cluster, name, "round") for name in cluster.names}
        hashes = {name: {event["round"]: event["theta_hash"] for event in events}
                  for name, events in rounds.items()}
        last = cluster.run["outer"]["rounds"]
        for name in cluster.names:
            for number, digest in hashes[name].items():
                self.assertEqual(digest, hashes["node1"][number], (name, number))
            self.assertEqual(hashes[name][last], hashes["node1"][last])
            steps = [(event["round"], event["step"]) for event in by_event(cluster, name, "step")]
            self.assertEqual(len(steps), len(set(steps)), "a step was done twice")
        self.assertGreater(rounds[victim][-1]["local_steps"], 0)
        self.assertGreater(rounds[victim][-1]["averaging_weight"], 0)
        self.assertLess(len(rounds[victim]), last, "it was away for a round at least")
        self.assertEqual(rounds["node1"][-1]["generation"], 3)

    def test_a_killed_site_comes_back(self):
        """After SIGKILL, with its checkpoints, by the plain strategy and a planned one."""
        for run in ({}, {"plan": RUN["plan"] | {"policy": "hybrid"}}):
            with self.subTest(run=run):
                cluster = self.come_back(run)
                self.assert_together(cluster)
                losses = validation_losses(cluster)
                self.assertLess(losses[40], losses[0])


if __name__ == "__main__":
    unittest.main()
