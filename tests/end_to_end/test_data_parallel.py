"""Strategies that take every step together: real processes, all exchanges, stops and losses."""

import json
import signal
import unittest

from cluster import (REPOSITORY, Cluster, ClusterTest, by_event, farstep, measures_time, merge, validation_losses,
                     wait_until)
from test_resume import trajectory

KINDS = {
    "ring": {"strategy": {"kind": "ring_all_reduce"}},
    "direct": {"strategy": {"kind": "ring_all_reduce"}, "sync": {"exchange": "direct"}},
    "server": {"strategy": {"kind": "parameter_server"}},
    "servers by layer": {"strategy": {"kind": "parameter_server"},
                         "sync": {"servers": ["node3", "node1"], "partition": "layer"}},
    "master": {"strategy": {"kind": "data_parallel_master"}},
}


def steps_of(cluster: Cluster, name: str) -> list[dict]:
    """The site's steps, in order."""
    return by_event(cluster, name, "step")


class DataParallel(ClusterTest):
    """Small runs of each strategy."""

    def cluster(self, name: str, num_sites: int, run: dict, sites: dict | None = None) -> Cluster:
        """The run in a folder of its own; buckets are small, so that a step has several."""
        folder = self.folder / name.replace(" ", "_")
        folder.mkdir()
        run = merge({"strategy": {"bucket_bytes": 20000}}, run)
        return Cluster(folder, num_sites, run, sites)

    def assert_one_theta(self, cluster: Cluster, rounds: int):
        """Every round ends with one hash at all sites."""
        hashes = [[event["theta_hash"] for event in by_event(cluster, name, "round")]
                  for name in cluster.names]
        self.assertEqual(len(set(hashes[0])), rounds)
        for other in hashes[1:]:
            self.assertEqual(other, hashes[0])

    def test_every_strategy_follows_one_device(self):
        """Rounds of one step: the three sites' batches are together those of the single site."""
        rounds = 50
        common = {"outer": {"rounds": rounds}, "plan": {"base_steps": 1},
                  "evaluate": {"every_rounds": rounds}, "checkpoint": {"every_rounds": rounds}}
        # Alone, a site that takes the plain mean of the models trains plainly.
        whole = self.cluster("whole", 1, merge(common, {"plan": {"base_batch": 16},
                                                        "strategy": {"kind": "local_sgd"}}))
        self.assert_success(whole.launch())
        wanted = steps_of(whole, "node1")
        batches = {"node1": 4, "node2": 4, "node3": 8}
        for kind, run in KINDS.items():
            with self.subTest(kind=kind):
                sites = [{"name": name, "batch": batch} for name, batch in batches.items()]
                cluster = self.cluster(kind, 3, merge(common, merge(run, {"sites": sites})))
                self.assert_success(cluster.launch())
                self.assert_one_theta(cluster, rounds)
                for number, step in enumerate(wanted):
                    loss = sum(batch * steps_of(cluster, name)[number]["loss"]
                               for name, batch in batches.items()) / 16
                    self.assertAlmostEqual(loss, step["loss"], delta=1e-5)
                before, after = validation_losses(cluster)[0], validation_losses(cluster)[rounds]
                self.assertLess(after, before - 0.1)
                self.assertAlmostEqual(after, validation_losses(whole)[rounds], delta=1e-4)

    def test_the_strategies_differ_in_rounding_alone(self):
        """Longer rounds, two devices at one site: one trajectory, whoever adds up."""
        sites = {1: {"devices": 2 * [{"kind": "cpu", "threads": 1}]}}
        losses = {}
        for kind, run in KINDS.items():
            cluster = self.cluster(kind, 3, run, sites)
            self.assert_success(cluster.launch())
            self.assert_one_theta(cluster, 3)
            losses[kind] = [step["loss"] for step in steps_of(cluster, "node2")]
            self.assertEqual(len(losses[kind]), 15)
            for one, other in zip(losses[kind], losses["ring"]):
                self.assertAlmostEqual(one, other, delta=1e-5)
            report = cluster.report()
            self.assertEqual({site["steps"] for site in report["sites"]}, {15})

    def test_interrupted_and_resumed(self):
        """Ctrl-C at one site in mid-round ends all; resumed, the run has the bits of one without."""
        for kind in ("ring", "server", "master"):
            with self.subTest(kind=kind):
                self.take_new_folder()
                slow = {index: {"devices": [{"kind": "cpu", "threads": 1,
                                             "emulate": {"step_seconds": 0.1}}]} for index in range(2)}
                run = merge(KINDS[kind], {"plan": {"base_steps": 8}})
                cluster = self.cluster("interrupted", 2, run, slow)
                started = self.start_all(cluster)
                wait_until(lambda: any((event["round"], event["step"]) >= (2, 3)
                                       for event in steps_of(cluster, "node2")), 60, "round 2")
                started["node2"].send_signal(signal.SIGINT)
                self.assertEqual(started["node2"].wait(timeout=30), 130, cluster.log("node2"))
                self.assertEqual(started["node1"].wait(timeout=30), 4, cluster.log("node1"))
                self.assert_success(cluster.launch("--resume"))
                whole = self.cluster("whole", 2, run, slow)
                self.assert_success(whole.launch())
                for name in cluster.names:
                    self.assertEqual(trajectory(cluster, name), trajectory(whole, name))
                    self.assertEqual(len(trajectory(whole, name)), 3 * 8 + 3)

    def test_a_killed_site_ends_the_others_at_once(self):
        """SIGKILL in a step: exit code 4 with the name; all resume from the newest common step."""
        slow = {index: {"devices": [{"kind": "cpu", "threads": 1,
                                     "emulate": {"step_seconds": 0.1}}]} for index in range(3)}
        run = merge(KINDS["direct"], {"plan": {"base_steps": 8}})
        cluster = self.cluster("killed", 3, run, slow)
        started = self.start_all(cluster)
        wait_until(lambda: any((event["round"], event["step"]) >= (2, 3)
                               for event in steps_of(cluster, "node3")), 60, "round 2")
        started["node3"].send_signal(signal.SIGKILL)
        for name in ("node1", "node2"):
            self.assertEqual(started[name].wait(timeout=20), 4, cluster.log(name))
            self.assertIn("node3", cluster.log(name))
        self.assert_success(cluster.launch("--resume"))
        self.assert_one_theta(cluster, 3)
        whole = self.cluster("whole", 3, run, slow)
        self.assert_success(whole.launch())
        for name in cluster.names:
            self.assertEqual(trajectory(cluster, name), trajectory(whole, name))

    @measures_time
    def test_unequal_batches_wait_less(self):
        """Sites of the paper's speeds step together: hybrid divides the batch, and few wait."""
        seconds = (0.0239, 0.025, 0.0104, 0.0201)  # a sequence
        sites = {index: {"devices": [{"kind": "cpu", "threads": 1,
                                      "emulate": {"sequence_seconds": one}}]}
                 for index, one in enumerate(seconds)}
        waits = {}
        for policy in ("uniform", "hybrid"):
            run = merge(KINDS["direct"], {"plan": {"policy": policy, "base_steps": 12, "base_batch": 8},
                                          "outer": {"rounds": 3}, "evaluate": {"every_rounds": 0}})
            cluster = self.cluster(policy, 4, run, sites)
            self.assert_success(cluster.launch())
            self.assert_one_theta(cluster, 3)
            rows = cluster.report()["sites"]
            waits[policy] = (sum(row["wait_seconds"] for row in rows) /
                             sum(row["wait_seconds"] + row["compute_seconds"] for row in rows))
            last = [by_event(cluster, name, "plan")[-1] for name in cluster.names]
            self.assertEqual({plan["local_steps"] for plan in last}, {12})
            self.assertEqual(sum(plan["batch"] for plan in last), 32)
        self.assertGreater(waits["uniform"], 0.15)
        # Beside compilers 0.13 against 0.24: a busy machine adds to both.
        self.assertLess(waits["hybrid"], 0.75 * waits["uniform"])

    def test_plan_divides_the_batch_of_a_step(self):
        """`farstep plan` gives sites that step together equal steps, and refuses what cannot be."""
        profiles = sorted((REPOSITORY / "configs/scenarios/paper").glob("node*.json"))
        command = ["plan", "--profiles", *profiles, "--strategy", "ring_all_reduce", "--base-batch", 16]
        result = farstep(*command, "--json")
        self.assert_success(result)
        sites = json.loads(result.stdout)["sites"]
        self.assertEqual({site["local_steps"] for site in sites}, {100})
        self.assertEqual(sum(site["batch"] for site in sites), 4 * 16)
        self.assertGreater(sites[2]["batch"], sites[0]["batch"])  # node 3 is the fastest
        for options in (("--policy", "steps_by_tflops"), ("--wan-target", 0.1)):
            with self.subTest(options=options):
                refused = farstep(*command, *options)
                self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
                self.assertIn(options[0], refused.stderr)
                self.assertIn("ring_all_reduce", refused.stderr)

    def test_what_does_not_go_together_is_refused(self):
        """Each with the field and the reason."""
        for change, field in (({"min_sites": 1}, "min_sites"),
                              ({"max_sites": 4}, "max_sites"),
                              ({"plan": {"policy": "steps_by_tflops"}}, "plan.policy"),
                              ({"plan": {"round_end": "deadline"}}, "plan.round_end"),
                              ({"deadlines": {"pause_seconds": 5}}, "deadlines.pause_seconds"),
                              ({"sync": {"fragments": 2}}, "sync.fragments"),
                              ({"sync": {"exchange": "direct", "codec": {"kind": "int8"}}}, "sync.codec"),
                              ({"sync": {"exchange": "parameter_server"}}, "sync.exchange"),
                              ({"sites": [{"name": "node1", "local_steps": 3}, {"name": "node2"}]},
                               "local_steps")):
            with self.subTest(field=field, change=json.dumps(change)):
                self.take_new_folder()
                cluster = self.cluster("refused", 2, merge(KINDS["ring"], change))
                result = farstep("check", cluster.folder / "node1.json")
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                self.assertIn(field, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
