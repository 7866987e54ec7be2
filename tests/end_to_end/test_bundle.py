"""The relocatable folder that brings Farstep to a machine without a package manager."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["FARSTEP_BINARY"]).parent
LIMIT_BYTES = 70e6  # unpacked; the archive is a third of it
# What a machine with Python's torch has of its own.
OF_THE_SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s)\.so|ld-linux|linux-vdso)")


class Bundle(unittest.TestCase):
    """A bundle that was moved, in an environment that has nothing but LibTorch's place."""

    def setUp(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        made = subprocess.run(
            ["scripts/bundle.sh", "--build", BUILD, "--output", folder / "made"],
            cwd=SOURCE, capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.archive = folder / "made.tar.zst"
        self.bundle = folder / "moved here"
        (folder / "made").rename(self.bundle)
        torch = re.search(r"^FARSTEP_LIBTORCH:PATH=(.*)$",
                          (BUILD / "CMakeCache.txt").read_text(encoding="utf-8"), re.M)
        self.torch = Path(torch.group(1)) / "torch"
        self.environment = {"PATH": "/usr/bin:/bin", "FARSTEP_TORCH": str(self.torch)}

    def run_here(self, *command: object, **environment: str) -> subprocess.CompletedProcess:
        """Runs a program of the bundle."""
        return subprocess.run([*map(str, command)], cwd="/", capture_output=True, text=True,
                              check=False, env={**self.environment, **environment})

    def libraries_path(self) -> str:
        """What the launcher makes of LD_LIBRARY_PATH: LibTorch's folders, and not the bundle's."""
        found = self.run_here("sh", "-c", '. "$0" && echo "$LD_LIBRARY_PATH"',
                              self.bundle / "find_libtorch.sh")
        self.assertNotIn(str(self.bundle), found.stdout)
        return found.stdout.strip()

    def test_a_moved_bundle_runs_with_what_it_brought(self):
        """The program, and every test that needs no GPU, with its own and LibTorch's libraries."""
        size = sum(path.stat().st_size for path in self.bundle.rglob("*") if path.is_file())
        self.assertLess(size, LIMIT_BYTES)
        self.assertTrue(self.archive.exists())
        for name in ("gpu_check.sh", "find_libtorch.sh", "script_help.sh", "peer_step.py",
                     "peer_model.py", "peer_versions.py", "python_oracles.txt", "python_torch.txt", "commit.txt"):
            self.assertGreater((self.bundle / name).stat().st_size, 0, name)

        result = self.run_here(self.bundle / "farstep", "--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("trains one model", result.stdout)
        self.assertIn("CUDA kernels", self.run_here(self.bundle / "farstep", "--version").stdout)

        path = self.libraries_path()
        listed = (self.bundle / "gpu_programs.txt").read_text(encoding="utf-8").split("\n")
        programs = [line.split() for line in listed if line]
        self.assertTrue(programs)
        for kind, name in [*programs, ("program", "farstep")]:
            program = self.bundle / "bin" / name
            searched = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]",
                                  self.run_here("readelf", "-d", program).stdout)
            # And no folder of the build.
            self.assertTrue(searched[0].startswith("$ORIGIN/../lib"), name)
            self.assertNotIn(str(BUILD), searched[0], name)
            needed = self.run_here("ldd", program, LD_LIBRARY_PATH=path).stdout
            for line in needed.splitlines():
                if OF_THE_SYSTEM.search(line.split("=>")[0]):
                    continue
                place = line.partition("=> ")[2]
                self.assertTrue(place.startswith((str(self.bundle), str(self.torch.parent))),
                                f"{name}: {line}")
            if kind == "test":
                result = self.run_here(program, "~[gpu]", LD_LIBRARY_PATH=path)
                self.assertEqual(result.returncode, 0, f"{name}: {result.stdout}{result.stderr}")

    def test_what_is_missing_is_said(self):
        """No LibTorch, another LibTorch, no GPU: one line and a code of its own."""
        nowhere = self.run_here(self.bundle / "farstep", "--help", FARSTEP_TORCH="/nowhere")
        self.assertEqual((nowhere.returncode, nowhere.stdout), (2, ""))
        self.assertIn("'/nowhere'", nowhere.stderr)

        other = self.bundle / "torch"
        (other / "lib").mkdir(parents=True)
        (other / "lib" / "libtorch_cpu.so").touch()
        (other / "version.py").write_text("__version__ = '2.10.0+cpu'\n", encoding="utf-8")
        refused = self.run_here(self.bundle / "farstep", "--help", FARSTEP_TORCH=str(other))
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("another version than 2.11.0", refused.stderr)

        if not Path("/dev/nvidiactl").exists():
            check = self.run_here(self.bundle / "gpu_check.sh")
            self.assertEqual(check.returncode, 77, check.stdout + check.stderr)
            self.assertEqual(len(check.stdout.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
