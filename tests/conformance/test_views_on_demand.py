"""Views that keep nothing: attached queries give what an output added at that moment gives."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auroral.engine import Engine
from auroral.network.arc import Arc

from . import sparkless
from .attached import TABLES, AttachRun, AttachScenario, scenario


def view_scenario(rng: Random, *, crashing: bool = False) -> AttachScenario:
    """A scenario with a view in the place of the point, which most often runs for itself alone."""
    while True:
        given = scenario(rng, crashing=crashing)
        net = given.net
        net.connection_points.clear()
        arcs = net.check().arcs
        fit = [n for n, arc in arcs.items() if arc.revised_by is None and not arc.port]
        path = [name for name in fit if name in net.boxes and net.boxes[name].stateful]
        if path:
            break
    net.view("recent", rng.choice(path if rng.random() < 0.8 else fit))
    if rng.random() < 0.7:
        net.outputs.clear()
    return replace(given, attach_at=rng.randrange(len(given.batches) // 2 + 1))


class ViewRun(AttachRun):
    """Attaches to a view, and compares with a network that the same boxes are added to."""

    earlier: int | None = None
    """Before which batch another query is attached, which is detached before the one that counts.
    """

    def _attach(self, engine: Engine) -> None:
        if "earlier" in engine._attachments:
            engine.detach("earlier")
        super()._attach(engine)

    def _branch(self, arc: Arc) -> Arc:
        return arc if self._seed % 2 else super()._branch(arc)

    def _before(self, engine: Engine, number: int) -> None:
        if number == self.earlier:
            engine.attach("recent", lambda arc: arc, name="earlier")

    def _expected(self, engine: Engine) -> list[dict[str, Any]]:
        query = engine._attachments._held["hot"].record.query
        found = json.loads(json.dumps([query.boxes, query.output]).replace("attach@hot#", "hot_"))
        boxes, output = found
        given = self._given
        with sparkless.make_engine(
            given.net, train=given.train, clock="arrival", tables=TABLES
        ) as other:
            for number, batch in enumerate(given.batches):
                if number == given.attach_at:
                    other.modify(add={"boxes": boxes, "outputs": {"hot": {"from": output}}})
                other.enqueue(batch.stream, list(batch.rows))
                if batch.drain:
                    other.drain()
            other.finish()
            return list(other.dequeue("hot").to_pylist())


@pytest.mark.parametrize("seed", range(20))
def test_a_view_gives_what_an_added_output_gives(seed: int, tmp_path: Path) -> None:
    rng = Random(f"view {seed}")
    given = view_scenario(rng)
    ViewRun(sparkless.make_engine, given).go(tmp_path)


@pytest.mark.parametrize("seed", range(12))
def test_a_view_that_ran_before_begins_anew(seed: int, tmp_path: Path) -> None:
    rng = Random(f"view again {seed}")
    given = view_scenario(rng)
    run = ViewRun(sparkless.make_engine, replace(given, attach_at=len(given.batches) // 2))
    run.earlier = 0
    run.go(tmp_path)


@pytest.mark.parametrize("seed", range(20))
def test_a_view_survives_the_death_of_the_process(seed: int, tmp_path: Path) -> None:
    rng = Random(f"view and killed {seed}")
    given = view_scenario(rng, crashing=True)
    ViewRun(sparkless.make_engine, given).go(tmp_path)
