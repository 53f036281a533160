"""Now and then, the expressions of a box are timed on tuples that have just passed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from auroral.optimizer import Probe
from auroral.storage import Change, Store

SAMPLE_ROWS = 500
REFRESH_S = 60.0
"""What was timed longer ago is timed again; a box that waits for so long need not wait more."""
_MOST_SHARE = 0.05
"""Trials take no more of the time than this."""
_MOST_REST = 64
_LAST_S = 2.0
"""How long the end waits for a trial."""
_KEY = "probed costs"

Sampler = Callable[[str, int], pa.Table]
"""Gives the latest tuples of a log, at most so many, with `_seq`; any thread may call it."""
Trial = Callable[[Probe, pa.Table], float | None]
"""Gives the seconds that the expressions of a probe take for a tuple, if it can tell."""


@dataclass
class _Probed:
    """What is known of the expressions of one box."""

    texts: tuple[str, ...]
    cost_s: float | None = None
    due_s: float = 0.0
    """When it should be timed, by the monotonic clock."""
    next_step: int = 1
    """Before the box has run so often, nobody looks for tuples."""
    rest: int = 1
    """How many steps later somebody looks again; twice as many after each look in vain."""


class ExpressionCosts:
    """What expressions cost, timed in a thread of its own, one box at a time.

    The thread that decides asks for trials and saves what they have found; results do not depend
    on them.
    """

    def __init__(self, store: Store, now_s: Callable[[], float] = time.monotonic):
        self._store = store
        self._now_s = now_s
        self._boxes = {
            box: _Probed(tuple(texts), cost_s)
            for box, (texts, cost_s) in json.loads(store.manifest.meta(_KEY) or "{}").items()
        }
        self._thread: threading.Thread | None = None
        self._not_before_s = 0.0
        self._unsaved = False
        self._closed = False

    def known(self) -> dict[str, float]:
        """By box, the seconds that its expressions take for a tuple."""
        boxes = self._boxes.items()
        return {box: one.cost_s for box, one in boxes if one.cost_s is not None}

    def tend(
        self,
        probes: Mapping[str, Probe],
        steps: Mapping[str, int],
        sampler: Callable[[], Sampler],
        trial: Trial,
        *,
        has_slack: bool,
    ) -> None:
        """Time a box if it is due: one that was not timed yet, or a minute ago.

        `probes` are those of all boxes, `steps` how often each has run. Without slack a trial
        waits, for a minute at most.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        now_s = self._now_s()
        if self._unsaved:
            self._save(probes)
        if self._closed or now_s < self._not_before_s:
            return
        for box, probe in probes.items():
            known = self._boxes.get(box)
            if known is None or known.texts != probe.texts:
                known = self._boxes[box] = _Probed(probe.texts, due_s=now_s)
            waited_s = now_s - known.due_s
            step = steps.get(box, 0)
            if step >= known.next_step and waited_s >= (0.0 if has_slack else REFRESH_S):
                self._thread = threading.Thread(
                    target=self._run, args=(known, probe, step, sampler(), trial), daemon=True
                )
                self._thread.start()
                return

    def wait(self) -> None:
        """Until no trial is under way."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """The engine ends; a trial that takes long is left alone, as nothing depends on it."""
        self._closed = True
        if self._thread is not None:
            self._thread.join(_LAST_S)

    def _run(self, known: _Probed, probe: Probe, step: int, sampler: Sampler, trial: Trial) -> None:
        began_s = self._now_s()
        known.due_s = began_s + REFRESH_S
        with suppress(Exception):  # the box counts as before
            rows = sampler(probe.arc, SAMPLE_ROWS)
            if rows.num_rows >= SAMPLE_ROWS // 2:
                found_s = trial(probe, rows)
                ended_s = self._now_s()
                self._not_before_s = ended_s + (ended_s - began_s) / _MOST_SHARE
                known.rest = 1
                if found_s is not None:
                    known.cost_s = found_s
                    self._unsaved = True
            else:  # the first look has opened a tap, through which the next one sees tuples
                known.due_s = began_s
                known.next_step, known.rest = step + known.rest, min(2 * known.rest, _MOST_REST)

    def _save(self, probes: Mapping[str, Probe]) -> None:
        """Keep what is known of boxes that there are for the next run."""
        self._unsaved = False
        kept: dict[str, tuple[Sequence[str], float]] = {
            box: (one.texts, one.cost_s)
            for box, one in self._boxes.items()
            if one.cost_s is not None and box in probes
        }
        self._store.commit(Change(meta={_KEY: json.dumps(kept)}))
