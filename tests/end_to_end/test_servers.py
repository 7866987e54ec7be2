"""Sites that serve alone: real processes without devices and data, which the others train by."""

import json
import signal
import unittest

from cluster import (REPOSITORY, Cluster, ClusterTest, by_event, farstep, merge, plain_if_ring,
                     validation_losses)

SERVER = {"devices": [], "data": ""}


def run_of(servers: list[str], names: list[str], batches: dict[str, int] | None = None) -> dict:
    """A run whose servers do not train."""
    sites = []
    for name in names:
        site: dict = {"name": name}
        if name in servers:
            site["trains"] = False
        elif batches:
            site["batch"] = batches[name]
        sites.append(site)
    return {"strategy": {"kind": "parameter_server", "bucket_bytes": 20000}, "sites": sites}


class Servers(ClusterTest):
    """Small runs with one or two servers."""

    def cluster(self, name: str, num_sites: int, run: dict, sites: dict | None = None) -> Cluster:
        """The run in a folder of its own."""
        return Cluster(self.make_folder(name), num_sites, run, sites, plain_if_ring(run))

    def test_workers_and_servers_follow_one_device(self):
        """Rounds of one step, two workers, two servers by layer: 25 steps as of one device."""
        rounds = 25
        common = {"outer": {"rounds": rounds}, "plan": {"base_steps": 1},
                  "evaluate": {"every_rounds": rounds}, "checkpoint": {"every_rounds": rounds}}
        whole = self.cluster("whole", 1, merge(common, {"plan": {"base_batch": 12},
                                                        "strategy": {"kind": "local_sgd"}}))
        self.assert_success(whole.launch())
        names, servers = ["node1", "node2", "node3", "node4"], ["node2", "node4"]
        batches = {"node1": 4, "node3": 8}
        run = merge(merge(common, run_of(servers, names, batches)), {"sync": {"partition": "layer"}})
        cluster = self.cluster("two", 4, run, {names.index(server): SERVER for server in servers})
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        for number, step in enumerate(by_event(whole, "node1", "step")):
            loss = sum(batch * by_event(cluster, name, "step")[number]["loss"]
                       for name, batch in batches.items()) / 12
            self.assertAlmostEqual(loss, step["loss"], delta=1e-5)
        self.assertAlmostEqual(validation_losses(cluster)[rounds], validation_losses(whole)[rounds],
                               delta=1e-4)
        self.check_report(cluster, servers, rounds * 12 * 32)

    def check_report(self, cluster: Cluster, servers: list[str], tokens: int):
        """Servers have time of serving and no work; the others' figures are as without them."""
        report = cluster.report()
        self.assertEqual(sum(site["tokens"] for site in report["sites"]), tokens)
        self.assertEqual(sum(site["merged_tokens"] for site in report["sites"]), tokens)
        self.assertIsNotNone(report["final_loss"])
        for site in report["sites"]:
            serves = site["site"] in servers
            self.assertEqual(site["trains"], not serves)
            self.assertEqual(site["serve_seconds"] > 0, serves)
            self.assertEqual(site["compute_seconds"] == 0, serves)
            if serves:
                self.assertEqual(site["wait_seconds"] + site["wan_seconds"] + site["steps"], 0)
                self.assertEqual(by_event(cluster, site["site"], "step"), [])
                self.assertEqual(by_event(cluster, site["site"], "evaluation"), [])
                self.assertEqual({event["train_loss"] for event in by_event(cluster, site["site"], "round")},
                                 {None})
        page = cluster.folder / "report.html"
        text = farstep("report", cluster.output, "--html", page)
        self.assert_success(text)
        self.assertIn("serving", text.stdout)
        self.assertIn("server", text.stdout)
        self.assertIn("serving", page.read_text(encoding="utf-8"))
        self.assertNotIn("nan", text.stdout.split())

    def test_a_server_is_stopped_and_killed_and_goes_on(self):
        """SIGINT and SIGKILL of the server in mid-round; resumed, the run has the bits of one without."""
        names = ["node1", "node2", "node3"]
        slow = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.1}}]}
        sites = {0: slow, 1: SERVER, 2: slow}
        run = merge(run_of(["node2"], names), {"plan": {"base_steps": 8}})
        whole = self.cluster("whole", 3, run, sites)
        self.assert_success(whole.launch())
        cluster = self.cluster("disturbed", 3, run, sites)
        options: list[str] = []
        for round_number, how, code in ((2, signal.SIGINT, 130), (3, signal.SIGKILL, -9)):
            started = self.start_all(cluster, *options)
            self.wait_for_step(cluster, round_number, 3, "node3")
            started["node2"].send_signal(how)
            self.assert_end(cluster, {"node2": started["node2"]}, code)
            for name in ("node1", "node3"):
                self.assert_end(cluster, {name: started[name]}, 4)
                self.assertIn("node2", cluster.log(name))
            options = ["--resume"]
        self.assert_success(cluster.launch("--resume"))
        self.assert_one_theta(cluster)
        self.assert_same_trajectory(cluster, whole)

    def test_the_plan_is_of_the_others(self):
        """Hybrid measures and divides the batch among those that train."""
        names = ["node1", "node2", "node3"]
        sites = {0: SERVER}
        for index, seconds in ((1, 0.04), (2, 0.01)):
            sites[index] = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"sequence_seconds": seconds}}]}
        run = merge(run_of(["node1"], names), {"plan": {"policy": "hybrid", "base_steps": 12, "base_batch": 8}})
        cluster = self.cluster("hybrid", 3, run, sites)
        self.assert_success(cluster.launch())
        last = {name: by_event(cluster, name, "plan")[-1] for name in names}
        self.assertEqual({plan["local_steps"] for plan in last.values()}, {12})
        self.assertEqual(last["node1"]["batch"], 0)
        self.assertEqual(last["node2"]["batch"] + last["node3"]["batch"], 16)
        self.assertGreater(last["node3"]["batch"], last["node2"]["batch"])
        for name in names:
            for event in by_event(cluster, name, "round"):
                tokens = sum(step["tokens"] for step in by_event(cluster, name, "step")
                             if step["round"] == event["round"])
                self.assertEqual(event["tokens"], tokens)

    def test_plan_has_a_row_for_a_server(self):
        """`farstep plan` divides the batch among the profiled sites, with weight 0 for the server."""
        profiles = sorted((REPOSITORY / "configs/scenarios/paper").glob("node*.json"))
        command = ["plan", "--profiles", *profiles, "--base-batch", 16, "--servers", "hub", "--strategy"]
        result = farstep(*command, "parameter_server", "--json")
        self.assert_success(result)
        plan = json.loads(result.stdout)
        self.assertEqual(sum(site["batch"] for site in plan["sites"]), 4 * 16)
        self.assertAlmostEqual(sum(site["averaging_weight"] for site in plan["sites"]), 1)
        hub = plan["sites"][-1]
        self.assertEqual((hub["site"], hub["local_steps"], hub["batch"], hub["averaging_weight"]),
                         ("hub", 100, 0, 0))
        self.assertIsNotNone(plan["predicted_total_idle_seconds"])
        self.assert_success(farstep(*command, "parameter_server"))
        refused = farstep(*command, "ring_all_reduce")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--servers", refused.stderr)

    def test_what_does_not_go_together_is_refused(self):
        """Each with the file, the field and the reason."""
        names = ["node1", "node2"]
        run = run_of(["node1"], names)
        for change, sites, field in (
                ({"strategy": {"kind": "data_parallel_master"}}, {0: SERVER}, "sites[0].trains"),
                ({"strategy": {"kind": "ring_all_reduce"}}, {0: SERVER}, "sites[0].trains"),
                ({"strategy": {"kind": "low_communication"}}, {0: SERVER}, "sites[0].trains"),
                ({"sync": {"servers": ["node2"]}}, {0: SERVER}, "sites[0].trains"),
                ({"sites": [{"name": "node1", "trains": False, "batch": 3}, {"name": "node2"}]}, {0: SERVER},
                 "sites[0].batch"),
                ({"sites": [{"name": "node1", "trains": False}, {"name": "node2", "trains": False}]}, {0: SERVER},
                 "no site that trains"),
                ({"sites": [{"name": "node1"}, {"name": "node2"}]}, {0: {"devices": []}}, "devices"),
                ({"sites": [{"name": "node1"}, {"name": "node2"}]}, {0: {"data": ""}}, "data"),
                ({}, {0: {"devices": 2 * [{"kind": "cpu"}]}}, "devices")):
            with self.subTest(field=field, change=json.dumps(change)):
                self.take_new_folder()
                cluster = self.cluster("refused", 2, merge(run, change), sites)
                result = farstep("check", cluster.folder / "node1.json")
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                self.assertIn(field, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
