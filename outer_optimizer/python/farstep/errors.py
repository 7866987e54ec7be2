"""What can go wrong, by what one can do about it: the kinds of error of the command `farstep`."""


class FarstepError(Exception):
    """A call that failed: what happened, and what to do.

    `status` is the exit code that `farstep` has for it. `site` is the lost site; empty if there is
    none, or it is the coordinator.
    """

    status = 1

    def __init__(self, message: str, site: str = ""):
        super().__init__(message)
        self.site = site


class InternalError(FarstepError):
    """A bug, or values that differ among the sites."""


class ConfigError(FarstepError):
    """A wrong setting or argument."""

    status = 2


class DataError(FarstepError):
    """A wrong file, or sites that start from different values."""

    status = 3


class PeerError(FarstepError):
    """Another site, the coordinator or a link is lost."""

    status = 4


class DivergenceError(FarstepError):
    """A value is not finite."""

    status = 5


class Stopped(FarstepError):
    """OuterOptimizer.stop() was called."""

    status = 130


KINDS = {kind.status: kind for kind in (InternalError, ConfigError, DataError, PeerError,
                                        DivergenceError, Stopped)}
