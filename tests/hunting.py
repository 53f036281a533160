"""Hunts: the laws tried with fresh seeds instead of the fixed ones (`make hunt`).

In a hunt every Hypothesis test draws from the given seed, and every test with a parameter called
`seed` gets as many fresh values of it as it lists. The same seed gives the same examples, so
what a hunt finds can be repeated.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

LARGEST = 10**9
"""Seeds of a hunt are below this."""


class Hunt:
    """The part of a hunt that runs inside pytest."""

    def __init__(self, seed: int, until: float | None):
        """With the seed of this round, and the time (of `time.time`) at which to stop."""
        self.seed = seed
        self._until = until

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Replace the listed values of `seed` by fresh ones."""
        rng = Random(f"{self.seed} {metafunc.definition.originalname}")
        markers = metafunc.definition.own_markers
        for index, mark in enumerate(markers):
            if mark.name == "parametrize" and "seed" in names_of(mark):
                markers[index] = with_fresh_seeds(mark, rng)

    @pytest.hookimpl(trylast=True)  # Hypothesis marks its own before
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep only what a seed varies."""
        laws = [item for item in items if is_law(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(laws)])
        Random(self.seed).shuffle(laws)  # a hunt that is cut short tries others each time
        items[:] = laws

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how to repeat what failed."""
        if report.failed:
            test = report.nodeid
            report.sections.append(("to repeat", f"make hunt SEED={self.seed} ARGS=\"'{test}'\""))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if self._until is not None and time.time() > self._until:
            item.session.shouldstop = "the time of the hunt is up"


def is_law(item: pytest.Item) -> bool:
    """Whether a test tries random examples."""
    if item.get_closest_marker("law") or item.get_closest_marker("hypothesis"):
        return True
    callspec = getattr(item, "callspec", None)
    return callspec is not None and "seed" in callspec.params


def names_of(mark: pytest.Mark) -> list[str]:
    """The parameters that a `parametrize` gives."""
    names: str | Sequence[str] = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]


def with_fresh_seeds(mark: pytest.Mark, rng: Random) -> pytest.Mark:
    """The same `parametrize` with other seeds.

    >>> mark = pytest.mark.parametrize(("kind", "seed"), [("join", 1), ("bsort", 2)]).mark
    >>> [kind for kind, _ in with_fresh_seeds(mark, Random(0)).args[1]]
    ['join', 'bsort']
    """
    names, rest = names_of(mark), mark.args[2:]
    if names == ["seed"]:
        fresh: list[Any] = [rng.randrange(LARGEST) for _ in mark.args[1]]
    else:
        at = names.index("seed")
        fresh = [
            (*values[:at], rng.randrange(LARGEST), *values[at + 1 :]) for values in mark.args[1]
        ]
    kwargs = {key: value for key, value in mark.kwargs.items() if key != "ids"}
    return pytest.mark.parametrize(mark.args[0], fresh, *rest, **kwargs).mark
