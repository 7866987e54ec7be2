"""The gradient noise scale in every strategy, and batches that grow by it: real processes."""

import unittest

from cluster import Cluster, ClusterTest, by_event, farstep, merge, plain_if_ring
from test_data_parallel import KINDS
from test_resume import SLOW

STRATEGIES = {kind: KINDS[kind] for kind in ("ring", "direct", "server", "master")} | {
    "low communication": {}, "fragments": {"sync": {"fragments": 2, "delay_steps": 1}},
    "eager": {"strategy": {"kind": "eager_updates"}}}
FIGURES = ("noise_scale", "gradient_squared_norm", "gradient_variance")


def figures_of(cluster: Cluster, name: str) -> list[tuple]:
    """What the site knows of the gradient's noise, by round."""
    return [tuple(event[figure] for figure in FIGURES) for event in by_event(cluster, name, "round")]


class BatchGrowth(ClusterTest):
    """Small runs."""

    def cluster(self, name: str, num_sites: int, run: dict, sites: dict | None = None) -> Cluster:
        """The run in a folder of its own."""
        return Cluster(self.make_folder(name), num_sites, run, sites, plain_if_ring(run))

    def test_all_strategies_measure_one_noise(self):
        """A model that stands still: sites, devices and micro-batches show the same variance."""
        still = {"inner": {"peak_learning_rate": 0}, "outer": {"rounds": 4},
                 "plan": {"base_steps": 12, "base_batch": 8, "micro_batch": 2}, "evaluate": {"every_rounds": 4}}
        variances = {}
        for kind, run in STRATEGIES.items():
            with self.subTest(kind=kind):
                # The second site has unequal devices: the first gets most of each batch.
                sites = {1: {"devices": [{"kind": "cpu", "threads": 1},
                                         {"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.02}}]}}
                cluster = self.cluster(kind, 2, merge(still, run), sites)
                self.assert_success(cluster.launch())
                rounds = figures_of(cluster, "node1")
                self.assertEqual(len(rounds), 4)
                for name in cluster.names:
                    self.assertEqual(figures_of(cluster, name), rounds)
                known = rounds[1 if kind == "eager" else 0:]
                self.assertEqual(rounds[:4 - len(known)], (4 - len(known)) * [(None, None, None)])
                self.assertNotIn(None, [variance for _, _, variance in known])
                variances[kind] = sum(variance for _, _, variance in known) / len(known)
                reported = cluster.report()["noise_scales"]
                scales = {number: scale for number, (scale, _, _) in enumerate(rounds, 1) if scale is not None}
                self.assertEqual({one["round"]: one["noise_scale"] for one in reported}, scales)
        for kind, variance in variances.items():
            self.assertGreater(variance, 0, kind)
            self.assertAlmostEqual(variance / variances["low communication"], 1, delta=0.15, msg=kind)

    def test_whole_batches_are_enough_where_sites_sum_gradients(self):
        """One micro-batch a site: the sum shows the noise; sites that train alone have none to show."""
        for kind, is_known in (("direct", True), ("master", True), ("low communication", False)):
            cluster = self.cluster(kind, 2, STRATEGIES[kind])
            self.assert_success(cluster.launch())
            for _, _, variance in figures_of(cluster, "node2"):
                self.assertEqual(variance is not None, is_known, kind)
            text = farstep("report", cluster.output).stdout
            self.assertEqual("noise scale" in text, is_known, kind)

    def test_a_growing_batch_survives_a_stop(self):
        """Batches grow from round to round; a run that is stopped and resumed has the same bits."""
        for kind in ("low communication", "eager", "ring"):
            with self.subTest(kind=kind):
                self.take_new_folder()
                run = merge(STRATEGIES[kind], {
                    "outer": {"rounds": 5}, "evaluate": {"every_rounds": 5},
                    "plan": {"base_steps": 6, "base_batch": 2, "micro_batch": 1,
                             "batch_growth": {"most_batch": 6, "learning_rate": "sqrt"}}})
                whole = self.cluster("whole", 2, run, SLOW)
                self.assert_success(whole.launch())
                batches = [event["batch"] for event in by_event(whole, "node1", "plan")]
                self.assertEqual(batches, sorted(batches))
                self.assertEqual(batches[0], 2)
                self.assertGreater(batches[-1], 2)
                self.assertEqual([event["batch"] for event in by_event(whole, "node2", "plan")], batches)
                stopped = self.cluster("stopped", 2, run, SLOW)
                self.interrupt_after(stopped, 4, 2)
                self.assert_success(stopped.launch("--resume"))
                self.assert_same_trajectory(stopped, whole)
                for name in stopped.names:
                    self.assertEqual(figures_of(stopped, name)[-1], figures_of(whole, name)[-1])

    def test_a_batch_that_cannot_grow_is_refused(self):
        """The message names the path of the field, and the remedy."""
        cluster = self.cluster("refused", 1, {"plan": {"batch_growth": {"most_batch": 64}}})
        result = farstep("train", "--config", cluster.folder / "node1.json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("plan.micro_batch", result.stderr)
        self.assertIn("half of plan.base_batch", result.stderr)


if __name__ == "__main__":
    unittest.main()
