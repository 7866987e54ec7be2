"""A machine that systemd boots: a container whose file system is this machine's, with changes of
its own that go when it ends. Needs root, systemd-nspawn and overlayfs."""

import os
import shutil
import subprocess
from pathlib import Path

from cluster import wait_until

BOOT_SECONDS = 60
# Run in a mount namespace of its own, so that nothing outside sees the mounts. What this machine
# would start by itself is left out: units that were enabled, and old scripts. Without a machine id
# systemd would take the boot for the first one, and enable units.
MOUNTS = """
mount -t tmpfs farstep "$1"
mkdir "$1/changes" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/changes,workdir=$1/work" farstep "$1/root"
rm -rf "$1/root/etc/systemd/system" "$1/root/etc/init.d" "$1/root/etc/fstab" \
  "$1/root/var/lib/farstep" "$1/root/etc/farstep"
echo 0123456789abcdef0123456789abcdef >"$1/root/etc/machine-id"
mkdir "$1/root/etc/systemd/system"
echo mounted
exec cat
"""


def obstacle() -> str:
    """What this machine lacks for such a test; empty: nothing."""
    if os.geteuid() != 0:
        return "booting a container needs root"
    if not shutil.which("systemd-nspawn") or not Path("/lib/systemd/systemd").exists():
        return "there is no systemd-nspawn"
    may_mount = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if may_mount.returncode != 0:
        return "this root may not make mount namespaces"
    if "overlay" not in Path("/proc/filesystems").read_text(encoding="utf-8"):
        return "the kernel has no overlayfs"
    return ""


class Machine:
    """A container in `folder`, which must be empty; boot() starts it, close() ends it.

    `shown`: folders and files of this machine by the paths at which the container has them.
    """

    def __init__(self, folder: Path, shown: dict[str, Path]):
        self.folder = folder
        self.log = folder.with_name(folder.name + ".txt")
        self.shown = shown
        self.container: subprocess.Popen | None = None
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-ec", MOUNTS, "sh", folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "mounted\n":
            raise AssertionError("the container's file system could not be mounted")

    def path(self, inside: str) -> Path:
        """Where this machine finds a file of the container."""
        return Path(f"/proc/{self.holder.pid}/root{self.folder}/root{inside}")

    def boot(self):
        """Starts systemd in the container, and waits until it has started all that is enabled."""
        binds = [f"--bind-ro={path}:{inside}" for inside, path in self.shown.items()]
        with open(self.log, "w", encoding="utf-8") as log:
            self.container = subprocess.Popen(
                ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "systemd-nspawn", "--quiet",
                 "--register=no", "--keep-unit", "--private-network", "--console=pipe", "--boot",
                 f"--directory={self.folder}/root", *binds, "systemd.unit=multi-user.target"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self.is_up, BOOT_SECONDS, "a booted container")

    def is_up(self) -> bool:
        """Whether systemd has started all that is enabled."""
        if self.container.poll() is not None:
            raise AssertionError(f"the container has ended: {self.log.read_text()}")
        state = self.run("systemctl", "is-system-running").stdout.strip()
        return state in ("running", "degraded")

    def first_process(self) -> int | None:
        """The container's systemd, by its id here; none if it does not run now."""
        try:
            children = Path(f"/proc/{self.container.pid}/task/{self.container.pid}/children")
            for child in children.read_text(encoding="utf-8").split():
                status = Path(f"/proc/{child}/status").read_text(encoding="utf-8")
                ids = next(line for line in status.splitlines() if line.startswith("NSpid:"))
                if ids.split()[-1] == "1" and len(ids.split()) > 2:
                    return int(child)
        except OSError:
            pass  # it has just ended
        return None

    def run(self, *command: str, timeout: float = 60) -> subprocess.CompletedProcess:
        """Runs a command in the booted container, in its folder /root/farstep."""
        first = self.first_process()
        if first is None:
            return subprocess.CompletedProcess(command, 1, "", "the container does not run")
        return subprocess.run(
            ["nsenter", f"--target={first}", "--mount", "--uts", "--ipc", "--net", "--pid",
             "sh", "-c", 'cd /root/farstep && exec "$@"', "sh", *command],
            capture_output=True, text=True, timeout=timeout, check=False)

    def property(self, unit: str, name: str) -> str:
        """A property of a unit, as `systemctl show` has it."""
        return self.run("systemctl", "show", "--value", "--property", name, unit).stdout.strip()

    def reboot(self):
        """Ends the container in good order, as `reboot` does, and boots it again."""
        self.run("systemctl", "reboot")
        self.container.wait(timeout=BOOT_SECONDS)  # it leaves the new start to whoever started it
        self.boot()

    def close(self):
        """Ends all of it at once."""
        if self.container is not None:
            first = self.first_process()
            if first is not None:
                os.kill(first, 9)  # the kernel ends the rest of the container with it
            self.container.wait(timeout=30)
        self.holder.stdin.close()
        self.holder.wait(timeout=30)
        self.holder.stdout.close()
