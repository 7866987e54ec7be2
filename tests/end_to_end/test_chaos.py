"""Sites that are killed, frozen, stopped and started again all the time."""

import subprocess
import sys
import unittest
from pathlib import Path

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

    def assert_passes(self, *options: str):
        """Runs chaos.py with these options."""
        ended = subprocess.run([sys.executable, CHAOS, *options], capture_output=True, text=True,
                               timeout=280, check=False)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
