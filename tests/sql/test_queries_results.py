"""What queries give, worked out by hand: Q1–Q9 of the paper, row windows, groups."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import auroral as au
from auroral.continuous.boxing.expansion import expanded
from auroral.testing import run

from .queries import PRINTED, answer, packet, results


def values(sql: str, *, hold: bool = False, **rows: list[Any]) -> list[tuple[Any, ...]]:
    found = results(PRINTED.get(sql, sql), hold=hold, **rows)
    return [tuple(row.values()) for row in found]


def test_q1_counts_the_packets_of_three_links_per_minute() -> None:
    control = [packet(0), packet(59), packet(61)]
    assert values(
        "Q1", Control=control, Main1=[packet(10), packet(70)], Main2=[packet(60), packet(130)]
    ) == [(3,), (3,), (1,)]


def test_q2_pairs_strictly_within_its_windows() -> None:
    main2 = [answer(ts) for ts in (120, 179, 180, 380, 381)]
    found = results(PRINTED["Q2"], Main1=[packet(0), packet(500)], Main2=main2)
    # 180 is not below 0 + 3 min, 380 not above 500 − 2 min.
    assert [(row["ts"], row["right_ts"]) for row in found] == [(0, 120), (0, 179), (500, 381)]


def test_q3_counts_connections_per_pair_of_timestamps() -> None:
    s0 = [packet(0, "SYN"), packet(0, "SYN"), packet(1, "SYN"), packet(2), packet(9)]
    s1 = [answer(1, "SYN_ACK"), answer(2, "SYN_ACK"), answer(2, "FIN"), answer(3), answer(9)]
    assert values("Q3", S0=s0, S1=s1) == [(0, 1, 2), (0, 2, 2), (1, 2, 1)]
    # Once both links have passed a pair it comes, however wide the band is.
    assert values("Q3", S0=s0, S1=s1, hold=True) == [(0, 1, 2), (0, 2, 2), (1, 2, 1)]


def test_q4_counts_per_pair_of_hosts_and_minute() -> None:
    m = [packet(0), packet(1), packet(2, source=9), packet(60)]
    assert values("Q4", M=m) == [(1, 2, 2), (9, 2, 1), (1, 2, 1)]


def test_q5_counts_over_a_union() -> None:
    m1, m2 = [packet(0), packet(1)], [packet(2, source=9), packet(60)]
    assert values("Q5", M1=m1, M2=m2) == [(1, 2, 2), (9, 2, 1), (1, 2, 1)]


def test_q6_pairs_within_ten_seconds_of_a_tumbling_window() -> None:
    # 5 and 9 share a window, 12 and 10 the next; 9 and 12 are near but do not.
    assert values("Q6", A=[packet(5)], B=[packet(12)], C=[answer(9)], D=[answer(10)]) == [
        (1, 2, 5),
        (1, 2, 12),
    ]


def test_q7_counts_pairs_of_a_band_join() -> None:
    m2 = [answer(ts) for ts in (5, 6, 56, 65)]
    assert values("Q7", M1=[packet(0), packet(60)], M2=m2) == [(1,), (2,)]


def test_q8_pairs_equal_timestamps() -> None:
    found = values(
        "Q8", M1=[packet(0), packet(60)], M2=[answer(0), answer(6)], C=[answer(60), answer(61)]
    )
    assert found == [(1, 2, 0), (1, 2, 60)]


def test_q9_counts_over_a_sliding_window() -> None:
    # Windows of five minutes start at −240, −180 … 60; two packets lie in all that hold 61.
    found = values("Q9", M1=[packet(0)], M2=[packet(61)], C=[packet(100)])
    assert found == [(1,), (3,), (3,), (3,), (3,), (2,)]


def test_row_windows_of_a_join_count_before_predicates() -> None:
    sql = "SELECT M1.ts, M2.ts FROM M1 [ROWS 2], M2 [ROWS 1] WHERE M1.flag = 'x' AND M2.flag = 'y'"
    m1 = [packet(1, "x"), packet(2, "-"), packet(3, "-"), packet(4, "x")]
    m2 = [answer(1, "y"), answer(2, "-"), answer(3, "y"), answer(4, "-")]
    # Arrivals alternate. y3 finds M1's latest two, 2 and 3; x4 finds y3.
    assert values(sql, M1=m1, M2=m2) == [(1, 1), (4, 3)]


def test_row_windows_of_an_aggregate_count_before_predicates_and_over_groups() -> None:
    sql = "SELECT srcIP, count(*), max(ts) FROM M [ROWS 3] WHERE ts <> 2 GROUP BY srcIP"
    m = [packet(1), packet(2), packet(3, source=9), packet(4), packet(5), packet(6), packet(7)]
    assert values(sql, M=m) == [(1, 1, 1), (9, 1, 3), (1, 3, 6), (1, 1, 7)]


def test_keys_conditions_and_arithmetic() -> None:
    sql = """SELECT ts AS start, srcIP % 2 AS odd, max(ts) - ts AS span, count(*) AS n
             FROM M [RANGE 10, WA ts] GROUP BY odd HAVING n > 1 OR max(ts) > 25"""
    m = [packet(ts, source=ts % 3) for ts in (0, 1, 4, 7, 12, 29)]
    # [0, 10): of even sources 0 → 0, of odd 1, 4, 7 → 1; 12 is alone; 29 has source 2.
    assert values(sql, M=m) == [(0, 1, 7, 3), (20, 0, 9, 1)]


def test_distinct() -> None:
    m = [packet(0), packet(0), packet(1), packet(60)]
    assert values("SELECT DISTINCT ts, srcIP FROM M", M=m) == [(0, 1), (1, 1), (60, 1)]
    assert values("SELECT DISTINCT srcIP FROM M [RANGE 1 min]", M=m) == [(1,), (1,)]


def test_windows_over_timestamps() -> None:
    net = au.Network("n")
    net.stream("S", "at timestamp, x int", progress=au.Ordered("at"))
    net.query("q", "SELECT at, sum(x) AS total FROM S [RANGE 1 min, WA at]")
    net.query("r", "SELECT l.x FROM S l [RANGE 1 min], S r [RANGE 1 min] WHERE l.x < r.x")
    times = [datetime(2024, 1, 1, 12, 0, s % 60, tzinfo=UTC) for s in (5, 59)]
    times.append(datetime(2024, 1, 1, 12, 1, 5, tzinfo=UTC))
    out = run(expanded(net), {"S": [{"at": at, "x": n} for n, at in enumerate(times, 1)]})
    noon = datetime(2024, 1, 1, 12, 0, tzinfo=UTC)
    assert out["q"] == [{"at": noon, "total": 3}, {"at": noon.replace(minute=1), "total": 3}]
    assert out["r"] == [{"x": 1}, {"x": 2}]  # the first and the last are one minute apart
