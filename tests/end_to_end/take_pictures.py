#!/usr/bin/env python3
"""Takes the pictures of docs/gallery.md, from the runs of scripts/quickstart.sh and a made-up one.

It needs Chromium; FARSTEP_BINARY names the program.
"""

import argparse
import select
import subprocess
import tempfile
from pathlib import Path

from browser import Browser
from cluster import FARSTEP
from made_up_run import write_run

START_SECONDS = 30
DRAWN = "document.querySelectorAll('#idle .bars, #loss .curves, #timeline svg').length === 3"


def take(browser: Browser, url: str, file: Path, size: tuple[int, int], scheme: str, scale: float = 1):
    """What a window of this size shows of a page."""
    browser.show_as(*size, scheme, scale)
    browser.open(url)
    if not url.startswith("file:"):
        browser.wait_for(DRAWN)
    browser.show_as(*size, scheme, scale)  # waits until the page has drawn
    browser.save_screenshot(file, beyond_window=False)
    print(file)


def take_report(browser: Browser, run: Path, file: Path):
    """The report of a run."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        subprocess.run([str(FARSTEP), "report", str(run), "--html", str(page)], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        take(browser, f"file://{page}", file, (1100, 1010), "light")


def take_live(browser: Browser, run: Path, *pictures: tuple):
    """The live page of a run; a picture has the last arguments of take()."""
    with subprocess.Popen([str(FARSTEP), "watch", str(run), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                          text=True) as page:
        try:
            # One line, when it listens: the address, with the port that it took.
            if not select.select([page.stdout], [], [], START_SECONDS)[0]:
                raise TimeoutError(f"farstep watch {run} has no address after {START_SECONDS} s")
            url = page.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"farstep watch {run} has ended, with exit code {page.wait(timeout=10)}")
            for picture in pictures:
                take(browser, url, *picture)
        finally:
            page.terminate()


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="the folder that scripts/quickstart.sh made")
    parser.add_argument("docs", type=Path, help="where the pictures are written")
    arguments = parser.parse_args()
    runs, docs = arguments.runs, arguments.docs
    with Browser() as browser, tempfile.TemporaryDirectory() as folder:
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        take_report(browser, runs / "uniform", docs / "gallery" / "report_uniform.png")
        take_report(browser, runs / "hybrid", docs / "report.png")
        take_live(browser, runs / "hybrid", (docs / "gallery" / "watch_dark.png", (1100, 900), "dark"),
                  (docs / "gallery" / "watch_phone.png", (390, 1000), "light"))
        write_run(Path(folder), of=40, is_live=True, has_trouble=True)
        take_live(browser, Path(folder), (docs / "watch.png", (1100, 1520), "light", 0.7))


if __name__ == "__main__":
    main()
