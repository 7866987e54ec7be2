#!/usr/bin/env python3
"""Writes the records of a made-up run, for looking at its pages: any number of sites and rounds.

    made_up_run.py FOLDER [--sites 4] [--rounds 16] [--of 40] [--now [--waiting]] [--trouble]

The run ends after its rounds; with --now it goes on, and its last record is of this moment: in the middle of the next
round, or with --waiting at its end, where the sites may wait for any time without an alarm. With --trouble the
last site is lost after half of the rounds, and the link of the second one becomes slow. The second site has a long
name.
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

NAMES = ("oslo", "lyon-university-gpu-cluster-02", "seoul", "boston")
STEPS = 12
TOKENS = 4 * 1024
START = 1_700_000_000


class Site:
    """Collects records of one site; its clock is the coordinator's."""

    def __init__(self, folder: Path, names: list[str], index: int, rounds: int, start: float):
        self.name, self.now = names[index], start
        self.file, self.records = folder / self.name / "events.jsonl", []
        self.step_seconds = 0.2 + 0.05 * (index * 7 % 5)
        self.random = random.Random(index)
        self.add("run", version="0", run="made-up", site_id=index, sites=names, devices=["NVIDIA GeForce RTX 2080 Ti"],
                 parameters=7_300_000, sequence_length=1024, unit="tokens", rounds=rounds, generation=0, start_round=0,
                 start_step=0, start_fragments=0, trains=True, reads_data=True, clock_offset_seconds=0,
                 settings=["name=made-up", f"sites={json.dumps([{'name': name} for name in names])}",
                           "inner.peak_learning_rate=0.0004", f"outer.rounds={rounds}"],
                 default_settings=["seed=1", "outer.learning_rate=0.7", "sync.codec=int8"])

    def add(self, event: str, **fields: object):
        """Adds a record of the present moment."""
        self.records.append({"event": event, "time": self.now, "site": self.name} | fields)

    def write(self, later_seconds: float = 0):
        """Writes all records, each so much later."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with open(self.file, "w", encoding="utf-8") as file:
            for record in self.records:
                times = {field: record[field] + later_seconds for field in ("time", "start") if field in record}
                file.write(json.dumps(record | times) + "\n")

    def span(self, cause: str, number: int, seconds: float):
        """Lets time pass without training."""
        start, self.now = self.now, self.now + seconds
        self.add("span", cause=cause, round=number, start=start, seconds=seconds)

    def train(self, number: int, steps: int, rounds: int) -> float:
        """The steps of a round; their mean loss."""
        self.add("plan", round=number, local_steps=STEPS, batch=4, micro_batch=4, step_seconds=self.step_seconds,
                 idle_seconds=0.1, reason=f"{self.step_seconds:.2f} s a step, measured in the run: {STEPS} steps of 4")
        losses = []
        for step in range(1, steps + 1):
            start, self.now = self.now + 0.004, self.now + 0.004 + self.step_seconds
            losses.append(loss_after(number - 1 + step / STEPS, rounds) + self.random.gauss(0, 0.12))
            self.add("step", round=number, step=step, start=start, seconds=self.step_seconds, data_seconds=0.004,
                     loss=losses[-1], gradient_norm=0.6 + 0.3 * self.random.random(),
                     learning_rate=rate_after(number - 1 + step / STEPS, rounds), tokens=TOKENS, device_seconds=[])
        return sum(losses) / len(losses)

    def sync(self, number: int, end: float, loss: float, is_slow: bool, peers: list[str]):
        """Waits until `end`, and averages with the peers; `is_slow`: the link to the first of them is."""
        wait, wan = end - self.now, 0.9 if is_slow else 0.45
        self.span("wait", number, wait)
        self.span("wan", number, wan)
        self.span("outer", number, 0.08)
        sent = 29_000_000
        self.add("sync", round=number, fragment=0, wait_seconds=wait, wan_seconds=wan, exposed_wait_seconds=wait,
                 exposed_wan_seconds=wan, bytes_sent=sent)
        self.add("round", round=number, generation=0, local_steps=STEPS, batch=4, micro_batch=4, tokens=STEPS * TOKENS,
                 averaging_weight=0.25, theta_hash=f"{number:016x}", wan_bytes_sent=sent, wan_bytes_received=sent,
                 socket_bytes_sent=sent, socket_bytes_received=sent, train_loss=loss, gradient_squared_norm=None,
                 gradient_variance=None, noise_scale=None)
        for peer in [*peers, None]:
            self.add("link", round=number, peer=peer, bytes_sent=sent, bytes_received=sent, socket_bytes_sent=sent,
                     retransmitted_bytes=1000, sending_seconds=wan, bits_per_second=2e7 if is_slow and peer == peers[0] else 8e7,
                     rtt_seconds=0.08)

    def validate(self, number: int, rounds: int):
        """Its share of a validation."""
        self.span("evaluate", number, 0.2)
        self.add("evaluation", round=number, loss_sum=1000 * loss_after(number, rounds), tokens=1000, hits=None)


def loss_after(rounds_done: float, rounds: int) -> float:
    """A loss that falls."""
    return 3.2 + 4.4 * math.exp(-4 * rounds_done / rounds)


def rate_after(rounds_done: float, rounds: int) -> float:
    """A learning rate that rises, then falls along a cosine."""
    done = rounds_done / rounds
    return 4e-4 * (done / 0.1 if done < 0.1 else 0.55 + 0.45 * math.cos(math.pi * (done - 0.1) / 0.9))


def write_run(folder: Path, sites: int = 4, rounds: int = 16, of: int | None = None, is_live: bool = False,
              has_trouble: bool = False, is_waiting: bool = False) -> list[str]:
    """Writes FOLDER/<site>/events.jsonl; returns the sites' names. `of` is the number of all rounds."""
    names = [*NAMES, *(f"node{number}" for number in range(5, sites + 1))][:sites]
    of = of or rounds
    all_sites = [Site(folder, names, index, of, START) for index in range(sites)]
    there = all_sites
    for number in range(1, rounds + 1):
        if has_trouble and sites > 1 and number == rounds // 2 + 1:
            *there, lost = all_sites
            lost.train(number, STEPS // 2, of)
            for site in there:
                site.add("view", round=number, generation=1, members=[each.name for each in there], lost=lost.name,
                         joined=None, reason="no sign of life for 30 s")
        losses = [site.train(number, STEPS, of) for site in there]
        end = max(site.now for site in there)
        for index, (site, loss) in enumerate(zip(there, losses)):
            peers = [each.name for each in there if each is not site][:3]
            site.sync(number, end, loss, has_trouble and index == 1 and number == rounds, peers)
        # A slow link holds up all.
        end = max(site.now for site in there)
        for site in there:
            if site.now < end:
                site.span("wan", number, end - site.now)
            if number % max(1, rounds // 10) == 0:
                site.validate(number, of)
    for site in there:
        if is_live:
            site.train(rounds + 1, STEPS if is_waiting else STEPS // 2, of)
        else:
            site.add("end", outcome="done", message="")
    # Of all sites by the same time, so that they stay in step.
    later_seconds = time.time() - max(site.now for site in all_sites) if is_live else 0
    for site in all_sites:
        site.write(later_seconds)
    return names


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sites", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--of", type=int)
    parser.add_argument("--now", action="store_true")
    parser.add_argument("--waiting", action="store_true")
    parser.add_argument("--trouble", action="store_true")
    options = parser.parse_args()
    write_run(options.folder, options.sites, options.rounds, options.of, options.now, options.trouble,
              options.waiting)


if __name__ == "__main__":
    main()
