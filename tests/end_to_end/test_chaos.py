"""Sites that are killed, frozen, stopped and started again all the time."""

import subprocess
import sys
import types
import unittest
from pathlib import Path

import chaos

CHAOS = Path(__file__).with_name("chaos.py")


class Chaos(unittest.TestCase):
    """Less than a minute of chaos.py with one seed each; the program runs longer and with others."""

    def test_no_fault_spoils_the_run(self):
        """All checks of chaos.py hold, with fragments on their way and a lossy codec."""
        self.assert_passes("--seconds", "30", "--seed", "1")

    def test_no_fault_of_a_line_spoils_a_secure_run(self):
        """Lines that are dead or slow for seconds, or change bytes, beside all other faults."""
        self.assert_passes("--seconds", "30", "--seed", "0", "--secure")

    def test_the_run_goes_on_at_stand_by_coordinators(self):
        """The coordinator stays away for long, and sites that host a stand-by are harmed too."""
        self.assert_passes("--seconds", "30", "--seed", "100", "--stand-bys")

    def test_a_run_that_wastes_work_fails(self):
        """Below 90 %, if that is more than a round's steps for each interruption."""
        # Two sites of a run of 100 rounds; the second one's steps of some rounds do not count.
        for rounds, wasted, kills, strategy, passes in (
                (100, 19, 0, "low_communication", True), (100, 21, 0, "low_communication", False),
                (100, 21, 20, "low_communication", False), (100, 21, 21, "low_communication", True),
                (100, 21, 11, "eager_updates", True), (100, 23, 11, "eager_updates", False),
                (10, 1, 0, "low_communication", True), (10, 3, 3, "low_communication", True),
                (10, 4, 3, "low_communication", False)):
            with self.subTest(rounds=rounds, wasted=wasted, kills=kills, strategy=strategy):
                run = self.run_of(rounds, wasted, kills, strategy)
                if passes:
                    self.assertAlmostEqual(run.check_goodput(), 1 - wasted / (2 * rounds))
                else:
                    with self.assertRaisesRegex(chaos.Violation, "do not count"):
                        run.check_goodput()

    def run_of(self, rounds: int, wasted: int, kills: int, strategy: str) -> chaos.Chaos:
        """A run without processes, which ends in the middle of one more round."""
        run = chaos.Chaos.__new__(chaos.Chaos)
        run.cluster = types.SimpleNamespace(run={"strategy": {"kind": strategy}})
        run.hashes = dict.fromkeys(range(1, rounds + 1), "")
        run.faults = {"is killed": kills, chaos.COORDINATOR_FAULT: 100}
        run.sites = [types.SimpleNamespace(
            steps=dict.fromkeys(range(1, rounds + 2), 150),
            rounds={number: {"local_steps": 150} for number in range(1 + lost, rounds + 1)})
            for lost in (0, wasted)]
        return run

    def assert_passes(self, *options: str):
        """Runs chaos.py with these options."""
        ended = subprocess.run([sys.executable, CHAOS, *options], capture_output=True, text=True,
                               timeout=280, check=False)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
