"""One site that trains an array of numbers with the Python package.

python_site.py PLAN: adds `drift` times (index + step) to the values in each of `steps` inner steps. Goes
on from the state and the values in the file `resume`, and writes its own to the file `save`. Prints a JSON
line after each sync, with its times if the plan has `times`, and for the exception that ended it. Waits for a line on standard input before the
step `waits`.
"""

import array
import json
import pickle
import sys
import time

import farstep


def say(**what: object):
    """Prints one line."""
    print(json.dumps(what), flush=True)


def train(plan: dict):
    """Takes part in a run."""
    values = array.array("f", plan["start"])
    outer = farstep.OuterOptimizer([values], **plan["settings"])
    first = 1
    if "resume" in plan:
        with open(plan["resume"], "rb") as file:
            first, values[:], state = pickle.load(file)
        outer.load_state_dict(state)
    with outer:
        say(members=outer.members)
        for step in range(first, first + plan["steps"]):
            if step == plan.get("waits"):
                sys.stdin.readline()
            for index in range(len(values)):
                values[index] += plan["drift"] * (index + step)
            begin = time.monotonic()
            done = outer.step(batch=plan.get("batch", 1))
            if done:
                times = {"whole": time.monotonic() - begin, "wait": done.wait_seconds,
                         "exchange": done.exchange_seconds}
                say(round=outer.rounds, weight=done.averaging_weight, hash=done.hash,
                    values=list(values), **(times if "times" in plan else {}))
        if "save" in plan:
            with open(plan["save"], "wb") as file:
                pickle.dump((step + 1, values, outer.state_dict()), file)


def main():
    """Runs the plan."""
    try:
        train(json.loads(sys.argv[1]))
    except farstep.FarstepError as error:
        say(kind=type(error).__name__, status=error.status, site=error.site, error=str(error))
    except KeyboardInterrupt:
        say(kind="KeyboardInterrupt")


if __name__ == "__main__":
    main()
