"""Programs that stand in for others while a script is tested: shell scripts in a folder on PATH."""

import os
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


class StandIns:
    """A folder of such programs, before the system's on PATH."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True)

    def put(self, name: str, body: str, interpreter: str = "/bin/sh") -> Path:
        """A program of that name."""
        path = self.folder / name
        path.write_text(f"#!{interpreter}\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def run(self, *command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
        """Runs a command that finds them; nothing of this process's environment reaches it."""
        return subprocess.run(
            [*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, timeout=120,
            env={"PATH": f"{self.folder}:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"),
                 **environment})

    def take_lines(self, name: str) -> list[str]:
        """What programs have written to the file of that name here since the last call."""
        log = self.folder / name
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines
