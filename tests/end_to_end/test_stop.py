"""A stop is heeded at once: in the middle of a step of minutes, of a validation, of a command."""

import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from cluster import DATA, FARSTEP, Cluster, ClusterTest, by_event, measures_time, wait_until

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
        wait_until(lambda: cpu_seconds(process) > until, 120, "the process to compute")

    def assert_stops(self, process: subprocess.Popen, code: int, log=lambda: ""):
        """It ends with this code soon after SIGTERM."""
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=120), code, log())
        self.assertLess(time.monotonic() - began, MOST_SECONDS, log())

    def stop_in_step(self, cluster: Cluster, *options: str):
        """Starts the site, and stops it in the middle of its first step."""
        before = len(by_event(cluster, "node1", "run"))
        process = self.start_all(cluster, *options)["node1"]
        wait_until(lambda: len(by_event(cluster, "node1", "plan")) > before, 120,
                   "the first round")
        self.compute_a_while(process)
        self.assert_stops(process, 130, lambda: cluster.log("node1"))
        self.assertEqual(cluster.events("node1")[-1]["outcome"], "interrupted")
        self.assertEqual(by_event(cluster, "node1", "step"), [])
        # The one of the start has all that there is to save, and is not written twice.
        started = by_event(cluster, "node1", "checkpoint")[before:]
        self.assertEqual(len(started), 1)
        newest = started[-1]
        self.assertEqual([newest["round"], newest["step"]], [0, 0])
        self.assertTrue((Path(newest["folder"]) / "manifest.json").exists())

    @measures_time
    def test_in_the_middle_of_a_step(self):
        """The step is abandoned, and begun again by a run that resumes from before it."""
        run = {**LONG, "evaluate": {"every_rounds": 0}}
        cluster = Cluster(self.folder, 1, run, DEVICE)
        self.stop_in_step(cluster)
        self.stop_in_step(cluster, "--resume")
        self.assertIn("resumed from", (cluster.output / "node1" / "log.txt").read_text())

    @measures_time
    def test_in_the_middle_of_a_validation(self):
        """The validation has no result, and is made up for by the run that resumes."""
        run = {**LONG, "evaluate": {"every_rounds": 1, "windows": 128}}
        cluster = Cluster(self.folder, 1, run, DEVICE)
        process = self.start_all(cluster)["node1"]
        wait_until(lambda: "run 'test' as site" in cluster.log("node1"), 120, "the start")
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
        wait_until(lambda: process.poll() is not None or cpu_seconds(process) > until, 120,
                   "the process to compute")

    def make_folder(self, name: str) -> Path:
        """A folder for one cluster."""
        folder = self.folder / name
        folder.mkdir()
        return folder

    def steps(self, cluster: Cluster) -> dict:
        """Loss of every step."""
        return {(event["round"], event["step"]): event["loss"]
                for event in by_event(cluster, "node1", "step")}

    @measures_time
    def test_tokenize(self):
        """It says that it was stopped and what is left; the next one removes that."""
        text = self.folder / "text.txt"
        text.write_text("The quick brown fox jumps over the lazy dog. " * 2_000_000)
        output = self.folder / "tokens"
        command = [str(FARSTEP), "tokenize", str(text), "--output", str(output),
                   "--train-vocabulary", "400", "--threads", "1"]
        with open(self.folder / "tokenize.txt", "w", encoding="utf-8") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.processes.append(process)
        partial = Path(f"{output}.partial")
        wait_until(partial.exists, 60, "the unfinished folder")
        self.assert_stops(process, 130)
        said = (self.folder / "tokenize.txt").read_text()
        self.assertIn(f"{partial} is left unfinished", said)
        self.assertTrue(partial.exists())
        self.assertFalse(output.exists())

    @measures_time
    def test_evaluate_and_generate(self):
        """They have nothing to save: the signal ends them."""
        model = self.make_folder("model")
        cluster = Cluster(model, 1, {"outer": {"rounds": 1}})
        self.assert_success(cluster.launch())
        site = str(cluster.output / "node1")
        for command in (["evaluate", site, "--sequence-length", "512", "--batch", "64"],
                        ["generate", site, "--prompt", "It is", "--tokens", "100000"]):
            process = subprocess.Popen([str(FARSTEP), *command, "--data", str(DATA)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.processes.append(process)
            self.compute_a_while(process, 0.5)
            self.assert_stops(process, -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
