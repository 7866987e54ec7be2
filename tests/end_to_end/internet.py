"""Two sites on an internet of network namespaces: Seoul has a public address, Lyon is behind a
router that translates addresses and lets nobody in.

scripts/wan_lab joins Seoul and Lyon's router, with rate, delay and loss. nftables translates in the
router. Each site has a file system view with its own settings of ssh, and Seoul runs sshd. So the
commands of a page find what they would find at two real sites. Needs root.
"""

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from cluster import wait_until
from lab import Lab
from lab import obstacle as obstacle_to_lab

PROGRAMS = ("nft", "ip", "sshd", "ssh", "ssh-keygen", "nsenter", "unshare")
SUBNET, SEOUL = "203.0.113.0", "203.0.113.1"  # the lab's first site; its second one is the router
ROUTER, LYON = "192.168.1.1", "192.168.1.2"
FIREWALL = """
table ip lyon {
  chain forward {
    type filter hook forward priority filter; policy drop;
    iifname "lan0" oifname "wan0" accept
    ct state established,related accept
  }
  chain input {
    type filter hook input priority filter; policy drop;
    ct state established,related accept
  }
  chain postrouting {
    type nat hook postrouting priority srcnat;
    oifname "wan0" masquerade
  }
}
"""
# A site's view: its ssh settings where ssh looks for them, and a /run of its own, where sshd has a
# folder. It lives until its input ends.
VIEW = """
mount --bind "$1" /etc/ssh
mount -t tmpfs farstep /run
mkdir /run/sshd
echo ready
exec cat
"""
SSHD = """
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
StrictModes no
PidFile none
ForceCommand cd {home} && exec sh -c "$SSH_ORIGINAL_COMMAND"
"""


def obstacle() -> str:
    """What this machine lacks for such an internet; empty: nothing."""
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    return obstacle_to_lab() or (f"there is no {', '.join(missing)}" if missing else "")


class Site:
    """A site's namespaces, and its home folder."""

    def __init__(self, name: str, folder: Path, enter: list[str]):
        self.name = name
        self.home = folder / name
        self.home.mkdir()
        self.ssh = folder / f"{name}-ssh"
        self.ssh.mkdir()
        self.holder = subprocess.Popen(
            [*enter, "unshare", "--mount", "--propagation", "private",
             "sh", "-ec", VIEW, "sh", self.ssh],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise AssertionError(f"{name}'s namespaces could not be made")

    def command(self, *words: object) -> list[str]:
        """The command line that runs the words at the site."""
        return ["nsenter", f"--target={self.holder.pid}", "--net", "--mount", *map(str, words)]

    def run(self, *words: object) -> str:
        """Runs a command at the site, which must succeed; returns what it printed."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode != 0:
            raise AssertionError(f"at {self.name}: {words}: {done.stdout}{done.stderr}")
        return done.stdout

    def close(self):
        """Ends the view; the namespaces go with the last process in them."""
        self.holder.stdin.close()
        self.holder.wait(timeout=10)
        self.holder.stdout.close()


class Terminal:
    """A shell at a site, which keeps its folder and variables from one block to the next."""

    def __init__(self, site: Site, folder: Path, name: str):
        self.site = site
        self.log = folder / f"{name}.txt"
        self.script = folder / f"{name}.sh"
        read, write = os.pipe()
        environment = {"HOME": str(site.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        with open(self.log, "w", encoding="utf-8") as log:
            self.shell = subprocess.Popen(
                site.command("bash", "--noprofile", "--norc"),
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                pass_fds=(write,), env=environment, cwd=site.home, process_group=0)
        os.close(write)
        self.done = open(read, encoding="utf-8")
        os.set_blocking(read, False)
        self.end = write  # as the shell knows it
        self.type("cd ~")

    def type(self, text: str):
        """Starts the commands; the first that fails ends the shell."""
        self.script.write_text(text, encoding="utf-8")
        script = shlex.quote(str(self.script))
        self.shell.stdin.write(f"set -e; . {script} </dev/null; set +e; echo >&{self.end}\n")
        self.shell.stdin.flush()

    def wait(self, seconds: float):
        """Waits until the commands have ended well."""
        def has_ended() -> bool:
            if self.done.readline():
                return True
            if self.shell.poll() is not None:
                raise AssertionError("a command failed")
            return False
        try:
            wait_until(has_ended, seconds, "the end of the commands")
        except AssertionError as failure:
            raise AssertionError(f"at {self.site.name}: {failure}:\n{self.script.read_text()}\n"
                                 f"{self.said()[-4000:]}") from failure

    def said(self) -> str:
        """All that its commands have printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def close(self):
        """Ends the shell and what it runs."""
        if self.shell.poll() is None:
            os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.stdin.close()
        self.shell.wait(timeout=10)
        self.done.close()


class Internet:
    """Seoul and Lyon; close() ends all of it. `folder` must be empty."""

    def __init__(self, folder: Path, rate: str, round_trip: str):
        self.folder = folder
        self.opened: list = []
        self.processes: list[subprocess.Popen] = []
        try:
            self.lab = self.open(Lab(folder / "lab", "--sites", "2", "--subnet", SUBNET,
                                     "--rate", rate, "--rtt", round_trip))
            holders = self.lab.holders
            self.router = ["nsenter", f"--net=/proc/{holders[1]}/ns/net"]
            self.seoul = self.open(
                Site("seoul", folder, ["nsenter", f"--net=/proc/{holders[0]}/ns/net"]))
            self.lyon = self.open(Site("lyon", folder, ["unshare", "--net"]))
            self.connect_lyon()
            self.let_in()
        except BaseException:
            self.close()
            raise

    def open(self, part):
        """Notes what close() is to close."""
        self.opened.append(part)
        return part

    def connect_lyon(self):
        """A cable from Lyon to its router, which translates Lyon's addresses to its own."""
        for command in (f"ip link add lan0 type veth peer name eth0 netns {self.lyon.holder.pid}",
                        f"ip address add {ROUTER}/24 dev lan0", "ip link set lan0 up",
                        "sysctl -q -w net.ipv4.ip_forward=1"):
            subprocess.run([*self.router, *command.split()], check=True, timeout=10)
        subprocess.run([*self.router, "nft", "-f", "-"], input=FIREWALL, text=True, check=True,
                       timeout=10)
        for command in ("ip link set lo up", f"ip address add {LYON}/24 dev eth0",
                        "ip link set eth0 up", f"ip route add default via {ROUTER}"):
            self.lyon.run(*command.split())

    def let_in(self):
        """Seoul runs sshd, which lets Lyon's user in; Lyon's user knows Seoul's key."""
        seoul, lyon = self.seoul, self.lyon
        for key in (seoul.ssh / "host_key", lyon.ssh / "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True,
                           timeout=10)
        shutil.copy(lyon.ssh / "user_key.pub", seoul.ssh / "authorized_keys")
        (lyon.ssh / "ssh_config").write_text("IdentityFile /etc/ssh/user_key\n", encoding="utf-8")
        host_key = (seoul.ssh / "host_key.pub").read_text(encoding="utf-8")
        (lyon.ssh / "ssh_known_hosts").write_text(f"{SEOUL} {host_key}", encoding="utf-8")
        (seoul.ssh / "sshd_config").write_text(SSHD.format(home=seoul.home), encoding="utf-8")
        said = self.folder / "sshd.txt"
        with open(said, "w", encoding="utf-8") as log:
            self.processes.append(
                subprocess.Popen(seoul.command(shutil.which("sshd"), "-D", "-e"), stderr=log))
        wait_until(lambda: "listening" in said.read_text(encoding="utf-8"), 10, "sshd")

    def terminal(self, site: Site, name: str) -> Terminal:
        """A new shell at the site."""
        return self.open(Terminal(site, self.folder, name))

    def dial(self, site: Site, address: str, port: int) -> bool:
        """Whether a TCP connection from the site to the address can be made."""
        words = ["timeout", "5", "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}"]
        tried = subprocess.run(site.command(*words), stderr=subprocess.DEVNULL, check=False)
        return tried.returncode == 0

    def counters(self) -> dict:
        """What passed the lab's links so far."""
        return self.lab.control("counters")

    def close(self):
        """Ends everything, the last opened first."""
        for part in reversed(self.opened):
            part.close()
        for process in reversed(self.processes):
            process.kill()
            process.wait(timeout=10)
