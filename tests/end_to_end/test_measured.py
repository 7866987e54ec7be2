"""What may be measured again, and what not."""

import unittest

from cluster import ClusterTest
from measured import Figure, near, within_tries


class Measured(ClusterTest):
    """Trials without processes."""

    def trials(self, *values: float) -> int:
        """Measures these values one after another, each to be at most 1; the number of trials."""
        folders = []

        def trial():
            folders.append(self.folder)
            return [near("always in bounds", 2, 2.1, 0.2), Figure("delay", values[len(folders) - 1], 0, 1)]

        try:
            within_tries(self, trial)
        finally:
            self.assertEqual(len(set(folders)), len(folders), "each has a folder of its own")
            self.count = len(folders)
        return self.count

    def test_a_time_in_bounds_is_measured_once(self):
        self.assertEqual(self.trials(1), 1)

    def test_a_missed_time_is_measured_again(self):
        self.assertEqual(self.trials(1.5, 0.5), 2)
        self.assertEqual(self.trials(1.5, -1, 0.5), 3)

    def test_a_time_is_missed_three_times_at_most(self):
        with self.assertRaises(AssertionError) as failure:
            self.trials(1.5, float("nan"), 1.25, 0.5)
        self.assertEqual(self.count, 3)
        for value in ("1.5", "nan", "1.25", "not from 0 to 1"):
            self.assertIn(f"{value}", str(failure.exception))

    def test_a_fault_is_never_tried_again(self):
        """Neither a failed check nor another error, nor a trial that measures nothing."""
        for fault in (self.failureException("another hash"), KeyError("theta_hash"), None):
            trials = []

            def trial(fault=fault, trials=trials):
                trials.append(fault)
                if fault:
                    raise fault
                return []

            with self.subTest(fault=fault):
                with self.assertRaises(type(fault) if fault else self.failureException):
                    within_tries(self, trial)
                self.assertEqual(len(trials), 1)


if __name__ == "__main__":
    unittest.main()
