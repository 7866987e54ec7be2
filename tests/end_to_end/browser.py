"""A real headless Chromium, by its DevTools protocol over two pipes. Standard library only."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# A browser starts slowly where all processors have work.
ANSWER_SECONDS = 60


def find_browser() -> str | None:
    """The program; None where there is none. FARSTEP_BROWSER names another one."""
    chosen = os.environ.get("FARSTEP_BROWSER")
    return chosen or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """The process and its one page; it remembers requests, sent events and console errors."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="farstep-browser-")
        here_reads, there_writes = os.pipe()
        there_reads, here_writes = os.pipe()
        self.log = open(Path(self.profile.name) / "log.txt", "wb")
        # The protocol is at descriptors 3 and 4. The sandbox does not start in every container, and
        # the pages are this repository's own.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{there_reads} 4>&{there_writes}', "bash", find_browser(),
             "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
             "--disable-component-update", f"--user-data-dir={self.profile.name}/profile",
             "about:blank"],
            stdout=self.log, stderr=self.log, pass_fds=(there_reads, there_writes),
            start_new_session=True, env=os.environ | {"HOME": self.profile.name})
        os.close(there_reads)
        os.close(there_writes)
        self.reads, self.writes = here_reads, here_writes
        self.bytes, self.number, self.session = b"", 0, None
        self.requests: list[str] = []
        self.sent_events: list[str] = []
        self.errors: list[str] = []
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target,
                                     flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the process and all that it started."""
        os.close(self.writes)
        os.close(self.reads)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(timeout=10)
        self.log.close()
        shutil.rmtree(self.profile.name, ignore_errors=True)  # its children may still write
        self.profile.cleanup()

    def call(self, method: str, **parameters) -> dict:
        """One command of the protocol; its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            answer = self.receive(deadline)
            if answer is None:
                raise AssertionError(f"the browser does not answer {method}: {self.log_text()}")
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.remember(answer)

    def log_text(self) -> str:
        """The end of what the browser printed."""
        return Path(self.log.name).read_text(encoding="utf-8", errors="replace")[-2000:]

    def receive(self, deadline: float) -> dict | None:
        """The next message; None after the deadline."""
        while b"\0" not in self.bytes:
            if not select.select([self.reads], [], [], max(0, deadline - time.monotonic()))[0]:
                return None
            piece = os.read(self.reads, 1 << 20)
            if not piece:
                raise AssertionError(f"the browser has ended: {self.log_text()}")
            self.bytes += piece
        message, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(message)

    def remember(self, message: dict):
        """Keeps what tests ask for of an event."""
        method, content = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(content["request"]["url"])
        elif method == "Network.eventSourceMessageReceived":
            self.sent_events.append(content["data"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(content["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(content["args"]))
        elif method == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
            self.errors.append(json.dumps(content["entry"]))

    def hosts(self) -> set[str]:
        """Where the page's requests went."""
        parts = [urllib.parse.urlsplit(url) for url in self.requests]
        return {part.netloc or part.scheme for part in parts}

    def open(self, url: str):
        """Goes to an address, waits for its document, and forgets what the page before did."""
        self.requests, self.sent_events, self.errors = [], [], []
        result = self.call("Page.navigate", url=url)
        assert "errorText" not in result, f"{url}: {result['errorText']}"
        # Without a query, from which the page may turn away.
        page = json.dumps(url.partition("?")[0])
        self.wait_for(f"location.href.startsWith({page}) && document.readyState !== 'loading'")

    def run(self, script: str):
        """The value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        assert "exceptionDetails" not in result, f"{script}: {result['exceptionDetails']}"
        return result["result"].get("value")

    def wait_for(self, script: str, seconds: float = 60):
        """Waits until the expression is true; returns its value."""
        deadline = time.monotonic() + seconds
        while not (value := self.run(script)):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {script}; the page has\n"
                                     + self.run("document.body.innerText"))
            # Events of the page come meanwhile; none is no fault.
            if (message := self.receive(time.monotonic() + 0.05)) is not None:
                self.remember(message)
        return value

    def show_as(self, width: int, height: int, scheme: str, scale: float = 1):
        """Sets the window, the pictures' pixels for each of its own, and whether the reader likes
        light or dark pages."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        # Two frames: the page's own observers of its size have drawn then.
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
                 ".then(() => true)")

    def save_screenshot(self, file: Path, beyond_window: bool = True):
        """The page as PNG: the whole of it, or what the window shows."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=beyond_window)
        file.write_bytes(base64.b64decode(answer["data"]))
