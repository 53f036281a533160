"""Windows over doubles: every value is in exactly as many windows as a size has advances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auroral import Network, Order, Ordered, Window
from auroral.kernels.windowing.windows import WindowGrid as KernelGrid
from auroral.progress.advances import FARTHEST, advances_in
from auroral.progress.lowwater import LowWater
from auroral.progress.propagation import windowed
from auroral.reference.windowing.grid import ReferenceGrid
from auroral.testing import run

ADVANCES = st.sampled_from([0.1, 0.3, 1 / 3, 1e-3, 1e15, 7.0, 0.7, 1e-300])
TENTHS = [n / 10 for n in range(40)]


def distances(advance: float) -> st.SearchStrategy[float]:
    """Values near the edges of windows, far away, and anything else."""
    edge = int(FARTHEST)
    numbers = st.integers(-100, 100) | st.integers(-(2**54), 2**54)
    numbers |= st.integers(edge - 20, edge + 20) | st.integers(-edge - 20, -edge + 20)
    edges = st.tuples(numbers, st.sampled_from([-1, 0, 1])).map(
        lambda at: (
            float(np.nextafter(at[0] * advance, at[1] * np.inf)) if at[1] else at[0] * advance
        )
    )
    anything = st.floats(allow_nan=False, allow_infinity=False)
    small = st.sampled_from([5e-324, -5e-324, 0.0, -0.0, 2e-308])
    return (edges | anything | small).filter(np.isfinite)


def both(grid: ReferenceGrid, value: float, *, bounded: bool = False) -> list[float]:
    """The starts of the windows of a value, the same on both sides."""
    kernel = KernelGrid(grid.size, grid.advance, bounded)
    base = np.array([grid.origin]) if bounded else 0
    rows, starts = kernel.pairs(np.array([value]), base)
    numbers = grid.holding(value)
    found = sorted(starts.tolist())
    assert rows is not None
    assert found == [grid.start(k) for k in numbers]
    ends = kernel.ends(starts, base if not bounded else np.repeat(base, len(starts)))
    assert sorted(ends.tolist()) == [grid.end(k) for k in numbers]
    return found


@given(st.data(), ADVANCES, st.sampled_from([1, 2, 3, 10]))
def test_a_value_is_in_as_many_windows_as_its_size_has_advances(
    data: st.DataObject, advance: float, many: int
) -> None:
    size = float(f"{many * advance:.15g}")
    grid = ReferenceGrid(size, advance)
    value = data.draw(distances(advance))
    told = advances_in(size, advance) == many and abs(value / advance) < FARTHEST - many - 2
    starts = both(grid, value)
    if told:
        assert len(starts) == many
        assert all(grid.start(k) <= value < grid.start(k + many) for k in grid.holding(value))
    if abs(value / advance) > FARTHEST:
        assert starts == []


@given(st.data(), ADVANCES, st.sampled_from([0.5, 1.7, 2.5]))
def test_other_sizes_end_at_their_start_and_size(
    data: st.DataObject, advance: float, many: float
) -> None:
    grid = ReferenceGrid(advance * many, advance)
    value = data.draw(distances(advance))
    assert all(start <= value < start + grid.size for start in both(grid, value))


@given(
    ADVANCES,
    st.sampled_from([1, 3]),
    st.integers(-1000, 1000) | st.integers(-(2**50), 2**50),
    st.integers(3, 10_000) | st.integers(3, 2**51),
)
@example(0.1, 3, 444953454224833, 1545393572776449)
def test_windows_that_begin_at_a_first_tuple_have_no_gaps(
    advance: float, many: int, first: int, later: int
) -> None:
    origin = first * advance * 1.1
    grid = ReferenceGrid(float(f"{many * advance:.15g}"), advance, origin, 0)
    value = origin + later * advance
    starts = both(grid, value, bounded=True)
    told = max(abs(value), value - origin) / advance < FARTHEST
    assert len(starts) == (many if told else 0) or advances_in(grid.size, advance) is None


HISTORIES = st.sampled_from([0.0, 0.1, 5.0, 2.0**49, 1e17, 1e300])


@given(st.data(), ADVANCES, st.sampled_from([1, 2, 2.5]), HISTORIES)
@example(0.6, 0.1, 1, 0.0)
@example(1.7976931348623157e308, 7.0, 1, 0.0)
@example(-1.7976931348623157e308, 7.0, 1, 1e300)
@example(1e300, 1e-3, 1, 1e300)
def test_an_aggregate_promises_the_same_on_both_sides(
    given_mark: st.DataObject | float, advance: float, many: float, history: float
) -> None:
    if isinstance(given_mark, float):
        mark = value = later = given_mark
    else:
        mark, later = sorted(given_mark.draw(st.tuples(*[distances(advance)] * 2)))
        near = st.integers(-20, 20).map(lambda k: mark - history + k * advance)
        value = given_mark.draw(distances(advance) | near.filter(np.isfinite))
    size = float(f"{many * advance:.15g}")
    grid = ReferenceGrid(size, advance)
    marks = LowWater.of([(0, mark), (1, later)])
    promised = windowed({"t": marks}, "t", (), size, advance, history)["t"]
    first = grid.first_open(mark, history)
    assert isinstance(promised, LowWater)
    assert promised.at(0) == first
    assert promised.at(1) == grid.first_open(later, history) >= first
    remembered = [k for k in grid.holding(value) if grid.end(k) + history > mark]
    assert all(grid.start(k) >= first for k in remembered)


@pytest.mark.parametrize("query", [False, True])
@pytest.mark.parametrize(("size", "slide", "times"), [(0.1, 0.1, 1), (0.3, 0.1, 3), (0.2, 0.1, 2)])
def test_tenths_are_counted_as_often_as_there_are_windows(
    query: bool, size: float, slide: float, times: int
) -> None:
    net = Network("tenths")
    s = net.stream("s", schema="t double", progress=Ordered("t"))
    if query:
        net.query("o", f"SELECT t, collect_list(t) AS c FROM s [RANGE {size}, SLIDE {slide}, WA t]")
    else:
        window = Window(size=size, advance=slide)
        net.output("o", s.aggregate(Order("t"), window, c="collect_list(t)"))
    out = run(net, {"s": [(t,) for t in TENTHS]})
    counted = sorted(t for row in out["o"] for t in row["c"])
    assert counted == sorted(TENTHS * times)
    assert out.reference.late == {}
