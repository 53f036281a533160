"""An engine does not write the files it reads, nor one file twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.io.open import open_sink, open_source
from auroral.network.types import Schema
from tests.conformance import sparkless

SCHEMA = Schema.parse("id int")
TEXT = "id\n1\n2\n"


def network(source: Any = None, **outputs: Any) -> au.Network:
    net = au.Network("n")
    arc = net.stream("r", SCHEMA, source=source)
    for name, sink in outputs.items():
        net.output(name, arc, sink=sink)
    net.query("q", "SELECT id FROM r")
    return net


def refused(net: au.Network, reads: str | None = None, **writes: str) -> str:
    session: Any = sparkless.InProcessExecutor()
    engine = au.Engine(net, executor=session, background=False)
    if reads:
        engine.bind_source(open_source("r", reads, SCHEMA))
    for name, path in writes.items():
        engine.bind_sink(name, open_sink(name, path, SCHEMA))
    with pytest.raises(au.AuroralError) as raised:
        engine.start()
    return str(raised.value)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a file, and another that leads to it."""
    monkeypatch.chdir(tmp_path)
    Path("ok.csv").write_text(TEXT)
    Path("link.csv").symlink_to("ok.csv")
    Path("in").mkdir()
    Path("in", "one.csv").write_text(TEXT)
    return tmp_path


def test_a_file_that_is_read_is_not_written() -> None:
    declared = {"path": "ok.csv"}
    said = "SAME_FILE: ok.csv: it is the source of r, and the sink of a would write over it"
    assert said in refused(network(a=None), "ok.csv", a="ok.csv")
    assert said in refused(network(declared, a=declared))
    assert said in refused(network(declared, a=None), a="ok.csv")
    assert "SAME_FILE: link.csv" in refused(network(declared, a=None), a="link.csv")
    assert "SAME_FILE: in/two.csv" in refused(network(a=None), "in", a="in/two.csv")
    assert Path("ok.csv").read_text() == TEXT


def test_values_of_families_are_not_written() -> None:
    net = network(a=None)
    net.family("f", "SELECT id FROM r WHERE id = :sid", "ok.csv", "id")
    assert "it is the values of f" in refused(net, a="ok.csv")


def test_two_sinks_do_not_write_one_file() -> None:
    said = "the sink of a and the sink of q would both write to it"
    assert said in refused(network(a=None), a="z.csv", q="./z.csv")
    two = network(a={"path": "z.csv"}, b={"path": "z.csv"})
    assert "the sink of a and the sink of b would both" in refused(two)
    assert not Path("z.csv").exists()


def test_a_sink_without_a_directory_is_told_before_anything_starts() -> None:
    said = "CANNOT_WRITE: no/such.csv: the sink of a: there is no directory no"
    assert refused(network(a=None), a="no/such.csv") == said


def test_a_sink_to_come_is_told_before_anything_starts() -> None:
    net = network({"path": "ok.csv"}, a={"format": "kafka", "topic": "t"})
    assert "UNKNOWN_FORMAT: output a, key sink: this version checks kafka sinks" in refused(net)


def test_a_sink_takes_the_place_of_a_declared_one() -> None:
    net = network({"path": "ok.csv"}, a={"format": "kafka", "topic": "t"})
    session: Any = sparkless.InProcessExecutor()
    engine = au.Engine(net, executor=session, background=False)
    engine.bind_sink("a", open_sink("a", "a.csv", SCHEMA))
    with engine:
        engine.drain()
    assert Path("a.csv").read_text() == TEXT


def test_a_sink_that_comes_later_has_its_own_file_too() -> None:
    net = network({"path": "ok.csv"}, a={"path": "a.csv"})
    with sparkless.make_engine(net) as engine:
        for path in ("ok.csv", "a.csv"):
            with pytest.raises(au.UsageError, match="SAME_FILE"):
                engine.bind_sink("q", open_sink("q", path, SCHEMA))
        engine.bind_sink("q", open_sink("q", "q.csv", SCHEMA))
        engine.drain()
    assert Path("q.csv").read_text() == Path("a.csv").read_text() == TEXT


def test_many_may_write_where_nothing_is_kept() -> None:
    with sparkless.make_engine(
        network({"path": "ok.csv"}, a={"path": "/dev/null", "format": "csv"})
    ) as engine:
        engine.bind_sink("q", open_sink("q", {"path": "/dev/null", "format": "csv"}, SCHEMA))
        engine.drain()


def test_a_sink_for_what_is_not_there_says_so() -> None:
    with sparkless.make_engine(network(a=None)) as engine:
        with pytest.raises(
            au.UsageError, match=r"UNKNOWN_OUTPUT.*no output aa; .*did you mean a\?"
        ):
            engine.bind_sink("aa", print)
        with pytest.raises(au.UsageError, match="ALREADY_STARTED"):
            engine.bind_sink("r", print)
