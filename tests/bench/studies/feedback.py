"""Should the next delta carry what a codec left out of the last one?"""

from collections.abc import Iterator
from dataclasses import replace

from studies import ends
from studies.optimizers import Sites
from studies.runs import INNER, Run

SITES = tuple(Sites(optimizer, steps, eta, mu, mean_rounds=1)
              for optimizer in reversed(INNER)
              for steps, eta, mu in ((50, 1.0, 0.7), (100, 1.0, 0.5)))
CODECS = ({"kind": "int4"}, {"kind": "int2"}, {"kind": "top_k"})
# Rounds of 500 steps whose inner rate ends at zero, so that the last delta is short and its code's
# noise is small. A code of int2 is shorter than its delta, which a higher outer rate makes up for.
TO_ZERO = replace(ends.EVERY_500, inner={**ends.EVERY_500.inner, "final_fraction": 0})
OUTER_RATES = (1.0, 1.3)


def compared() -> list[tuple[Sites, dict]]:
    """Sites, and each sync with a codec to compare with fp32."""
    return [(sites, {"codec": {**codec, "error_feedback": feeds_back}})
            for sites in SITES for codec in CODECS for feeds_back in (True, False)]


def compared_to_zero() -> list[tuple[Sites, dict]]:
    """The same of rounds of 500 steps."""
    return [(replace(TO_ZERO, eta=eta), {"codec": {"kind": "int2"}}) for eta in OUTER_RATES]


def feedback(seeds: list[int]) -> Iterator[Run]:
    """Codecs with error feedback and without."""
    for seed in seeds:
        yield from (sites.run(seed) for sites in SITES)
        yield from (sites.with_sync(sync).run(seed) for sites, sync in compared())


def int2_to_zero(seeds: list[int]) -> Iterator[Run]:
    """int2 against fp32 at H 500, by outer rate."""
    for seed in seeds:
        for sites, sync in compared_to_zero():
            yield sites.run(seed)
            yield sites.with_sync(sync).run(seed)
