"""The comparison with transformers' model, with programs that stand in for both sides."""

import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from stand_in import SOURCE, StandIns

sys.path.insert(0, str(SOURCE / "tests/bench"))
import peer_step  # noqa: E402  pylint: disable=wrong-import-position
import peer_versions  # noqa: E402  pylint: disable=wrong-import-position

# Writes down how it was called and when it takes a step; a step takes what its name says.
PEER = """
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
name = "compiled" if "--compiled" in sys.argv else "eager"
(folder / f"{name}.json").write_text(
    json.dumps({"arguments": sys.argv[1:], "environment": dict(os.environ)}))
if (folder / "broken").exists():
    sys.exit(3)
print(json.dumps({"torch": "1", "transformers": "2", "vectors": "V", "gpu": "a card"}), flush=True)
for _ in sys.stdin:
    with open(folder / "order.txt", "a") as log: log.write(name + " ")
    print(0.9 if name == "compiled" else 1.2, flush=True)
"""
OURS = """
echo "$LD_LIBRARY_PATH|$ATEN_CPU_CAPABILITY|$*" >{folder}/ours.txt
while read -r line; do printf 'ours ' >>{folder}/order.txt; echo 0.6; done
"""
GENOA = """processor\t: 0
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC 9B14
flags\t\t: fma avx avx2 avx512f avx512bw avx512cd avx512dq avx512vl avx512_bf16 avx512_vnni

processor\t: 1
"""


class PeerStep(unittest.TestCase):
    """A folder with the script, and a peer of the test's own beside it."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("peer_step.py", "peer_versions.py"):
            shutil.copy(SOURCE / "tests/bench" / name, self.folder)
        (self.folder / "python_oracles.txt").write_text("transformers==2 --hash=sha256:00\n", encoding="utf-8")
        (self.folder / "python_torch.txt").write_text("# A comment.\ntorch==1\n", encoding="utf-8")
        (self.folder / "peer_model.py").write_text(PEER, encoding="utf-8")
        self.programs = StandIns(self.folder / "programs")
        self.ours = self.programs.put("ours", OURS.format(folder=self.folder))

    def compare(self, *options: str, code: int = 0, **environment: str) -> str:
        """Runs it; returns what it said."""
        result = self.programs.run(sys.executable, "peer_step.py", self.ours, "--turns", "2",
                                   *options, cwd=self.folder, **environment)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def started(self, name: str) -> dict:
        """How a peer was started."""
        return peer_step.json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))

    def test_all_take_turns_and_are_compared(self):
        """Three turns to warm up and two that count."""
        said = self.compare("--preset", "150m")
        self.assertIn("result: ours / compiled: 1.50\nresult: ours / eager: 2.00\n", said)
        self.assertIn("2 x 512: ours in bf16, torch 1 and transformers 2", said)
        self.assertIn("no limit", said)
        order = (self.folder / "order.txt").read_text(encoding="utf-8")
        self.assertEqual(order, "ours eager compiled " * 5)
        self.assertNotIn("ONEDNN_MAX_CPU_ISA", self.started("eager")["environment"])

    def test_other_versions_than_the_pinned_ones_are_loud(self):
        """A build's own label does not count."""
        self.assertNotIn("PINNED", self.compare())
        for pinned, said in (("torch==1.5", "NOT THE PINNED VERSIONS, which are torch 1.5)"),
                             ("nothing==1", "NOT THE PINNED VERSIONS, which are torch of no version)")):
            (self.folder / "python_torch.txt").write_text(pinned, encoding="utf-8")
            self.assertIn(f"torch 1 and transformers 2 ({said}", self.compare())
        self.assertEqual(peer_versions.described({"torch": "1+cu130"}, {"torch": "1"}), "torch 1+cu130")
        self.assertRegex(peer_versions.pins()["torch"], r"^\d+\.\d")  # of the set-up

    def test_both_sides_are_limited_to_an_instruction_set(self):
        """Ours by its flag, the peers by their environment, before they import anything."""
        said = self.compare("--instructions", "avx2")
        self.assertIn("both sides limited to avx2", said)
        ours = (self.folder / "ours.txt").read_text(encoding="utf-8")
        self.assertRegex(ours, r"^\|\|--serve --preset 7m .* --instructions avx2\n$")
        for name in ("eager", "compiled"):
            peer = self.started(name)
            for variable, value in (("ATEN_CPU_CAPABILITY", "avx2"), ("ONEDNN_MAX_CPU_ISA", "AVX2"),
                                    ("MKL_ENABLE_INSTRUCTIONS", "AVX2")):
                self.assertEqual(peer["environment"][variable], value)
            self.assertEqual(Path(peer["environment"]["CXX"]).name, "c++")
            self.assertIn("fp32", peer["arguments"])  # as bf16 has no instructions there
        self.compare("--instructions", "avx512_bf16")
        peer = self.started("compiled")
        self.assertEqual(peer["environment"]["ONEDNN_MAX_CPU_ISA"], "AVX512_CORE_BF16")
        self.assertIn("bf16", peer["arguments"])

    def test_the_programs_libraries_are_not_the_peers(self):
        """And the peers keep the caller's."""
        self.compare("--gpu", "--program-libraries", "/ours", LD_LIBRARY_PATH="/callers")
        ours = (self.folder / "ours.txt").read_text(encoding="utf-8")
        self.assertEqual(ours, "/ours||--serve 10\n")
        self.assertEqual(self.started("eager")["environment"]["LD_LIBRARY_PATH"], "/callers")

    def test_a_side_that_ends_is_named(self):
        """With its exit code, and the others are ended."""
        (self.folder / "broken").touch()
        self.assertRegex(self.compare(code=1), "ended with code 3: .*peer_model.py")
        (self.folder / "broken").unlink()
        self.programs.put("ours", "exit 4")
        self.assertRegex(self.compare(code=1), "ended with code 4: .*ours")

    def test_a_processor_is_described(self):
        """By its name and the widest set of instructions."""
        self.assertEqual(peer_step.processor(GENOA),
                         ("AMD EPYC 9B14 (family 25, model 17)", "avx512_bf16"))
        for flags, widest in (("", "less than avx2"), ("avx2", "less than avx2"),
                              ("avx2 fma avx512_bf16", "avx2")):
            self.assertEqual(peer_step.widest_instructions(set(flags.split())), widest)
        self.assertEqual([peer_step.faster_compute(widest) for widest in
                          ("less than avx2", "avx2", "avx512", "avx512_bf16", "amx")],
                         ["fp32", "fp32", "bf16", "bf16", "bf16"])


if __name__ == "__main__":
    unittest.main()
