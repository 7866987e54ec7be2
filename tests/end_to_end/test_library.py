"""The outer optimizer for training loops of others: its C interface, by processes that have one."""

import ctypes
import json
import os
import struct
import subprocess
import sys
import unittest
from pathlib import Path

import library_site
from cluster import RELEASE, ClusterTest, farstep, free_port, merge
from ports import endpoint_of

LIBRARY = os.environ.get("FARSTEP_OUTER_LIBRARY", str(RELEASE / "libfarstep_outer.so"))
SCRIPT = Path(__file__).with_name("library_site.py")
START = [0.5 * index - 1 for index in range(11)]
CONFIG, DATA, PEER, DIVERGENCE, STOPPED = 2, 3, 4, 5, 130


def fp32(value: float) -> float:
    """The nearest fp32 value."""
    return struct.unpack("f", struct.pack("f", value))[0]


class Library(ClusterTest):
    """Sites are processes of their own; each has its lines."""

    def plans(self, count: int, run: dict | None = None, **plan: object) -> list[dict]:
        """Plans of that many sites; the first one hosts the coordinator."""
        names = [f"site{index}" for index in range(count)]
        endpoint = endpoint_of("127.0.0.1", free_port())
        whole = merge({"name": "own", "sites": names,
                       "deadlines": {"join_seconds": 30, "heartbeat_seconds": 0.3,
                                     "lost_after_seconds": 2}}, run or {})
        return [{"run": whole, "start": START, "rounds": 3, "drift": 0.01 * (index + 1),
                 "site": {"name": name, "network": {"address": "127.0.0.1"},
                          "coordinator": {"endpoint": endpoint, "host": index == 0}}, **plan}
                for index, name in enumerate(names)]

    def start(self, plan: dict) -> subprocess.Popen:
        """Starts a site."""
        process = subprocess.Popen([sys.executable, SCRIPT, LIBRARY, json.dumps(plan)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def lines(self, process: subprocess.Popen) -> list[dict]:
        """What a site has printed when it ends; it gets the end of its input first."""
        printed, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, printed)
        return [json.loads(line) for line in printed.splitlines()]

    def finish(self, plans: list[dict]) -> list[list[dict]]:
        """Runs all sites to their end; returns the lines of each."""
        return [self.lines(process) for process in [self.start(plan) for plan in plans]]

    def check_rounds(self, sites: list[list[dict]], weights: list[float], rate: float, mu: float,
                     momentum: list[float], tolerance: float = 4e-7) -> list[float]:
        """Holds the lines of all sites against the outer step in float64; returns its momentum."""
        rounds = [[line for line in lines if "round" in line] for lines in sites]
        self.assertEqual({len(own) for own in rounds}, {3})
        theta = [fp32(value) for value in START]
        for number, lines in enumerate(zip(*rounds), 1):
            first = lines[0]
            for line, weight in zip(lines, weights):
                self.assertEqual((line["round"], line["sites"]), (number, len(sites)))
                self.assertAlmostEqual(line["weight"], weight)
                self.assertEqual((line["after"], line["hash"]), (first["after"], first["hash"]))
            mean = [sum(weight * (theta[index] - line["before"][index])
                        for weight, line in zip(weights, lines)) for index in range(len(theta))]
            momentum = [mu * old + value for old, value in zip(momentum, mean)]
            expected = [old - rate * (value + mu * speed)
                        for old, value, speed in zip(theta, mean, momentum)]
            for got, want in zip(first["after"], expected):
                self.assertAlmostEqual(got, want, delta=tolerance * max(1, abs(want)))
            theta = first["after"]
        return momentum

    def test_syncs_are_the_outer_optimizers(self):
        """Unequal work, fragments and keys: the same bits everywhere, and DiLoCo's step in float64.

        The momentum that a run ends with is the one that the next run begins with.
        """
        made = farstep("keys", "--folder", self.folder / "keys", "--run", "own", "--sites",
                       "site0", "site1", "site2")
        self.assert_success(made)
        run = {"outer": {"learning_rate": 0.6, "momentum": 0.8}, "sync": {"fragments": 3}}
        momentum = [0.0] * len(START)
        for keyed in (True, False):
            plans = self.plans(3, run, **({} if keyed else {"momentum": momentum}))
            for index, plan in enumerate(plans):
                plan["work"] = (10, 2 + index, 100)
                if keyed:
                    plan["site"]["network"]["keys"] = str(self.folder / f"keys/sites/site{index}")
                    plan["site"]["coordinator"] |= {} if index == 0 else {"site": "site0"}
            sites = self.finish(plans)
            expected = self.check_rounds(sites, [2 / 9, 3 / 9, 4 / 9], 0.6, 0.8, momentum)
            momentum = sites[0][-1]["momentum"]
            for got, want in zip(momentum, expected):
                self.assertAlmostEqual(got, want, delta=1e-6)

    def test_a_lossy_codec_keeps_the_sites_equal(self):
        """int8 with blocks: what it loses is a 127th of the largest delta at most, twice."""
        plans = self.plans(2, {"outer": {"momentum": 0, "learning_rate": 1},
                               "sync": {"codec": {"kind": "int8", "error_feedback": False}}})
        largest = 0.02 * 14
        self.check_rounds(self.finish(plans), [0.5, 0.5], 1, 0, [0.0] * len(START),
                          tolerance=largest / 127)

    def test_the_others_go_on_without_a_lost_site(self):
        """Enough are left: a new generation without it. Too few: an error that names it."""
        for least in (2, 3):
            plans = self.plans(3, {"min_sites": least}, rounds=4)
            plans[2] |= {"rounds": 1, "lingers": True}
            first, second, third = [self.start(plan) for plan in plans]
            self.assertIn("joined", third.stdout.readline())
            self.assertEqual(json.loads(third.stdout.readline())["sites"], 3)
            third.kill()
            third.communicate()
            for lines in (self.lines(first), self.lines(second)):
                rounds = [line for line in lines if "round" in line]
                if least == 2:
                    self.assertEqual([line["sites"] for line in rounds], [3, 2, 2, 2])
                    self.assertEqual(rounds[-1]["members"], ["site0", "site1"])
                    self.assertGreater(rounds[-1]["generation"], rounds[0]["generation"])
                else:
                    self.assertEqual(len(rounds), 1)
                    self.assertEqual(lines[-1]["status"], PEER, lines[-1])
                    self.assertIn("site2", lines[-1]["error"])
                    self.assertIn({"unchanged": True}, lines)

    def test_what_is_wrong_is_said(self):
        """Values that are not finite or differ, a sync that is stopped: a status and a reason."""
        plans = self.plans(2)
        plans[1]["start"] = [value + 1 for value in START]
        for lines in self.finish(plans):
            self.assertEqual(lines[-1]["status"], DATA)
            self.assertIn("site1 has", lines[-1]["error"])

        plans = self.plans(2)
        plans[1]["drift"] = float("inf")
        sane, broken = self.finish(plans)
        self.assertEqual(broken[-1]["status"], DIVERGENCE, broken)
        self.assertIn("not finite at element 0", broken[-1]["error"])
        self.assertEqual(sane[-1]["status"], PEER, sane)
        self.assertIn("site1", sane[-1]["error"])

        plans = self.plans(2)
        plans[0] |= {"rounds": 0, "lingers": True}
        plans[1]["stops"] = True
        waiting, stopped = [self.start(plan) for plan in plans]
        lines = self.lines(stopped)
        self.assertEqual(lines[-1]["status"], STOPPED, lines)
        self.assertIn({"unchanged": True}, lines)
        self.lines(waiting)

    def test_wrong_arguments_are_refused(self):
        """Before anything is sent: the setting or the argument is named."""
        library = library_site.load(LIBRARY)
        self.assertRegex(library.farstep_outer_version().decode(), r"^\d+\.\d+\.\d+$")
        plan = self.plans(1)[0]
        values = library_site.array(START)
        site = ctypes.c_void_p(1)

        def join(run: object, own: object, size: int = len(START)) -> tuple[int, str]:
            texts = [None if text is None else text if isinstance(text, bytes)
                     else json.dumps(text).encode() for text in (run, own)]
            status = library.farstep_outer_join(*texts, values, ctypes.c_int64(size),
                                                ctypes.byref(site))
            self.assertFalse(site)
            return status, library.farstep_outer_error().decode()

        run, own = plan["run"], plan["site"]
        for given, reason in [
                ((None, own), "run is NULL"),
                ((run, own, 0), "0 values"),
                ((b"{", own), "run: not valid JSON"),
                ((b'{"name": "a", "name": "b"}', own), "run: member 'name' stands twice"),
                (({"name": "own"}, own), "run: sites: is missing"),
                ((run | {"sites": []}, own), "run: sites: has 0 entries"),
                ((run | {"model": {}}, own), "run: model"),
                ((run | {"sync": {"fragments": 12}}, own), "run: sync.fragments: is 12"),
                ((run | {"outer": {"momentum": 1}}, own), "run: outer.momentum: is 1"),
                ((run, own | {"name": "other"}), "site 'other' does not take part"),
                ((run, own | {"network": {}}), "site: network: must have either address"),
                ((run, merge(own, {"coordinator": {"journal": "x"}})), "site: coordinator.journal"),
                ((run, own | {"log_level": "loud"}), "log level 'loud'")]:
            status, text = join(*given)
            self.assertEqual(status, CONFIG, text)
            self.assertIn(reason, text)

        size = ctypes.c_int64(len(START))
        work = library_site.Work(1, 1, 1)
        alone = json.dumps(run).encode(), json.dumps(own).encode()
        self.assertEqual(library.farstep_outer_join(*alone, values, size, ctypes.byref(site)), 0)
        self.addCleanup(library.farstep_outer_free, site)
        for call, reason in [
                (lambda: library.farstep_outer_sync(site, values, ctypes.c_int64(3),
                                                    ctypes.byref(work), None), "3 values"),
                (lambda: library.farstep_outer_sync(site, values, size, None, None), "work is NULL"),
                (lambda: library.farstep_outer_sync(
                    site, values, size, ctypes.byref(library_site.Work(-1, 1, 1)), None), "below 0")]:
            self.assertEqual(call(), CONFIG)
            self.assertIn(reason, library.farstep_outer_error().decode())
        # None of these has ended the site.
        self.assertEqual(
            library.farstep_outer_sync(site, values, size, ctypes.byref(work), None), 0)
        self.assertEqual(library.farstep_outer_set_momentum(site, values, size), CONFIG)
        self.assertEqual(library.farstep_outer_leave(site, None), 0)
        self.assertEqual(
            library.farstep_outer_sync(site, values, size, ctypes.byref(work), None), CONFIG)
        self.assertIn("has left its run", library.farstep_outer_error().decode())


if __name__ == "__main__":
    unittest.main()
