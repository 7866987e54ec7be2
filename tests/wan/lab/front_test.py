"""How scripts/wan_lab reads its options. Standard library only."""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import math
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "wan_lab"
LOADER = importlib.machinery.SourceFileLoader("wan_lab", str(SCRIPT))
wan_lab = importlib.util.module_from_spec(importlib.util.spec_from_loader("wan_lab", LOADER))
LOADER.exec_module(wan_lab)


def spec_of(*arguments: str) -> dict:
    """What spec.json would hold."""
    return wan_lab.make_spec(wan_lab.parse(["up", *arguments])[0])


class Units(unittest.TestCase):
    """Numbers with units."""

    def test_rates(self):
        """Bits a second."""
        for text, value in {"200M": 2e8, "1.5G": 1.5e9, "64k": 64e3, "1000": 1e3, ".5M": 5e5}.items():
            self.assertEqual(wan_lab.rate(text), value)

    def test_times(self):
        """Seconds."""
        for text, value in {"80ms": 0.08, "0.5s": 0.5, "200us": 2e-4, "0": 0, "0ms": 0}.items():
            self.assertAlmostEqual(wan_lab.seconds(text), value, places=12)

    def test_shares(self):
        """From 0 to 1."""
        for text, value in {"0.001": 0.001, "0.1%": 0.001, "1": 1, "100%": 1, "0": 0}.items():
            self.assertAlmostEqual(wan_lab.share(text), value, places=12)

    def test_bad_values_are_refused(self):
        """Each with a message that shows a good one."""
        bad = {wan_lab.rate: ("", "fast", "-1M", "200MB", "200%", "0", "1e6", "200 M"),
               wan_lab.seconds: ("", "80", "ms", "-1ms", "80m", "nan"),
               wan_lab.share: ("", "1.1", "101%", "-0.1", "0.1p", "%")}
        for parse, texts in bad.items():
            for text in texts:
                with self.subTest(text=text), self.assertRaises(argparse.ArgumentTypeError) as refused:
                    parse(text)
                self.assertIn(f"'{text}'", str(refused.exception))


class Options(unittest.TestCase):
    """From the command line to spec.json."""

    def test_ways_become_links(self):
        """A round trip is four links; a way is lost on one of two."""
        spec = spec_of("--sites", "3", "--rate", "200M", "--rtt", "80ms", "--loss", "0.1%")
        self.assertEqual(len(spec["sites"]), 3)
        for site in spec["sites"]:
            self.assertEqual(site["rate_bits_per_second"], 2e8)
            self.assertAlmostEqual(site["delay_seconds"], 0.02)
            self.assertTrue(math.isclose(1 - (1 - site["loss"]) ** 2, 0.001))
            self.assertNotIn("queue_seconds", site)

    def test_a_file_describes_sites_that_differ(self):
        """As it is, but for what belongs to the lab."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "spec.json"
            file.write_text(json.dumps({"sites": [{"rate_bits_per_second": 1}], "seed": 2}))
            spec = spec_of("--spec", str(file), "--seed", "5", "--mtu", "1400")
            self.assertEqual(spec, {"sites": [{"rate_bits_per_second": 1}], "seed": 5,
                                    "mtu_bytes": 1400})
            with self.assertRaises(wan_lab.Refusal):
                spec_of("--spec", str(file), "--rate", "1M")
            file.write_text("[")
            with self.assertRaises(wan_lab.Refusal):
                spec_of("--spec", str(file))

    def test_a_lab_needs_sites_and_a_rate(self):
        """Everything else has a default."""
        for arguments in ((), ("--sites", "2"), ("--rate", "1M")):
            with self.assertRaises(wan_lab.Refusal):
                spec_of(*arguments)
        self.assertEqual(spec_of("--sites", "1", "--rate", "1M")["sites"][0]["loss"], 0)

    def test_the_command_is_what_stands_after_two_dashes(self):
        """Its own options and dashes included."""
        lab = ("--sites", "2", "--rate", "1M")
        self.assertEqual(wan_lab.parse(["run", *lab, "--", "a", "--rate", "--", "b"])[1],
                         ["a", "--rate", "--", "b"])
        for arguments in (["run", *lab], ["exec", "--site", "1", "--"], ["cut", "1", "--", "a"],
                          ["set", "--site", "1"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                wan_lab.parse(arguments)


if __name__ == "__main__":
    unittest.main()
