"""The layer check tells every kind of violation, with the place and what mends it."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from stand_in import SOURCE

CHECK = SOURCE / "scripts" / "check_layers.py"


class CheckLayers(unittest.TestCase):
    """A tree of a few files."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        subprocess.run(["git", "init", "--quiet"], cwd=self.folder, check=True)

    def write(self, name: str, *includes: str, lines: int = 0):
        """A header with these includes and so many lines more."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["#pragma once", *(f"#include {target}" for target in includes), *[""] * lines]) + "\n",
                        encoding="utf-8")

    def violations(self, of: str) -> list[str]:
        """What the check says of a file or folder."""
        result = subprocess.run([sys.executable, CHECK], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        return [line for line in result.stdout.splitlines() if line.startswith(f"{of}:")]

    def test_a_lower_floor_includes_no_higher_one(self):
        """The line and the floors that it may include are named."""
        self.write("trainer/config/fields.h")
        self.write("wan/link/shape.h", '"trainer/config/fields.h"', '"trainer/run/session.h"')
        self.write("trainer/run/session.h")
        found = self.violations("wan/link/shape.h")
        self.assertEqual(len(found), 1)
        self.assertIn("wan/link/shape.h:3: includes trainer/run/session.h", found[0])
        self.assertIn("may include base, config:", found[0])

    def test_a_folder_needs_a_row(self):
        """In the check and in ARCHITECTURE.md."""
        self.write("trainer/new/thing.h")
        self.assertIn("ARCHITECTURE.md", self.violations("trainer/new/thing.h")[0])

    def test_an_own_library_sees_no_settings_of_a_run(self):
        """However many headers lie between."""
        self.write("trainer/settings/run_config.h")
        self.write("wan/sockets/tcp.h", '"trainer/settings/run_config.h"')
        self.write("wan/collective/ring.h", '"wan/sockets/tcp.h"')
        found = self.violations("wan/collective/ring.h")
        self.assertEqual(len(found), 1)
        self.assertIn("sees trainer/settings through wan/sockets/tcp.h -> trainer/settings/run_config.h", found[0])
        self.assertIn("own settings", found[0])

    def test_an_own_library_has_its_namespace(self):
        """It may declare a class of another one, and define nothing there."""
        path = self.folder / "wan/sockets/tcp.h"
        path.parent.mkdir(parents=True)
        opened = ["#pragma once", "namespace farstep {", "class Clock;", "}  // namespace farstep"]
        path.write_text("\n".join([*opened, "namespace farstep::wan {", "int f();", "}"]), encoding="utf-8")
        self.assertEqual(self.violations("wan/sockets/tcp.h"), [])
        path.write_text("\n".join([*opened, "namespace farstep {", "int f();", "}"]), encoding="utf-8")
        found = self.violations("wan/sockets/tcp.h")
        self.assertEqual(len(found), 1)
        self.assertIn("wan/sockets/tcp.h:5: declares names in farstep: the folder's are in farstep::wan", found[0])
        other = self.folder / "trainer/run/site.h"
        other.parent.mkdir(parents=True)
        other.write_text("#pragma once\nnamespace farstep::wan {\nint f();\n", encoding="utf-8")
        self.assertIn("the folder's are in farstep", self.violations("trainer/run/site.h")[0])

    def test_libtorch_is_seen_in_few_folders(self):
        """The rounds are not among them."""
        self.write("trainer/model/device.h", "<ATen/ATen.h>")
        self.write("trainer/round/run.h", '"trainer/settings/loader.h"')
        self.write("trainer/settings/loader.h", '"trainer/model/device.h"')
        self.assertEqual(self.violations("trainer/model/device.h"), [])
        found = self.violations("trainer/round/run.h")
        self.assertIn("sees LibTorch through trainer/settings/loader.h -> trainer/model/device.h -> <ATen/ATen.h>", found[0])

    def test_a_library_depends_on_what_its_files_may_include(self):
        """And gets LibTorch only where that may be seen."""
        self.write("wan/link/shape.h")
        (self.folder / "wan/link/CMakeLists.txt").write_text(
            "farstep_library(link\n  SOURCES shape.cpp\n  DEPS base model\n  LINK z\n  TORCH)\n", encoding="utf-8")
        found = "\n".join(self.violations("wan/link/CMakeLists.txt"))
        self.assertIn("gets LibTorch", found)
        self.assertIn("depends on model", found)
        self.assertEqual(found.count("depends on"), 1)

    def test_units_and_lines_are_counted(self):
        """A header and its source are one unit; a file has 400 lines at most."""
        for unit in range(10):
            for suffix in ("h", "cpp"):
                self.write(f"trainer/report/unit{unit}.{suffix}")
        self.assertEqual(self.violations("trainer/report"), [])
        self.write("trainer/report/one_more.h", lines=399)
        self.assertIn("11 units, 10 at most", self.violations("trainer/report")[0])
        self.assertEqual(self.violations("trainer/report/one_more.h"), [])
        self.write("trainer/report/one_more.h", lines=400)
        self.assertIn("401 lines, 400 at most", self.violations("trainer/report/one_more.h")[0])
        self.write("trainer/report/unit0.h")
        for unit in range(8):
            (self.folder / f"trainer/report/unit{unit}.h").unlink()
            (self.folder / f"trainer/report/unit{unit}.cpp").unlink()
        (self.folder / "trainer/report/one_more.h").unlink()
        self.assertIn("2 units, 3 at least", self.violations("trainer/report")[0])


if __name__ == "__main__":
    unittest.main()
