"""Eager updates: a whole round's exchange behind the next one, with one theta_global all the same."""

import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, validation_losses
from measured import Figure, within_tries

STEP_SECONDS = 0.12
# A sync of the model takes about half a second over it, and a round nearly two.
LINK = {"emulate": {"rate_bits_per_second": 4e6, "delay_seconds": 0.04}}


class Eager(ClusterTest):
    """Two real processes over slow links."""

    def cluster(self, name: str, rounds: int, plan: dict | None = None,
                step_seconds: tuple[float, float] = (STEP_SECONDS, STEP_SECONDS)) -> Cluster:
        """The run in a folder of its own."""
        sites = {index: {"devices": [{"kind": "cpu", "threads": 1,
                                      "emulate": {"step_seconds": seconds}}], "network": LINK}
                 for index, seconds in enumerate(step_seconds)}
        run = {"outer": {"rounds": rounds}, "plan": {"base_steps": 15, "base_batch": 2} | (plan or {}),
               "strategy": {"kind": "eager_updates"}}
        return Cluster(self.make_folder(name), 2, run, sites)

    def test_a_whole_round_hides_the_wan(self):
        """Only the last round's exchange is waited for; the sites learn as others do."""
        within_tries(self, self.exposed_shares)

    def exposed_shares(self) -> list[Figure]:
        """What of each sync a site waits for, after all else of the run was checked."""
        cluster = self.cluster("eager", 5)
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        losses = validation_losses(cluster)
        self.assertEqual(losses[1], losses[0])  # of a theta_global without any delta
        self.assertLess(losses[5], losses[0] - 0.3)
        figures = []
        for name in cluster.names:
            rounds = by_event(cluster, name, "round")
            # Every delta has counted once.
            self.assertEqual([event["averaging_weight"] for event in rounds], [0] + 4 * [0.5])
            syncs = by_event(cluster, name, "sync")
            self.assertEqual([event["round"] for event in syncs], [1, 2, 3, 4, 5])
            self.assertEqual(rounds[0]["wan_bytes_sent"], 0)
            self.assertEqual(sum(event["bytes_sent"] for event in syncs),
                             sum(event["wan_bytes_sent"] for event in rounds))
            shares = [event["exposed_wan_seconds"] / event["wan_seconds"] for event in syncs]
            figures += [Figure(f"exposed share at {name}", share, at_most=0.1) for share in shares[:-1]]
            figures.append(Figure(f"exposed share of the last at {name}", shares[-1], at_least=0.9))
        return figures

    def test_the_plan_follows_a_round_later(self):
        """A site half as fast is given less after its first four steps; what a round shows counts a round later."""
        within_tries(self, self.planned_shares)

    def planned_shares(self) -> list[Figure]:
        """How much more steps the faster site is given by each plan after the first one."""
        cluster = self.cluster("planned", 4, {"policy": "hybrid"}, (0.06, 0.12))
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        fast, slow = ([event["local_steps"] for event in by_event(cluster, name, "plan")]
                      for name in cluster.names)
        self.assertEqual((len(fast), len(slow)), (5, 5))
        self.assertEqual(fast[0], slow[0])  # nothing is known yet
        return [Figure(f"the faster site's steps to the others', plan {number}", one / other, at_least=1.1)
                for number, (one, other) in enumerate(zip(fast, slow)) if number > 0]

    def test_interrupted_and_killed(self):
        """SIGINT and SIGKILL at all sites, and at one alone, change no bit of the run that resumes."""
        cluster, whole = (self.cluster(name, 6, step_seconds=(0.06, 0.06)) for name in ("interrupted", "whole"))
        options: list[str] = []
        for place, stop, victims in (((1, 4), signal.SIGINT, cluster.names),
                                     ((2, 3), signal.SIGINT, cluster.names),
                                     ((3, 4), signal.SIGKILL, ["node2"]),  # with a delta under way
                                     ((4, 8), signal.SIGKILL, cluster.names),
                                     ((6, 12), signal.SIGINT, cluster.names)):
            started = self.start_all(cluster, *options)
            self.wait_for_step(cluster, *place, "node2")
            for name in victims:
                started[name].send_signal(stop)
            for name, process in started.items():
                code = 4 if name not in victims else 130 if stop == signal.SIGINT else -9
                self.assert_end(cluster, {name: process}, code)
                if name not in victims:
                    self.assertIn("node2", cluster.log(name))
            options = ["--resume"]
        self.assert_success(cluster.launch("--resume"))
        self.assert_success(whole.launch())
        self.assert_one_theta(whole)
        self.assert_same_trajectory(cluster, whole)


if __name__ == "__main__":
    unittest.main()
