"""What `farstep profile` measures of a site, and what it leaves when something goes wrong."""

import json
import signal
import statistics
import subprocess
import unittest

from cluster import FARSTEP, Cluster, ClusterTest, by_event, farstep, wait_until
from measured import Figure, near, within_tries

MEBIBYTE = 1 << 20
CPU = {"kind": "cpu", "threads": 1}


class Profile(ClusterTest):
    """Profiles of a small model, with short probes."""

    def out(self, name: str):
        """Where a site's profile goes."""
        return self.folder / f"{name}.profile"

    def arguments(self, name: str, *options: object, seconds: float = 0.2) -> list:
        """The command for a site of the test's folder."""
        return ["profile", "--config", self.folder / f"{name}.json", "--out", self.out(name),
                "--seconds", seconds, *options]

    def profile(self, name: str, seconds: float = 0.2) -> dict:
        """Profiles a site to the end."""
        self.assert_success(farstep(*self.arguments(name, seconds=seconds)))
        return json.loads(self.out(name).read_text(encoding="utf-8"))

    def start_profile(self, name: str, *options: object,
                      seconds: float = 0.2) -> subprocess.Popen:
        """Starts it; its output goes to a file beside the config."""
        with open(self.folder / f"{name}.txt", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [str(FARSTEP), *map(str, self.arguments(name, *options, seconds=seconds))],
                stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def assert_refused(self, arguments: list, *parts: str):
        """Exit code 2, every part of the message, and nothing written."""
        result = farstep(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(list(self.folder.glob("*.profile*")), [])

    def test_profile_keeps_its_contract(self):
        """Every figure is there and can be, the planner takes it, stdout has the tables."""
        cluster = Cluster(self.folder, 1)
        result = farstep(*self.arguments("node1"))
        self.assert_success(result)
        for title in ("TFLOPS", "micro-batch", "s a step"):
            self.assertIn(title, result.stdout)
        profile = json.loads(self.out("node1").read_text(encoding="utf-8"))
        self.assertEqual(list(profile), ["site", "model", "devices", "links"])
        self.assertEqual((profile["site"], profile["links"]), ("node1", []))
        self.assertEqual((profile["model"]["sequence_length"], profile["model"]["compute"]),
                         (32, "fp32"))
        device, = profile["devices"]
        self.assertTrue(device["products"])
        self.assertIn(device["instructions"],
                      ("baseline", "avx2", "avx512", "avx512_bf16", "amx"))
        for figure in ("bf16_tflops", "fp32_tflops"):
            self.assertGreater(device[figure], 0)
        self.assertIsNone(device["tf32_tflops"])
        self.assertGreater(device["memory_bytes"], 100 * MEBIBYTE)
        self.assertGreaterEqual(device["max_micro_batch"], 8)
        steps = [(step["micro_batch"], step["batch"]) for step in device["step_seconds"]]
        self.assertEqual(steps[:3], [(4, None), (4, 16), (8, None)])
        planned = farstep("plan", "--profiles", self.out("node1"), "--policy", "hybrid",
                          "--base-steps", 100, "--base-batch", 4, "--json")
        self.assert_success(planned)
        site, = json.loads(planned.stdout)["sites"]
        self.assertEqual((site["site"], site["local_steps"]), ("node1", 100))
        self.assertFalse(cluster.output.exists())

    def test_a_limited_site_is_profiled_with_its_limit(self):
        """cpu.instructions reaches the figures' own line of the profile, and the log."""
        Cluster(self.folder, 1, sites={0: {"cpu": {"instructions": "baseline"}}})
        result = farstep(*self.arguments("node1"))
        self.assert_success(result)
        device, = json.loads(self.out("node1").read_text(encoding="utf-8"))["devices"]
        self.assertEqual(device["instructions"], "baseline")
        self.assertIn("instructions: baseline", result.stderr)
        self.assertIn(device["products"], ("mkl", "libtorch"))

    def test_json_is_all_of_stdout(self):
        """--json prints what --out gets, on one line."""
        Cluster(self.folder, 1)
        result = farstep(*self.arguments("node1", "--json"))
        self.assert_success(result)
        self.assertEqual(json.loads(result.stdout),
                         json.loads(self.out("node1").read_text(encoding="utf-8")))
        self.assertEqual(result.stdout.count("\n"), 1)

    def test_devices_are_measured_one_by_one(self):
        """Emulated devices: `times` slows all down, `step_seconds` is the least time of a step."""
        devices = [CPU, {**CPU, "emulate": {"times": 40}}, {**CPU, "emulate": {"step_seconds": 0.1}}]
        Cluster(self.folder, 1, sites={0: {"devices": devices}})
        real, slow, paced = self.profile("node1")["devices"]
        self.assertLess(slow["fp32_tflops"], 0.5 * real["fp32_tflops"])
        for own, longer in zip(real["step_seconds"], slow["step_seconds"]):
            self.assertGreater(longer["seconds"], 2 * own["seconds"])
        for step in paced["step_seconds"]:
            self.assertGreaterEqual(step["seconds"], 0.1)

    def test_memory_budget_bounds_the_micro_batch(self):
        """Twice the memory holds about twice as much; too little holds nothing."""
        found = []
        for mebibytes in (1, 48, 96):
            device = {**CPU, "memory_bytes": mebibytes * MEBIBYTE}
            Cluster(self.folder, 1, sites={0: {"devices": [device]}})
            # A trial that takes longer is the last one, whatever memory it needs.
            device, = self.profile("node1", seconds=6)["devices"]
            self.assertEqual(device["memory_bytes"], mebibytes * MEBIBYTE)
            found.append(device["max_micro_batch"])
        print(f"1, 48 and 96 MiB hold micro-batches of {found}")
        self.assertEqual(found[0], 0)
        self.assertGreater(found[1], 8)
        self.assertGreater(found[2], 1.5 * found[1])
        self.assertLess(found[2], 4 * found[1])

    def test_links_of_two_sites(self):
        """Both sites measure the way to each other, and their devices."""
        within_tries(self, self.measured_links)

    def measured_links(self) -> list[Figure]:
        """Round trip and rate of the loopback, by either site's profile."""
        cluster = Cluster(self.folder, 2)
        started = {name: self.start_profile(name, "--links") for name in cluster.names}
        self.assert_end(cluster, started)
        figures = []
        for name, peer in (("node1", "node2"), ("node2", "node1")):
            profile = json.loads(self.out(name).read_text(encoding="utf-8"))
            link, = profile["links"]
            self.assertEqual(link["peer"], peer)
            self.assertGreater(link["rtt_seconds"], 0)
            self.assertEqual(len(profile["devices"]), 1)
            figures += [Figure(f"round trip by {name}", link["rtt_seconds"], at_most=0.5),
                        Figure(f"bits per second by {name}", link["bandwidth_bits_per_second"], at_least=1e7)]
        return figures

    def test_links_of_a_site_without_a_run_file(self):
        """The coordinator hands out the run, by which its devices are measured too."""
        cluster = Cluster(self.folder, 2, sites={1: {"run": ""}})
        self.assert_end(cluster, {name: self.start_profile(name, "--links") for name in cluster.names})
        ours, theirs = (json.loads(self.out(name).read_text(encoding="utf-8"))
                        for name in cluster.names)
        self.assertEqual(ours["model"], theirs["model"])
        self.assertEqual([len(theirs["links"]), len(theirs["devices"])], [1, 1])

    def test_devices_are_measured_when_the_others_do_not_come(self):
        """Exit code 4, and a profile with the devices."""
        Cluster(self.folder, 2, {"deadlines": {"join_seconds": 1, "connect_seconds": 1}})
        result = farstep(*self.arguments("node1", "--links"))
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("still waits for node2", result.stderr)
        profile = json.loads(self.out("node1").read_text(encoding="utf-8"))
        self.assertEqual([len(profile["links"]), len(profile["devices"])], [0, 1])

    def test_interrupted_in_the_first_probe(self):
        """Nothing was measured: no file, exit code 130."""
        cluster = Cluster(self.folder, 1)
        process = self.start_profile("node1", seconds=20)
        wait_until(lambda: "device 1 of 1" in cluster.log("node1"), 120, "the first probe")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=120), 130, cluster.log("node1"))
        self.assertEqual(list(self.folder.glob("*.profile*")), [])

    def test_interrupted_at_the_second_device(self):
        """The first device is in the profile, which the planner takes."""
        devices = [CPU, {**CPU, "emulate": {"step_seconds": 2}}]
        cluster = Cluster(self.folder, 1, sites={0: {"devices": devices}})
        process = self.start_profile("node1")
        wait_until(lambda: "device 2 of 2" in cluster.log("node1"), 120, "the second device")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=120), 130, cluster.log("node1"))
        self.assertIn("interrupted", cluster.log("node1"))
        profile = json.loads(self.out("node1").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(profile["devices"][0]["step_seconds"]), 3)
        planned = farstep("plan", "--profiles", self.out("node1"), "--policy", "uniform",
                          "--base-steps", 10, "--base-batch", 4, "--json")
        self.assert_success(planned)

    def test_refusals(self):
        """Mistakes are told before anything is measured; nothing is written."""
        Cluster(self.folder, 1, sites={0: {"run": "", "coordinator": {"host": False}}})
        self.assert_refused(self.arguments("node1"), "run: is missing")
        Cluster(self.folder, 1, sites={0: {"devices": [{"kind": "cuda", "index": 63}]}})
        self.assert_refused(self.arguments("node1"), "cuda:63")
        Cluster(self.folder, 1, sites={0: {"name": "node9"}})
        self.assert_refused(self.arguments("node1"), "node9")
        Cluster(self.folder, 1)
        self.assert_refused(self.arguments("node1", seconds=0), "seconds", "above 0")
        self.assert_refused(["profile", "--config", self.folder / "node1.json", "--out",
                             self.folder / "no" / "node1.profile"], "--out", "not a folder")

    def test_predicts_the_step_time_of_another_batch(self):
        """On a device of steady speed the plan from its profile is within a tenth of a run."""
        within_tries(self, self.predicted_step_time)

    def predicted_step_time(self) -> list[Figure]:
        """The planned time of a step, for that of a run."""
        device = {**CPU, "emulate": {"sequence_seconds": 0.02}}
        cluster = Cluster(self.folder, 1, {
            "evaluate": {"every_rounds": 0}, "outer": {"rounds": 1},
            "plan": {"base_steps": 10, "base_batch": 12, "micro_batch": 6}},
            {0: {"devices": [device]}})
        self.profile("node1", seconds=1)
        planned = farstep("plan", "--profiles", self.out("node1"), "--policy", "uniform",
                          "--base-steps", 10, "--base-batch", 12, "--micro-batch", 6, "--json")
        self.assert_success(planned)
        site, = json.loads(planned.stdout)["sites"]
        predicted = site["predicted_compute_seconds"] / site["local_steps"]
        self.assert_success(cluster.launch())
        steps = by_event(cluster, "node1", "step")
        self.assertEqual(len(steps), 10)
        real = statistics.median(event["seconds"] for event in steps)
        return [near("predicted seconds of a step", predicted, real, real / 10)]


if __name__ == "__main__":
    unittest.main()
