"""The C interface of libfarstep_outer.so (<farstep/outer_c.h>), with exceptions for its statuses."""

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from farstep.errors import KINDS, ConfigError, InternalError

NAME = "libfarstep_outer.so"
# In the wheel; and of an installation, where this package is in PREFIX/lib/python3/dist-packages.
PLACES = Path(__file__).with_name(NAME), Path(__file__).resolve().parents[3] / NAME


class Work(ctypes.Structure):
    """farstep_outer_work: what the inner steps since the last sync were."""

    _fields_ = [("steps", ctypes.c_int64), ("batch", ctypes.c_int64), ("tokens", ctypes.c_int64)]


class CRound(ctypes.Structure):
    """farstep_outer_round."""

    _fields_ = [("round", ctypes.c_int64), ("generation", ctypes.c_int64), ("sites", ctypes.c_int64),
                ("averaging_weight", ctypes.c_double), ("wait_seconds", ctypes.c_double),
                ("exchange_seconds", ctypes.c_double), ("hash", ctypes.c_char * 17)]


@dataclass(frozen=True)
class Round:
    """What a sync did.

    number: of the sync, from 1. generation: of the membership; a higher one after a loss. sites: how
    many took part. averaging_weight: of this site's change in the mean. wait_seconds: from this site's
    coming until all sites had come. exchange_seconds: from then until the sync counted at all sites, in
    which the changes were sent, averaged and voted on. With several fragments both are sums over them.
    hash: of the new values, the same at all sites.
    """

    number: int
    generation: int
    sites: int
    averaging_weight: float
    wait_seconds: float
    exchange_seconds: float
    hash: str


@cache
def load(path: str | None = None) -> ctypes.CDLL:
    """The library at `path`; None: where FARSTEP_OUTER_LIBRARY says, else that of the wheel or of the
    installation, else where the loader finds it. Raises ConfigError."""
    named = path or os.environ.get("FARSTEP_OUTER_LIBRARY")
    chosen = named or str(next((place for place in PLACES if place.exists()), NAME))
    try:
        # PyTorch has functions of Gloo in it, of another version: RTLD_DEEPBIND keeps them apart.
        library = ctypes.CDLL(chosen, mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    except OSError as error:
        raise ConfigError(f"{chosen} cannot be loaded: {error}; install the wheel farstep-outer, or name "
                          "the file in FARSTEP_OUTER_LIBRARY") from None
    floats, integer, handle = ctypes.POINTER(ctypes.c_float), ctypes.c_int64, ctypes.c_void_p
    text = ctypes.c_char_p
    for name, result, arguments in (
            ("version", text, []), ("error", text, []), ("error_site", text, []),
            ("join", ctypes.c_int, [text, text, floats, integer, ctypes.POINTER(handle)]),
            ("sync", ctypes.c_int, [handle, floats, integer, ctypes.POINTER(Work),
                                    ctypes.POINTER(CRound)]),
            ("stop", None, [handle]), ("members", integer, [handle]), ("place", integer, [handle]),
            ("member", text, [handle, integer]),
            ("get_momentum", ctypes.c_int, [handle, floats, integer]),
            ("set_momentum", ctypes.c_int, [handle, floats, integer]),
            ("leave", ctypes.c_int, [handle, text]), ("free", None, [handle])):
        function = getattr(library, f"farstep_outer_{name}")
        function.restype, function.argtypes = result, arguments
    return library


def version() -> str:
    """The version of the library. Raises ConfigError."""
    return load().farstep_outer_version().decode()


class Call:
    """A call of the library in a thread of its own: Python acts on Ctrl-C only between two calls."""

    def __init__(self, library: ctypes.CDLL, function: Callable[[], int]):
        self._outcome = InternalError.status, "the call did not end", ""

        def run():
            status = function()
            # The reason belongs to the thread.
            self._outcome = (status, library.farstep_outer_error().decode(errors="replace"),
                             library.farstep_outer_error_site().decode(errors="replace"))

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def wait(self):
        """Waits for its end. Raises the exception of its status, or what a signal raises."""
        self._thread.join()
        status, message, site = self._outcome
        if status != 0:
            raise KINDS.get(status, InternalError)(message, site)

    def then(self, function: Callable[[], None]):
        """Calls the function when the call has ended, in another thread."""
        threading.Thread(target=lambda: (self._thread.join(), function()), daemon=True).start()


class Site:
    """One site of a run (farstep_outer). One thread uses it; any may call stop()."""

    def __init__(self, library: ctypes.CDLL, run: str, site: str, values: ctypes.Array):
        """Joins with the values from which all sites start, and waits for all sites.

        run, site: JSON texts. values: fp32, the same bits at all sites; they are copied. Raises
        ConfigError, DataError, PeerError.
        """
        self._library, self._size = library, len(values)
        handle = ctypes.c_void_p()
        call = Call(library, lambda: library.farstep_outer_join(
            run.encode(), site.encode(), values, self._size, ctypes.byref(handle)))
        try:
            call.wait()
        except BaseException:
            # After a signal it may join yet: the others must not wait for a site that nobody has.
            call.then(lambda: library.farstep_outer_free(handle))
            raise
        self._handle = handle.value
        # Also when the process ends: the threads of the library must not outlive what they use.
        self._end = weakref.finalize(self, library.farstep_outer_free, self._handle)

    def sync(self, values: ctypes.Array, work: Work) -> tuple[Round, BaseException | None]:
        """Replaces values by the new common ones. Waits until the sync counts at all sites.

        Also returns what a signal raised meanwhile, such as KeyboardInterrupt: it stopped the wait,
        but the sync counted all the same. Raises any FarstepError, with unchanged values, or what a
        signal raised.
        """
        done = CRound()
        call = Call(self._library, lambda: self._library.farstep_outer_sync(
            self._handle, values, self._size, ctypes.byref(work), ctypes.byref(done)))
        interruption = None
        try:
            call.wait()
        except (KeyboardInterrupt, SystemExit) as raised:
            interruption = raised
            self.stop()
            try:
                call.wait()
            except Exception as error:
                raise interruption from error
        return Round(done.round, done.generation, done.sites, done.averaging_weight, done.wait_seconds,
                     done.exchange_seconds, done.hash.decode()), interruption

    def stop(self):
        """Ends the wait of a sync, present or future, for other sites: it raises Stopped."""
        self._library.farstep_outer_stop(self._handle)

    def members(self) -> list[str]:
        """The names of the sites after the newest sync, or at the start, in their order."""
        count = self._library.farstep_outer_members(self._handle)
        return [self._library.farstep_outer_member(self._handle, place).decode()
                for place in range(count)]

    def get_momentum(self, momentum: ctypes.Array):
        """Copies the outer momentum out: fp32, as many values as the run has."""
        Call(self._library, lambda: self._library.farstep_outer_get_momentum(
            self._handle, momentum, self._size)).wait()

    def set_momentum(self, momentum: ctypes.Array):
        """Copies it in, before the first sync and equally at all sites. Raises ConfigError."""
        Call(self._library, lambda: self._library.farstep_outer_set_momentum(
            self._handle, momentum, self._size)).wait()

    def leave(self, failure: str | None):
        """Leaves the run, in which this site failed for that reason; None: it is done.

        The host of the coordinator waits for the others to leave, at most deadlines.join_seconds.
        """
        text = None if failure is None else failure.encode()
        Call(self._library, lambda: self._library.farstep_outer_leave(self._handle, text)).wait()

    def free(self):
        """Ends the site; nothing else may be called then. Without leave() the others have lost it."""
        self._end()
