"""Joins of two to four sources, streams and what boxes make of them, against brute force."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from . import sparkless
from .driving import Drive, manner
from .nway import REMEMBERING, STATELESS, NWayMaker, NWayModel
from .test_shared_queries import set_out


@pytest.mark.parametrize("seed", range(8))
def test_joins_over_what_boxes_make(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other queries that share streams with them, and come and go."""
    rng = Random(seed)
    kinds = {"nway": 5, "select": 1, "aggregate": 1}
    drive(NWayMaker(rng, kinds, derived=STATELESS), rng, tmp_path, monkeypatch)


@pytest.mark.parametrize("seed", range(8))
def test_joins_over_what_boxes_remember(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    derived = (*STATELESS, *REMEMBERING)
    drive(NWayMaker(rng, {"nway": 1}, derived=derived), rng, tmp_path, monkeypatch)


def drive(maker: NWayMaker, rng: Random, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = maker.scenario(rng.choice([6, 12, 20]))
    set_out(monkeypatch, rng)
    model = NWayModel(scenario, asked=maker.asked)
    Drive(sparkless.make_engine, scenario, manner(rng), rng, model).go(state)
