"""The parts of tests/bench/storm.py that need no run: its faults, figures and supervisor."""

import os
import select
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from stand_in import SOURCE

BENCH = SOURCE / "tests" / "bench"
sys.path.insert(0, str(BENCH))
# pylint: disable=wrong-import-position
import storm_faults  # noqa: E402
import storm_figures  # noqa: E402
from storm_faults import CUT, KILL, QUIET_SECONDS, STOP  # noqa: E402
from storm_sites import Site  # noqa: E402

NAMES = [f"node{place}" for place in range(16)]
PAUSES = {KILL: 25, CUT: 60, STOP: 60}
PATIENCE_SECONDS = 60
# Starts a site that lasts, says its process, and waits.
STARTER = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from storm_sites import Site
site = Site("a", ["sleep", "1000"], Path(sys.argv[2])); site.start()
print(site.process.pid, flush=True); sys.stdin.read()
"""


def round_of(number: int, at: float, steps: int = 10, weight: float = 0.5, theta: str = "aa", generation: int = 1) -> dict:
    """A site's record of a committed round."""
    return {"event": "round", "round": number, "time": at, "local_steps": steps, "averaging_weight": weight,
            "theta_hash": theta, "generation": generation}


def step_at(at: float) -> dict:
    """A site's record of an inner step."""
    return {"event": "step", "time": at}


class Faults(unittest.TestCase):
    """What a seed draws."""

    def test_one_seed_draws_the_same_faults(self):
        self.assertEqual(storm_faults.draw(1, 480, NAMES, PAUSES), storm_faults.draw(1, 480, NAMES, PAUSES))
        self.assertNotEqual(storm_faults.draw(1, 480, NAMES, PAUSES), storm_faults.draw(2, 480, NAMES, PAUSES))

    def test_kills_come_at_the_same_times_without_the_other_faults(self):
        kills = {KILL: 25, CUT: 0, STOP: 0}
        alone = storm_faults.draw(3, 480, NAMES, kills)
        self.assertEqual({fault.kind for fault in alone}, {KILL})
        among = [fault.at for fault in storm_faults.draw(3, 480, NAMES, PAUSES) if fault.kind == KILL]
        self.assertLessEqual(set(among), {fault.at for fault in alone})

    def test_faults_come_as_often_and_last_as_long_as_asked(self):
        for seed in range(20):
            faults = storm_faults.draw(seed, 3600, [*NAMES, *(name + "x" for name in NAMES)], PAUSES)
            for kind, pause in PAUSES.items():
                lengths = [fault.seconds for fault in faults if fault.kind == kind]
                least, most = storm_faults.SECONDS[kind]
                self.assertTrue(all(least <= length <= most for length in lengths), lengths)
                self.assertAlmostEqual(len(lengths), 3600 / pause, delta=5 * (3600 / pause) ** 0.5)
            self.assertEqual(faults, sorted(faults, key=lambda fault: fault.at))

    def test_a_site_is_left_alone_after_a_fault_and_one_is_always_spared(self):
        for seed in range(20):
            last: dict[str, float] = {}
            faults = storm_faults.draw(seed, 600, NAMES[:4], {KILL: 3, CUT: 5, STOP: 5})
            for fault in faults:
                self.assertGreaterEqual(fault.at, last.get(fault.site, 0))
                last[fault.site] = fault.end + QUIET_SECONDS
                under_way = {other.site for other in faults if other.at <= fault.at < other.end}
                self.assertLess(len(under_way), 4)
            self.assertEqual(storm_faults.draw(seed, 600, NAMES[:1], PAUSES), [])


class Figures(unittest.TestCase):
    """What the records say."""

    def test_a_commit_has_the_sites_whose_steps_are_in_it(self):
        """Not a newcomer, which came without steps; it is committed when the first site says so."""
        records = {"a": [round_of(1, 9), round_of(2, 20.5), round_of(3, 31)],
                   "b": [round_of(2, 20), round_of(3, 30, steps=8)], "c": [round_of(3, 30.5, steps=0, weight=0)]}
        found = storm_figures.commits(records, 10, 30)
        self.assertEqual([(commit.at, commit.steps) for commit in found],
                         [(20, {"a": 10, "b": 10}), (30, {"a": 10, "b": 8})])
        self.assertEqual(storm_figures.seconds_a_round(found), 10)
        with self.assertRaisesRegex(ValueError, "1 rounds were committed"):
            storm_figures.seconds_a_round(found[:1])

    def test_a_killed_site_is_back_with_its_first_step_and_its_first_contribution(self):
        records = {"a": [step_at(90), round_of(1, 95), step_at(110), round_of(5, 112, steps=0, weight=0),
                         step_at(114), round_of(6, 120)]}
        [back] = storm_figures.returns(records, [("a", 100)])
        self.assertEqual(back, storm_figures.Return("a", 10, 20))
        # The second kill is another way back, and the third has none.
        again = storm_figures.returns(records, [("a", 100), ("a", 113), ("b", 113), ("a", 130)])
        self.assertEqual([(one.first_step, one.first_commit) for one in again],
                         [(10, None), (1, 7), (None, None), (None, None)])

    def test_a_round_with_two_hashes_is_found(self):
        records = {"a": [round_of(1, 1), round_of(2, 2)], "b": [round_of(1, 1), round_of(2, 2, theta="bb")]}
        self.assertEqual(storm_figures.differing_rounds(records), [2])

    def test_generations_that_began_in_the_storm_are_counted(self):
        records = {"a": [{"event": "run", "time": 1, "generation": 1}, round_of(1, 5, generation=3),
                         {"event": "view", "time": 12, "generation": 5}, round_of(9, 99, generation=8)], "b": []}
        self.assertEqual(storm_figures.new_generations(records, 10, 50), 2)
        self.assertEqual(storm_figures.new_generations({"a": []}, 10, 50), 0)

    def test_the_row_of_a_storm(self):
        """Two sites in 100 s: five of ten commits, one of them of one site."""
        both = [round_of(number, 10 * number) for number in (2, 3, 4, 5)]
        storm = storm_figures.Storm(records={"a": [*both, round_of(6, 60)], "b": [*both, step_at(70)]},
                                    begin=10, end=110, kills=[("b", 55)], round_seconds=10, step_seconds=0.5,
                                    round_steps=10)
        columns = storm.columns()
        self.assertEqual(
            list(columns.values()),
            ["10.0", "5", "50.0", "1.8, 1", "15 (15-15)", "-", "1", "45.0", "22.5", "0", "0"])
        self.assertEqual(storm_figures.table({"x": "1", "y": "2"}), "| x | y |\n| --- | --- |\n| 1 | 2 |")
        empty = storm_figures.Storm({"a": []}, 0, 10, [], 1, 0.5, 10).columns()
        self.assertEqual(empty["take part: mean, min"], "-")


class Supervisor(unittest.TestCase):
    """Of a site's process."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def started(self, command: str) -> Site:
        """A site that runs a command of the shell."""
        site = Site("a", ["sh", "-c", command], self.folder / "log")
        site.start()
        self.addCleanup(lambda: site.process and (site.process.kill(), site.process.wait()))
        return site

    def test_only_an_end_that_a_restart_mends_is_followed_by_one(self):
        for code in (0, 2, 4):
            site = self.started(f"exit {code}")
            site.process.wait()
            site.look()
            self.assertEqual((site.ends, site.process), ([code], None))
            self.assertEqual(site.restart_at is not None, code == 4)

    def test_a_killed_site_is_started_again_in_time(self):
        site = self.started("exec sleep 1000")
        site.kill(restart_seconds=1000)
        site.look()
        self.assertIsNone(site.process)
        site.restart_at = time.monotonic()
        site.look()
        self.assertIsNone(site.process.poll())
        self.assertEqual((len(site.kills), site.ends), (1, []))
        self.assertGreater(site.memory_bytes(), 0)

    def test_a_site_ends_with_the_program_that_is_killed(self):
        starter = subprocess.Popen([sys.executable, "-c", STARTER, BENCH, self.folder / "log"], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with starter:
            site = os.pidfd_open(int(starter.stdout.readline()))
            starter.kill()
        self.addCleanup(os.close, site)
        self.assertTrue(select.select([site], [], [], PATIENCE_SECONDS)[0], "the site lives on")


if __name__ == "__main__":
    unittest.main()
