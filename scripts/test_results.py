"""What became of tests, from CTest's JUnit files: counted, and a skip without a reason is a failure.

A test that a machine cannot run says what the machine lacks. `LACKS` lists what that may be, and looks
for itself whether it is so here. All else that is skipped counts as failed.
"""

import os
import re
import socket
import subprocess
import sys
import xml.etree.ElementTree
from dataclasses import dataclass, field
from pathlib import Path

LINES_SHOWN = 40  # of a failed test's output


def succeeds(*command: str) -> bool:
    """Whether the command is there, and ends with 0."""
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except OSError:
        return False


def num_gpus() -> int:
    """The NVIDIA GPUs of which the driver knows."""
    return len(list(Path("/proc/driver/nvidia/gpus").glob("*")))


def has_flag(instructions: str) -> bool:
    """Whether the processor has the instruction set of that name, as Farstep calls it."""
    flag = {"avx512": "avx512vl", "amx": "amx_bf16"}.get(instructions, instructions)
    return re.search(rf"\b{flag}\b", Path("/proc/cpuinfo").read_text(encoding="utf-8")) is not None


def has_ipv6() -> bool:
    """Whether the loopback has an address of IPv6."""
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


def may_make_control_groups() -> bool:
    """Whether this process may make control groups with a quota of cores, of version 1 or 2."""
    version_1, version_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    if version_1.exists():
        return os.access(version_1 / "cgroup.procs", os.W_OK)
    try:
        given = (version_2 / "cgroup.subtree_control").read_text(encoding="utf-8")
    except OSError:
        return False
    return "cpu" in given.split() and os.access(version_2 / "cgroup.procs", os.W_OK)


def has_package(name: str) -> bool:
    """Whether this distribution has the package, which set-up would have installed."""
    return succeeds("apt-cache", "show", name)


def has_oracles() -> bool:
    """Whether set-up brings all Python packages that tests compare with."""
    pythons = ("python3", "python3.11", "python3.12", "python3.13")
    supported = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))"
    return (os.environ.get("FARSTEP_ORACLES") != "off"
            and any(succeeds(python, "-c", supported) for python in pythons))


def makes_recorded_tokens() -> bool:
    """Whether SentencePiece is the version by which the reference runs were recorded."""
    return succeeds("sh", "-c", "dpkg-query -W -f '${Version}' libsentencepiece-dev | grep -q '^0[.]1[.]97'")


# What a test may say that it lacks, and whether this machine has it after all.
LACKS = {
    r"no usable NVIDIA GPU": lambda _: num_gpus() > 0,
    r"fewer than two NVIDIA GPUs": lambda _: num_gpus() > 1,
    r"inner\.compute: fp8 needs a GPU of compute capability 8\.9 .*this one has [0-8]\.[0-8]": lambda _: False,
    r"this processor has no (\w+)": lambda found: has_flag(found[1]),
    r".*\bneeds? root\b": lambda _: os.geteuid() == 0,
    r"there is no /dev/net/tun": lambda _: Path("/dev/net/tun").exists(),
    r"this root may not make mount namespaces": lambda _: succeeds("unshare", "--mount", "true"),
    r"(this root may not make network|network namespaces with veth)":
        lambda _: succeeds("unshare", "--net", "ip", "link", "add", "name", "a", "type", "veth", "peer", "name", "b"),
    r"this root may not make control groups": lambda _: may_make_control_groups(),
    r"this needs two cores": lambda _: len(os.sched_getaffinity(0)) > 1,
    r"the kernel has no overlayfs": lambda _: "overlay" in Path("/proc/filesystems").read_text(encoding="utf-8"),
    r"no IPv6 loopback": lambda _: has_ipv6(),
    # Where systemd runs, set-up installs no servers.
    r"(Slurm is not here|there is no sshd)": lambda _: not Path("/run/systemd/system").exists(),
    r"this needs .* in Python": lambda _: has_oracles(),
    r"no wheels are listed for this Python": lambda _: (3, 11) <= sys.version_info < (3, 14),
    r"there is no clang-format 14": lambda _: has_package("clang-format-14"),
    r"this needs Chromium": lambda _: has_package("chromium-headless-shell"),
    r"this needs Prometheus": lambda _: has_package("prometheus"),
    r"Fashion-MNIST is not there": lambda _: has_package("dataset-fashion-mnist"),
    r"this SentencePiece makes other tokens": lambda _: makes_recorded_tokens(),
}


def lack_of(reason: str) -> str:
    """What this machine lacks, if a test may be skipped for that reason; else empty."""
    for pattern, has_it in LACKS.items():
        if (found := re.match(pattern, reason)) and not has_it(found):
            return found[0]
    return ""


@dataclass
class Results:
    """Of all tests: how many passed, each skipped one by its reason, the failures with their outputs."""

    passed: int = 0
    skipped: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, junit: Path):
        """Adds the tests of a file."""
        for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
            self.add_case(f"{junit.stem}: {case.get('name')}", case)

    def add_case(self, name: str, case: xml.etree.ElementTree.Element):
        """Adds a test."""
        output = case.findtext("system-out") or ""
        skip = case.find("skipped")
        if case.get("status") == "run":
            self.passed += 1
        elif skip is None or not skip.get("message", "").startswith("SKIP_RETURN_CODE"):
            self.failed[name] = output
        else:
            self.add_skipped(name, output)

    def add_skipped(self, name: str, output: str):
        """Adds a skipped test, which failed unless all of its reasons hold here."""
        reasons = re.findall(r"^SKIPPED: (.*)$", output, re.MULTILINE)
        wrong = [reason for reason in reasons if not lack_of(reason)]
        if reasons and not wrong:
            self.skipped.setdefault(lack_of(reasons[0]), []).append(name)
        else:
            said = wrong[0] if wrong else "no reason"
            self.failed[name] = f"{output}\nskipped, though this machine has what it takes: {said}\n"

    def print(self):
        """Prints what a reader looks for first last: outputs, names, skips by reason, the counts."""
        for name, output in self.failed.items():
            print(f"\n== {name}")
            print("\n".join(output.strip().splitlines()[-LINES_SHOWN:]))
        if self.skipped:
            print("\nSkipped, as this machine lacks what they need:")
        for reason, names in sorted(self.skipped.items()):
            print(f"{len(names):5} {reason}")
            for name in names if len(names) < 4 else []:
                print(f"        {name}")
        for name in self.failed:
            print(f"failed: {name}")
        print(f"\n{self.passed} passed, {len(self.failed)} failed", flush=True)

