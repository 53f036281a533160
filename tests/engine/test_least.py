"""The least of values that grow, by looking at few of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from auroral.engine.results.readers import SlowestReader, consumer

MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(0, 5), st.integers(0, 4)),
        st.tuples(st.just("go"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("come"), st.integers(6, 9), st.integers(0, 30)),
        st.tuples(st.just("look"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(st.dictionaries(st.integers(0, 5), st.integers(0, 20)), MOVES)
def test_it_is_the_least_whatever_grows_comes_and_goes(
    heads: dict[int, int], moves: list[tuple[str, int, int]]
) -> None:
    least = SlowestReader(list(heads), heads.get)
    for kind, item, by in moves:
        if kind == "grow" and item in heads:
            heads[item] += by
        elif kind == "go":
            heads.pop(item, None)
        elif kind == "come" and item not in heads:
            heads[item] = by
            least.add(item)
        elif kind == "look":
            assert least() == min(heads.values(), default=None)
    assert least() == min(heads.values(), default=None)
    assert len(least) >= len(heads)


def test_what_is_gone_is_not_looked_at_again() -> None:
    looked: list[str] = []
    heads: dict[str, int | None] = {"a": 1, "b": 2, "c": None}

    def head(name: str) -> int | None:
        looked.append(name)
        return heads[name]

    least = SlowestReader(heads, head)
    assert len(least) == 2
    heads["a"] = None
    looked.clear()
    assert least() == 2
    assert looked == ["a", "b"]
    looked.clear()
    assert least() == 2
    assert looked == ["b"]


def test_outputs_have_names_among_consumers() -> None:
    assert consumer("alerts") == "output alerts"
