"""A master that sends all sites their batches: real processes, of which one alone has the data."""

import json
import signal
import unittest

from cluster import REPOSITORY, Cluster, ClusterTest, by_event, farstep, merge, validation_losses
from test_images import RUN as IMAGE_RUN, write_split

WITHOUT_DATA = {"data": ""}
SLOW = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.1}}]}
LENGTH = 32  # of the runs' sequences


def run_of(batches: dict[str, int], scatter: bool = True, master: str = "node1") -> dict:
    """A run by a master; its buckets are small, so that a step has several."""
    return {"strategy": {"kind": "data_parallel_master", "bucket_bytes": 20000, "scatter": scatter},
            "sync": {"servers": [master]},
            "sites": [{"name": name, "batch": batch} for name, batch in batches.items()]}


class Scatter(ClusterTest):
    """Small runs, each beside the same run of sites that all have the data."""

    def cluster(self, name: str, num_sites: int, run: dict, sites: dict | None = None) -> Cluster:
        """The run in a folder of its own."""
        return Cluster(self.make_folder(name), num_sites, run, sites)

    def bytes_of(self, cluster: Cluster, name: str, direction: str) -> int:
        """What the site's rounds sent or received."""
        return sum(event[f"wan_bytes_{direction}"] for event in by_event(cluster, name, "round"))

    def test_the_batches_are_those_of_sites_with_data(self):
        """Unequal batches, with the master at either end: the same bits, and so one device's losses."""
        for kind, batches, master in (("unequal", {"node1": 3, "node2": 4, "node3": 8}, "node1"),
                                      ("last", {"node1": 2, "node2": 6, "node3": 4}, "node3")):
            with self.subTest(kind=kind):
                names = list(batches)
                # The links of one worker are slow, which changes times alone.
                sites = {index: WITHOUT_DATA for index, name in enumerate(names) if name != master}
                sites[1] = merge(sites.get(1, {}), {"network": {"emulate": {"delay_seconds": 0.01}}})
                cluster = self.cluster(kind, len(names), run_of(batches, master=master), sites)
                self.assert_success(cluster.launch())
                own = self.cluster(f"{kind} own", len(names), run_of(batches, False, master))
                self.assert_success(own.launch())
                self.assert_same_trajectory(cluster, own)
                self.check_validation(cluster, own, master)
                self.check_bytes(cluster, own, batches, master)
                configs = {(cluster.output / name / "checkpoints" / "round-00003" / "config.json").read_text()
                           for name in names}
                self.assertEqual(len(configs), 1)

    def check_validation(self, cluster: Cluster, own: Cluster, master: str):
        """The master validates alone, and the report takes its result for that of all."""
        for name in cluster.names:
            start, = by_event(cluster, name, "run")
            self.assertEqual((start["trains"], start["reads_data"]), (True, name == master))
            self.assertEqual(len(by_event(cluster, name, "evaluation")), 4 if name == master else 0)
        found, wanted = validation_losses(cluster), validation_losses(own)
        for rounds, loss in wanted.items():
            self.assertAlmostEqual(found[rounds], loss, delta=1e-5)
        self.assertAlmostEqual(cluster.report()["final_loss"], found[3])

    def check_bytes(self, cluster: Cluster, own: Cluster, batches: dict[str, int], master: str):
        """The batches are all that the links carry more: 15 steps of sequences, 8 bytes a token."""
        sequence_bytes = 15 * 8 * (LENGTH + 1)
        for name, batch in batches.items():
            for direction, sequences in (
                    ("sent", sum(batches.values()) - batch if name == master else 0),
                    ("received", 0 if name == master else batch)):
                more = self.bytes_of(cluster, name, direction) - self.bytes_of(own, name, direction)
                self.assertEqual(more, sequences * sequence_bytes, (name, direction))

    def test_stopped_and_killed_in_mid_round(self):
        """A signal to the master or a worker ends all; resumed, the run has the bits of one without."""
        batches = {"node1": 4, "node2": 2, "node3": 4}
        run = merge(run_of(batches), {"plan": {"base_steps": 8}, "outer": {"rounds": 5}})
        # The coordinator outlives the master.
        sites = {0: merge(SLOW, {"coordinator": {"host": False}}),
                 1: merge(merge(SLOW, WITHOUT_DATA), {"coordinator": {"host": True}}),
                 2: merge(SLOW, WITHOUT_DATA)}
        whole, cluster = self.cluster("whole", 3, run, sites), self.cluster("disturbed", 3, run, sites)
        self.assert_success(whole.launch())
        options: list[str] = []
        for round_number, name, kind, code in (
                (1, "node3", signal.SIGKILL, -9), (2, "node1", signal.SIGINT, 130),
                (3, "node1", signal.SIGKILL, -9), (4, "node2", signal.SIGINT, 130)):
            started = self.start_all(cluster, *options)
            self.wait_for_step(cluster, round_number, 3, "node2")
            started[name].send_signal(kind)
            self.assert_end(cluster, {name: started[name]}, code)
            for other in batches:
                if other != name:
                    self.assert_end(cluster, {other: started[other]}, 4)
                    self.assertIn(name, cluster.log(other))
            options = ["--resume"]
        self.assert_success(cluster.launch("--resume"))
        self.assert_same_trajectory(cluster, whole)

    def test_a_plan_from_measured_sites(self):
        """Hybrid divides the batch after the first steps; workers wait for nothing that is not sent."""
        sites = {index: merge({} if index == 0 else WITHOUT_DATA,
                              {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"sequence_seconds": seconds}}]})
                 for index, seconds in enumerate((0.01, 0.04))}
        run = merge(run_of({"node1": 8, "node2": 8}),
                    {"sites": [{"name": "node1"}, {"name": "node2"}],
                     "plan": {"policy": "hybrid", "base_steps": 12, "base_batch": 8}})
        cluster = self.cluster("hybrid", 2, run, sites)
        self.assert_success(cluster.launch())
        last = {name: by_event(cluster, name, "plan")[-1]["batch"] for name in cluster.names}
        self.assertEqual(sum(last.values()), 16)
        self.assertGreater(last["node1"], last["node2"])
        self.assert_one_theta(cluster)
        self.assertEqual({event["data_seconds"] for event in by_event(cluster, "node2", "step")}, {0})

    def test_images_and_the_shape_of_their_net(self):
        """A worker without images learns of the master what they decide, and trains to the same bits."""
        data = self.folder / "images"
        data.mkdir()
        write_split(data, "train", 200)
        write_split(data, "t10k", 41)
        clusters = []
        for name, scatter in (("scatter", True), ("own", False)):
            sites = {0: {"data": str(data)}, 1: {"data": "" if scatter else str(data)}}
            run = merge(run_of({"node1": 12, "node2": 20}, scatter), IMAGE_RUN)
            cluster = self.cluster(name, 2, {}, sites)
            cluster.run = merge({key: value for key, value in cluster.run.items() if key not in ("model", "data")},
                                run)
            (cluster.folder / "run.json").write_text(json.dumps(cluster.run))
            checked = farstep("check", cluster.folder / "node2.json")
            self.assert_success(checked)
            self.assert_success(cluster.launch())
            clusters.append(cluster)
        scattered, own = clusters
        self.assert_same_trajectory(scattered, own)
        report = scattered.report()
        self.assertEqual(report["final_accuracy"], own.report()["final_accuracy"])
        result = farstep("evaluate", scattered.output / "node2", "--data", data, "--json")
        self.assert_success(result)
        self.assertEqual(json.loads(result.stdout)["accuracy"], report["final_accuracy"])

    def test_plan_and_simulation_know_the_batches(self):
        """Bytes of a step, and the time that the first batch of each round takes."""
        profiles = sorted((REPOSITORY / "configs/scenarios/paper").glob("node*.json"))
        plan = ["plan", "--profiles", *profiles, "--scatter", "--policy", "uniform", "--base-batch", 4,
                "--example-bytes", 1000, "--strategy"]
        result = farstep(*plan, "data_parallel_master", "--json")
        self.assert_success(result)
        self.assertEqual(json.loads(result.stdout)["scatter"], {"master": "node1", "bytes_a_step": 3 * 4000})
        refused = farstep(*plan, "ring_all_reduce")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--scatter", refused.stderr)
        waits = []
        for scatter in ("false", "true"):
            result = farstep("simulate", "--profiles", *profiles, "--strategy", "data_parallel_master", "--policy",
                             "uniform", "--scatter", scatter, "--json")
            self.assert_success(result)
            waits.append(json.loads(result.stdout)["total_idle_seconds"])
        self.assertGreaterEqual(waits[1], waits[0])

    def test_what_does_not_go_together_is_refused(self):
        """Each with the file, the field and the reason."""
        run = run_of({"node1": 4, "node2": 4})
        for change, sites, field in (
                ({"strategy": {"kind": "parameter_server"}}, {}, "strategy.scatter"),
                ({"strategy": {"kind": "low_communication"}, "sync": {"servers": []}}, {}, "strategy.scatter"),
                ({"data": {"order": "sequential"}}, {}, "data.order"),
                ({}, {0: WITHOUT_DATA}, "data: is empty, and node1 is the master"),
                ({"strategy": {"scatter": False}}, {0: WITHOUT_DATA}, "data: is empty, and node1 trains")):
            with self.subTest(field=field, change=json.dumps(change)):
                self.take_new_folder()
                cluster = self.cluster("refused", 2, merge(run, change), sites)
                result = farstep("check", cluster.folder / "node1.json")
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                self.assertIn(field, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
