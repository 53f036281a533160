"""Which queries make a train fail: each of them runs on it by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from auroral.engine.runtime.pool import StepPool
from auroral.engine.runtime.train import Train
from auroral.errors import RunError


@dataclass(frozen=True)
class Trials:
    """Runs parts of a superbox on a train whose results are thrown away."""

    attempt: Callable[[Train], None]
    """Run a train and forget what came of it."""
    cancel: Callable[[str], None]
    """End what runs under a name."""
    limit_s: float | None
    """A trial that takes longer has failed."""
    grace_s: float
    """How long what was cancelled has to end."""

    def culprits(self, train: Train, owner: Callable[[str], str]) -> dict[str, str]:
        """The queries whose boxes fail on a train, each by itself, and why.

        None if the train fails without any query, or if all goes well now: then it was not them.
        """
        superbox = train.superbox
        found: dict[str, str] = {}
        for name in dict.fromkeys(map(owner, superbox.boxes)):
            if superbox.stateful and owner(superbox.stateful) != name:
                continue  # what runs before a box that remembers serves nobody else
            alone = superbox.having({b for b in superbox.boxes if owner(b) in ("", name)})
            try:
                first = next(box for box in superbox.boxes if owner(box) == name)
                self._limited(first, replace(train, superbox=replace(alone, name=first)))
            except RunError as error:
                found[name] = str(error)
        return {} if "" in found else found

    def _limited(self, name: str, train: Train) -> None:
        """Try a train for as long as a step may take."""
        if self.limit_s is None:
            self.attempt(train)
            return
        pool = StepPool[None](1)
        pool.submit(name, partial(self.attempt, train))
        if not pool.wait(self.limit_s):
            self.cancel(name)
            pool.wait(self.grace_s)
        pool.close()
        ended = pool.take_finished()
        if not ended:
            raise RunError("STEP_TIMEOUT", f"takes longer than {self.limit_s:g} s", where=name)
        if ended[0].error is not None:
            raise ended[0].error
