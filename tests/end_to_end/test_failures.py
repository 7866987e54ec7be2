"""What a user sees when something is wrong: the exit code, and a message that names it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import unittest

from cluster import DATA, FARSTEP, WATCHFUL, Cluster, ClusterTest, by_event, farstep
from ports import port_of

ENDLESS = {"outer": {"rounds": 100_000}, "plan": {"base_steps": 20, "base_batch": 1}}
# Nobody waits so long for the others who knows that it cannot train.
PATIENT = {"deadlines": {"join_seconds": 600}}


class LostPeers(ClusterTest):
    """A site that vanishes ends the run at all others, safely."""

    def lose(self, cluster: Cluster, victim: str, stop: int, *options: str) -> dict[str, subprocess.Popen]:
        """Starts the sites and kills `victim` in mid-run; the others must end with exit code 4."""
        done = len(by_event(cluster, victim, "round"))
        started = self.start_all(cluster, *options)
        self.wait_for_rounds(cluster, done + 2, victim)
        started[victim].send_signal(stop)
        self.assert_end(cluster, {name: process for name, process in started.items() if name != victim}, 4)
        return started

    def assert_names_and_saves(self, cluster: Cluster, victim: str, expected: str):
        """The survivors name what was lost, and hold a checkpoint that can be used."""
        survivors = [name for name in cluster.names if name != victim]
        for name in survivors:
            self.assertIn(expected, cluster.log(name))
            self.assertEqual(by_event(cluster, name, "end")[-1]["outcome"], "peer_lost")
        newest = sorted((cluster.output / survivors[-1] / "checkpoints").glob("round-*"))[-1]
        evaluated = farstep("evaluate", newest, "--data", DATA, "--sequence-length", 32, "--windows", 4)
        self.assert_success(evaluated)

    def test_a_killed_a_frozen_and_an_interrupted_site_are_named(self):
        """Its connections break; or only its heartbeats stop; or it leaves. All resume after each loss."""
        cluster = Cluster(self.folder, 3, ENDLESS | {"deadlines": WATCHFUL})
        options: list[str] = []
        for victim, stop in (("node3", signal.SIGKILL), ("node2", signal.SIGSTOP), ("node3", signal.SIGINT)):
            started = self.lose(cluster, victim, stop, *options)
            if stop == signal.SIGINT:
                self.assert_end(cluster, {victim: started[victim]}, 130)
            self.end_processes()
            self.assert_names_and_saves(cluster, victim, victim)
            options = ["--resume"]
        rounds = max(event["round"] for event in by_event(cluster, "node1", "round"))
        self.assert_success(cluster.launch("--resume", "--set", f"run.outer.rounds={rounds + 2}"))

    def test_killed_coordinator_is_named(self):
        """The site that hosts the coordinator takes it along, and does not bring it back."""
        deadlines = WATCHFUL | {"coordinator_lost_after_seconds": 6}
        cluster = Cluster(self.folder, 3, ENDLESS | {"deadlines": deadlines})
        self.lose(cluster, "node1", signal.SIGKILL)
        self.assert_names_and_saves(cluster, "node1", "coordinator")

    def test_stopped_coordinator_is_told(self):
        """The site that hosts the coordinator leaves: the others do not wait for another one."""
        cluster = Cluster(self.folder, 3, ENDLESS | {"min_sites": 1})
        self.lose(cluster, "node1", signal.SIGTERM)
        self.assert_names_and_saves(cluster, "node1", "site node1, which hosts the coordinator")

    def test_a_survivor_that_cannot_save_names_the_lost_site(self):
        """A second failure, of the disk, does not hide the first."""
        cluster = Cluster(self.folder, 2, {**ENDLESS, "checkpoint": {"every_rounds": 1000}})
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 1, "node1")
        checkpoints = cluster.output / "node1" / "checkpoints"
        checkpoints.rename(checkpoints.with_name("kept"))
        checkpoints.write_text("in the way\n")
        started["node2"].send_signal(signal.SIGKILL)
        self.assert_end(cluster, {"node1": started["node1"]}, 4)
        self.assertIn("the state at the loss is not saved", cluster.log("node1"))
        end = by_event(cluster, "node1", "end")[-1]
        self.assertEqual(end["outcome"], "peer_lost")
        self.assertIn("node2", end["message"])


FROM = {"model": {"from": "start", "vocabulary": None, "hidden": None, "intermediate": None,
                  "layers": None, "heads": None, "kv_heads": None},
        # So long that silence does not explain that a site is told.
        "deadlines": {"lost_after_seconds": 50}}


class Starts(ClusterTest):
    """What keeps one site from training is told to all sites."""

    def start_from(self, models: dict[str, dict]) -> Cluster:
        """Starts two sites from a checkpoint, which node1 has. node2 has no run file."""
        first = self.folder / "first"
        first.mkdir()
        source = Cluster(first, 1, {"outer": {"rounds": 1}, "plan": {"base_steps": 1}})
        self.assert_success(source.launch())
        checkpoint, = (source.output / "node1" / "checkpoints").glob("round-00001")
        shutil.copytree(checkpoint, self.folder / "start")
        cluster = Cluster(self.folder, 2, FROM, {1: {"run": "", **models}})
        return cluster

    def test_a_site_that_fails_before_training_says_why(self):
        """node2 lacks the model that the run starts from: node1 hears so at once."""
        cluster = self.start_from({"models": "nowhere"})
        started = self.start_all(cluster)
        self.assert_end(cluster, {"node2": started["node2"]}, 3)
        self.assert_end(cluster, {"node1": started["node1"]}, 4)
        self.assertIn("nowhere/start: there is no such folder", cluster.log("node2"))
        self.assertIn("site node2: it left the run: failed: ", cluster.log("node1"))
        self.assertIn("nowhere/start: there is no such folder", cluster.log("node1"))

    def test_starting_weights_that_differ_are_refused(self):
        """One flipped bit in node2's copy: both name both checksums and the folder to copy."""
        cluster = self.start_from({"models": "other"})
        shutil.copytree(self.folder / "start", self.folder / "other" / "start")
        weights = self.folder / "other" / "start" / "model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-4] ^= 1
        weights.write_bytes(content)
        for name, process in self.start_all(cluster).items():
            self.assert_end(cluster, {name: process}, 3)
            self.assertRegex(cluster.log(name), "node1 has [0-9a-f]{16}, node2 has [0-9a-f]{16}")
            self.assertIn("copy the folder of model.from", cluster.log(name))
            self.assertEqual(cluster.events(name), [])


class Refusals(ClusterTest):
    """Mistakes in configs and data are told before anything is trained."""

    def assert_refused(self, result, code: int, *parts: str):
        """Exit code and every part of the message."""
        output = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, output)
        for part in parts:
            self.assertIn(part, output)

    def test_unknown_field(self):
        """A misspelt member is named with its path, and the right one is proposed."""
        cluster = Cluster(self.folder, 1, sites={0: {"netwrk": 1}})
        self.assert_refused(cluster.launch(), 2, "node1.json: netwrk", "network")
        cluster = Cluster(self.folder, 1, {"outer": {"momentun": 0.9}})
        self.assert_refused(cluster.launch(), 2, "run.json: outer.momentun", "momentum")

    def test_value_out_of_range(self):
        """Values given with --set are judged like the file's."""
        cluster = Cluster(self.folder, 1)
        self.assert_refused(cluster.launch("--set", "run.outer.rounds=0"), 2, "outer.rounds",
                            "at least 1")
        self.assert_refused(cluster.launch("--set", "devices[0].threads=two"), 2,
                            "devices[0].threads", "whole number")

    def test_run_files_that_differ(self):
        """The second site's own run file says something else: refused with the JSON path."""
        cluster = Cluster(self.folder, 2)
        other = dict(cluster.run, outer={"rounds": 3, "momentum": 0.4})
        (self.folder / "other.json").write_text(json.dumps(other))
        path = self.folder / "node2.json"
        path.write_text(json.dumps(dict(json.loads(path.read_text()), run="other.json")))
        self.assert_end(cluster, {"node2": self.start_all(cluster)["node2"]}, 2)
        self.assertIn("outer.momentum: 0.4 here, 0.5 there", cluster.log("node2"))

    def test_address_of_another_machine(self):
        """An address that this machine does not have, or not yet: told at once, for a later try."""
        cluster = Cluster(self.folder, 2, PATIENT, {1: {"network": {"address": "192.0.2.7"}}})
        self.assert_end(cluster, {"node2": self.start_all(cluster)["node2"]}, 4)
        self.assertIn("192.0.2.7", cluster.log("node2"))
        self.assertIn("127.0.0.1", cluster.log("node2"))

    def test_a_port_in_use_is_free_at_a_later_try(self):
        """The coordinator's port is another process's: exit code 4; then the same command trains."""
        cluster = Cluster(self.folder, 1, {"outer": {"rounds": 1}})
        endpoint = json.loads((self.folder / "node1.json").read_text())["coordinator"]["endpoint"]
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", port_of(endpoint)))
            holder.listen()
            self.assert_refused(cluster.launch("--resume=auto"), 4, endpoint, "in use")
        self.assert_success(cluster.launch("--resume=auto"))

    def test_what_one_site_can_find_alone(self):
        """`farstep check` has a row a check; `train` tells the same while the others are not there."""
        cluster = Cluster(self.folder, 2, PATIENT)
        config = self.folder / "node1.json"
        good = farstep("check", config)
        self.assert_refused(good, 0, "'test', site 1 of 2", "127.0.0.1", "digest")
        rows = {line.split()[0] for line in good.stdout.splitlines()}
        self.assertEqual(rows, {"ok"})
        self.assertFalse((cluster.output / "node1").exists())
        bad = farstep("check", config, "--set", "run.model.heads=3", "--set", "data=nowhere")
        self.assert_refused(bad, 2, "run.json: model.heads", "must divide hidden", "nowhere",
                            "tokenize", "ok       network")
        self.assertEqual([line.split()[0] for line in bad.stdout.splitlines()].count("fault"), 2)
        self.assert_refused(farstep("check", config, "--set", "data=nowhere"), 3, "nowhere")
        self.assert_refused(farstep("train", "--config", self.folder / "node2.json",
                                    "--set", "run.model.heads=3"), 2, "run.json: model.heads")
        self.assert_refused(farstep("train", "--config", self.folder / "node2.json", "--set",
                                    "devices[0].kind=cuda", "--set", "devices[0].index=63"), 2,
                            "node2.json", "cuda:63")

    def test_no_validation_data_without_validation(self):
        """A dataset of training shards alone trains where nothing is evaluated."""
        data = self.folder / "data"
        shutil.copytree(DATA, data, ignore=shutil.ignore_patterns("validation-*"))
        cluster = Cluster(self.folder, 1, {"outer": {"rounds": 1}}, {0: {"data": "data"}})
        self.assert_refused(cluster.launch(), 3, "no validation shards", "every_rounds")
        self.assert_success(cluster.launch("--set", "run.evaluate.every_rounds=0"))

    def test_site_that_does_not_take_part(self):
        """A name that the run file does not list."""
        cluster = Cluster(self.folder, 1, sites={0: {"name": "node9"}})
        self.assert_refused(farstep("train", "--config", self.folder / "node1.json"), 2, "node9",
                            "node1")

    def test_missing_data(self):
        """No shards: the message says which command makes them."""
        cluster = Cluster(self.folder, 1, sites={0: {"data": "nowhere"}})
        self.assert_refused(cluster.launch(), 3, "nowhere", "tokenize")

    def test_missing_config(self):
        """A path that is not there."""
        self.assert_refused(farstep("train", "--config", self.folder / "no.json"), 2, "no.json")
        self.assert_refused(farstep("launch", self.folder / "no"), 2, "no")
        self.assert_refused(farstep("launch", self.folder), 2, "config")
        self.assert_refused(farstep("report", self.folder), 3, str(self.folder))

    def test_arguments(self):
        """Unknown commands and options; help lists the config fields."""
        self.assert_refused(farstep("trian"), 2, "trian")
        self.assert_refused(farstep("train", "--confg", "x"), 2, "confg")
        self.assert_refused(farstep("train"), 2, "config")
        codes = farstep("--help")
        self.assert_refused(codes, 0, "Exit codes:", "4    the coordinator or a site is missing")
        help_text = farstep("train", "--help")
        self.assert_refused(help_text, 0, "--set", "devices[].emulate.step_seconds",
                            "outer.momentum", "deadlines.lost_after_seconds")

    def test_output_that_cannot_be_written(self):
        """A full disk, for little text, much, and that of LibTorch's program; and a closed pipe."""
        profile = self.folder / "profile.json"
        profile.write_text(json.dumps({"site": "a", "devices": [
            {"name": "x", "fp16_tflops": 1.0, "memory_bytes": 1 << 30, "max_micro_batch": 8}], "links": []}))
        plan = ("plan", "--profiles", profile, "--base-steps", "5", "--base-batch", "4", "--json")
        for words in (("--version",), ("train", "--help"), ("check", "--help"), plan, ("inspect", DATA)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([FARSTEP, *words], stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 3, words)
            self.assertIn("cannot write to the standard output: No space left", result.stderr)
        reader, writer = os.pipe()
        os.close(reader)
        # A shell may let its children ignore SIGPIPE, as Python does.
        result = subprocess.run([FARSTEP, "--version"], stdout=writer, stderr=subprocess.PIPE,
                                restore_signals=False, timeout=60, check=False)
        os.close(writer)
        self.assertEqual((result.returncode, result.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
