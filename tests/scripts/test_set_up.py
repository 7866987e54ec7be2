"""Set-up of LibTorch, on hosts with and without a GPU, with wheels of the test's own."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

from stand_in import SOURCE, StandIns

# Like those of LibTorch.
RUN_PATH = "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN/../../nvidia/cu13/lib:$ORIGIN"
LISTS = {"libtorch.txt": ("torch==2.11.0", "nvidia-cuda-runtime==13.0"),
         "libtorch_gpu.txt": ("nvidia-cublas==13.1", "nvidia-nccl-cu13==2.28",
                              "nvidia-cuda-nvrtc==13.0"),
         "arrow.txt": ("pyarrow==26.0",)}
# Instead of `python3 -m pip download ... --dest FOLDER ... -r LIST`.
PIP = """
import pathlib, re, shutil, sys
options = dict(zip(sys.argv, sys.argv[1:]))
wanted = open(options["-r"]).read().strip()
name, pin = re.fullmatch(r"(.*)==.* --hash=sha256:(.*)", wanted).groups()
here = pathlib.Path(__file__).parent
with open(here / "fetched.txt", "a") as log:
    log.write(f"{name} {pin}\\n")
shutil.copy(here / "wheels" / f"{name}.whl", options["--dest"])
"""


def listed(name: str, place: int) -> str:
    """A line of a list."""
    return f"{name} --hash=sha256:{place:064x}"


class SetUp(unittest.TestCase):
    """A clone of nothing but the scripts, and wheels of a few libraries."""

    @classmethod
    def setUpClass(cls):
        cls.wheels = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.wheels)
        libraries = {
            "cublas": ("nvidia/cu13/lib/libcublas.so.13", ()),
            "nccl": ("nvidia/nccl/lib/libnccl.so.2", ()),
            "nvrtc": ("nvidia/cu13/lib/libnvrtc.so.13", ()),
            "driver": ("driver/libcuda.so.1", ()),
            "cuda": ("torch/lib/libtorch_cuda.so", ("cublas", "nccl")),
            "compiler": ("torch/lib/libcaffe2_nvrtc.so", ("nvrtc", "driver"))}
        paths = {}
        for name, (place, needs) in libraries.items():
            paths[name] = cls.wheels / place
            paths[name].parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                ["c++", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", paths[name],
                 f"-Wl,-soname,{paths[name].name},-rpath,{RUN_PATH}", "-Wl,--no-as-needed",
                 "-x", "none", *(paths[need] for need in needs)], check=True)
        texts = ("torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libtorch.so",
                 "torch/lib/libc10_cuda.so", "torch/lib/libtorch_nvshmem.so",
                 "torch/lib/libtorch_python.so", "torch/include/ATen/ATen.h",
                 "torch/include/fmt/core.h")
        for name, texts_of, libraries_of in (
                ("torch", texts, (paths["cuda"], paths["compiler"])),
                ("pyarrow", ("pyarrow/include/parquet/types.h", "pyarrow/libarrow.so.26",
                             "pyarrow/libparquet.so.26", "pyarrow/libarrow_flight.so.26",
                             "pyarrow-26.0.dist-info/licenses/LICENSE.txt"), ()),
                ("nvidia-cuda-runtime", ("nvidia/cu13/lib/libcudart.so.13",), ()),
                ("nvidia-cublas", (), (paths["cublas"],)),
                ("nvidia-nccl-cu13", ("nvidia/nccl/include/nccl.h",), (paths["nccl"],)),
                ("nvidia-cuda-nvrtc", ("nvidia/cu13/lib/libnvrtc.alt.so.13",), (paths["nvrtc"],))):
            with zipfile.ZipFile(cls.wheels / f"{name}.whl", "w") as wheel:
                for text in texts_of:
                    wheel.writestr(text, text)
                for library in libraries_of:
                    wheel.write(library, library.relative_to(cls.wheels))

    def setUp(self):
        self.clone = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.clone)
        (self.clone / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts/set_up_parts.sh", self.clone / "scripts")
        for name, wheels in LISTS.items():
            self.write_list(name, wheels)
        self.programs = StandIns(self.clone / "programs")
        (self.programs.folder / "wheels").symlink_to(self.wheels)
        self.programs.put("python3", PIP, shutil.which("python3"))
        self.programs.put("nvidia-smi", "exit 9")

    def write_list(self, name: str, wheels: tuple):
        """A list of wheels with what stands for their hashes."""
        text = "".join(f"{listed(wheel, place)}\n" for place, wheel in enumerate(wheels))
        (self.clone / "scripts" / name).write_text("# Wheels.\n" + text, encoding="utf-8")

    def call(self, function: str, **environment: str) -> subprocess.CompletedProcess:
        """Calls a function of the parts of set-up."""
        return self.programs.run(
            "bash", "-c", f"set -euo pipefail; . scripts/set_up_parts.sh; {function}",
            cwd=self.clone, **environment)

    def install(self, gpu: str, code: int = 0) -> str:
        """Sets LibTorch up; returns what was said."""
        result = self.call("install_libtorch", FARSTEP_GPU=gpu)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def fetched(self) -> list[str]:
        """What was asked of pip since the last call."""
        return self.programs.take_lines("fetched.txt")

    def files(self) -> set[str]:
        """What is in the folder of LibTorch."""
        folder = self.clone / ".deps/libtorch"
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    CPU_FILES = {".complete", "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so",
                 "torch/lib/libtorch.so", "torch/include/ATen/ATen.h",
                 "nvidia/cu13/lib/libcudart.so.13"}
    GPU_FILES = CPU_FILES | {
        "torch/lib/libtorch_cuda.so", "torch/lib/libc10_cuda.so", "torch/lib/libtorch_nvshmem.so",
        "torch/lib/libcaffe2_nvrtc.so", "nvidia/cu13/lib/libcublas.so.13",
        "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/nccl/lib/libnccl.so.2",
        "nvidia/nccl/include/nccl.h"}
    CPU_WHEELS = [f"torch {0:064x}", f"nvidia-cuda-runtime {1:064x}"]
    GPU_WHEELS = CPU_WHEELS + [f"nvidia-cublas {0:064x}", f"nvidia-nccl-cu13 {1:064x}",
                               f"nvidia-cuda-nvrtc {2:064x}"]

    def test_a_gpu_host_gets_the_cuda_part_once(self):
        """All wheels by their hashes, and what the loader needs; then nothing is left to do."""
        self.assertIn("LibTorch with its CUDA part", self.install("on"))
        self.assertEqual(self.fetched(), self.GPU_WHEELS)
        self.assertEqual(self.files(), self.GPU_FILES)
        self.assertEqual(sorted(os.listdir(self.clone / ".deps")), ["libtorch"])
        for gpu in ("on", "off", "auto"):
            self.assertEqual(self.install(gpu), "")
        self.assertEqual(self.fetched(), [])
        self.assertEqual(self.files(), self.GPU_FILES)

    def test_a_host_without_a_gpu_gets_the_rest_and_may_become_one(self):
        """Without the CUDA part, and then with it."""
        self.assertNotIn("CUDA", self.install("off"))
        self.assertEqual((self.fetched(), self.files()), (self.CPU_WHEELS, self.CPU_FILES))
        self.assertEqual(self.install("off"), "")
        self.assertEqual(self.fetched(), [])
        self.install("on")
        self.assertEqual((self.fetched(), self.files()), (self.GPU_WHEELS, self.GPU_FILES))

    def test_a_changed_list_is_followed(self):
        """Another version of a wheel means another LibTorch."""
        self.install("on")
        self.fetched()
        self.write_list("libtorch_gpu.txt", LISTS["libtorch_gpu.txt"][::-1])
        self.install("on")
        self.assertEqual(len(self.fetched()), len(self.GPU_WHEELS))

    def test_a_gpu_is_noticed(self):
        """By its driver's device or by nvidia-smi; another value of the variable is refused."""
        if not Path("/dev/nvidiactl").exists():
            self.assertEqual(self.call("wants_gpu", FARSTEP_GPU="auto").returncode, 9)
        self.programs.put("nvidia-smi", "[ \"$1\" = -L ]")
        self.assertEqual(self.call("wants_gpu").returncode, 0)
        self.assertEqual(self.call("wants_gpu", FARSTEP_GPU="off").returncode, 1)
        refused = self.call("install_libtorch", FARSTEP_GPU="yes")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("'yes', but takes on, off or auto", refused.stderr)

    def test_a_library_that_no_wheel_brings_is_named(self):
        """And what was there before is kept."""
        self.install("off")
        self.write_list("libtorch_gpu.txt", LISTS["libtorch_gpu.txt"][:1])
        self.assertIn("CUDA part needs: libnccl.so.2 libnvrtc.so.13\n", self.install("on", code=1))
        self.assertEqual(self.files(), self.CPU_FILES)
        self.fetched()
        self.install("off")
        self.assertEqual(self.fetched(), [])

    def test_a_download_that_fails_keeps_what_was_there(self):
        """A wheel that pip refuses ends set-up; the next one begins anew."""
        self.install("off")
        self.write_list("libtorch_gpu.txt", (*LISTS["libtorch_gpu.txt"], "nowhere==1.0"))
        self.install("on", code=1)
        self.assertEqual(self.files(), self.CPU_FILES)
        self.write_list("libtorch_gpu.txt", LISTS["libtorch_gpu.txt"])
        self.install("on")
        self.assertEqual(self.files(), self.GPU_FILES)

    def test_a_small_disk_is_refused_before_anything_is_fetched(self):
        """With what is needed, what is free, and what to do."""
        self.programs.put("df", "echo Avail; echo '  3999'")
        said = self.install("on", code=1)
        self.assertRegex(said, r"needs 4000 MB on the disk of .*/\.deps, which has 3999 MB free")
        self.assertIn("FARSTEP_GPU=off", said)
        self.assertEqual(self.fetched(), [])
        self.install("off")

    def test_arrow_is_fetched_once(self):
        """By its hash, and of its wheel what reads Parquet; a failure keeps what was there."""
        for expected in ([f"pyarrow {0:064x}"], []):
            self.assertEqual(self.call("install_arrow").returncode, 0)
            self.assertEqual(self.fetched(), expected)
        folder = self.clone / ".deps/arrow"
        files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        self.assertEqual(files, {".complete", "pyarrow/include/parquet/types.h", "pyarrow/libarrow.so.26",
                                 "pyarrow/libparquet.so.26", "pyarrow-26.0.dist-info/licenses/LICENSE.txt"})
        self.write_list("arrow.txt", ("nowhere==1.0",))
        self.assertNotEqual(self.call("install_arrow").returncode, 0)
        self.assertTrue((folder / "pyarrow/libarrow.so.26").exists())
        self.programs.put("df", "echo Avail; echo '  199'")
        self.assertIn("Arrow's library needs 200 MB", self.call("install_arrow").stderr)

    def test_what_a_gpu_host_lacks_is_said(self):
        """A toolkit of another version, an old driver, none; nothing where all is well."""
        nvcc = self.programs.put("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.99'")
        said = self.call("advise_on_gpu").stdout
        self.assertIn(f"no CUDA 13 toolkit ({nvcc} has CUDA 12)", said)
        self.assertIn("needs an NVIDIA driver, version 580 or later", said)
        self.programs.put("nvidia-smi", "echo 570.86.10; echo 570.86.10")
        self.assertIn("driver is version 570.86.10, and CUDA 13", self.call("advise_on_gpu").stdout)
        nvcc.unlink()
        if not shutil.which("nvcc", path="/usr/bin:/bin"):
            none = self.call("advise_on_gpu", CUDA_PATH="/nowhere").stdout
            self.assertIn("no CUDA 13 toolkit (no nvcc is on PATH", none)
        self.programs.put("nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
        self.programs.put("nvidia-smi", "echo 580.65.06")
        well = self.call("advise_on_gpu")
        self.assertEqual((well.returncode, well.stdout, well.stderr), (0, "", ""))


class Lists(unittest.TestCase):
    """The lists of the tree."""

    def test_every_wheel_is_pinned(self):
        """To one version and one file."""
        names = []
        for path in ("libtorch.txt", "libtorch_gpu.txt", "arrow.txt"):
            for line in (SOURCE / "scripts" / path).read_text(encoding="utf-8").splitlines():
                if not line.startswith("#"):
                    pinned = re.fullmatch(r"([a-z0-9-]+)==[0-9.]+ --hash=sha256:[0-9a-f]{64}", line)
                    self.assertTrue(pinned, line)
                    names.append(pinned.group(1))
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
