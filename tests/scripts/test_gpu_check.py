"""The check on a GPU host, with programs that stand in for tests, benchmarks and the driver."""

import re
import shutil
import tempfile
import unittest
from pathlib import Path

from stand_in import SOURCE, StandIns

NVIDIA_SMI = """
case "$*" in
  -L) for gpu in {gpus}; do echo "GPU $gpu: {name}"; done ;;
  *name*) echo {name} ;;
  *compute_cap*) echo {capability} ;;
  *driver_version*) echo 580.65.06 ;;
esac
"""
PASSES = "echo 'All tests passed (12 assertions in 3 test cases)'"
NO_FP8 = """echo 'SKIPPED: inner.compute: fp8 needs a GPU of compute capability 8.9 or more (Ada, \
Hopper), and this one has {capability}; set it to bf16'
""" + PASSES + "; exit 77"  # as programs end of which a test was skipped
PYTHON = """
[ "$1" = -c ] || echo "result: peer: $* | ${LD_LIBRARY_PATH-unset}"
"""
PROGRAMS = "test one_test\nbench some_bench\ntest two_test\n"


class GpuCheck(unittest.TestCase):
    """A bundle of stand-ins."""

    def setUp(self):
        self.bundle = Path(tempfile.mkdtemp()) / "bundle"
        self.addCleanup(shutil.rmtree, self.bundle.parent)
        self.programs = StandIns(self.bundle / "bin")
        for name in ("gpu_check.sh", "find_libtorch.sh", "script_help.sh"):
            shutil.copy(SOURCE / "scripts" / name, self.bundle)
        (self.bundle / "gpu_programs.txt").write_text(PROGRAMS, encoding="utf-8")
        (self.bundle / "commit.txt").write_text("abc1234\n", encoding="utf-8")
        (self.bundle / "peer_step.py").touch()
        self.torch = self.bundle.parent / "torch"
        (self.torch / "lib").mkdir(parents=True)
        (self.torch / "lib" / "libtorch_cpu.so").touch()
        self.host = StandIns(self.bundle.parent / "host")
        self.host.put("python3", PYTHON)
        self.host.put("compute-sanitizer", f"echo \"sanitizer $*\"; {PASSES}")
        self.be_on("Card 9000", "9.0")
        for name in ("one_test", "two_test"):
            self.programs.put(name, PASSES)
        self.programs.put("some_bench", "echo 'result: 1 | 2 GB/s'; echo other")

    def be_on(self, name: str, capability: str, gpus: str = "0"):
        """The GPUs of the host."""
        self.host.put("nvidia-smi", NVIDIA_SMI.format(name=name, capability=capability, gpus=gpus))

    def check(self, *options: str, code: int = 0, **environment: str) -> str:
        """Runs it; returns what it printed."""
        result = self.host.run(self.bundle / "gpu_check.sh", *options, cwd=self.bundle,
                               FARSTEP_TORCH=str(self.torch), **environment)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout

    def table(self) -> list[list[str]]:
        """The rows that closed the last call: program, verdict or figures."""
        text = (self.bundle / "results/table.md").read_text(encoding="utf-8")
        rows = [re.split(r" *(?<!\\)\| *", line)[1:-1] for line in text.splitlines()[7:]]
        return [[program, verdict] for program, _, verdict in rows]

    def test_tests_come_first_and_a_table_last(self):
        """With the card, the figures, and the tests under the sanitizer."""
        said = self.check()
        runs = re.findall(r"^== (\w+ \S+)$", said, re.M)
        self.assertEqual(runs, ["test one_test", "test two_test", "bench some_bench",
                                "bench peer_step.py", "memcheck one_test", "memcheck two_test"])
        self.assertIn(
            "\n### Card 9000\n\ndriver 580.65.06, LibTorch 2.11.0, commit abc1234, 2", said)
        table = (self.bundle / "results/table.md").read_text(encoding="utf-8")
        self.assertTrue(said.endswith(table))
        rows = self.table()
        self.assertEqual([row for row in rows if row[1] == "passed"],
                         [[run, "passed"] for run in runs])
        self.assertIn(["", r"1 \| 2 GB/s"], rows)
        self.assertIn("--report-api-errors no", said)
        output = (self.bundle / "results/bench-some_bench.txt").read_text(encoding="utf-8")
        self.assertEqual(output, "result: 1 | 2 GB/s\nother\n")

    def test_the_libraries_are_for_the_programs_alone(self):
        """python3 keeps what the caller had."""
        self.programs.put("one_test", f"echo \"found in $LD_LIBRARY_PATH\"; {PASSES}")
        said = self.check("--part", "tests", "--part", "peer")
        libraries = re.search(r"^found in (.*)$", said, re.M).group(1)
        self.assertTrue(libraries.startswith(f"{self.torch}/lib:"))
        self.assertNotIn(f"{self.bundle}/lib", libraries)
        self.assertIn(f"--program-libraries {libraries} | unset\n", said)
        self.assertIn(" | /callers\n", self.check("--part", "peer", LD_LIBRARY_PATH="/callers"))

    def test_in_the_tree_a_build_has_its_own_libtorch(self):
        """Where set-up has brought its CUDA part; else that of python3."""
        tree = self.bundle.parent / "tree"
        (tree / "build").mkdir(parents=True)
        self.programs.folder.rename(tree / "build/release")
        (self.bundle / "gpu_programs.txt").rename(tree / "build/release/gpu_programs.txt")
        self.bundle.rename(tree / "scripts")
        program = tree / "build/release/one_test"
        program.write_text(f"#!/bin/sh\necho \"found in $LD_LIBRARY_PATH\"; {PASSES}\n",
                           encoding="utf-8")
        (tree / "build/release/CMakeCache.txt").write_text(
            f"FARSTEP_LIBTORCH:PATH={tree}/libtorch\n", encoding="utf-8")
        for part, wanted in (("libtorch_cpu.so", self.torch),
                             ("libtorch_cuda.so", tree / "libtorch/torch")):
            (tree / "libtorch/torch/lib").mkdir(parents=True, exist_ok=True)
            (tree / "libtorch/torch/lib" / part).touch()
            self.host.put("python3", f"[ \"$2\" = 'import transformers' ] || echo {self.torch}")
            result = self.host.run(tree / "scripts/gpu_check.sh", "--part", "tests", cwd=tree)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn(f"found in {wanted}/lib:", result.stdout)
            self.assertTrue((tree / "build/release/gpu_check/table.md").exists())

    def test_fp8_alone_may_be_skipped_and_only_where_there_is_none(self):
        """Any other reason counts as failed."""
        self.programs.put("one_test", NO_FP8.format(capability="8.6"))
        self.be_on("Card 3000", "8.6")
        self.check("--part", "tests")
        self.assertEqual(self.table()[0][1], "passed, without FP8, which this GPU does not have")
        self.be_on("Card 9000", "9.0")
        self.check("--part", "tests", code=1)
        self.assertEqual(self.table()[0][1], "FAILED: FP8 was skipped on a GPU that has it")
        self.programs.put("one_test", NO_FP8.format(capability="9.0"))
        self.check("--part", "tests", code=1)
        self.assertRegex(self.table()[0][1], "^FAILED: SKIPPED: inner.compute")
        self.be_on("Card 3000", "8.6")
        self.programs.put(
            "one_test", "echo 'SKIPPED: no usable GPU'\n" + NO_FP8.format(capability="8.6"))
        self.check("--part", "tests", code=1)
        self.assertEqual(self.table()[0][1], "FAILED: SKIPPED: no usable GPU")

    def test_what_needs_two_gpus_is_not_called_passed_on_one(self):
        """NCCL's sum of one GPU would be its own gradient; with two GPUs no skip is taken."""
        few = "echo 'SKIPPED: fewer than two NVIDIA GPUs'\n"
        self.programs.put("one_test", few + PASSES + "; exit 77")
        said = self.check("--part", "tests")
        self.assertIn("\n0 failed, ", said)
        self.assertEqual([verdict for _, verdict in self.table()], [
            "NOT TESTED: needs two GPUs, and this machine has one; what one GPU can show passed", "passed"])
        self.be_on("Card 9000", "9.0", gpus="0 1")
        self.check("--part", "tests", code=1)
        self.assertEqual(self.table()[0][1], "FAILED: SKIPPED: fewer than two NVIDIA GPUs")
        self.be_on("Card 9000", "9.0")
        self.programs.put("one_test", few + NO_FP8.format(capability="8.6"))
        self.check("--part", "tests", code=1)
        self.assertEqual(self.table()[0][1], "FAILED: FP8 was skipped on a GPU that has it")
        self.programs.put("one_test", few + "exit 1")
        self.check("--part", "tests", code=1)
        self.assertEqual(self.table()[0][1], "FAILED: exit code 1")

    def test_a_program_that_hangs_hides_nothing(self):
        """What it printed is kept, and the others run."""
        self.programs.put("one_test", "echo 'result: before'; exec tail -f /dev/null")
        said = self.check("--program-seconds", "1", "--part", "tests", "--part", "benchmarks",
                          code=1)
        self.assertIn("1 failed, ", said)
        self.assertEqual(self.table(), [
            ["test one_test", "FAILED: not done after 1 s"], ["", "before"],
            ["test two_test", "passed"], ["bench some_bench", "passed"], ["", r"1 \| 2 GB/s"]])

    def test_what_fails_is_said(self):
        """An exit code; nothing tested; no figures; an error that the sanitizer found."""
        self.programs.put("one_test", "exit 42")
        self.programs.put("two_test", "echo 'No tests ran'")
        self.programs.put("some_bench", "echo nothing")
        self.host.put("compute-sanitizer", "exit 99")
        self.check("--part", "tests", "--part", "benchmarks", "--part", "sanitizer", code=1)
        self.assertEqual([verdict for _, verdict in self.table()], [
            "FAILED: exit code 42", "FAILED: nothing was tested", "FAILED: no figures",
            "FAILED: exit code 99", "FAILED: exit code 99"])

    def test_parts_add_up_for_one_build_on_one_gpu(self):
        """Another GPU or build begins a table of its own."""
        self.check("--part", "benchmarks")
        self.check("--part", "tests")
        self.assertEqual([program for program, _ in self.table()],
                         ["test one_test", "test two_test", "bench some_bench", ""])
        self.be_on("Card 100", "10.0")
        self.check("--part", "tests")
        self.assertEqual(len(self.table()), 2)
        self.programs.put("some_bench", "echo 'result: 3'")
        self.check("--part", "benchmarks", "--results", "results")
        self.assertEqual(self.table(), [["bench some_bench", "passed"], ["", "3"]])

    def test_what_is_missing_is_said(self):
        """A part that there is not, a python3 without transformers, a host without a GPU."""
        self.check("--part", "everything", code=2)
        self.check("--nonsense", code=2)
        self.host.put("python3", "exit 1")
        self.assertIn("python3 has no transformers", self.check("--part", "peer"))
        if not Path("/dev/nvidiactl").exists():
            self.host.put("nvidia-smi", "exit 9")
            self.assertRegex(self.check(code=77), r"^gpu_check: .* no NVIDIA GPU.*\n$")


if __name__ == "__main__":
    unittest.main()
