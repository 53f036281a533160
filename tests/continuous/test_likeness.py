"""Texts that differ in their literals are read off one another, as if each were read alone."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auroral.continuous.sharing.reading import NotShared, TemplateReader
from auroral.errors import NetworkError

from .texts import ARCS, JOINS, PROGRESS, predicates, read

READER = TemplateReader(ARCS, PROGRESS)


_varied = st.one_of(
    st.sampled_from(JOINS).map(lambda text: f"SELECT S.a FROM S, T WHERE {text}"),
    predicates(1).map(lambda text: f"SELECT i, d * 2 AS e FROM W WHERE {text}"),
    predicates(1).map(lambda text: f"SELECT i + 1 FROM W [ROWS 5] WHERE {text} AND i > 3"),
)
_LITERALS = re.compile(r"(?<![\w.'])[0-9]+(?:\.[0-9]+)?(?![\w.'])|'[^']*'")


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(_varied, st.randoms(use_true_random=False))
def test_texts_read_one_after_another_read_as_alone(sql: str, random: Any) -> None:
    def other(match: re.Match[str]) -> str:
        if match.group().startswith("'"):
            return str(random.choice(["'a%'", "'b%'", "'2024-01-01'", "'7'", "''", "'x_'", "'z'"]))
        return str(random.choice(["0", "1", "7", "12", "2.5", "13.25", "300", "9999999999"]))

    reader = READER
    for _ in range(4):
        try:
            alone: Any = read(sql)
        except (NetworkError, NotShared) as error:
            alone = error
        try:
            found: Any = reader.read(sql)
        except (NetworkError, NotShared) as error:
            found = error
        assert repr(found) == repr(alone), sql
        sql = _LITERALS.sub(other, sql)


def test_texts_that_differ_in_literals_are_taken_apart_once() -> None:
    reader = TemplateReader(ARCS, PROGRESS)
    form = "SELECT i, d * 2 AS e FROM W WHERE s = 'S{0}' AND d > {1}.5 AND i BETWEEN -{0} AND {1}"
    found = [reader.read(form.format(n % 89 + 10, n % 9)) for n in range(300)]
    assert len({id(one.template) for one in found}) == 1
    assert found[20].constants == ("S30", 2.5, -30, 2)
    other = reader.read("SELECT i, d * 3 AS e FROM W WHERE s = 'S3' AND d > 1.5 AND i > 4")
    assert other.template != found[0].template
    assert other.template.items[1].attribute.text == "d * 3"


def test_long_lists_are_read_in_a_time_that_follows_their_length() -> None:
    """With time that follows its square this would take minutes."""
    reader = TemplateReader(ARCS, PROGRESS)
    for shift in (0, 1):
        numbers = [n - 50 + shift for n in range(20_000)]
        found = reader.read(f"SELECT i FROM W WHERE i IN ({', '.join(map(str, numbers))})")
        assert found.constants == (numbers,)
