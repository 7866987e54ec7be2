"""The Python package (docs/python.md): an array of numbers at two sites, and PyTorch where it is installed."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from cluster import RELEASE, REPOSITORY, ClusterTest, free_port
from oracles import PYTHON, require_modules
from ports import endpoint_of

LIBRARY = os.environ.get("FARSTEP_OUTER_LIBRARY", str(RELEASE / "libfarstep_outer.so"))
PACKAGE = REPOSITORY / "outer_optimizer/python"
EXAMPLE = PACKAGE / "examples/llama_sites.py"
HERE = Path(__file__).parent
NAMES = ["site0", "site1"]
START = [0.5 * index - 1 for index in range(7)]


class Python(ClusterTest):
    """Each site is a process of its own."""

    def start(self, *command: object) -> subprocess.Popen:
        """Starts a process that finds package and library."""
        environment = os.environ | {"PYTHONPATH": str(PACKAGE), "FARSTEP_OUTER_LIBRARY": LIBRARY,
                                    "OMP_NUM_THREADS": "1"}
        self.processes.append(subprocess.Popen([str(word) for word in command], env=environment, text=True,
                                               stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return self.processes[-1]

    def output(self, process: subprocess.Popen) -> str:
        """What a process has printed when it ends."""
        printed, _ = process.communicate(timeout=150)
        self.assertEqual(process.returncode, 0, printed)
        return printed

    def lines(self, process: subprocess.Popen) -> list[dict]:
        """The same as objects."""
        return [json.loads(line) for line in self.output(process).splitlines()]

    def plans(self, **plan: object) -> list[dict]:
        """Plans of two sites, of which the first hosts the coordinator."""
        endpoint = endpoint_of("127.0.0.1", free_port())
        return [{"start": START, "steps": 8, "drift": 0.01 * (place + 1), **plan,
                 "settings": {"run": "numbers", "sites": NAMES, "site": name, "coordinator": endpoint,
                              "host": place == 0, "address": "127.0.0.1", "every": 2,
                              "learning_rate": 0.6, "momentum": 0.8,
                              "deadlines": {"join_seconds": 30, "heartbeat_seconds": 0.3,
                                            "lost_after_seconds": 2}}}
                for place, name in enumerate(NAMES)]

    def run_all(self, plans: list[dict]) -> list[list[dict]]:
        """Runs all sites to their end; returns the lines of each."""
        started = [self.start(sys.executable, HERE / "python_site.py", json.dumps(plan)) for plan in plans]
        return [self.lines(process) for process in started]

    def test_a_run_resumes_in_the_middle_of_a_round(self):
        """DiLoCo's step in float64 with unequal batches; two runs of 5 and 3 steps have the bits of one."""
        plans = self.plans()
        plans[1]["batch"] = 3
        whole = self.run_all(plans)
        theta, momentum = START, [0.0] * len(START)
        for number, lines in enumerate(zip(*(own[1:] for own in whole), strict=True), 1):
            self.assertEqual([line["round"] for line in lines], [number, number])
            self.assertEqual([line["weight"] for line in lines], [0.25, 0.75])
            self.assertEqual(*({key: line[key] for key in ("hash", "values")} for line in lines))
            # Two steps of drift (index + step) each.
            mean = [-(0.25 * 0.01 + 0.75 * 0.02) * (2 * index + 4 * number - 1)
                    for index in range(len(START))]
            momentum = [0.8 * old + value for old, value in zip(momentum, mean)]
            theta = [old - 0.6 * (value + 0.8 * speed) for old, value, speed in zip(theta, mean, momentum)]
            for got, want in zip(lines[0]["values"], theta):
                self.assertAlmostEqual(got, want, delta=2e-6)
        self.assertEqual([len(own) for own in whole], [5, 5])

        parts = []
        for part, steps in (("save", 5), ("resume", 3)):
            plans = self.plans(steps=steps)
            for plan, name in zip(plans, NAMES):
                plan[part] = str(self.folder / name)
            plans[1]["batch"] = 3
            parts.append(self.run_all(plans))
        for own, first, second in zip(whole, *parts):
            self.assertEqual(first[0], {"members": NAMES})
            self.assertEqual(first[1:] + second[1:], own[1:])

    def test_the_times_of_a_round_are_of_its_own_parts(self):
        """Waiting and exchange are parts of the call, and an exchange over sockets takes time at each site."""
        for lines in self.run_all(self.plans(times=True, steps=12)):
            for line in lines[1:]:
                self.assertLessEqual(line["wait"] + line["exchange"], line["whole"])
                self.assertGreater(line["exchange"], 1e-5)  # several messages there and back

    def test_errors_keep_their_kind(self):
        """A wrong setting, another start, a value that is not finite, a site that is lost."""
        plans = self.plans(start=START)
        plans[0]["settings"]["momentum"] = 1
        refused = self.lines(self.start(sys.executable, HERE / "python_site.py", json.dumps(plans[0])))[-1]
        self.assertEqual((refused["kind"], refused["status"]), ("ConfigError", 2))
        self.assertIn("run: outer.momentum: is 1", refused["error"])

        plans = self.plans()
        plans[1]["start"] = [value + 1 for value in START]
        for lines in self.run_all(plans):
            self.assertEqual((lines[-1]["kind"], lines[-1]["status"]), ("DataError", 3))

        plans = self.plans()
        plans[1]["drift"] = math.inf
        sane, broken = self.run_all(plans)
        self.assertEqual((broken[-1]["kind"], broken[-1]["status"]), ("DivergenceError", 5))
        self.assertEqual((sane[-1]["kind"], sane[-1]["status"], sane[-1]["site"]), ("PeerError", 4, "site1"))

        plans = self.plans()
        plans[1]["waits"] = 3
        first, second = (self.start(sys.executable, HERE / "python_site.py", json.dumps(plan))
                         for plan in plans)
        second.stdout.readline()
        self.assertEqual(json.loads(second.stdout.readline())["round"], 1)
        second.kill()
        second.communicate()
        last = self.lines(first)[-1]
        self.assertEqual((last["kind"], last["site"]), ("PeerError", "site1"))

    def test_ctrl_c_ends_the_wait_for_others(self):
        """And the others then learn that the site has left."""
        plans = self.plans()
        plans[0]["waits"] = 3
        waiting, stopped = (self.start(sys.executable, HERE / "python_site.py", json.dumps(plan))
                            for plan in plans)
        stopped.stdout.readline()
        self.assertEqual(json.loads(stopped.stdout.readline())["round"], 1)
        stopped.send_signal(signal.SIGINT)
        self.assertEqual(self.lines(stopped), [{"kind": "KeyboardInterrupt"}])
        last = json.loads(waiting.communicate("\n", timeout=120)[0].splitlines()[-1])
        self.assertEqual((last["kind"], last["site"]), ("PeerError", "site1"))

    def test_an_installed_package_finds_its_library(self):
        """By its place under the prefix, which may be any."""
        prefix = self.folder / "prefix"
        built = Path(LIBRARY).parent
        installed = subprocess.run(["cmake", "--install", built, "--prefix", prefix, "--component", "library"],
                                   capture_output=True, text=True, check=False, timeout=60)
        self.assert_success(installed)
        found = subprocess.run([sys.executable, "-c", "import farstep; print(farstep.version())"],
                               capture_output=True, text=True, check=False, timeout=60,
                               env={"PYTHONPATH": str(prefix / "lib/python3/dist-packages")})
        self.assert_success(found)
        self.assertRegex(found.stdout, r"^\d+\.\d+\.\d+\n$")
        (prefix / "lib/libfarstep_outer.so").unlink()
        lost = subprocess.run([sys.executable, "-c", "import farstep; farstep.version()"],
                              capture_output=True, text=True, check=False, timeout=60,
                              env={"PYTHONPATH": str(prefix / "lib/python3/dist-packages"),
                                   "FARSTEP_OUTER_LIBRARY": "/nowhere.so"})
        self.assertRegex(lost.stderr, "ConfigError: /nowhere.so cannot be loaded.*name the file in")
        self.assertEqual(lost.stderr.count("Traceback"), 1)

    def test_wrong_parameters_are_refused(self):
        """Before the site joins, by their number in the list."""
        script = """
import array, sys, farstep
given = {"none": [], "text": ["abc"], "bytes": [array.array("f", [1]), b"abcd"],
         "doubles": [array.array("d", [1])]}
settings = dict(run="a", sites=["b"], site="b", coordinator="tcp://127.0.0.1:1", address="127.0.0.1")
for values in given.values():
    try:
        farstep.OuterOptimizer(values, **settings)
    except farstep.ConfigError as error:
        print(error)
outer = farstep.OuterOptimizer([array.array("f", [1, 2])], **settings)
state = outer.state_dict()
try:
    farstep.OuterOptimizer([array.array("f", [1])], **settings).load_state_dict(state)
except farstep.ConfigError as error:
    print(error)
"""
        printed = self.output(self.start(sys.executable, "-c", script)).splitlines()
        for line, reason in zip(printed, ["there are no parameters", "parameter 0 is a str",
                                          "parameter 1 has values of format 'B'",
                                          "parameter 0 has values of format 'd'",
                                          "the state's values has 2 values, and the parameters have 1"],
                                strict=True):
            self.assertIn(reason, line)

    def test_a_transformers_model_trains_at_two_sites(self):
        """The example: the loss falls, and DiLoCo with PyTorch alone makes the same model."""
        require_modules("torch", "transformers")
        text = REPOSITORY / ".deps/corpus/austen/emma.txt"
        rounds, every = 4, 10
        coordinator = endpoint_of("127.0.0.1", free_port())
        sites = [self.start(PYTHON, EXAMPLE, "--site", name, "--coordinator", coordinator, "--rounds", rounds,
                            "--every", every, "--output", self.folder / name, *options, text)
                 for name, options in (("paris", ["--host"]), ("tokyo", []))]
        told = [re.findall(r"^round (\d+): loss (\S+), weights (\w{16})$", self.output(site), re.M)
                for site in sites]
        self.assertEqual([[line[0] for line in own] for own in told], [["1", "2", "3", "4"]] * 2)
        self.assertEqual([line[2] for line in told[0]], [line[2] for line in told[1]])
        oracle = json.loads(self.output(self.start(
            PYTHON, HERE / "python_oracle.py", "diloco", EXAMPLE, len(sites), rounds, every, 0.5, text,
            self.folder / "paris", self.folder / "tokyo")))
        losses = [[float(line[1]) for line in own] for own in told]
        for own, expected in zip(losses, zip(*oracle["losses"]), strict=True):
            self.assertLess(own[-1], own[0] - 1)
            for got, want in zip(own, expected, strict=True):
                self.assertAlmostEqual(got, want, delta=6e-5)  # they are printed with four places
        self.assertEqual(oracle["distances"][0], oracle["distances"][1])
        self.assertLess(oracle["distances"][0], 1e-4)

    def test_parameters_of_16_bits_have_masters(self):
        """Changes that bf16 cannot add up do add up; what no step changes keeps its bits."""
        require_modules("torch")
        rounds = json.loads(self.output(self.start(PYTHON, HERE / "python_oracle.py", "masters",
                                                   endpoint_of("127.0.0.1", free_port()))))
        for line in rounds:
            self.assertTrue(line["rounded"])
            for got, want in zip(line["shared"], line["expected"], strict=True):
                self.assertAlmostEqual(got, want, delta=4e-6)


if __name__ == "__main__":
    unittest.main()
