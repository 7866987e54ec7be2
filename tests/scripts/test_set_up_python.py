"""Set-up of the Python packages that tests compare with, with wheels of the test's own."""

import os
import re
import shutil
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from stand_in import SOURCE, StandIns

# Python, but for `python3 -m pip download ... --dest FOLDER ... -r LIST`.
PYTHON = """
import os, pathlib, re, shutil, sys
if sys.argv[1:3] != ["-m", "pip"]:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
options = dict(zip(sys.argv, sys.argv[1:]))
here = pathlib.Path(__file__).parent
for line in open(options["-r"]).read().splitlines():
    name, pins = re.fullmatch(r"(.*?)==\\S+((?: --hash=sha256:[0-9a-f]{64})+)", line).groups()
    with open(here / "fetched.txt", "a") as log:
        log.write(f"{name} {options['--python-version']} {options['--abi']}\\n")
    shutil.copy(here / "wheels" / f"{name}.whl", options["--dest"])
"""
PIN = " --hash=sha256:" + 64 * "0"
VERSION = "{}.{}".format(*sys.version_info)
WHEELS = {
    "small": {"small.py": "", "small-1.dist-info/METADATA": ""},
    "transformers": {"transformers/__init__.py": "LlamaForCausalLM = 1"},
    "torch": {"torch/__init__.py": "", "torch/lib/libtorch_cuda.so": "", "torch/include/a.h": "",
              "torch/lib/libtorch_cuda_linalg.so": "", "torch-2.dist-info/METADATA": ""},
    "nvidia-cudnn": {"nvidia/cudnn/lib/libcudnn.so.9": "", "nvidia/cudnn/lib/libcudnn_graph.so.9": "",
                     "nvidia/cudnn/include/cudnn.h": ""},
    "nvidia-cuda-nvrtc": {"nvidia/cu13/lib/libnvrtc.so.13": ""},
    "nvidia-cuda-runtime": {"nvidia/cu13/lib/libcudart.so.13": ""}}
LISTS = {"python_oracles.txt": ("small==1", "transformers==4.1"), "python_torch.txt": ("torch==2",),
         "libtorch.txt": ("torch==2", "nvidia-cuda-runtime==13"),
         "libtorch_gpu.txt": ("nvidia-cuda-nvrtc==13", "nvidia-cudnn==9")}
SMALL = {"small.py", "small-1.dist-info/METADATA", "transformers/__init__.py"}
ALL = SMALL | {"torch/__init__.py", "torch/lib/libtorch_cuda.so", "torch-2.dist-info/METADATA",
               "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cu13/lib/libcudart.so.13"}


class SetUpPython(unittest.TestCase):
    """A clone of nothing but the scripts."""

    def setUp(self):
        if not (3, 11) <= sys.version_info < (3, 14):
            self.skipTest("no wheels are listed for this Python")
        self.clone = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.clone)
        (self.clone / "scripts").mkdir()
        (self.clone / ".deps").mkdir()
        for name in ("set_up_parts.sh", "set_up_python.sh"):
            shutil.copy(SOURCE / "scripts" / name, self.clone / "scripts")
        for name, wheels in LISTS.items():
            self.write_list(name, wheels)
        self.programs = StandIns(self.clone / "programs")
        self.programs.put("python3", PYTHON, sys.executable)
        (self.programs.folder / "wheels").mkdir()
        for name, files in WHEELS.items():
            with zipfile.ZipFile(self.programs.folder / f"wheels/{name}.whl", "w") as wheel:
                for path, text in files.items():
                    wheel.writestr(path, text)

    def write_list(self, name: str, wheels: tuple):
        """A list of wheels, each with two hashes."""
        text = "".join(f"{wheel}{PIN}{PIN}\n" for wheel in wheels)
        (self.clone / "scripts" / name).write_text("# Wheels.\n" + text, encoding="utf-8")

    def install(self, *parts: str, code: int = 0) -> str:
        """Sets these parts up; returns what was said."""
        calls = "; ".join(f"install_python_{part}" for part in parts)
        result = self.programs.run("bash", "-c", "set -euo pipefail; . scripts/set_up_parts.sh; "
                                   f". scripts/set_up_python.sh; {calls}", cwd=self.clone)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def fetched(self) -> list[str]:
        """The names that pip was asked for since the last call, all for this Python."""
        lines = self.programs.take_lines("fetched.txt")
        names = [line.split()[0] for line in lines]
        self.assertEqual(lines, [f"{name} {VERSION} cp{VERSION.replace('.', '')}" for name in names])
        return names

    def files(self) -> set[str]:
        """What packages have been unpacked."""
        site = self.clone / f".deps/python/lib/python{VERSION}/site-packages"
        return {str(path.relative_to(site)) for path in site.rglob("*")
                if path.is_file() and "__pycache__" not in path.parts}

    def test_the_environment_is_made_once(self):
        """It imports what was listed, and a second set-up fetches nothing."""
        self.assertIn("103 MB", self.install("oracles"))
        self.assertEqual((self.fetched(), self.files()), (["small", "transformers"], SMALL))
        found = self.programs.run(self.clone / ".deps/python/bin/python3", "-c", "import small, sys; print(sys.prefix)",
                                  cwd=self.clone)
        self.assertEqual(found.stdout, f"{self.clone.resolve()}/.deps/python\n", found.stderr)
        self.assertEqual(self.install("oracles"), "")
        self.assertEqual(self.fetched(), [])
        self.assertEqual(os.listdir(self.clone / ".deps"), ["python"])

    def test_pytorch_comes_beside_them(self):
        """With the libraries that its import loads, and no others; then nothing is left to do."""
        self.assertIn("2000 MB", self.install("oracles", "torch"))
        self.assertEqual(self.fetched(), ["small", "transformers", "torch", "nvidia-cuda-runtime", "nvidia-cudnn"])
        self.assertEqual(self.files(), ALL)
        self.assertEqual(self.install("oracles", "torch"), "")
        self.assertEqual(self.fetched(), [])
        self.assertEqual(os.listdir(self.clone / ".deps"), ["python"])

    def test_a_changed_list_is_followed(self):
        """What is no longer listed goes."""
        self.install("oracles", "torch")
        self.fetched()
        self.write_list("python_torch.txt", ("torch==2.0.1",))
        self.install("oracles", "torch")
        self.assertEqual(self.fetched(), ["torch", "nvidia-cuda-runtime", "nvidia-cudnn"])
        self.assertEqual(self.files(), ALL)
        self.write_list("python_oracles.txt", ("transformers==4.1",))
        self.install("oracles", "torch")
        self.assertEqual(self.files(), ALL - {"small.py", "small-1.dist-info/METADATA"})

    def test_what_fails_is_tried_again(self):
        """A wheel that pip refuses, and packages that cannot be imported."""
        self.write_list("python_oracles.txt", ("small==1", "nowhere==1"))
        self.install("oracles", code=1)
        self.assertFalse((self.clone / ".deps/python").exists())
        self.write_list("python_oracles.txt", ("small==1",))
        self.install("oracles")
        self.assertIn("No module named 'transformers'", self.install("torch", code=1))
        self.write_list("python_oracles.txt", LISTS["python_oracles.txt"])
        self.install("oracles", "torch")
        self.assertEqual(self.files(), ALL)

    def test_a_small_disk_is_refused_before_pytorch_is_fetched(self):
        """With what is needed, what is free, and how to do without."""
        self.install("oracles")
        self.fetched()
        self.programs.put("df", "echo Avail; echo '  3599'")
        said = self.install("torch", code=1)
        self.assertRegex(said, r"PyTorch for Python needs 3600 MB on the disk of .*, which has 3599 MB free")
        self.assertIn("FARSTEP_ORACLES=off", said)
        self.assertEqual(self.fetched(), [])

    def test_a_python_without_wheels_is_told(self):
        """Set-up goes on without the packages."""
        for name in ("python3", "python3.11", "python3.12", "python3.13"):
            self.programs.put(name, "exit 1")
        self.assertIn("no Python 3.11, 3.12 or 3.13: tests", self.install("oracles", "torch"))
        self.assertEqual(os.listdir(self.clone / ".deps"), [])

    def test_every_wheel_of_the_tree_is_pinned(self):
        """To one version, with a hash for each Python or one for all."""
        for paths in (("python_oracles.txt", "python_torch.txt"), ("wheel_tools.txt",)):
            self.check_pins(*paths)

    def check_pins(self, *paths: str):
        """Each package stands once in the lists of one environment."""
        names = []
        for path in paths:
            for line in (SOURCE / "scripts" / path).read_text(encoding="utf-8").splitlines():
                if not line.startswith("#"):
                    pinned = re.fullmatch(r"([a-z0-9-]+)==[0-9.a-z]+((?: --hash=sha256:[0-9a-f]{64})+)", line)
                    self.assertTrue(pinned, line)
                    self.assertIn(pinned.group(2).count("--hash"), (1, 3), line)
                    names.append(pinned.group(1))
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
