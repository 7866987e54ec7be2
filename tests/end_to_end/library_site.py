"""One site of a run whose training loop is this script's, over the C interface of Farstep's library.

library_site.py LIBRARY PLAN: loads the library, joins with the plan's values, and in each round adds
`drift` times (index + round) to them before it syncs. Prints a JSON line when it has joined, after
each sync, and for the call that failed; then it waits for the end of its standard input.
"""

import ctypes
import json
import os
import sys
import threading


class Work(ctypes.Structure):
    """farstep_outer_work."""

    _fields_ = [("steps", ctypes.c_int64), ("batch", ctypes.c_int64), ("tokens", ctypes.c_int64)]


class Round(ctypes.Structure):
    """farstep_outer_round."""

    _fields_ = [("round", ctypes.c_int64), ("generation", ctypes.c_int64), ("sites", ctypes.c_int64),
                ("averaging_weight", ctypes.c_double), ("wait_seconds", ctypes.c_double),
                ("exchange_seconds", ctypes.c_double), ("hash", ctypes.c_char * 17)]


def load(path: str) -> ctypes.CDLL:
    """The library, with the types of what does not return an int."""
    # Symbols of this library bind to libraries of its own, whatever else the process has loaded.
    library = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    for name in ("version", "error", "error_site", "member"):
        getattr(library, f"farstep_outer_{name}").restype = ctypes.c_char_p
    for name in ("members", "place"):
        getattr(library, f"farstep_outer_{name}").restype = ctypes.c_int64
    return library


def array(values: list[float]) -> ctypes.Array:
    """The values as fp32 in memory."""
    return (ctypes.c_float * len(values))(*values)


def say(**what: object):
    """Prints one line."""
    print(json.dumps(what), flush=True)


def train(library: ctypes.CDLL, plan: dict) -> int:
    """Takes part in the run; returns the status of the call that failed, or 0."""
    values = array(plan["start"])
    size = ctypes.c_int64(len(values))
    site = ctypes.c_void_p()
    status = library.farstep_outer_join(json.dumps(plan["run"]).encode(),
                                        json.dumps(plan["site"]).encode(), values, size,
                                        ctypes.byref(site))
    if status != 0:
        return status
    say(joined=library.farstep_outer_place(site))
    if "momentum" in plan:
        status = library.farstep_outer_set_momentum(site, array(plan["momentum"]), size)
    if plan.get("stops"):
        threading.Thread(target=library.farstep_outer_stop, args=(site,)).start()
    work, done = Work(*plan.get("work", (1, 1, 1))), Round()
    for number in range(1, plan["rounds"] + 1):
        for index in range(len(values)):
            values[index] += plan["drift"] * (index + number)
        before = list(values)
        status = status or library.farstep_outer_sync(site, values, size, ctypes.byref(work),
                                                      ctypes.byref(done))
        if status != 0:
            say(unchanged=list(values) == before)
            break
        members = [library.farstep_outer_member(site, place).decode()
                   for place in range(library.farstep_outer_members(site))]
        say(round=done.round, generation=done.generation, sites=done.sites, before=before,
            weight=done.averaging_weight, hash=done.hash.decode(), after=list(values), members=members)
    momentum = array([0.0] * len(values))
    if status == 0:
        status = library.farstep_outer_get_momentum(site, momentum, size)
        say(momentum=list(momentum))
    if plan.get("lingers"):
        sys.stdin.read()
    failed = library.farstep_outer_error().decode(), library.farstep_outer_error_site().decode()
    library.farstep_outer_leave(site, None if status in (0, 130) else b"its sync failed")
    library.farstep_outer_free(site)
    if status != 0:
        say(status=status, error=failed[0], site=failed[1])
    return 0


def main():
    """Runs the plan."""
    library = load(sys.argv[1])
    status = train(library, json.loads(sys.argv[2]))
    if status != 0:
        say(status=status, error=library.farstep_outer_error().decode(),
            site=library.farstep_outer_error_site().decode())


if __name__ == "__main__":
    main()
