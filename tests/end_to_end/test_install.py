"""What `cmake --install` and `cpack` make: the program, the library that others build with, the
package. The commands are those of docs/install.md and docs/library.md, in a folder of the test's own.

The package is tested without LibTorch, which is 430 MB: FARSTEP_TEST_PACKAGE=full has it in.
"""

import array
import json
import os
import re
import subprocess
import unittest
from pathlib import Path

from cluster import FARSTEP, Cluster, ClusterTest, by_event, free_port
from ports import endpoint_of

SOURCE = Path(__file__).resolve().parents[2]
BUILD = FARSTEP.parent
FULL = os.environ.get("FARSTEP_TEST_PACKAGE") == "full"
HOME = "lib/farstep"  # of the program and LibTorch under a prefix
ROUNDS = 5


class Install(ClusterTest):
    """An installation in a folder of the test's own."""

    def command(self, *words: object, timeout: float = 500) -> str:
        """Runs a command to its end, without the build's environment; returns its output."""
        result = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                                timeout=timeout, check=False, cwd=self.folder,
                                env={"PATH": os.environ["PATH"], "HOME": str(self.folder)})
        self.assert_success(result)
        return result.stdout

    def libtorch(self) -> Path:
        """The LibTorch of the build."""
        found = re.search(r"^FARSTEP_LIBTORCH:PATH=(.*)$",
                          (BUILD / "CMakeCache.txt").read_text(encoding="utf-8"), re.M)
        return Path(found.group(1)).resolve()

    def assert_trains(self, program: Path):
        """One site trains one round with this program."""
        cluster = Cluster(self.folder, 1, {"outer": {"rounds": 1}})
        self.command(program, "train", "--config", self.folder / "node1.json")
        self.assertEqual(by_event(cluster, "node1", "end")[-1]["outcome"], "done")

    def test_a_program_is_built_with_the_library(self):
        """The example by find_package(Farstep), at two sites: losses fall, weights are the same bits.

        After each sync they are what DiLoCo's step in float64 makes of those before.
        """
        prefix, built = self.folder / "prefix", self.folder / "built"
        for component in ("program", "library"):
            self.command("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
        (prefix / HOME / "libtorch").symlink_to(self.libtorch())
        self.assertIn("trains one model", self.command(prefix / "bin/farstep", "--help"))
        self.assertTrue((prefix / "share/doc/farstep/copyright").exists())
        exported = self.command("nm", "-D", "--defined-only", "--extern-only",
                                prefix / "lib/libfarstep_outer.so")
        names = {line.split()[-1] for line in exported.splitlines()}
        self.assertTrue(names)
        self.assertEqual([name for name in names if not name.startswith("farstep_outer_")], [])

        self.command("cmake", "-G", "Ninja", "-S", SOURCE / "docs/examples/outer_loop", "-B", built,
                     f"-DCMAKE_PREFIX_PATH={prefix}", f"-DTORCH={self.libtorch()}/torch")
        self.command("cmake", "--build", built)
        names = ["paris", "tokyo"]
        (self.folder / "run.json").write_text(json.dumps(
            {"name": "example", "sites": names, "outer": {"learning_rate": 0.5, "momentum": 0.9}}))
        endpoint = endpoint_of("127.0.0.1", free_port())
        for name in names:
            (self.folder / name).mkdir()
            (self.folder / f"{name}.json").write_text(json.dumps(
                {"name": name, "network": {"address": "127.0.0.1"},
                 "coordinator": {"endpoint": endpoint, "host": name == names[0]}}))
            self.processes.append(subprocess.Popen(
                [built / "outer_loop", "run.json", f"{name}.json", name], cwd=self.folder,
                stdout=subprocess.PIPE, text=True, env={"OMP_NUM_THREADS": "1"}))
        printed = [process.communicate(timeout=120)[0].splitlines() for process in self.processes]
        self.assertEqual([process.returncode for process in self.processes], [0, 0])
        self.check_example(names, printed)

    def check_example(self, names: list[str], printed: list[list[str]]):
        """Holds what the example printed and wrote against the outer step."""
        lines = [[re.fullmatch(r"round (\d+): loss (\S+), weights (\w{16})", line).groups()
                  for line in own] for own in printed]
        self.assertEqual([len(own) for own in lines], [ROUNDS, ROUNDS])
        self.assertEqual([line[2] for line in lines[0]], [line[2] for line in lines[1]])
        for own in lines:
            self.assertLess(float(own[-1][1]), 0.5 * float(own[0][1]), own)

        def weights(name: str, number: int, when: str) -> array.array:
            return array.array("f", (self.folder / name / f"{number}.{when}").read_bytes())

        momentum = [0.0] * len(weights(names[0], 0, "after"))
        for number in range(1, ROUNDS + 1):
            start = weights(names[0], number - 1, "after")
            before = [weights(name, number, "before") for name in names]
            after = [weights(name, number, "after") for name in names]
            self.assertEqual(after[0], after[1])
            self.assertNotEqual(before[0], before[1])
            mean = [old - (one + two) / 2 for old, one, two in zip(start, *before)]
            momentum = [0.9 * speed + value for speed, value in zip(momentum, mean)]
            for old, value, speed, got in zip(start, mean, momentum, after[0]):
                self.assertAlmostEqual(got, old - 0.5 * (value + 0.9 * speed), delta=1e-6)

    def test_the_debian_package_is_whole(self):
        """It has what it needs or names the packages that do; the unpacked program trains."""
        components = "program;manual;library" + (";libtorch" if FULL else "")
        self.command("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", self.folder,
                     "-D", f"CPACK_COMPONENTS_ALL={components}", timeout=600)
        package = next(self.folder.glob("farstep_*.deb"))
        fields = self.command("dpkg-deb", "--field", package)
        self.assertRegex(fields, r"(?m)^Package: farstep$")
        for name in ("libc6", "libstdc++6", "libgloo0", "libzmq5", "libssl3", "libspdlog"):
            self.assertRegex(fields, rf"(?m)^Depends: .*\b{re.escape(name)}")
        unpacked = self.folder / "unpacked"
        self.command("dpkg-deb", "--extract", package, unpacked, timeout=600)
        usr = unpacked / "usr"
        for path in ("bin/farstep", f"{HOME}/bin/farstep", f"{HOME}/bin/farstep-torch", "lib/libfarstep_outer.so",
                     "include/farstep/outer.h", "lib/cmake/Farstep/FarstepConfig.cmake",
                     "share/doc/farstep/copyright", "share/doc/farstep/guide/README.md",
                     "share/farstep/configs/quickstart/run.json"):
            self.assertTrue((usr / path).exists(), path)
        self.assertEqual(list(unpacked.rglob("*gpu_check*")), [])
        if (SOURCE / "scripts/systemd/farstep@.service").exists():
            self.assertTrue((usr / "lib/systemd/system/farstep@.service").exists())
        if FULL:
            self.assertTrue((usr / HOME / "libtorch/torch/lib/libtorch_cpu.so").exists())
        else:
            (usr / HOME / "libtorch").symlink_to(self.libtorch())
        program = usr / "bin/farstep"
        needed = self.command("ldd", usr / HOME / "bin/farstep-torch")
        self.assertNotIn("not found", needed)
        torch = re.search(r"libtorch_cpu\.so => (\S+)", needed).group(1)
        self.assertTrue(torch.startswith(str(unpacked)), torch)
        self.assertIn("trains one model", self.command(program, "--help"))
        self.assert_trains(program)


if __name__ == "__main__":
    unittest.main()
