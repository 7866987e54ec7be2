"""A stop is heeded at once: in the middle of a step of minutes, of a validation, of a command.

A site that has time to hand in its steps does so first.
"""

import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from cluster import (DATA, FARSTEP, PATIENCE_SECONDS, Cluster, ClusterTest, by_event, merge, wait_until)
from measured import Figure, within_tries

# Longest time from the signal to the end. Writing the checkpoint is a part of it.
MOST_SECONDS = 10
# One micro-batch of the whole batch: on one core a step of it takes minutes. With recomputation it
# needs about 1 GB.
LONG = {"model": {"hidden": 256, "intermediate": 1024, "layers": 12, "heads": 4, "kv_heads": 4},
        "data": {"sequence_length": 256},
        "plan": {"base_steps": 2, "base_batch": 128}}
DEVICE = {0: {"devices": [{"kind": "cpu", "threads": 1, "recompute": True}]}}


def cpu_seconds(process: subprocess.Popen) -> float:
    """The processor time that the process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Stop(ClusterTest):
    """Each case signals a process that has long work under way."""

    def compute_a_while(self, process: subprocess.Popen, seconds: float = 3):
        """Waits until the process has used so much more processor time."""
        until = cpu_seconds(process) + seconds
        wait_until(lambda: process.poll() is not None or cpu_seconds(process) > until, PATIENCE_SECONDS,
                   "the process to compute")
        self.assertIsNone(process.poll(), "it has ended by itself")

    def assert_stops(self, process: subprocess.Popen, code: int, log=lambda: "") -> Figure:
        """It ends with this code; how long after SIGTERM."""
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=PATIENCE_SECONDS), code, log())
        return Figure("seconds to its end", time.monotonic() - began, at_most=MOST_SECONDS)

    def stop_in_step(self, cluster: Cluster, *options: str) -> Figure:
        """Starts the site, and stops it in the middle of its first step."""
        before = len(by_event(cluster, "node1", "run"))
        process = self.start_all(cluster, *options)["node1"]
        wait_until(lambda: len(by_event(cluster, "node1", "plan")) > before, PATIENCE_SECONDS,
                   "the first round")
        self.compute_a_while(process)
        figure = self.assert_stops(process, 130, lambda: cluster.log("node1"))
        self.assertEqual(cluster.events("node1")[-1]["outcome"], "interrupted")
        self.assertEqual(by_event(cluster, "node1", "step"), [])
        # The one of the start has all that there is to save, and is not written twice.
        started = by_event(cluster, "node1", "checkpoint")[before:]
        self.assertEqual(len(started), 1)
        newest = started[-1]
        self.assertEqual([newest["round"], newest["step"]], [0, 0])
        self.assertTrue((Path(newest["folder"]) / "manifest.json").exists())
        return figure

    def test_in_the_middle_of_a_step(self):
        """The step is abandoned, and begun again by a run that resumes from before it."""
        def trial() -> list[Figure]:
            cluster = Cluster(self.folder, 1, {**LONG, "evaluate": {"every_rounds": 0}}, DEVICE)
            figures = [self.stop_in_step(cluster), self.stop_in_step(cluster, "--resume")]
            self.assertIn("resumed from", (cluster.output / "node1" / "log.txt").read_text())
            return figures
        within_tries(self, trial)

    def test_in_the_middle_of_a_validation(self):
        """The validation, of minutes, has no result; the run that resumes makes up for it."""
        run = {**LONG, "evaluate": {"every_rounds": 1, "windows": 128}}
        cluster = Cluster(self.folder, 1, run, DEVICE)
        process = self.start_all(cluster)["node1"]
        wait_until(lambda: "run 'test' as site" in cluster.log("node1"), PATIENCE_SECONDS, "the start")
        self.compute_a_while(process)
        self.assert_stops(process, 130, lambda: cluster.log("node1"))
        self.assertEqual(by_event(cluster, "node1", "evaluation"), [])

    def test_steps_that_were_abandoned_change_no_bit(self):
        """Stopped again and again wherever it is, the run becomes what it becomes without a stop."""
        run = {"plan": {"base_steps": 3, "base_batch": 64, "micro_batch": 8},
               "data": {"sequence_length": 128}}
        whole, stopped = (Cluster(self.make_folder(name), 1, run) for name in ("whole", "stopped"))
        self.assert_success(whole.launch())
        code, stops = 130, 0
        while code == 130:
            process = self.start_all(stopped, *(["--resume"] if stops else []))["node1"]
            before = len(stopped.events("node1"))
            wait_until(lambda: process.poll() is not None
                       or any(event["event"] == "step"
                              for event in stopped.events("node1")[before:]), 120, "a step")
            self.compute_or_end(process, 0.1)
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=120)
            stops += 1
        self.assertEqual(code, 0, stopped.log("node1"))
        self.assertGreater(stops, 2)
        self.assertEqual(self.steps(stopped), self.steps(whole))
        self.assertEqual(len(self.steps(whole)), 9)

    def compute_or_end(self, process: subprocess.Popen, seconds: float):
        """Waits until the process has computed so much longer, or has ended."""
        if process.poll() is not None:
            return
        until = cpu_seconds(process) + seconds
        wait_until(lambda: process.poll() is not None or cpu_seconds(process) > until, PATIENCE_SECONDS,
                   "the process to compute")

    def steps(self, cluster: Cluster) -> dict:
        """Loss of every step."""
        return {(event["round"], event["step"]): event["loss"]
                for event in by_event(cluster, "node1", "step")}

    def test_tokenize(self):
        """It says that it was stopped and what is left, from which the same command goes on."""
        # One text under many names: two minutes of work on a quiet core, so that the stop finds it under way.
        texts = self.make_folder("texts")
        text = texts / "0.txt"
        text.write_text(os.urandom(10_000_000).hex(" ", 8), encoding="ascii")
        for copy in range(1, 300):
            os.link(text, texts / f"{copy}.txt")
        output = self.folder / "tokens"
        command = [str(FARSTEP), "tokenize", str(texts), "--output", str(output),
                   "--tokenizer", str(DATA), "--threads", "1"]
        log = self.folder / "tokenize.txt"
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file)
        self.processes.append(process)
        partial = Path(f"{output}.partial")
        wait_until(lambda: process.poll() is not None or (partial / "unfinished.json").exists(), 120,
                   "the state of the unfinished folder")
        self.assertIsNone(process.poll(), log.read_text())
        self.assert_stops(process, 130, log.read_text)  # within two minutes: it was not finished
        said = log.read_text()
        self.assertIn(f"{partial}", said)
        self.assertIn("The same command goes on from", said)
        self.assertTrue(partial.exists())
        self.assertFalse(output.exists())

    def test_evaluate_and_generate(self):
        """They have nothing to save: the signal ends them."""
        model = self.make_folder("model")
        cluster = Cluster(model, 1, {"outer": {"rounds": 1}})
        self.assert_success(cluster.launch())
        site = str(cluster.output / "node1")
        for command in (["evaluate", site, "--sequence-length", "512", "--batch", "64"],
                        # By chance a model of few steps may end its text soon.
                        ["generate", site, "--prompt", "It is", "--tokens", "100000",
                         "--temperature", "0"]):
            process = subprocess.Popen([str(FARSTEP), *command, "--data", str(DATA)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.processes.append(process)
            self.compute_a_while(process, 0.5)
            self.assert_stops(process, -signal.SIGTERM)


# On a busy machine a site needs several rounds to come back, and some must be left then.
ROUNDS = 12
# Rounds of two seconds.
STEPS = 40
SLOW = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.05}}]}


class HandIn(ClusterTest):
    """Sites that are asked to stop in the middle of a round, with time to hand in what they have."""

    def make(self, num_sites: int, hand_in_seconds: float, run: dict | None = None,
             **options) -> Cluster:
        """A cluster whose sites all have so much time."""
        site = SLOW | {"stop": {"hand_in_seconds": hand_in_seconds}}
        return Cluster(self.folder, num_sites,
                       merge({"min_sites": 1, "outer": {"rounds": ROUNDS, "averaging": "tokens"},
                              "evaluate": {"every_rounds": 0}, "plan": {"base_steps": STEPS}},
                             run or {}),
                       {index: site for index in range(num_sites)}, **options)

    def stop_one(self, cluster: Cluster, victim: str = "node2") -> dict[str, subprocess.Popen]:
        """Starts all sites, asks one to stop in the middle of round 2, and waits for its end."""
        started = self.start_all(cluster)
        self.wait_for_step(cluster, 2, 5, victim)
        started[victim].send_signal(signal.SIGTERM)
        self.assert_end(cluster, {victim: started[victim]}, 130)
        self.assertEqual(cluster.events(victim)[-1]["outcome"], "interrupted")
        return started

    def come_back(self, cluster: Cluster, started: dict[str, subprocess.Popen]):
        """Starts the second site again. All end well, with one theta_global."""
        wait_until(lambda: "generation 2 goes on" in cluster.log("node1"), PATIENCE_SECONDS, "the loss")
        started["node2"] = self.start_site(cluster, "node2", "--resume=auto")
        self.assert_end(cluster, started)
        self.assert_one_theta(cluster, absent=("node2",))

    def assert_handed_in(self, cluster: Cluster, victim: str, others: list[str]):
        """The victim's steps of round 2 are in the mean of all."""
        cut = by_event(cluster, victim, "round")[1]
        self.assertEqual(cut["round"], 2)
        self.assertIn(cut["local_steps"], range(5, STEPS))
        steps = [event for event in by_event(cluster, victim, "step") if event["round"] == 2]
        self.assertEqual(len(steps), cut["local_steps"])
        tokens = STEPS * len(others) + cut["local_steps"]
        self.assertAlmostEqual(cut["averaging_weight"], cut["local_steps"] / tokens)
        for name in others:
            self.assertAlmostEqual(by_event(cluster, name, "round")[1]["averaging_weight"],
                                   STEPS / tokens)

    def test_the_steps_of_a_stopped_site_are_merged(self):
        """It waits for the others, leaves between two rounds, and can come back."""
        for run in ({}, {"sync": {"fragments": 3, "delay_steps": 4, "alpha": 0.5}},
                    {"strategy": {"kind": "eager_updates"}}):
            with self.subTest(run=run):
                self.take_new_folder()
                cluster = self.make(3, 60, run)
                started = self.stop_one(cluster)
                newest = by_event(cluster, "node2", "checkpoint")[-1]
                self.assertEqual((newest["round"], newest["step"]), (2, 0))
                if not run:
                    self.assert_handed_in(cluster, "node2", ["node1", "node3"])
                self.come_back(cluster, started)
                if "strategy" in run:  # whose third round ends with the sync of the second
                    third = by_event(cluster, "node1", "round")[2]
                    done = by_event(cluster, "node2", "round")[1]["local_steps"]
                    self.assertAlmostEqual(third["averaging_weight"], STEPS / (2 * STEPS + done))

    def test_without_time_the_steps_are_not_merged(self):
        """The others go on with their own, as if it had never begun the round."""
        cluster = self.make(3, 0)
        started = self.stop_one(cluster)
        self.assertEqual([event["round"] for event in by_event(cluster, "node2", "round")], [1])
        newest = by_event(cluster, "node2", "checkpoint")[-1]
        self.assertEqual(newest["round"], 1)
        self.assertGreaterEqual(newest["step"], 5)
        self.come_back(cluster, started)
        for name in ("node1", "node3"):
            second = by_event(cluster, name, "round")[1]
            self.assertEqual(second["averaging_weight"], 0.5)

    def test_time_that_runs_out(self):
        """The others have most of a round left: it leaves in the middle of it, with all its steps."""
        cluster = self.make(2, 0.5)
        started = self.stop_one(cluster)
        self.assertIn("have not come in time", cluster.log("node2"))
        newest = by_event(cluster, "node2", "checkpoint")[-1]
        self.assertEqual(newest["round"], 1)
        self.assertGreaterEqual(newest["step"], 5)
        self.come_back(cluster, started)

    def test_in_a_pause_nobody_is_waited_for(self):
        """A site is lost, and may come back much later than this one must be gone."""
        cluster = self.make(3, 600, {"min_sites": 3, "deadlines": {"pause_seconds": 600}})
        started = self.start_all(cluster)
        self.wait_for_step(cluster, 2, 5, "node2", "node3")
        started["node3"].kill()
        wait_until(lambda: "the run pauses" in cluster.log("node2"), PATIENCE_SECONDS, "the pause")
        started["node2"].send_signal(signal.SIGTERM)
        self.assert_end(cluster, {"node2": started["node2"]}, 130)  # long before the 600 s
        newest = by_event(cluster, "node2", "checkpoint")[-1]
        self.assertEqual(newest["round"], 1)
        self.assertGreaterEqual(newest["step"], 5)

    def test_a_site_that_hosts_the_coordinator(self):
        """It hands in, and a stand-by goes on with the run, which nobody misses."""
        cluster = self.make(3, 60, {"min_sites": 2}, hosts=["node1", "node2"])
        started = self.stop_one(cluster, "node1")
        self.assert_handed_in(cluster, "node1", ["node2", "node3"])
        self.assert_end(cluster, {name: started[name] for name in ("node2", "node3")})
        self.assert_one_theta(cluster, "node2", "node3")
        for name in ("node2", "node3"):
            self.assertIn("the run has a new coordinator", cluster.log(name))
            self.assertNotIn("has been silent", cluster.log(name))

    def test_all_sites_of_a_launch_hand_in_together(self):
        """They commit the round with what they have, and resume from between two rounds."""
        cluster = self.make(3, 600, {"min_sites": None, "deadlines": {"pause_seconds": 60}})
        launcher = subprocess.Popen([str(FARSTEP), "launch", str(self.folder)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(launcher)
        self.wait_for_step(cluster, 2, 5)
        launcher.send_signal(signal.SIGINT)
        self.assertEqual(launcher.wait(timeout=PATIENCE_SECONDS), 130)  # long before the 600 s
        for name in cluster.names:
            last = by_event(cluster, name, "round")[-1]
            self.assertEqual(last["round"], 2)
            self.assertIn(last["local_steps"], range(5, STEPS))
            newest = by_event(cluster, name, "checkpoint")[-1]
            self.assertEqual((newest["round"], newest["step"]), (2, 0))
        self.assert_success(cluster.launch("--resume"))
        self.assert_one_theta(cluster)


if __name__ == "__main__":
    unittest.main()
