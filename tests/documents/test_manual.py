"""What `farstep manual` writes: man pages that groff takes without a warning and that miss no option,
and completion that real shells load and use."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

FARSTEP = os.environ["FARSTEP_BINARY"]
BASH_HARNESS = """
source "$SCRIPT"
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_farstep
printf '%s\\n' "${COMPREPLY[@]}"
"""
# Types a line and a tab into a zsh of its own, in which a list of matches stands in place of the menu.
ZSH_HARNESS = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT='READY>'; fpath=($FOLDER \$fpath); autoload -Uz compinit; compinit -D"
zpty -w shell "zstyle ':completion:*' insert-tab false; LISTMAX=1000; bindkey '^I' list-choices; stty -echo; print DO''NE"
zpty -r -m shell out '*DONE*READY>*'
zpty -n -w shell "$LINE"$'\t'
zpty -n -w shell $'\x15'"print EN''D"$'\n'
zpty -r -m shell out '*END*'
print -r -- "$out"
zpty -d shell
"""


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    """Runs a command to its end, with a deadline."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


def farstep(*arguments: str) -> str:
    """What a farstep command prints."""
    result = run([FARSTEP, *arguments])
    assert result.returncode == 0, result.stderr
    return result.stdout


def commands() -> list[str]:
    """The names of all commands, as the help lists them."""
    listed = farstep("--help").split("Commands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z]+)", listed, re.MULTILINE)


def options_of(command: str) -> list[str]:
    """The long options of a command, as its own help lists them."""
    listed = farstep(command, "--help").split("\nOptions:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (?:-h,)?(--[a-z-]+)", listed, re.MULTILINE)


class Manual(unittest.TestCase):
    """One folder of pages and scripts for all tests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="farstep-manual-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        farstep("manual", "--output", str(cls.folder))
        cls.bash = cls.folder / "bash-completion/completions/farstep"

    def require(self, program: str):
        """Skips a test where there is no such program."""
        if shutil.which(program) is None:
            self.skipTest(f"there is no {program}")

    def page(self, name: str) -> str:
        """A man page as plain text, without hyphenation."""
        rendered = run(["groff", "-man", "-Tascii", "-P-cbou", "-rLL=200n", "-rHY=0",
                        self.folder / name])
        self.assertEqual(rendered.returncode, 0, rendered.stderr)
        return rendered.stdout

    def complete(self, *words: str, cwd: Path | None = None) -> list[str]:
        """What bash offers for the last of the words."""
        result = run(["bash", "--norc", "-c", BASH_HARNESS, "bash", *words], cwd=cwd,
                     env=os.environ | {"SCRIPT": str(self.bash)})
        self.assertEqual(result.stderr, "")
        return [line for line in result.stdout.split("\n") if line]

    def test_groff_takes_every_page_without_a_warning(self):
        """All warnings are asked for."""
        self.require("groff")
        pages = sorted(self.folder.glob("man/man?/*"))
        self.assertEqual(len(pages), len(commands()) + 1 + 5)
        for page in pages:
            with self.subTest(page=page.name):
                result = run(["groff", "-ww", "-man", "-Tutf8", "-z", str(page)])
                self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_man_finds_the_pages(self):
        """By name and section, with all warnings too."""
        self.require("man")
        environment = os.environ | {"MANPATH": str(self.folder / "man"), "MANPAGER": "cat"}
        for section, name in (("1", "farstep"), ("1", "farstep-coordinator"),
                              ("5", "farstep-coordinator"), ("5", "farstep-events")):
            with self.subTest(page=name, section=section):
                result = run(["man", "--warnings", section, name], env=environment)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn(f"{name.upper()}({section})", result.stdout)

    def test_every_option_is_in_its_page(self):
        """And every command in the program's."""
        self.require("groff")
        program = self.page("man/man1/farstep.1")
        for command in commands():
            self.assertIn(f"farstep-{command}(1)", program)
            page = self.page(f"man/man1/farstep-{command}.1")
            for option in options_of(command):
                with self.subTest(command=command, option=option):
                    self.assertRegex(page, rf"(?m)^ +(-h, )?{option}\b")

    def test_every_config_field_is_in_a_page(self):
        """As the generated reference lists them."""
        self.require("groff")
        reference = Path("docs/reference/config.md").read_text(encoding="utf-8")
        pages = "".join(self.page(f"man/man5/farstep-{name}.5")
                        for name in ("site", "run", "coordinator", "scenario"))
        fields = re.findall(r"^\| `([^`]+)` \|", reference, re.MULTILINE)
        self.assertGreater(len(fields), 100)
        for field in fields:
            self.assertIn(f" {field} (", pages)

    def test_bash_knows_the_completion(self):
        """In a shell that has read the script."""
        result = run(["bash", "--norc", "-c", f"source '{self.bash}' && complete -p farstep"])
        self.assertEqual((result.stdout, result.stderr), ("complete -F _farstep farstep\n", ""))

    def test_bash_offers_commands_options_and_values(self):
        """Of each kind, also after an equals sign, which bash takes as a word of its own."""
        self.assertEqual(set(self.complete("farstep", "")), {*commands(), "--help", "--version"})
        self.assertEqual(self.complete("farstep", "ev"), ["evaluate"])
        for command in commands():
            self.assertEqual(sorted(self.complete("farstep", command, "--")), sorted(options_of(command)))
        self.assertEqual(self.complete("farstep", "plan", "--policy", "batch_by"),
                         ["batch_by_tflops", "batch_by_memory"])
        self.assertEqual(self.complete("farstep", "generate", "x", "--device", ""), ["cpu", "cuda"])
        self.assertEqual(self.complete("farstep", "train", "--resume", "=", "a"), ["always", "auto"])
        self.assertEqual(self.complete("farstep", "train", "--resume", "="), ["never", "always", "auto"])
        self.assertEqual(self.complete("farstep", "generate", "x", "--seed", ""), [])
        self.assertIn("--rounds", self.complete("farstep", "init", ""))

    def test_bash_offers_settings(self):
        """First paths, then what the path can be; of a coordinator its own."""
        self.assertEqual(self.complete("farstep", "train", "--set", "run.plan.pol"), ["run.plan.policy="])
        self.assertEqual(self.complete("farstep", "launch", "f", "--set", "run.plan.policy", "=", "hy"),
                         ["hybrid"])
        self.assertEqual(self.complete("farstep", "train", "--set", "run.plan.policy", "=")[0], "uniform")
        self.assertEqual(self.complete("farstep", "train", "--set", "pin", "="), ["true", "false"])
        self.assertIn("run.outer.rounds=", self.complete("farstep", "coordinator", "--set", ""))
        self.assertIn("journal=", self.complete("farstep", "coordinator", "--set", ""))
        self.assertNotIn("journal=", self.complete("farstep", "train", "--set", ""))

    def test_bash_offers_files_and_folders(self):
        """Folders alone where a folder is wanted, and names with spaces whole."""
        place = self.folder / "place"
        (place / "my runs").mkdir(parents=True)
        (place / "site.json").write_text("{}")
        (place / "two.json").write_text("{}")
        self.assertEqual(self.complete("farstep", "report", "", cwd=place), ["my runs"])
        self.assertEqual(sorted(self.complete("farstep", "train", "", cwd=place)),
                         ["my runs", "site.json", "two.json"])
        self.assertEqual(self.complete("farstep", "check", "si", cwd=place), ["site.json"])
        self.assertEqual(self.complete("farstep", "plan", "--profiles", "site.json", "tw", cwd=place),
                         ["two.json"])
        self.assertEqual(self.complete("farstep", "launch", "--set", "a", "=", "b", "my", cwd=place),
                         ["my runs"])

    def zsh(self, line: str) -> str:
        """What zsh shows for a line and a tab."""
        result = run(["zsh", "-f", "-c", ZSH_HARNESS],
                     env=os.environ | {"FOLDER": str(self.folder / "zsh/site-functions"), "LINE": line,
                                       "TERM": "dumb", "COLUMNS": "200"})
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_zsh_offers_the_same(self):
        """In a real zsh at a pseudo-terminal."""
        self.require("zsh")
        listed = self.zsh("farstep ")
        for command in commands():
            self.assertIn(command, listed)
        options = self.zsh("farstep train --")
        for option in options_of("train"):
            self.assertIn(option, options)
        self.assertIn("batch_by_memory", self.zsh("farstep plan --policy "))
        self.assertIn("run.plan.policy", self.zsh("farstep train --set run.plan."))
        self.assertIn("hybrid", self.zsh("farstep train --set run.plan.policy="))

    def test_fish_takes_the_script(self):
        """And offers commands and values."""
        self.require("fish")
        script = self.folder / "fish/vendor_completions.d/farstep.fish"
        for line, offered in (("farstep ev", "evaluate"), ("farstep plan --policy hy", "hybrid"),
                              ("farstep train --res", "--resume")):
            result = run(["fish", "--no-config", "-c", f"source {script}; complete --do-complete '{line}'"])
            self.assertEqual(result.stderr, "")
            self.assertIn(offered, result.stdout)


if __name__ == "__main__":
    unittest.main()
