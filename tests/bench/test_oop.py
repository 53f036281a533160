"""The benchmark of out-of-order processing, without Spark: data, networks, report and charts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import auroral as au
from auroral.cli.bench import bench
from auroral.errors import RunError, UsageError
from benchmarks import BENCHMARKS, data, plots
from benchmarks.lab import FAILED, Lab, choose, run_experiments
from benchmarks.oop import experiments as oop
from benchmarks.oop.band import covering_train, q7
from benchmarks.oop.count import agreement, count_network
from benchmarks.oop.join import join_network, quarters
from benchmarks.oop.lab import Held, Run, most_held, with_options
from benchmarks.oop.memory import q5, q8, q9, same_rows
from benchmarks.oop.order import order_network
from benchmarks.report import Report


def times_us(table: pa.Table) -> list[int]:
    return list(table["ts"].cast(pa.int64()).to_pylist())


# ── data ──


def test_packets_have_so_many_groups_and_the_same_ones_every_time() -> None:
    table = data.packets(5_000, 100, seed=1, span_us=60 * data.SECOND_US)
    groups = table.group_by(["srcIP", "destIP"]).aggregate([([], "count_all")])
    assert groups.num_rows == 100
    assert table.equals(data.packets(5_000, 100, seed=1, span_us=60 * data.SECOND_US))
    assert not table.equals(data.packets(5_000, 100, seed=2, span_us=60 * data.SECOND_US))


def test_packets_are_disordered_by_no_more_than_said() -> None:
    (batch,), (after,) = data.packet_trains(
        2, 1_000, 10, span_us=data.SECOND_US, jitter_us=data.SECOND_US // 2
    )
    stamps = [*times_us(batch[1]), *times_us(after[1])]
    assert stamps != sorted(stamps)
    assert min(stamps) >= data.START_US
    greatest = data.START_US
    for stamp in stamps:
        assert stamp > greatest - data.SECOND_US // 2
        greatest = max(greatest, stamp)


def test_schemas_are_those_of_the_tables() -> None:
    for schema, table in (
        (data.PACKETS, data.packets(3, 2, seed=0, span_us=1)),
        (data.READINGS, data.readings(3, 2, seed=0, span_us=1)),
    ):
        assert table.schema.equals(au.Schema.parse(schema).arrow())


def test_arrivals_of_a_late_link_come_later_and_in_order() -> None:
    links = {"m1": data.link(6, 2, 4, seed=0), "m2": data.link(6, 2, 4, seed=1)}
    trains = data.arrivals(links, {"m2": 3}, 2)
    names = [[name for name, _ in train] for train in trains]
    assert names == [["m1", "m1"], ["m1", "m1", "m2"], ["m1", "m2", "m1", "m2"]]
    assert trains[1][2][1] is links["m2"][0]
    assert data.size(trains[2]) == 8


def test_a_link_of_whole_seconds_has_no_other_times() -> None:
    for second, table in enumerate(data.link(3, 5, 4, seed=0, whole_seconds=True)):
        assert set(times_us(table)) == {data.START_US + second * data.SECOND_US}


def test_files_hold_the_trains_and_are_taken_in_their_order(tmp_path: Path) -> None:
    trains = data.reading_trains(3, 10, 5, streams=("l", "r"), span_us=data.SECOND_US)
    places = data.write_files(trains, tmp_path, 2)
    assert set(places) == {"l", "r"}
    files = sorted(Path(places["l"]).iterdir(), key=lambda path: path.stat().st_mtime)
    assert len(files) == 6
    whole = pa.concat_tables(pq.read_table(path) for path in files)
    assert whole.num_rows == 30
    assert times_us(whole)[-1] == times_us(trains[2][0][1])[-1]


# ── networks ──


@pytest.mark.parametrize(
    "network",
    [
        count_network,
        join_network,
        q5,
        lambda: q7(5),
        q8,
        q9,
        *(
            lambda kind=kind: order_network(kind)
            for kind in ("slack window", "tup# window", "bsort")
        ),
    ],
)
def test_every_network_is_valid(network: Callable[[], au.Network]) -> None:
    assert network().check().network.outputs


def test_engine_options_are_added_to_a_network() -> None:
    net = with_options(count_network(), train=5)
    assert net.engine.train == 5
    assert with_options(net).boxes == count_network().boxes


# ── judging ──


def counts(*rows: tuple[int, int, int, int]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    names = ("ts", "srcIP", "destIP", "cnt")
    table = pa.table({n: pa.array(c, pa.int64()) for n, c in zip(names, columns, strict=True)})
    return table.set_column(0, "ts", pc.cast(table["ts"], pa.timestamp("us", "UTC")))


def test_agreement_looks_at_the_windows_that_both_have_closed() -> None:
    ours = counts((0, 1, 2, 3), (60, 1, 2, 1), (120, 1, 2, 9))
    assert agreement(ours, counts((0, 1, 2, 3), (60, 1, 2, 1))) == 1.0
    assert agreement(ours, counts((0, 1, 2, 3), (60, 1, 2, 2))) == 0.5
    assert agreement(ours, counts((60, 2, 5, 1))) == 0.0
    assert agreement(ours, counts((180, 1, 2, 1))) == 0.0


def test_same_rows_in_any_order() -> None:
    ours, theirs = counts((0, 1, 2, 3), (0, 2, 2, 1)), counts((0, 2, 2, 1), (0, 1, 2, 3))
    assert same_rows(ours, theirs)
    assert not same_rows(ours, ours.slice(1))


def test_a_window_is_covered_when_no_more_pair_of_it_can_come() -> None:
    assert covering_train(data.START_US, 0) == 1
    assert covering_train(data.START_US, 9) == 1
    assert covering_train(data.START_US + 20 * data.SECOND_US, 10) == 4


def test_a_run_tells_its_figures() -> None:
    run = Run(tuples=100, seconds=2.0, steps_s=[0.1, 0.4, 0.2])
    assert (run.rate, run.median_s, run.slowest_s) == (50, 0.2, 0.4)
    assert quarters([1, 2, 3, 4, 5, 6, 7, 8]) == ([1, 2], [7, 8])
    assert quarters([1]) == ([1], [1])


class Stated:
    """What `rows_held` sees of an engine."""

    def __init__(self, boxes: dict[str, Any]):
        self._boxes = boxes

    def stats(self) -> dict[str, Any]:
        return {"boxes": self._boxes}


def test_rows_held_are_those_of_all_boxes() -> None:
    boxes = {
        "u": {"dead": 0},
        "a": {"state": {"open": 3, "closed": 4}, "held": 6},
        "j": {"state": {"left": 5}, "held": 5},
    }
    assert Held.of(Stated(boxes)) == Held(12, 11)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="does not tell"):
        Held.of(Stated({"u": {"dead": 0}}))  # type: ignore[arg-type]
    assert most_held([Held(3, 1), Held(2, 2)]) == Held(3, 2)


def test_rows_held_are_compared_by_the_count_that_flatters_less() -> None:
    assert Held(2, 2).over(Held(8, 4)) == 0.5
    assert Held(4, 2).over(Held(8, 8)) == 0.5
    assert Held(4, 2).over(Held(0, 0)) == 4
    assert Held(5, 3).since(Held(2, 1)) == Held(3, 2)


# ── report and charts ──


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(None, True, tmp_path)  # type: ignore[arg-type]


def test_quick_is_a_tenth(lab: Lab) -> None:
    assert (lab.rows(500), lab.rows(3), lab.steps(30, 4)) == (50, 1, 4)
    full = Lab(lab.spark, False, lab.place)
    assert (full.rows(500), full.steps(30, 4)) == (500, 30)


def test_an_experiment_that_fails_is_told_and_the_others_go_on(lab: Lab) -> None:
    def bad(_report: Report, _lab: Lab) -> None:
        raise RunError("BROKEN", "it broke")

    def good(report: Report, _lab: Lab) -> None:
        report.section("Good", "x").rows.append((1,))

    report = Report("oop")
    run_experiments({"bad": bad, "good": good}, report, lab, ["bad", "good"])
    assert [section.title for section in report.sections] == ["Good", FAILED]
    assert "it broke" in report.text()
    assert [bar.met for bar in report.bars] == [False]


def test_experiments_are_chosen_by_name() -> None:
    assert choose(oop.EXPERIMENTS, ()) == list(oop.EXPERIMENTS)
    assert choose(oop.EXPERIMENTS, ("skew", "count")) == ["count", "skew"]
    with pytest.raises(UsageError, match="no experiment skw"):
        choose(oop.EXPERIMENTS, ("skw",))


def filled() -> Report:
    """A report with a section for every chart, as the experiments make them."""
    report = Report("oop")
    columns: dict[str, list[str]] = {}
    for chart in oop.CHARTS:
        held = columns.setdefault(chart.section, [])
        for name in (chart.x, chart.by, chart.y):
            if name and name not in held:
                held.append(name)
    for title, names in columns.items():
        section = report.section(title, *names)
        for x in (10, 20):
            for system in ("one", "other"):
                section.rows.append([system if n in ("system", "box") else x for n in names])
    report.bar("some", 1.0, least=1.0)
    return report


def test_report_is_data_too() -> None:
    document = json.loads(json.dumps(filled().data()))
    assert {section["title"] for section in document["sections"]} == {
        chart.section for chart in oop.CHARTS
    }
    assert document["bars"][0]["met"] is True


def test_series_are_split_by_a_column() -> None:
    report = Report("r")
    section = report.section("S", "delay_s", "system", "rows_held")
    section.rows += [(0, "a", 1), (0, "b", 2), (5, "a", 3)]
    chart = plots.Chart("f.png", "S", "delay_s", "rows_held", "system")
    assert plots.series(section, chart) == {"a": ([0, 5], [1, 3]), "b": ([0], [2])}


def test_every_chart_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    written = plots.save_charts(filled(), oop.CHARTS, tmp_path / "charts")
    assert [path.name for path in written] == [chart.file for chart in oop.CHARTS]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_charts_of_what_did_not_run_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert plots.save_charts(Report("oop"), oop.CHARTS, tmp_path) == []


def test_without_matplotlib_there_is_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _name: None)
    assert plots.save_charts(filled(), oop.CHARTS, tmp_path) == []
    assert "auroral[plots]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_matplotlib_is_not_needed_to_import_the_benchmark() -> None:
    code = "import sys, benchmarks.oop.experiments; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ── the command ──


def test_the_command_passes_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    seen: dict[str, Any] = {}

    def benchmark(**options: Any) -> Report:
        seen.update(options)
        return filled()

    monkeypatch.setitem(BENCHMARKS, "oop", benchmark)
    app = typer.Typer()
    app.command()(bench)
    said = CliRunner().invoke(
        app, ["oop", "--quick", "--json", "--plots", "here", "--only", "skew", "--only", "band"]
    )
    assert said.exit_code == 0
    assert json.loads(said.stdout)["benchmark"] == "oop"
    assert seen == {"quick": True, "plots": Path("here"), "only": ["skew", "band"]}


def test_micro_has_no_parts() -> None:
    with pytest.raises(UsageError, match="no plots and no parts"):
        BENCHMARKS["micro"](only=("x",))
