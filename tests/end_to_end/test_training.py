"""Whole runs: they learn, agree bit for bit, and account for time and bytes."""

import json
import math
import statistics
import subprocess
import unittest

from cluster import DATA, FARSTEP, Cluster, ClusterTest, by_event, farstep, validation_losses, wait_until
from measured import Figure, near, within_tries


class Training(ClusterTest):
    """Real processes, real text."""

    def test_two_sites_learn(self):
        """Validation loss falls by more than 1 nat from that of a fresh model, ln(1024) = 6.93."""
        cluster = Cluster(self.folder, 2, {"plan": {"base_steps": 40, "base_batch": 8}})
        self.assert_success(cluster.launch())
        losses = validation_losses(cluster)
        self.assertEqual(sorted(losses), [0, 1, 2, 3])
        self.assertAlmostEqual(losses[0], 6.93, delta=0.15)
        self.assertLess(losses[3], losses[0] - 1.0)
        self.assertAlmostEqual(cluster.report()["final_loss"], losses[3], places=6)

    def test_all_sites_hold_the_same_theta_after_every_round(self):
        """Unequal batches and steps, four sites: one hash a round, and a new one every round."""
        sites = [{"name": "node1"}, {"name": "node2", "local_steps": 3},
                 {"name": "node3", "batch": 6, "micro_batch": 4}, {"name": "node4", "batch": 1}]
        cluster = Cluster(self.folder, 4, {"sites": sites})
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        firsts = [by_event(cluster, name, "round")[0] for name in cluster.names]
        whole_batch = sum(event["batch"] for event in firsts)
        for event in firsts:
            self.assertAlmostEqual(event["averaging_weight"], event["batch"] / whole_batch)

    def test_sites_train_with_any_way_of_products(self):
        """Sites whose products are made differently agree on every round; a missing way is named."""
        cluster = Cluster(self.folder, 2, {"inner": {"compute": "bf16"}},
                          {0: {"cpu": {"products": "measure"}}, 1: {"cpu": {"products": "mkl"}}})
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        for name, way in zip(cluster.names, ("", "mkl")):
            log = (cluster.output / name / "log.txt").read_text(encoding="utf-8")
            self.assertIn(f"matrix products: {way}", log)
        refused = cluster.launch("--set", "cpu.products=amx", "--set", "cpu.instructions=baseline",
                                 "--set", "output=another")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("has no way 'amx'", refused.stderr + refused.stdout)

    def test_sites_with_different_instructions_agree(self):
        """Lossy codecs give the same bits with and without vector instructions."""
        for codec in ("int8", "bf16"):
            cluster = Cluster(self.make_folder(codec), 2, {"sync": {"codec": {"kind": codec}}},
                              {1: {"cpu": {"instructions": "baseline"}}})
            self.assert_success(cluster.launch())
            self.assert_one_theta(cluster)
            log = (cluster.output / "node2" / "log.txt").read_text(encoding="utf-8")
            self.assertIn("instructions: baseline", log)
            self.assertIn("LibTorch's: DEFAULT", log)

    def test_idle_time_is_what_the_step_times_imply(self):
        """Emulated steps: who is done first waits for the slowest, within 5 %."""
        within_tries(self, self.idle_times)

    def idle_times(self) -> list[Figure]:
        """Waiting time of all sites for what their steps imply, and the steps of each for what was asked."""
        asked = (0.24, 0.30, 0.12, 0.20)
        steps, rounds = 10, 3
        sites = {index: {"devices": [{"kind": "cpu", "threads": 1,
                                      "emulate": {"step_seconds": seconds}}]}
                 for index, seconds in enumerate(asked)}
        cluster = Cluster(self.folder, 4, {"plan": {"base_steps": steps, "base_batch": 1},
                                           "evaluate": {"every_rounds": 0}}, sites)
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        report = cluster.report()
        taken = [[event["seconds"] for event in by_event(cluster, name, "step")] for name in cluster.names]
        figures, implied = [], 0.0
        for site, seconds, least in zip(report["sites"], taken, asked):
            self.assertEqual(len(seconds), steps * rounds)
            self.assertGreaterEqual(min(seconds), least)
            self.assertAlmostEqual(site["compute_seconds"], sum(seconds), places=6)
            figures.append(Figure(f"median step of {site['site']}", statistics.median(seconds),
                                  at_most=1.1 * least))
        for begin in range(0, steps * rounds, steps):
            sums = [sum(seconds[begin:begin + steps]) for seconds in taken]
            implied += sum(max(sums) - one for one in sums)
        waited = sum(site["wait_seconds"] for site in report["sites"])
        return [*figures, near("seconds that all wait", waited, implied, 0.05 * implied)]

    def test_bytes_reported_are_bytes_on_the_sockets(self):
        """Payload as counted by us against the kernel's own counters, and against the formula."""
        model = {"hidden": 128, "intermediate": 256, "layers": 2}
        cluster = Cluster(self.folder, 3, {"model": model, "outer": {"rounds": 2},
                                           "plan": {"base_steps": 1, "base_batch": 1}})
        self.assert_success(cluster.launch())
        parameters = by_event(cluster, "node1", "run")[0]["parameters"]
        for name in cluster.names:
            for event in by_event(cluster, name, "round"):
                formula = 2 * (3 - 1) / 3 * 4 * parameters
                self.assertAlmostEqual(event["wan_bytes_sent"], formula, delta=0.01 * formula)
                for direction in ("sent", "received"):
                    self.assertAlmostEqual(event[f"wan_bytes_{direction}"],
                                           event[f"socket_bytes_{direction}"],
                                           delta=0.05 * event[f"socket_bytes_{direction}"])

    def test_report_keeps_its_contract(self):
        """The members that outside scripts read, and a page of its own."""
        cluster = Cluster(self.folder, 2)
        self.assert_success(cluster.launch())
        report = cluster.report()
        self.assertEqual(list(report), ["rounds", "sites", "final_loss", "training_losses", "validations",
                                        "unreadable", "wan_bytes_sent", "noise_scales", "sync_changes", "views",
                                        "presence", "outliers", "rises", "settings", "default_settings"])
        self.assertEqual(report["rounds"], 3)
        for site, name in zip(report["sites"], cluster.names):
            self.assertEqual(list(site), ["site", "trains", "steps", "tokens", "merged_tokens",
                                          "compute_seconds", "wait_seconds", "wan_seconds", "serve_seconds",
                                          "other_seconds", "idle_fraction", "hidden_wan_seconds",
                                          "exposed_wan_share", "uplink_bits_per_second", "links",
                                          "lost_seconds", "unaccounted_seconds",
                                          "wall_seconds", "outcome", "message"])
            self.assertEqual((site["site"], site["steps"], site["tokens"]),
                             (name, 15, 15 * 4 * 32))
        page = self.folder / "report.html"
        self.assert_success(farstep("report", cluster.output, "--html", page))
        self.assertIn("<svg", page.read_text(encoding="utf-8"))

    def test_a_checkpoint_generates_and_evaluates(self):
        """The text command and the loss command work on what a run leaves."""
        cluster = Cluster(self.folder, 1, {"evaluate": {"windows": 128}})
        self.assert_success(cluster.launch())
        site = cluster.output / "node1"
        data = ["--data", DATA]
        text = farstep("generate", site, *data, "--prompt", "She was", "--tokens", 8)
        self.assert_success(text)
        self.assertTrue(text.stdout.startswith("She was"))
        again = farstep("generate", site, *data, "--prompt", "She was", "--tokens", 8)
        self.assertEqual(text.stdout, again.stdout)
        for prompt in ("She was", ""):  # with and without a first piece
            with open("/dev/full", "w", encoding="utf-8") as full:
                lost = subprocess.run([FARSTEP, "generate", site, *data, "--prompt", prompt], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertEqual(lost.returncode, 3)
            self.assertIn("cannot write to the standard output: No space left", lost.stderr)
        evaluated = farstep("evaluate", site, *data, "--sequence-length", 32, "--windows", 128,
                            "--json")
        self.assert_success(evaluated)
        self.assertAlmostEqual(json.loads(evaluated.stdout)["loss"],
                               validation_losses(cluster)[3], places=5)

    def test_a_run_starts_from_a_model_folder(self):
        """model.from: a checkpoint is a Hugging Face folder, and the next run starts from its loss."""
        first = Cluster(self.folder, 2, {"evaluate": {"windows": 128}})
        self.assert_success(first.launch())
        checkpoint = sorted((first.output / "node1" / "checkpoints").iterdir())[-1]
        folder = self.folder / "second"
        folder.mkdir()
        second = Cluster(folder, 2, {"model": {"from": str(checkpoint)}, "evaluate": {"windows": 128}})
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        run["model"] = {"from": str(checkpoint)}  # the folder alone gives the shape
        (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
        self.assert_success(second.launch())
        self.assertAlmostEqual(validation_losses(second)[0], validation_losses(first)[3], places=5)
        self.assertLess(validation_losses(second)[3], validation_losses(second)[0])

    def test_the_preset_150m_trains_two_steps(self):
        """The shape of real runs, in full width and depth, on a CPU: a fresh model is as good as a guess.

        It is killed after its steps, as its checkpoints are of gigabytes.
        """
        shape = dict.fromkeys(("hidden", "intermediate", "layers", "heads", "kv_heads"))
        cluster = Cluster(self.folder, 1, {
            "model": {"preset": "150m", **shape}, "outer": {"rounds": 1},
            "plan": {"base_steps": 2, "base_batch": 1},
            "inner": {"peak_learning_rate": 0.0004}, "evaluate": {"every_rounds": 0}})
        site = self.start_site(cluster, "node1")
        wait_until(lambda: len(by_event(cluster, "node1", "step")) == 2 or site.poll() is not None, 240,
                   "two steps")
        site.kill()
        self.assertGreater(by_event(cluster, "node1", "run")[0]["parameters"], 150e6)
        losses = [step["loss"] for step in by_event(cluster, "node1", "step")]
        self.assertEqual(len(losses), 2, cluster.log("node1"))
        for loss in losses:
            self.assertAlmostEqual(loss, math.log(cluster.run["model"]["vocabulary"]), delta=0.5)

    def test_coordinator_of_its_own(self):
        """No site hosts the coordinator, and only it has the run file."""
        local = {"run": "", "coordinator": {"host": False}}
        cluster = Cluster(self.folder, 2, sites={0: local, 1: local})
        cluster.write_coordinator_config()
        self.assert_success(cluster.launch())
        self.assertEqual(sorted(validation_losses(cluster)), [0, 1, 2, 3])


class Identities(ClusterTest):
    """What must be equal whichever way it is computed."""

    def losses(self, name: str, num_sites: int, run: dict) -> dict[int, float]:
        """Validation losses by round of a run in a folder of its own."""
        cluster = Cluster(self.make_folder(name), num_sites, run)
        self.assert_success(cluster.launch())
        return validation_losses(cluster)

    def test_a_validation_that_is_not_finite_ends_all_sites_as_diverged(self):
        """An outer step beyond all measure: both sites find it, and neither saves or records the round."""
        cluster = Cluster(self.folder, 2, {"outer": {"learning_rate": 1e38}, "evaluate": {"every_rounds": 1},
                                            "inner": {"peak_learning_rate": 100}})
        self.assert_end(cluster, self.start_all(cluster), 5)
        self.assertEqual(list(validation_losses(cluster)), [0])
        for name in cluster.names:
            self.assertIn("after round 1 the validation loss of the common model is not finite", cluster.log(name))
            self.assertFalse((cluster.output / name / "checkpoints" / "round-00001").exists())

    def test_one_site_with_plain_outer_step_is_plain_adamw(self):
        """eta 1, mu 0: 4 rounds of 5 steps are one round of 20."""
        outer = {"learning_rate": 1.0, "momentum": 0.0}
        many = self.losses("many", 1, {"outer": {"rounds": 4, **outer}, "plan": {"base_steps": 5}})
        one = self.losses("one", 1, {"outer": {"rounds": 1, **outer}, "plan": {"base_steps": 20}})
        self.assertAlmostEqual(many[4], one[1], delta=2e-5)
        self.assertLess(one[1], one[0] - 0.05)

    def test_one_sgd_step_a_round_is_data_parallelism(self):
        """H 1, SGD, eta 1, mu 0: four sites of batch 1 are one site of batch 4."""
        run = {"outer": {"rounds": 8, "learning_rate": 1.0, "momentum": 0.0},
               "inner": {"optimizer": "sgd", "peak_learning_rate": 0.5, "clip_norm": None},
               "data": {"order": "sequential"}}
        apart = self.losses("apart", 4, {**run, "plan": {"base_steps": 1, "base_batch": 1}})
        together = self.losses("together", 1, {**run, "plan": {"base_steps": 1, "base_batch": 4}})
        self.assertEqual(sorted(apart), list(range(9)))
        for rounds, loss in together.items():
            self.assertAlmostEqual(apart[rounds], loss, delta=2e-5)
        self.assertLess(together[8], together[0] - 0.05)


if __name__ == "__main__":
    unittest.main()
