"""The outer optimizer over the parameters of a model that is trained in Python."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from farstep.errors import ConfigError, Stopped
from farstep.flat_values import FlatParameters, FlatValues
from farstep.library import Round, Site, Work, load


class OuterOptimizer:
    """Makes one model of what several sites train, each on its own data.

        with farstep.OuterOptimizer(model.parameters(), run="mine", sites=["paris", "tokyo"],
                                    site="paris", coordinator="tcp://10.0.0.1:7000", host=True,
                                    address="10.0.0.1", every=100) as outer:
            for batch in batches:
                ...                          # loss, backward, the inner optimizer's step
                outer.step(batch=len(batch))

    Let theta be the values of the newest sync, and theta_i what site i's inner steps made of them. Then
    delta_i = theta - theta_i, mean = sum(c_i delta_i), m <- momentum m + mean, and theta <- theta -
    learning_rate (mean + momentum m): Nesterov's step as torch.optim.SGD has it. c_i are averaging
    weights, in proportion to the sites' batches by default.

    The inner optimizer and its state stay with each site. Buffers of a model that are no parameters,
    such as statistics of batch normalisation, are not synced. One thread uses the object, and any may
    call stop().
    """

    def __init__(self, parameters: Iterable[Any], *, run: str, sites: Sequence[str], site: str,
                 coordinator: str | Mapping[str, Any], host: bool = False, address: str | None = None,
                 keys: str | None = None, every: int | None = None, learning_rate: float = 0.7,
                 momentum: float = 0.9, averaging: str = "batch",
                 codec: str | Mapping[str, Any] = "fp32", fragments: int = 1,
                 min_sites: int | None = None, deadlines: Mapping[str, float] | None = None,
                 network: Mapping[str, Any] | None = None, log_level: str = "warning",
                 library: str | None = None):
        """Copies the parameters, from which all sites start: the same bits at each of them.

        parameters: those that are trained, PyTorch tensors (float32, float64, bfloat16, float16; on any
          device) or fp32 buffers such as NumPy arrays, in the same order and shapes at all sites. They
          are exchanged as fp32. Those of 16 bits have fp32 masters here.
        run, sites: the run's name, and the names of its sites, the same list everywhere.
        site: the name of this one.
        coordinator: where the sites meet, "tcp://HOST:PORT", or the object of docs/reference/library.md.
        host: whether this process hosts the coordinator; one site does.
        address: of this host, as the other sites reach it.
        keys: the folder of this site's keys, for encrypted links; a coordinator that another site hosts
          is then {"endpoint": "tcp://...", "site": NAME}.
        every: inner steps between two syncs; None: sync() is called by hand.
        learning_rate, momentum: of the outer step.
        averaging: "batch", "uniform", "tokens", ... as in docs/averaging.md.
        codec: how values travel: "fp32", "int8", ..., or the object of docs/reference/library.md.
        fragments: parts that are exchanged one after the other; more of them need less memory.
        min_sites: with fewer sites the run ends; None: with the first loss.
        deadlines, network: further members of those objects in docs/reference/library.md.
        log_level: trace, debug, info, warning, error or off; lines go to standard error.
        library: the path of libfarstep_outer.so; None: what FARSTEP_OUTER_LIBRARY names, or the
          installed one.

        Raises ConfigError.
        """
        if every is not None and every < 1:
            raise ConfigError(f"every is {every}: there must be a step at least between two syncs")
        self._parameters = FlatParameters(parameters)
        self._shared, self._local = (FlatValues(self._parameters.size) for _ in range(2))
        # The start is read against zeros, and so as it is.
        self._parameters.read(self._local, self._shared)
        self._shared, self._local = self._local, self._shared
        self._momentum: FlatValues | None = None
        self._every = every
        self._steps = self._examples = self._tokens = 0
        self._earlier_rounds = self._rounds = 0
        self._library = load(library)
        self._run = {"name": run, "sites": list(sites), "min_sites": min_sites,
                     "outer": {"learning_rate": learning_rate, "momentum": momentum,
                               "averaging": averaging},
                     "sync": {"fragments": fragments,
                              "codec": {"kind": codec} if isinstance(codec, str) else dict(codec)},
                     "deadlines": dict(deadlines or {})}
        meeting = {"endpoint": coordinator} if isinstance(coordinator, str) else dict(coordinator)
        reach = {"address": address, "keys": keys}
        self._site_settings = {
            "name": site, "log_level": log_level, "coordinator": meeting | ({"host": True} if host else {}),
            "network": {name: value for name, value in reach.items() if value is not None}
                       | dict(network or {})}
        self._site: Site | None = None
        self._is_closed = False

    def join(self):
        """Joins the run, and waits until all sites have come: deadlines.join_seconds at most.

        `with` and the first step() or sync() do it too. Raises ConfigError, DataError if the sites start
        from different values, PeerError.
        """
        if self._is_closed:
            raise ConfigError("this site has left its run: make a new OuterOptimizer at all sites")
        if self._site is not None:
            return
        self._site = Site(self._library, json.dumps(self._run), json.dumps(self._site_settings),
                          self._shared.memory)
        if self._momentum is not None:
            self._site.set_momentum(self._momentum.memory)
            self._momentum = None

    def step(self, batch: int = 1, tokens: int = 0) -> Round | None:
        """Counts an inner step that was taken, and syncs if `every` steps were taken since the last sync.

        batch: the examples of the step. tokens: its targets, for averaging rules that count them.
        Returns what the sync did; None without one. Raises as join() and sync().
        """
        self.join()
        self._steps += 1
        self._examples += batch
        self._tokens += tokens
        return self.sync() if self._steps == self._every else None

    def sync(self) -> Round:
        """Ends an outer round: gives the parameters the new common values, the same bits at all sites.

        Waits for the other sites; all of them must sync equally often. Without a step since the last
        sync this site's change counts nothing. Raises PeerError, DivergenceError if a parameter is not
        finite, Stopped, and what a signal raises. The parameters are unchanged then, unless the sync
        counted before the signal, and the run goes on without this site.
        """
        self.join()
        self._parameters.read(self._local, self._shared)
        batch = round(self._examples / self._steps) if self._steps else 0
        done, interruption = self._site.sync(self._local.memory,
                                             Work(self._steps, batch, self._tokens))
        self._shared, self._local = self._local, self._shared
        self._parameters.write(self._shared)
        self._steps = self._examples = self._tokens = 0
        self._rounds = self._earlier_rounds + done.number
        if interruption is not None:
            raise interruption
        return done

    def stop(self):
        """Ends a sync's wait for other sites, now or later: it raises Stopped. Any thread may call it."""
        if self._site is not None:
            self._site.stop()

    @property
    def rounds(self) -> int:
        """How many outer rounds are done, those before a loaded state included."""
        return self._rounds

    @property
    def members(self) -> list[str]:
        """The names of the sites that take part; empty before join() and after close()."""
        return [] if self._site is None else self._site.members()

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs besides the model and the inner optimizer.

        "values" and "momentum" are fp32 vectors, tensors if a parameter is one, else array.array("f").
        They are equal at all sites. Call it before close().
        """
        momentum = self._momentum or FlatValues(self._parameters.size)
        if self._site is not None:
            self._site.get_momentum(momentum.memory)
        elif self._is_closed:
            raise ConfigError("state_dict() was called after close(), where the momentum is gone")
        return {"values": self._shared.copy(self._parameters.are_tensors),
                "momentum": momentum.copy(self._parameters.are_tensors), "rounds": self._rounds,
                "steps": self._steps, "examples": self._examples, "tokens": self._tokens}

    def load_state_dict(self, state: Mapping[str, Any]):
        """Goes on from a state, in a new run of all sites. Call it before join().

        The model's parameters stay as they are: load what the model was when the state was taken.
        Raises ConfigError, with the state unchanged, if the state is of another model.
        """
        if self._site is not None or self._is_closed:
            raise ConfigError("load_state_dict() was called after join(): the sites have begun")
        counts = [int(state[name]) for name in ("rounds", "steps", "examples", "tokens")]
        values, momentum = (FlatValues(self._parameters.size) for _ in range(2))
        values.copy_from(state["values"], "the state's values")
        momentum.copy_from(state["momentum"], "the state's momentum")
        self._shared, self._momentum = values, momentum
        self._rounds, self._steps, self._examples, self._tokens = counts
        self._earlier_rounds = self._rounds

    def close(self, failure: str | None = None):
        """Leaves the run, which is done here; or in which this site failed for that reason.

        The host of the coordinator waits for the others to leave. A second call does nothing.
        """
        site, self._site, self._is_closed = self._site, None, True
        if site is None:
            return
        try:
            site.leave(failure)
        finally:
            site.free()

    def __enter__(self) -> "OuterOptimizer":
        self.join()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None):
        if kind is not None and issubclass(kind, (KeyboardInterrupt, Stopped)):
            self.stop()  # so that it leaves as one that was interrupted
            self.close()
        else:
            self.close(None if kind is None else f"{kind.__name__}: {error}")
