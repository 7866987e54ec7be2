"""The live page in a real browser: its figures, its news, phones, light and dark, hard names.

FARSTEP_SCREENSHOTS names a folder that gets a picture of each view.
"""

import json
import math
import os
import signal
import subprocess
import unittest
from pathlib import Path

from browser import Browser, find_browser
from cluster import FARSTEP, Cluster, ClusterTest, by_event, farstep, free_port, wait_until
from made_up_run import write_run
from test_watch import LONG, state_of

VIEWS = [(width, height, scheme) for width, height in ((390, 844), (768, 1024), (1440, 900))
         for scheme in ("light", "dark")]
# What the reader sees, as text.
SHOWN = """({
  run: document.getElementById('run').textContent,
  state: document.getElementById('state').textContent,
  position: document.getElementById('position').textContent,
  figures: Object.fromEntries([...document.querySelectorAll('.figure')].map(
      (card) => [card.children[1].textContent, card.children[0].textContent])),
  sites: [...document.querySelectorAll('.site')].map((card) => Object.fromEntries([
      ['site', card.querySelector('b').textContent], ['pill', card.querySelector('.pill').textContent],
      ['where', card.querySelector('.where').textContent],
      ...[...card.querySelectorAll('dl div')].map(
          (part) => [part.children[0].textContent, part.children[1].textContent])])),
  tables: [...document.querySelectorAll('section:not([hidden]) table')].map((table) =>
      [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent))),
  validations: document.querySelectorAll('#loss .validation-point').length,
})"""
# Each text against its background, by the formula of WCAG 2; the least ratio and its text.
LEAST_CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const part = (value) => value <= 10.3 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4;
    const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (!color.startsWith('rgba')) return light(color);
    }
    return 1;
  };
  let least = [99, ''];
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const ink = light(node instanceof SVGElement ? style.fill : style.color), paper = behind(node);
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < least[0]) least = [ratio, texts.currentNode.textContent];
  }
  return least;
})()"""
# What reaches beyond the window, but for what scrolls by itself.
TOO_WIDE = """[...document.querySelectorAll('main *')].filter((node) =>
  !node.closest('.wide') && !node.closest('svg') && node.checkVisibility() &&
  node.getBoundingClientRect().right > innerWidth + 0.5).map((node) => node.outerHTML.slice(0, 200))"""
# Labels of drawings that leave them or overlap, and what of the loss's newest round is out of sight.
WRONG_DRAWINGS = """(() => {
  const wrong = [];
  const seen = (node) => node.checkVisibility({visibilityProperty: true, checkVisibilityCSS: true});
  const outermost = [...document.querySelectorAll('main svg')].filter((each) => !each.parentElement.closest('svg'));
  for (const svg of outermost) {
    const all = svg.getBoundingClientRect(), before = [];
    if (all.left < 0 || all.right > innerWidth) wrong.push(['a drawing is too wide', all.left, all.right]);
    for (const text of [...svg.querySelectorAll('text')].filter(seen)) {
      const box = text.getBoundingClientRect();
      // Boxes are higher than letters.
      if (box.left < all.left - 0.5 || box.right > all.right + 0.5 || box.top < all.top - 2 ||
          box.bottom > all.bottom + 2) wrong.push([text.textContent, 'leaves its drawing', svg.outerHTML.slice(0, 99)]);
      for (const [other, name] of before) {
        const isBeside = box.left >= other.right || other.left >= box.right;
        const isBelow = box.top >= other.bottom - 2 || other.top >= box.bottom - 2;
        if (!isBeside && !isBelow) wrong.push([text.textContent, 'overlaps', name]);
      }
      before.push([box, text.textContent]);
    }
  }
  for (const name of document.querySelectorAll('.rows .lane-name')) {
    const box = name.getBoundingClientRect();
    if (box.left < 0 || box.right > innerWidth) wrong.push([name.title, 'is out of sight']);
  }
  const newest = [...document.querySelectorAll('.curves')].flatMap((chart) =>
    [...[...chart.querySelectorAll('.validation-point')].slice(-1), ...chart.querySelectorAll('.curve')]);
  for (const node of newest) {
    const box = node.getBoundingClientRect();
    if (box.left < 0 || box.right > innerWidth) wrong.push([node.getAttribute('class'), 'is out of sight', box.right]);
  }
  for (const node of document.querySelectorAll('main *')) {
    if (!node.querySelector(':scope > svg')) continue;
    if (node.scrollWidth > node.clientWidth) wrong.push(['hides a part', node.className]);
  }
  return wrong;
})()"""


# The curves of a chart as their points, in pixels.
CURVES = """(id) => [...document.querySelectorAll(`#${id} path.curve:not(.raw)`)].map((path) =>
  path.getAttribute('d').slice(1).replaceAll('h0', '').split(/[ML]/).map((point) => point.split(' ').map(Number)))"""
# Sets a control as a reader does.
SET = """(name, value) => {
  const input = document.querySelector(`[name=${name}]`);
  if (input.type === 'checkbox') input.checked = value; else input.value = value;
  input.dispatchEvent(new Event('input'));
}"""
# The settings of a table by their names.
SETTINGS = """(place) => Object.fromEntries([...document.querySelectorAll(`${place} tbody tr`)].map(
  (row) => [row.cells[0].textContent, row.cells[1].textContent]))"""
CHARTS = ("loss", "learning_rate", "gradient_norm", "tokens_per_second")


class Page(ClusterTest):
    """What a reader sees is what the report says, on every screen."""

    def setUp(self):
        super().setUp()
        if not find_browser():
            self.skipTest("this needs Chromium")
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def watch(self, *arguments: object) -> str:
        """Starts `farstep watch` on a free port; returns the address."""
        address = f"127.0.0.1:{free_port()}"
        self.processes.append(subprocess.Popen(
            [str(FARSTEP), "watch", *map(str, arguments), "--listen", address],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return address

    def check_clean(self, address: str):
        """No error, and nothing from elsewhere."""
        self.assertEqual(self.browser.errors, [])
        self.assertEqual(self.browser.hosts(), {address})

    def check_views(self, name: str, least_points: int = 0, timeline: bool = True):
        """The page fits, and can be read, on a phone, a tablet and a desk, in light and dark."""
        self.assertGreaterEqual(self.browser.run("document.querySelectorAll('.validation-point').length"),
                                least_points)
        papers = {}
        for width, height, scheme in VIEWS:
            with self.subTest(width=width, scheme=scheme):
                self.browser.show_as(width, height, scheme)
                drawing = "#timeline svg" if timeline else "#loss svg"
                self.browser.wait_for(f"(document.querySelector('{drawing}')?.width.baseVal.value ?? 0) < {width}")
                self.assertEqual(self.browser.run("innerWidth"), width)
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                self.assertEqual(self.browser.run(TOO_WIDE), [])
                self.assertEqual(self.browser.run(WRONG_DRAWINGS), [])
                ratio, text = self.browser.run(LEAST_CONTRAST)
                self.assertGreaterEqual(ratio, 4.5, text)  # WCAG 2, level AA
                papers[scheme] = self.browser.run("getComputedStyle(document.body).backgroundColor")
                if folder := os.environ.get("FARSTEP_SCREENSHOTS"):
                    Path(folder).mkdir(parents=True, exist_ok=True)
                    self.browser.save_screenshot(Path(folder) / f"{name}-{width}-{scheme}.png")
        self.assertNotEqual(papers["light"], papers["dark"])

    def check_figures(self, folder: Path):
        """The texts on the page are the report's figures, rounded as the page rounds."""
        result = farstep("report", folder, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.browser.wait_for("document.getElementById('state').textContent === 'finished'")
        self.browser.wait_for("document.querySelectorAll('#loss .validation-point').length === "
                              f"{len(report['validations'])}")
        shown = self.browser.run(SHOWN)
        rounds = report["rounds"]
        self.assertEqual(shown["position"], f"{rounds} of {rounds} rounds at {len(report['sites'])} sites")
        sites, figures = report["sites"], shown["figures"]
        idle = [site["wait_seconds"] + site["wan_seconds"] + site["other_seconds"] for site in sites]
        whole = sum(idle) + sum(site["compute_seconds"] for site in sites)
        self.assertEqual(figures["idle device time"], f"{100 * sum(idle) / whole:.1f} %")
        self.assertEqual(figures["waiting for peers"],
                         f"{100 * sum(site['wait_seconds'] for site in sites) / whole:.1f} %")
        self.assertEqual(figures["validation loss"], f"{report['final_loss']:.3f}")
        amount, unit = figures["sent over the WAN"].split(" ")
        scale = {"B": 1, "kB": 1e3, "MB": 1e6}[unit]
        self.assertAlmostEqual(float(amount) * scale / report["wan_bytes_sent"], 1, delta=0.01)
        for card, site in zip(shown["sites"], sites, strict=True):
            self.assertEqual(card["site"], site["site"])
            self.assertEqual(card["pill"], site["outcome"])
            self.assertEqual(card["idle"], f"{100 * site['idle_fraction']:.1f} %")
            self.assertEqual(card["where"], f"round {rounds}/{rounds}")
        self.assertEqual(len(report["validations"]), shown["validations"])

    def test_the_page_follows_a_run_and_ends_with_the_figures_of_its_report(self):
        """One page is in a process of the run, another one is of its folder, from before its begin."""
        cluster = Cluster(self.folder, 2, {"outer": {"rounds": 60}, "evaluate": {"every_rounds": 20}})
        beside = self.watch(cluster.output)
        wait_until(lambda: state_of(beside), 120, "the page of the folder")
        self.browser.open(f"http://{beside}/")
        self.browser.wait_for(
            "document.getElementById('state').textContent === 'waiting for the first record'")
        launcher = subprocess.Popen([str(FARSTEP), "launch", str(cluster.folder)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(launcher)
        self.browser.run("globalThis.isSamePage = true")
        self.browser.wait_for("document.querySelectorAll('.site').length === 2")
        self.assertEqual(launcher.wait(timeout=300), 0)
        self.check_figures(cluster.output)
        settings = self.browser.wait_for(f"({SETTINGS})('#settings-section > .wide')")
        self.assertEqual(settings["outer.rounds"], "60")
        self.assertEqual(settings["evaluate.every_rounds"], "20")
        self.assertEqual(self.browser.run(f"({SETTINGS})('#settings-section details')")["sync.outliers"], "leave_out")
        # Its news came by the stream, without a new request for the page: nothing yet, and then the run.
        self.assertTrue(self.browser.run("globalThis.isSamePage"))
        versions = [json.loads(state)["version"] for state in self.browser.sent_events]
        self.assertEqual(versions, sorted(versions))
        self.assertGreater(versions[-1], versions[0])
        self.assertEqual(self.browser.requests.count(f"http://{beside}/"), 1)
        self.assertEqual(self.browser.requests.count(f"http://{beside}/api/events"), 1)
        self.check_clean(beside)
        self.check_views("finished", least_points=3)
        self.check_clean(beside)

    def test_the_page_in_a_process_of_a_run_is_live_and_says_when_it_has_gone(self):
        """By --watch, with a token; the wrong one shows nothing of the run."""
        cluster = Cluster(self.folder, 1, LONG)
        token = self.folder / "token"
        token.write_text("0123456789abcdef\n")
        address = f"127.0.0.1:{free_port()}"
        site = cluster.start("node1", "--watch", address, "--token-file", str(token))
        self.processes.append(site)
        wait_until(lambda: by_event(cluster, "node1", "round"), 120, "a round")
        for path in ("", "?token=fedcba9876543210"):
            self.browser.open(f"http://{address}/{path}")
            self.browser.wait_for("document.body?.innerText.includes('This page needs its token')")
            self.assertNotIn("node1", self.browser.run("document.body.innerText"))
        self.browser.open(f"http://{address}/?token=0123456789abcdef")
        self.browser.wait_for("document.getElementById('state')?.textContent === 'live'")
        self.assertEqual(self.browser.run("location.href"), f"http://{address}/")
        position = "document.getElementById('position').textContent"
        for _ in range(3):
            before = json.dumps(self.browser.run(position))
            self.browser.wait_for(f"{position} !== {before}")
        self.browser.wait_for("document.querySelectorAll('#timeline svg path').length > 0")
        self.check_views("live")
        self.check_clean(address)
        site.send_signal(signal.SIGINT)
        self.assertEqual(site.wait(timeout=120), 130, cluster.log("node1"))
        self.browser.wait_for("document.getElementById('state').textContent === 'no connection'")

    def test_the_page_names_the_site_whose_file_cannot_be_read(self):
        """Beside the cards of the others, until the file is mended."""
        cluster = Cluster(self.folder, 2)
        self.assert_success(cluster.launch())
        file = cluster.output / "node2" / "events.jsonl"
        text = file.read_text(encoding="utf-8")
        file.write_text("{}\n", encoding="utf-8")
        address = self.watch(cluster.output)
        wait_until(lambda: (state_of(address) or {}).get("run"), 120, "the run on the page")
        self.browser.open(f"http://{address}/")
        alarms = "[...document.querySelectorAll('#alarms li')].map((line) => line.textContent)"
        self.browser.wait_for("document.querySelectorAll('#alarms li').length === 1")
        [told] = self.browser.run(alarms)
        self.assertTrue(told.startswith("the records of node2 cannot be read"), told)
        self.assertIn(str(file), told)
        self.assertEqual([card["site"] for card in self.browser.run(SHOWN)["sites"]], ["node1"])
        self.check_views("unreadable")
        file.write_text(text, encoding="utf-8")
        self.browser.wait_for("document.querySelectorAll('.site').length === 2")
        self.assertEqual(self.browser.run(alarms), [])
        self.check_figures(cluster.output)
        self.check_clean(address)

    def test_names_and_messages_of_a_run_stay_text_and_fit(self):
        """Another site chose them; markup in them does nothing, however long they are."""
        cluster = Cluster(self.folder, 2)
        self.assert_success(cluster.launch())
        names = {"node1": "<img src=/x onerror=\"document.title='hit'\">&amp;'",
                 "node2": "W" * 60}
        message = "</script><script>document.title='hit'</script>" + "M" * 300
        hard = self.folder / "hard"
        for name in cluster.names:
            text = (cluster.output / name / "events.jsonl").read_text(encoding="utf-8")
            records = [json.loads(line) for line in text.splitlines()]
            (hard / name).mkdir(parents=True)
            with open(hard / name / "events.jsonl", "w", encoding="utf-8") as out:
                for record in records:
                    record["site"] = names[name]
                    for key in ("sites", "members"):
                        if key in record:
                            record[key] = [names[one] for one in record[key]]
                    if record.get("peer"):
                        record["peer"] = names[record["peer"]]
                    if record["event"] == "run":
                        record["run"] = "<b>run</b>" + "R" * 200
                        record["devices"] = ["<i>cpu</i>" + "D" * 200]
                        record["settings"] = ["<b>s</b>" + "S" * 90 + "=<b>v</b>" + "V" * 600]
                    if record["event"] == "end":
                        record |= {"outcome": "failed", "message": message}
                    if record["event"] == "plan":
                        record["reason"] = message
                    out.write(json.dumps(record) + "\n")
        address = self.watch(hard)
        wait_until(lambda: (state_of(address) or {}).get("run"), 120, "the run on the page")
        self.browser.open(f"http://{address}/")
        self.browser.wait_for("document.querySelectorAll('.site').length === 2")
        self.browser.wait_for("document.querySelectorAll('#idle .bars, #loss .curves').length === 2")
        self.browser.wait_for("document.querySelectorAll('#settings-section tr').length > 2")
        shown = self.browser.run(SHOWN)
        self.assertEqual({card["site"] for card in shown["sites"]}, set(names.values()))
        self.assertEqual(self.browser.run("document.querySelectorAll('img, main script, main b b').length"), 0)
        self.check_views("hard")
        self.assertNotIn("hit", self.browser.run("document.title"))
        self.assertNotIn(f"http://{address}/x", self.browser.requests)
        self.check_clean(address)
        self.check_report(hard, "hard-report")
        self.assertNotIn("hit", self.browser.run("document.title"))

    def check_charts(self):
        """Smoothing has TensorBoard's formula, the log axis the logarithm, and the pointer shows values."""
        for name in CHARTS:
            self.browser.wait_for(f"document.querySelectorAll('#{name} .curve').length > 0")
        [plain, *_] = self.browser.run(f"({CURVES})('gradient_norm')")
        self.browser.run(f"({SET})('smoothing', 0.8)")
        [smooth, *_] = self.browser.run(f"({CURVES})('gradient_norm')")
        raw = self.browser.run(f"({CURVES.replace(':not(.raw)', '.raw')})('gradient_norm')")[0]
        self.assertEqual(plain, raw)  # of the same scale
        total = weights = 0.0
        for (_, above), (_, level) in zip(plain, smooth, strict=True):
            total, weights = 0.8 * total + above, 0.8 * weights + 1
            self.assertAlmostEqual(level, total / weights, delta=0.2)
        self.browser.run(f"({SET})('smoothing', 0)")
        self.browser.run(f"({SET})('log', true)")
        ticks = self.browser.run("[...document.querySelectorAll('#loss text[text-anchor=end]')].map((text) =>"
                                 " [Number(text.textContent), Number(text.getAttribute('y'))])")
        (first, low), *others, (last, high) = ticks
        self.assertTrue(others)
        for value, level in others:
            share = math.log(value / first) / math.log(last / first)
            self.assertAlmostEqual((level - low) / (high - low), share, delta=1e-3)
        self.browser.run(f"({SET})('log', false)")
        self.browser.run("document.getElementById('loss').scrollIntoView({block: 'center', behavior: 'instant'})")
        x, y = self.browser.run("(() => { const box = document.querySelector('#loss svg').getBoundingClientRect();"
                                " return [box.left + 0.7 * box.width, box.top + 50]; })()")
        self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        values = self.browser.wait_for("[...document.querySelectorAll('#loss .values:not([hidden]) p')]"
                                       ".map((row) => row.textContent)")
        self.assertRegex(values[0], r"^[\d.]+ rounds$")
        self.assertEqual(len(values) - 1, self.browser.run("document.querySelectorAll('#loss .curve').length"))
        for row in values[1:]:
            self.assertRegex(row, r" [\d.]+$")
        self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        self.browser.wait_for("document.querySelectorAll('#loss .values:not([hidden])').length === 0")

    def test_curves_can_be_smoothed_read_and_compared(self):
        """On the live page, and on one page for two runs that takes nothing from a network."""
        folders = [self.folder / name for name in ("first", "second")]
        for place, folder in enumerate(folders):
            write_run(folder, 2 + place, 12, of=12)
        address = self.watch(folders[0])
        wait_until(lambda: (state_of(address) or {}).get("run"), 120, "the run on the page")
        self.browser.open(f"http://{address}/")
        self.check_charts()
        self.check_clean(address)

        page = self.folder / "runs.html"
        result = farstep("report", *folders, "--html", page)
        self.assertEqual(result.returncode, 0, result.stderr)
        for folder in folders:  # both runs have one name
            self.assertIn(f"made-up ({folder.name})", result.stdout)
        self.browser.open(f"file://{page}")
        self.check_charts()
        self.assertEqual(self.browser.run("document.querySelectorAll('#loss .curve').length"), 4)
        # They take as many tokens a round at each site, of which one has 2 and the other 3.
        self.browser.run(f"({SET})('axis', 'tokens')")
        left = self.browser.run("Number(document.querySelector('#learning_rate .grid').getAttribute('x1'))")
        (*_, (less, _)), (*_, (more, _)) = self.browser.run(f"({CURVES})('learning_rate')")
        self.assertAlmostEqual((less - left) / (more - left), 2 / 3, delta=0.005)
        # The time of each run is that of its slowest site.
        self.browser.run(f"({SET})('axis', 'time')")
        reports = [json.loads(farstep("report", folder, "--json").stdout) for folder in folders]
        times = [max(site["wall_seconds"] for site in report["sites"]) for report in reports]
        ends = [curve[-1][0] - left for curve in self.browser.run(f"({CURVES})('learning_rate')")]
        self.assertAlmostEqual(ends[0] / ends[1], times[0] / times[1], delta=0.01)
        units = "[...document.querySelectorAll('#learning_rate text')].pop().textContent"
        self.assertEqual(self.browser.run(units), "minutes")
        self.browser.run(f"({SET})('axis', 'rounds')")
        names = self.browser.run("[...document.querySelectorAll('.legend li')].map((each) => each.textContent)")
        self.assertEqual(names, [f"made-up ({folder.name})" for folder in folders])
        last = "main > section:last-of-type"
        self.assertEqual(self.browser.run(f"document.querySelector('{last} h2').textContent"), "Settings that differ")
        self.assertEqual(list(self.browser.run(f"({SETTINGS})('{last}')")), ["sites"])
        self.check_views("compared", least_points=2, timeline=False)
        self.check_clean("file")
        # A file that cannot be read takes its site alone out of the run, and both outputs say so.
        (folders[1] / "seoul" / "events.jsonl").write_text("{}\n", encoding="utf-8")
        result = farstep("report", *folders, "--html", page)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"made-up \(second\) +2 of 3 ")
        self.assertIn("seoul is in no figure", result.stderr)
        self.browser.open(f"file://{page}")
        told = self.browser.wait_for("document.querySelector('main > section:last-of-type')?.textContent")
        self.assertIn("Left out", told)
        self.assertIn("made-up (second): ", told)
        self.assertIn("seoul", told)
        refused = farstep("report", folders[0], f"{folders[0]}/")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("is given twice", refused.stderr)
        refused = farstep("report", *folders, "--csv", self.folder / "figures.csv")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("are about one run", refused.stderr)

    def check_report(self, folder: Path, name: str, least_points: int = 0):
        """The report of a folder fits every screen too."""
        page = self.folder / f"{name}.html"
        result = farstep("report", folder, "--html", page)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.browser.open("about:blank")  # the last requests of the page before are none of the report's
        self.browser.open(f"file://{page}")
        self.check_views(name, least_points)
        self.check_clean("file")

    def test_both_pages_fit_every_screen_for_runs_of_any_size(self):
        """Up to 12 sites and 1000 rounds, long names, a site that is gone, a slow link."""
        for sites, rounds in ((1, 3), (4, 40), (12, 40), (2, 1000)):
            with self.subTest(sites=sites, rounds=rounds):
                folder = self.folder / f"run-{sites}-{rounds}"
                # Sites that wait raise no alarm, however long the browser takes.
                names = write_run(folder, sites, rounds, of=2 * rounds, is_live=True, has_trouble=sites > 1,
                                  is_waiting=True)
                address = self.watch(folder)
                wait_until(lambda: (state_of(address) or {}).get("run"), 120, "the run on the page")
                self.browser.open(f"http://{address}/")
                self.browser.wait_for("document.querySelectorAll('#timeline .lane').length > 0")
                self.browser.wait_for("document.querySelectorAll('#idle .bars, #loss .curves').length === 2")
                shown = self.browser.run(SHOWN)
                self.assertEqual([card["site"] for card in shown["sites"]], names)
                gone = [card["site"] for card in shown["sites"] if card["pill"] == "gone"]
                self.assertEqual(gone, names[-1:] if sites > 1 else [])
                self.assertEqual(self.browser.run("document.querySelectorAll('#alarms li').length"),
                                 min(sites - 1, 2))  # two sites have no link that is left
                self.check_views(f"live-{sites}-{rounds}", least_points=3)
                self.check_clean(address)
                self.check_report(folder, f"report-{sites}-{rounds}", least_points=3)


if __name__ == "__main__":
    unittest.main()
