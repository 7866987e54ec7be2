"""The wheel farstep-outer (docs/python.md), in an environment that has nothing else of Farstep."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from cluster import REPOSITORY, ClusterTest, free_port
from oracles import PYTHON, require_modules

BUILD = Path(os.environ["FARSTEP_BINARY"]).parent
PAGE = REPOSITORY / "docs/python.md"
HERE = Path(__file__).parent
TOOLS = REPOSITORY / ".deps/wheel_tools"
# Loads PyTorch and the library in the order of the arguments, then adds up by the Gloo of PyTorch.
BOTH = """
import ctypes, importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    if name == "farstep":
        print(importlib.import_module(name).version())
import torch
print(torch.ones(2).sum().item(), torch.distributed.is_gloo_available())
import torch.distributed as group
group.init_process_group("gloo", init_method=f"file://{sys.prefix}/meeting-{sys.argv[1]}", rank=0, world_size=1)
value = torch.ones(3)
group.all_reduce(value)
print(value.tolist())
"""


class Wheel(ClusterTest):
    """Installed by pip, without a network, into a fresh environment."""

    def setUp(self):
        super().setUp()
        if not TOOLS.exists():
            self.skipTest("this needs hatchling and auditwheel in Python: run scripts/setup.sh --tests")
        made = self.succeed(REPOSITORY / "scripts/wheel.sh", "--build", BUILD, "--output", self.folder / "made")
        self.wheel = Path(made.strip())

    def succeed(self, *command: object) -> str:
        """What a command prints. Nothing in its environment says where Farstep is."""
        hidden = ("PYTHONPATH", "FARSTEP_OUTER_LIBRARY", "LD_LIBRARY_PATH")
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                                timeout=300, cwd=self.folder,
                                env={name: value for name, value in os.environ.items() if name not in hidden})
        self.assert_success(result)
        return result.stdout

    def install(self, python: str) -> Path:
        """Makes an environment of that Python, and installs the wheel; returns the environment's Python."""
        fresh = self.folder / "fresh"
        self.succeed(python, "-m", "venv", "--without-pip", fresh)
        self.succeed(sys.executable, "-m", "pip", "--python", fresh / "bin/python3", "install", "--quiet",
                     "--no-index", "--no-cache-dir", self.wheel)
        return fresh / "bin/python3"

    def test_a_fresh_environment_trains_at_two_sites(self):
        """With the library of the wheel, whose tag, version, names and licences are in order."""
        version = re.search(r"project\(farstep VERSION (\S+)",
                            (REPOSITORY / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
        self.assertRegex(self.wheel.name, rf"^farstep_outer-{version}-py3-none-manylinux_2_\d+_x86_64\.whl$")
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
        brought = [name for name in names if re.fullmatch(r"farstep_outer\.libs/lib.*\.so.*", name)]
        for library in ("libgloo", "libzmq", "libcrypto", "libssl", "libsodium", "libspdlog"):
            self.assertEqual(sum(Path(name).name.startswith(f"{library}-") for name in brought), 1, library)
            # Debian's packages are named by the library.
            self.assertTrue(any(re.search(rf"/licenses/licenses/{library.replace('crypto', 'ssl')}\d[.\d]*\.txt$", name)
                                for name in names), library)
        self.assertIn(f"farstep_outer-{version}.dist-info/licenses/LICENSE", names)

        python = self.install(sys.executable)
        code = "import farstep, pathlib; print(farstep.version(), pathlib.Path(farstep.__file__).parent)"
        found, package = self.succeed(python, "-c", code).split()
        self.assertEqual(found, version)
        exported = self.succeed("nm", "-D", "--defined-only", Path(package) / "libfarstep_outer.so").splitlines()
        self.assertTrue(exported)
        for line in exported:
            self.assertRegex(line, r" T farstep_outer_\w+$")

        endpoint, sites = f"tcp://127.0.0.1:{free_port()}", ["paris", "tokyo"]
        started = []
        for place, site in enumerate(sites):
            plan = {"start": [0.0, 1.0, 2.0], "steps": 4, "drift": 0.5 - place,
                    "settings": {"run": "wheel", "sites": sites, "site": site, "coordinator": endpoint,
                                 "host": place == 0, "address": "127.0.0.1", "every": 2, "learning_rate": 1,
                                 "momentum": 0}}
            started.append(subprocess.Popen([python, HERE / "python_site.py", json.dumps(plan)],
                                            stdout=subprocess.PIPE, text=True))
        self.processes += started
        for process in started:
            lines = [json.loads(line) for line in process.communicate(timeout=150)[0].splitlines()]
            self.assertEqual(lines[0], {"members": sites})
            # The drifts of the two sites cancel out, and their mean is the model of the start.
            self.assertEqual([line["values"] for line in lines[1:]], [[0.0, 1.0, 2.0]] * 2)

    def test_the_thirty_lines_train_beside_pytorch(self):
        """The page's program at two places; and PyTorch's own Gloo, whichever of the two is loaded first."""
        require_modules("torch")
        python = self.install(PYTHON)
        beside = self.succeed(PYTHON, "-c", "import torch; print(torch.__path__[0])").strip()
        site_packages = Path(self.succeed(python, "-c", "import farstep; print(farstep.__path__[0])").strip()).parent
        (site_packages / "beside.pth").write_text(f"{Path(beside).parent}\n", encoding="utf-8")

        page = PAGE.read_text(encoding="utf-8")
        program = re.search(r"test_wheel\.py -->\n```python\n(.*?)```", page, re.S)[1]
        self.assertLessEqual(sum(1 for line in program.splitlines() if line.strip()), 30)
        script = self.folder / "two_places.py"
        script.write_text(program, encoding="utf-8")
        commands = re.findall(r"^python3 two_places\.py (\w+) (\S+) (tcp://\S+):7000$", page, re.M)
        self.assertEqual([site for site, *_ in commands], ["seoul", "lyon"])
        coordinator = f"tcp://127.0.0.1:{free_port()}"
        started = [subprocess.Popen([python, script, site, "127.0.0.1", coordinator], stdout=subprocess.PIPE,
                                    text=True) for site, *_ in commands]
        self.processes += started
        told = [process.communicate(timeout=200)[0] for process in started]
        self.assertEqual([process.returncode for process in started], [0, 0])
        self.assertEqual(told[0], told[1])
        rounds = re.findall(r"^round (\d+): loss (\S+), weights \w{16}$", told[0], re.M)
        self.assertEqual([int(number) for number, _ in rounds], list(range(1, 41)))
        # A site alone knows half of the curve; the mean square of the other half is near a half.
        self.assertLess(float(rounds[-1][1]), 0.1 * float(rounds[0][1]))

        for order in (("torch", "farstep"), ("farstep", "torch")):
            self.assertEqual(self.succeed(python, "-c", BOTH, *order).split("\n")[1:3],
                             ["2.0 True", "[1.0, 1.0, 1.0]"])
