"""Every mistake in a file: a code, file and line, the box, what exists, the likely fix."""

# ruff: noqa: E501  (a case a line)

from __future__ import annotations

from pathlib import Path

import pytest

from auroral import Network, NetworkError

from .documents import EVERY, SOLDIERS, written

WHERE = 'where: "pos >= 30"'
SCHEMA = "{sid: int, time: bigint, pos: int}"
PROGRESS = "{on: time, delay: 5}"
ORDER = "{on: time, slack: 1}"
WINDOW = "{size: 1}"
COMPUTE = '{cnt: "count(*)"}'
LATENCY = "[[0, 1], [2, 1], [10, 0]]"
STREAM, TABLE, ACROSS, CROWD, ENOUGH = (
    "stream reports",
    "table accounts",
    *(f"box {name}" for name in ("across", "crowd", "enough")),
)
QUERY, POINT, GROUP, ALERTS = (
    "query hot",
    "connection point recent",
    "group border",
    "output alerts",
)

UNKNOWN_KEYS = [
    ("streams:", "strems:", 2, "strems", "streams"),
    ("progress:", "progres:", 5, STREAM, "progress"),
    ("source:", "sorce:", 6, STREAM, "source"),
    ("delay: 5", "dely: 5", 5, STREAM, "delay"),
    ("delay: 5", "delay: 5, heartbeat: {lagg: 1}", 5, STREAM, "lag"),
    ("key: [vid]", "keys: [vid]", 8, TABLE, "key"),
    (WHERE, WHERE.replace("where", "wher"), 10, ACROSS, "where"),
    ("input: reports", "inputt: reports", 10, ACROSS, "input"),
    ("slack: 1", "slak: 1", 11, CROWD, "slack"),
    (WINDOW, "{siz: 1}", 11, CROWD, "size"),
    (COMPUTE, "{Cnt: {udff: 'a:b'}}", 11, CROWD, "udf"),
    ('keep: "2 hours"', "kep: 2 hours", 16, POINT, "keep"),
    ('keep: "2 hours"', "keep: {row: 2}", 16, POINT, "rows"),
    ("sink:", "snk:", 23, ALERTS, "sink"),
    ("from:", "form:", 21, ALERTS, "from"),
    ("latency:", "latncy:", 22, ALERTS, "latency"),
    ("graph:", "grph:", 22, ALERTS, "graph"),
    ("headroom:", "headrom:", 24, "engine", "headroom"),
]
NOTHING_KNOWN: tuple[str, ...] = ()
FIELDS = ("pos, sid, time",)
ARCS = ("across, across.rest, crowd, crowd.late, enough, enough.rest", "reports")
MISTAKES = [
    # names of what does not exist
    ("input: across", "input: acros", "UNKNOWN_ARC", 11, CROWD, ("across.rest", "did you mean across?")),
    ("input: crowd", "input: across.late", "UNKNOWN_ARC", 12, ENOUGH, ("crowd.late", "across.rest")),
    ("input: crowd", "input: accounts", "TABLE_AS_ARC", 12, ENOUGH, ("accounts is a table", "crowd")),
    ("from: enough", "from: enouh", "UNKNOWN_ARC", 21, ALERTS, (*ARCS, "hot", "did you mean enough?")),
    ("from: enough", "from: accounts", "UNKNOWN_ARC", 21, ALERTS, ARCS),
    ("{on: across", "{on: acros", "UNKNOWN_ARC", 16, POINT, (*ARCS, "did you mean across?")),
    ("key: sid}", "key: sidd}", "UNKNOWN_FIELD", 16, POINT, (*FIELDS, "did you mean sid?")),
    ("[across, crowd,", "[across, crow,", "UNKNOWN_BOX", 18, GROUP, ("across, crowd, enough",)),
    ("box: filter, input: crowd", "box: filtr, input: crowd", "UNKNOWN_BOX", 12, ENOUGH,
     ("aggregate, bsort, dedup, filter, join, latch, map, number, read, resample, union, update, wait_for", "filter?")),
    ("box: filter, input: crowd", "box: [filter], input: crowd", "UNKNOWN_BOX", 12, ENOUGH, ()),
    ("box: filter, input: crowd", "input: crowd", "MISSING_KEY", 12, ENOUGH, ("aggregate, bsort",)),
    ("pos >= 30", "poz >= 30", "UNKNOWN_FIELD", 10, ACROSS, (*FIELDS, "did you mean pos?")),
    ("pos >= 30", "ceill(pos) > 1", "UNKNOWN_FUNCTION", 10, ACROSS, ("ceill", "did you mean ceil?")),
    ("count(*)", "summ(pos)", "UNKNOWN_FUNCTION", 11, CROWD, ("summ", "did you mean sum?")),
    ("count(*)", "sum(floo(pos))", "UNKNOWN_FUNCTION", 11, CROWD, ("floo",)),
    ("pos: int}", "pos: itn}", "UNKNOWN_TYPE", 4, STREAM, ("bigint", "did you mean int?")),
    ("on: cnt", "on: cont", "UNKNOWN_FIELD", 22, ALERTS, ("cnt, time", "did you mean cnt?")),
    ("key: [vid]", "key: [id]", "UNKNOWN_FIELD", 8, TABLE, ("balance, vid",)),
    ("FROM reports", "FROM reprts", "UNKNOWN_STREAM", 14, QUERY, ("reports", "did you mean reports?")),
    ("SELECT sid", "SELECT sidd", "UNKNOWN_FIELD", 14, QUERY, ("did you mean sid?",)),
    # sinks
    ("sink: {format: kafka,", "sink: {format: xml,", "UNKNOWN_FORMAT", 23, ALERTS, ("key sink", "'xml'", "csv, jsonl, parquet")),
    ("sink: {format: kafka, topic: alerts}", "sink: {format: csv}", "MISSING_OPTION", 23, ALERTS, ("path",)),
    ("sink: {format: kafka,", "sink: {format: console,", "UNKNOWN_OPTION", 23, ALERTS, ("topic",)),
    # expressions
    ("pos >= 30", "pos + 30", "TYPE_MISMATCH", 10, ACROSS, ("boolean", "pos + 30", "int")),
    ("pos >= 30", "pos >= ", "SYNTAX_ERROR", 10, ACROSS, ("key where",)),
    ("pos >= 30", "sum(pos) > 1", "AGGREGATE", 10, ACROSS, ("sum",)),
    ("pos >= 30", "rand() > 0.5", "NON_DETERMINISTIC", 10, ACROSS, ("rand",)),
    ("pos >= 30", "_seq > 3", "UNKNOWN_FIELD", 10, ACROSS, FIELDS),
    ("pos >= 30", "array(1) = pos", "TYPE_MISMATCH", 10, ACROSS, ("array",)),
    ("count(*)", "pos", "NOT_AGGREGATED", 11, CROWD, ("pos", "first(pos)")),
    ("count(*)", "1 + 1", "NOT_AGGREGATED", 11, CROWD, ("count(*)",)),
    ("count(*)", "bool_and(pos)", "TYPE_MISMATCH", 11, CROWD, ("bool_and", "boolean", "int")),
    ("count(*)", "sum(pos, pos)", "WRONG_ARITY", 11, CROWD, ("sum takes 1",)),
    ("count(*)", "sum(" * 3000 + "pos" + ")" * 3000, "SYNTAX_ERROR", 11, CROWD, ("too deeply",)),
    ("pos > 90 AND", "pos AND", "TYPE_MISMATCH", 14, QUERY, ()),
    ("pos > 90 AND", "pos > > AND", "SYNTAX_ERROR", 14, QUERY, ("column",)),
    ("SELECT sid, pos FROM", "DELETE FROM", "BAD_QUERY", 14, QUERY, ("SELECT", "DELETE")),
    # shapes
    (WHERE, "where: 5", "BAD_PARAMETER", 10, ACROSS, ("key where", "expected text, found 5")),
    (WHERE, "where: [a]", "BAD_PARAMETER", 10, ACROSS, ("expected text, found ['a']",)),
    (WHERE, "routes: {}", "BAD_PARAMETER", 10, ACROSS, ("at least one route",)),
    (WHERE, "routes: 5", "BAD_PARAMETER", 10, ACROSS, ("found 5",)),
    (WHERE, "routes: {rest: pos > 1}", "BAD_NAME", 10, ACROSS, ("'rest'",)),
    (WHERE, "routes: {a-b: pos > 1}", "BAD_NAME", 10, ACROSS, ("'a-b'",)),
    (WHERE, "routes: {a: pos}", "TYPE_MISMATCH", 10, ACROSS, ("key routes.a", "boolean")),
    (WHERE, WHERE + ", routes: {a: pos > 1}", "BAD_PARAMETER", 10, ACROSS, ("both",)),
    (", " + WHERE, "", "BAD_PARAMETER", 10, ACROSS, ("where", "routes", "neither")),
    ("input: reports, ", "", "MISSING_KEY", 10, ACROSS, ("key input is missing", "box, input, where")),
    ("input: reports, ", "input: [reports], ", "BAD_PARAMETER", 10, ACROSS, ("expected text",)),
    ("box: filter, input: reports, " + WHERE, "box: union, inputs: reports", "BAD_PARAMETER", 10, ACROSS,
     ("key inputs", "expected a list, found 'reports'")),
    ("box: filter, input: reports, " + WHERE, "box: union, inputs: [reports]", "BAD_PARAMETER", 10, ACROSS,
     ("two inputs or more", "['reports']")),
    ("box: filter, input: crowd, where: \"cnt >= 3\"", "box: union, inputs: [crowd, across]",
     "SCHEMA_MISMATCH", 12, ENOUGH, ("crowd has (time bigint, cnt bigint)", "sid int, time bigint", "map")),
    ("border: [across, crowd, enough]", "border: 5", "BAD_PARAMETER", 18, GROUP, ("list of boxes",)),
    ("border: [across, crowd, enough]", "border: [5]", "BAD_PARAMETER", 18, GROUP, ("list of boxes",)),
    ('hot: "SELECT', 'hot: [1] #"SELECT', "BAD_PARAMETER", 14, QUERY, ("SQL text",)),
    ("engine: {headroom: 0.8", "engine: [1] #", "BAD_PARAMETER", 24, "engine", ("headroom, scheduler",)),
    ("engine: {headroom: 0.8", "engine: [] #", "BAD_PARAMETER", 24, "engine", ("headroom, scheduler",)),
    ("headroom: 0.8", "headroom: 2", "BAD_PARAMETER", 24, "engine", ("at most 1", "found 2")),
    ("headroom: 0.8", "memory: 1 KB", "BAD_PARAMETER", 24, "engine", ("1 MB at least", "no train would fit")),
    ("headroom: 0.8", "step_timeout: soon", "BAD_DURATION", 24, "engine", ("step_timeout", "a number and a unit")),
    ("headroom: 0.8", "headroom: true", "BAD_PARAMETER", 24, "engine", ("a number, found True",)),
    ("headroom: 0.8", "headroom: '0.8'", "BAD_PARAMETER", 24, "engine", ("a number, found '0.8'",)),
    ("headroom: 0.8", "train: 0", "BAD_PARAMETER", 24, "engine", ("more than 0",)),
    ("scheduler: auto", "scheduler: x", "BAD_PARAMETER", 24, "engine", ("'feedback' or 'thread-per-box'",)),
    ("scheduler: auto", "scheduler: qoss", "BAD_PARAMETER", 24, "engine", ("did you mean qos?",)),
    ("  recent: {", "  recent: 5 #{", "BAD_PARAMETER", 16, POINT, ("on, keep, key",)),
    # names
    ("network: soldiers", "network: 2nd", "BAD_NAME", 1, "network", ("'2nd'", "a letter")),
    ("network: soldiers", "network: 5", "MISSING_KEY", 1, "network", ("found 5",)),
    ("  enough:", "  1st:", "BAD_NAME", 12, "box 1st", ("'1st'", "a letter")),
    ("  enough:", "  _x:", "BAD_NAME", 12, "box _x", ("a letter",)),
    ("  alerts:", "  al.erts:", "BAD_NAME", 20, "output al.erts", ("a letter",)),
    ("  border:", "  bo-rder:", "BAD_NAME", 18, "group bo-rder", ("a letter",)),
    ("  enough:", "  reports:", "DUPLICATE_NAME", 12, "box reports", ("stream reports", "net.yaml:3")),
    ("  enough:", "  accounts:", "DUPLICATE_NAME", 12, "box accounts", ("table accounts",)),
    ("  hot:", "  crowd:", "DUPLICATE_NAME", 14, "query crowd", ("box crowd", "net.yaml:11")),
    ("  recent:", "  hot:", "DUPLICATE_NAME", 16, "connection point hot", ("query hot",)),
    # cycles
    ("input: reports", "input: enough", "CYCLE", 10, ACROSS, ("across ← enough ← crowd ← across",)),
    ("input: reports", "input: enough.rest", "CYCLE", 10, ACROSS, ("across ← enough ← crowd ← across",)),
    ("input: reports", "input: across", "CYCLE", 10, ACROSS, ("across ← across",)),
    # schemas
    (SCHEMA, "{}", "BAD_SCHEMA", 4, STREAM, ("at least one field",)),
    (SCHEMA, "5", "BAD_SCHEMA", 4, STREAM, ("found 5",)),
    (SCHEMA, "[sid]", "BAD_SCHEMA", 4, STREAM, ("{a: int, b: string}",)),
    (SCHEMA, '"sid int time bigint"', "BAD_TYPE", 4, STREAM, ("',' in", "found 'time'")),
    ("schema: " + SCHEMA, "progress2: 1", "UNKNOWN_KEY", 4, STREAM, ("schema, progress, source",)),
    ("    schema: " + SCHEMA, "", "MISSING_KEY", 3, STREAM, ("key schema is missing",)),
    ("pos: int}", "pos: 5}", "BAD_TYPE", 4, STREAM, ("key schema.pos", "found 5")),
    ("pos: int}", "pos: decimal(39)}", "BAD_TYPE", 4, STREAM, ("38",)),
    ("pos: int}", "pos: array<int}", "BAD_TYPE", 4, STREAM, ("'>'", "the end")),
    ("pos: int}", "SID: int}", "DUPLICATE_FIELD", 4, STREAM, ("SID",)),
    ("pos: int}", "'': int}", "BAD_FIELD_NAME", 4, STREAM, ("''",)),
    *(
        ("pos: int}", f"{name}: int}}", "RESERVED_FIELD", 4, STREAM, (name, "_punctuation"))
        for name in ("_seq", "_sub", "_ts", "_at", "_AT", "_punctuation")
    ),
    (COMPUTE, "{_seq: count(*)}", "RESERVED_FIELD", 11, CROWD, ("_seq",)),
    (COMPUTE, "{TIME: count(*)}", "DUPLICATE_FIELD", 11, CROWD, ("TIME",)),
    ("{vid: int, balance: double}", "{}", "BAD_SCHEMA", 8, TABLE, ("at least one field",)),
    ("sqlite:", "mysql:", "BAD_STORE", 8, TABLE, ("sqlite", "postgresql", "mysql")),
    ('"sqlite:///accounts.db"', '""', "BAD_STORE", 8, TABLE, ("sqlite",)),
    # progress
    (PROGRESS, "{on: time}", "BAD_PARAMETER", 5, STREAM, ("exactly one", "found 0")),
    (PROGRESS, "{on: time, delay: 5, ordered: true}", "BAD_PARAMETER", 5, STREAM, ("found 2",)),
    (PROGRESS, "{on: time, punctuated: true, ordered: true}", "BAD_PARAMETER", 5, STREAM, ("found 2",)),
    (PROGRESS, "{delay: 5}", "MISSING_KEY", 5, STREAM, ("key on is missing",)),
    (PROGRESS, "{on: time, ordered: maybe}", "BAD_PARAMETER", 5, STREAM, ("true or false",)),
    (PROGRESS, "{on: tim, delay: 5}", "UNKNOWN_FIELD", 5, STREAM, (*FIELDS, "did you mean time?")),
    (PROGRESS, "{on: time, delay: -5}", "BAD_PARAMETER", 5, STREAM, ("-5",)),
    (PROGRESS, "{on: time, delay: 5 minutes}", "BAD_PARAMETER", 5, STREAM, ("'5 minutes'", "bigint")),
    (PROGRESS, "{on: time, delay: []}", "BAD_PARAMETER", 5, STREAM, ("a number or text",)),
    (PROGRESS, "{on: time, delay: .nan}", "BAD_FILE", 5, STREAM, ("finite",)),
    (PROGRESS, "{on: time, delay: 5, by: [sidd]}", "UNKNOWN_FIELD", 5, STREAM, (*FIELDS, "sid?")),
    (PROGRESS, "{on: time, delay: 5, by: sid}", "BAD_PARAMETER", 5, STREAM, ("expected a list",)),
    (PROGRESS, "{on: time, delay: 5, heartbeat: {lag: -1}}", "BAD_PARAMETER", 5, STREAM, ("-1",)),
    (PROGRESS, "{on: time, delay: 5, heartbeat: {lag: x}}", "BAD_DURATION", 5, STREAM, ("'x'",)),
    (PROGRESS, "[~]", "BAD_PROGRESS", 5, STREAM, ("keys (on, ordered",)),
    (PROGRESS, "[{on: time, delay: 5}, ~]", "BAD_PROGRESS", 5, STREAM, ("found nothing",)),
    (PROGRESS, "{on: time, delay: 5, heartbeat: {lag: 1.0e+300}}", "BAD_PARAMETER", 5, STREAM, ("too large",)),
    (PROGRESS, "{on: time, delay: 5, heartbeat: 5}", "BAD_PARAMETER", 5, STREAM, ("keys (lag, unit)",)),
    (PROGRESS, "later", "BAD_PARAMETER", 5, STREAM, ("on, ordered, delay",)),
    # durations
    ("2 hours", "2 hourz", "BAD_DURATION", 16, POINT, ("'2 hourz'", "10 minutes")),
    ("2 hours", "2", "BAD_DURATION", 16, POINT, ("'2'",)),
    ("2 hours", "-2 hours", "BAD_DURATION", 16, POINT, ("'-2 hours'",)),
    ("2 hours", "0 s", "BAD_DURATION", 16, POINT, ("some time",)),
    ("2 hours", "9" * 400 + " s", "BAD_DURATION", 16, POINT, ("too long",)),
    ('keep: "2 hours"', "keep: 5", "BAD_PARAMETER", 16, POINT, ("text or keys (time, rows)",)),
    ('keep: "2 hours"', "keep: {rows: 0}", "BAD_PARAMETER", 16, POINT, ("more than 0",)),
    ('keep: "2 hours"', "keep: {rows: '5'}", "BAD_PARAMETER", 16, POINT, ("whole number",)),
    # windows and orders
    (WINDOW, "{}", "BAD_WINDOW", 11, CROWD, ("size",)),
    (WINDOW, "{advance: 5}", "BAD_WINDOW", 11, CROWD, ("size",)),
    (WINDOW, "{size: 0}", "BAD_WINDOW", 11, CROWD, ("key window.size", "more than 0")),
    (WINDOW, "{size: -1}", "BAD_WINDOW", 11, CROWD, ("more than 0, found -1",)),
    (WINDOW, "{size: 1.5}", "BAD_WINDOW", 11, CROWD, ("whole number", "bigint")),
    (WINDOW, "{size: 10 minutes}", "BAD_WINDOW", 11, CROWD, ("a number", "bigint")),
    (WINDOW, "{size: .inf}", "BAD_FILE", 11, CROWD, ("finite",)),
    (WINDOW, "{size: true}", "BAD_PARAMETER", 11, CROWD, ("a number or text",)),
    (WINDOW, "{size: 1, advance: 0}", "BAD_WINDOW", 11, CROWD, ("key window.advance",)),
    (WINDOW, "{size: 1, advance: 5 min}", "BAD_WINDOW", 11, CROWD, ("window.advance", "a number")),
    (WINDOW, "{advance: pos}", "TYPE_MISMATCH", 11, CROWD, ("window.advance", "boolean")),
    (WINDOW, "{advance: poz > 1}", "UNKNOWN_FIELD", 11, CROWD, FIELDS),
    (WINDOW, "{size: 1, align: last}", "BAD_PARAMETER", 11, CROWD, ("expected 'first'",)),
    (WINDOW, "{size: 1, timeout: 0}", "BAD_WINDOW", 11, CROWD, ("window.timeout", "more than 0")),
    (WINDOW, "{size: 1, timeout: 5 s}", "BAD_PARAMETER", 11, CROWD, ("expected a number",)),
    (WINDOW, "1", "BAD_PARAMETER", 11, CROWD, ("size, advance, align, timeout",)),
    (f"{ORDER}, window: {WINDOW}", "{on: time}, window: {size: 1, align: first}",
     "BAD_WINDOW", 11, CROWD, ("align", "slack")),
    (ORDER, "{slack: 1}", "MISSING_KEY", 11, CROWD, ("key on is missing", "on, slack, by")),
    (ORDER, "{on: time, slack: -1}", "BAD_PARAMETER", 11, CROWD, ("at least 0",)),
    (ORDER, "{on: time, slack: 1.5}", "BAD_PARAMETER", 11, CROWD, ("whole number",)),
    (ORDER, "{on: tme}", "UNKNOWN_FIELD", 11, CROWD, (*FIELDS, "did you mean time?")),
    (ORDER, "{on: time, by: [x]}", "UNKNOWN_FIELD", 11, CROWD, ("order.by", *FIELDS)),
    (COMPUTE, "{}", "BAD_PARAMETER", 11, CROWD, ("at least one computed field",)),
    (COMPUTE, "{cnt: 5}", "BAD_PARAMETER", 11, CROWD, ("compute.cnt", "text or keys (udf")),
    (COMPUTE, "{cnt: {udf: nowhere}}", "BAD_FUNCTION", 11, CROWD, ("module:function", "nowhere")),
    (COMPUTE, "{cnt: {udf: 'no.where:f'}}", "BAD_FUNCTION", 11, CROWD, ("cannot import no.where",)),
    (COMPUTE, "{cnt: {udf: 'math:floor'}}", "BAD_FUNCTION", 11, CROWD, ("init, incr",)),
    # utility
    (LATENCY, "[[0, 1]]", "BAD_QOS", 22, ALERTS, ("qos.latency", "two points")),
    (LATENCY, "[[0, 1], [0, 0]]", "BAD_QOS", 22, ALERTS, ("in order of x",)),
    (LATENCY, "[[0, 1], [5, 1], [2, 0]]", "BAD_QOS", 22, ALERTS, ("in order of x",)),
    (LATENCY, "[[0, 1], [5, 2]]", "BAD_QOS", 22, ALERTS, ("within [0, 1]",)),
    (LATENCY, "[[-1, 1], [5, 0]]", "BAD_QOS", 22, ALERTS, ("[0, ∞]",)),
    (LATENCY, "[[0, 1], [5]]", "BAD_PARAMETER", 22, ALERTS, ("qos.latency.1", "a pair, found [5]")),
    (LATENCY, "[[0, 1], [5, 1, 2]]", "BAD_PARAMETER", 22, ALERTS, ("a pair",)),
    (LATENCY, "[[0, 1], [5, x]]", "BAD_PARAMETER", 22, ALERTS, ("a number, found 'x'",)),
    (LATENCY, "fast", "BAD_PARAMETER", 22, ALERTS, ("a list, found 'fast'",)),
    ("[[1, 1], [0, 0]]", "[[2, 1], [0, 0]]", "BAD_QOS", 22, ALERTS, ("qos.loss", "[0, 1]")),
    ("graph: [[3, 0.2], [10, 1]]", "graph: [[3, 5], [10, 1]]", "BAD_QOS", 22, ALERTS, ("qos.value.graph",)),
    (", graph: [[3, 0.2], [10, 1]]", "", "MISSING_KEY", 22, ALERTS, ("key graph is missing",)),
]  # fmt: skip


def mistake(directory: Path, text: str) -> NetworkError:
    """What `check` says of a file with that text."""
    path = written(directory, text)
    with pytest.raises(NetworkError) as raised:
        Network.load(path, imports=True).check()
    return raised.value


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


@pytest.mark.parametrize(("old", "new", "line", "place", "meant"), UNKNOWN_KEYS)
def test_unknown_key(tmp_path: Path, old: str, new: str, line: int, place: str, meant: str) -> None:
    error = mistake(tmp_path, changed(SOLDIERS, old, new))
    assert error.code == "UNKNOWN_KEY"
    assert str(error).startswith(f"UNKNOWN_KEY: {tmp_path / 'net.yaml'}:{line}, {place}")
    assert f"did you mean {meant}?" in str(error)
    assert meant in error.message.partition("the keys here are ")[2].split(", ")


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "place", "said"), MISTAKES, ids=[m[1][:40] for m in MISTAKES]
)
def test_mistake(
    tmp_path: Path, old: str, new: str, code: str, line: int, place: str, said: tuple[str, ...]
) -> None:
    error = mistake(tmp_path, changed(SOLDIERS, old, new))
    assert (error.code, error.exit_code) == (code, 2)
    assert str(error).startswith(f"{code}: {tmp_path / 'net.yaml'}:{line}, {place}")
    assert str(error).count("net.yaml:") == 1 + (code == "DUPLICATE_NAME"), "the place twice"
    for phrase in said:
        assert phrase in str(error)


IN_EVERY = [
    ("{on: at, delay: 5 seconds", "{on: speed, delay: 5 seconds", "BAD_PARAMETER", "stream cars", "double"),
    ("delay: 5 seconds", "delay: 5 parsecs", "BAD_DURATION", "stream cars", "'5 parsecs'"),
    ("delay: 5 seconds", "delay: 1.0e+305", "BAD_PROGRESS", "stream cars", "no delay"),
    ("lag: 30", "lag: 1.0e+305", "BAD_PARAMETER", "stream cars", "too large"),
    ("n bigint", "n string", "BAD_PROGRESS", "stream signals", "n is string"),
    ("size: 10 minutes", "size: 10", "BAD_WINDOW", "box means", "text such as '10 minutes'"),
    ("size: 10 minutes", "size: ten", "BAD_DURATION", "box means", "'ten'"),
    ("size: 10 minutes", "size: 0 minutes", "BAD_WINDOW", "box means", "more than 0"),
    ("advance: 5 minutes", "advance: 5", "BAD_WINDOW", "box means", "key window.advance"),
    ("{size: 100, align", "{size: 1.5, align", "BAD_WINDOW", "box hundreds", "whole number"),
    ("inputs: [cars, tolls]", "inputs: [cars]", "BAD_PARAMETER", "box paid", "2 inputs, found 1"),
    ("inputs: [cars, tolls]", "inputs: [cars, tolls, cars]", "BAD_PARAMETER", "box paid", "found 3"),
    ("inputs: [cars, tolls]", "inputs: [cars, toll]", "UNKNOWN_ARC", "box paid", "did you mean tolls?"),
    ("    within: 30 s\n", "", "MISSING_KEY", "box paid", "within, range or rows"),
    ("within: 30 s", "within: 30 s\n    range: [1 s, 2 s]", "BAD_PARAMETER", "box paid", "one of within, range and rows"),
    ("within: 30 s", "within: 30", "BAD_WINDOW", "box paid", "'10 minutes'"),
    ("within: 30 s", "range: [1 s]", "BAD_PARAMETER", "box paid", "a pair"),
    ("    right: {on: at}\n    within: 30 s", "    within: 30 s", "MISSING_KEY", "box paid", "its right"),
    ("right: {on: at}\n", "right: {on: vid}\n", "TYPE_MISMATCH", "box paid", "timestamp and int"),
    ("on: left.vid = right.vid\n", "on: left.vid = right.id\n", "UNKNOWN_FIELD", "box paid", "at, toll, vid"),
    ("on: left.vid = right.vid\n", "on: left.vid\n", "TYPE_MISMATCH", "box paid", "boolean"),
    ("on: left.vid = right.vid\n", "on: vid = 1\n", "UNKNOWN_FIELD", "box paid", "left, right"),
    ("range: [-1, 5]", "range: [-6, 5]", "BAD_WINDOW", "box ahead", "the band is empty"),
    ("[tolls, accounts], on", "[tolls, accounts], within: 1 s, on", "BAD_PARAMETER", "box known", "accounts"),
    ("inputs: [tolls, accounts]", "inputs: [accounts, accounts]", "BAD_PARAMETER", "box known", "two tables"),
    ("inputs: [lanes.slow, lanes.fast]", "inputs: [lanes.slow, accounts]", "TABLE_AS_ARC", "box some", "cars"),
    ("input: lanes.rest", "input: lanes", "UNKNOWN_ARC", "box tagged", "lanes.fast, lanes.rest, lanes.slow"),
    ("seg > 9", "array(seg) > 9", "TYPE_MISMATCH", "box tagged", "compute.far"),
    ("keep: [vid, at]", "keep: [vid, when]", "UNKNOWN_FIELD", "box slim", "at, seg, speed, vid"),
    ("keep: [vid, at]", "keep: all", "BAD_PARAMETER", "box slim", "'*' or a list"),
    ("keep: [vid, at]", "keep: []", "BAD_PARAMETER", "box slim", "compute, keep or both"),
    ("keep: [vid, at]", "keep: [vid], compute: {vid: seg}", "DUPLICATE_FIELD", "box slim", "vid"),
    ("keep: [vid, at]", "compute: {x: {udf: 'math:hypot', args: [no], returns: int}}", "UNKNOWN_FIELD",
     "box slim", "at, seg, speed, vid"),
    ("keep: [vid, at]", "compute: {x: {udf: 'builtins:int', returns: int}}", "MISSING_KEY", "box slim", "args"),
    ("keep: [vid, at]", "compute: {x: {udf: 'math:floor', args: [vid]}}", "MISSING_KEY", "box slim", "returns"),
    ("keep: [vid, at]", "compute: {x: {udf: 'math:flor', args: [vid]}}", "BAD_FUNCTION", "box slim", "floor"),
    ("within: 1 minute", "within: 1", "BAD_WINDOW", "box nearby", "'10 minutes'"),
    ("right: {on: at, by: [seg]}", "right: {on: at, by: [x]}", "UNKNOWN_FIELD", "box nearby", "right.by"),
    ("right: {on: at, by: [seg]}", "right: {on: vid, by: [seg]}", "TYPE_MISMATCH", "box nearby", "comparable"),
    ("WHERE vid = :vid\"}", "WHERE vid = :id\"}", "UNKNOWN_FIELD", "box balance", "at, toll, vid"),
    ("WHERE vid = :vid\"}", "WHERE id = :vid\"}", "UNKNOWN_FIELD", "box balance", "balance, vid"),
    ("WHERE vid = :vid\"}", "WHERE vid = ?\"}", "BAD_STATEMENT", "box balance", ":name"),
    ("SELECT balance", "SELECT blance", "UNKNOWN_FIELD", "box balance", "did you mean balance?"),
    ("toll FROM accounts", "toll FROM acounts", "UNKNOWN_TABLE", "box balance", "did you mean accounts?"),
    ("SELECT balance, :toll AS toll FROM", "DELETE FROM", "BAD_STATEMENT", "box balance", "DELETE"),
    ("UPDATE accounts SET balance", "UPDATE accounts SET blance", "UNKNOWN_FIELD", "box charge", "balance, vid"),
    ("UPDATE accounts", "UPDATE acounts", "UNKNOWN_TABLE", "box charge", "accounts"),
    ("UPDATE accounts SET balance = balance - :toll", "SELECT vid FROM accounts", "BAD_STATEMENT", "box charge",
     "SELECT"),
    ("UPDATE accounts SET", "UPDATE accounts SET SET", "SYNTAX_ERROR", "box charge", "column"),
    ("UPDATE accounts SET", "DELETE FROM accounts; UPDATE accounts SET", "BAD_STATEMENT", "box charge", "found 2"),
    ("charged: toll", "charged: tol", "UNKNOWN_FIELD", "box charge", "did you mean toll?"),
    ("report: {vid: vid, charged: toll}", "report: {}", "BAD_PARAMETER", "box charge", "at least one"),
    ("timeout: 2.5", "timeout: 0", "BAD_PARAMETER", "box held", "more than 0"),
    ("match: held.vid = signal.vid", "match: held.vid = 1 + signal.x", "UNKNOWN_FIELD", "box held", "charged, vid"),
    ("GROUP BY vid", "GROUP BY vd", "UNKNOWN_FIELD", "query fast", "did you mean vid?"),
    ("SELECT vid, count", "SELECT seg, count", "NOT_AGGREGATED", "query fast", "seg"),
    ("WA at]", "WA at, HOP 1]", "BAD_WINDOW", "query fast", "RANGE, ROWS, SLIDE, WA"),
    ("value: {on: n,", "value: {on: m,", "UNKNOWN_FIELD", "output fast", "n, vid"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "code", "place", "said"), IN_EVERY, ids=[m[1][:40] for m in IN_EVERY]
)
def test_mistake_in_a_box(
    tmp_path: Path, old: str, new: str, code: str, place: str, said: str
) -> None:
    text = changed(EVERY, old, new)
    error = mistake(tmp_path, text)
    assert (error.code, error.exit_code) == (code, 2)
    name = place.split()[1]
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines, 1) if line.startswith(f"  {name}:"))
    file, _, rest = str(error.where).partition(":")
    assert file == str(tmp_path / "net.yaml")
    line, _, rest = rest.partition(", ")
    assert first <= int(line) <= first + 8
    assert rest.startswith(place)
    assert said in str(error)


def test_a_value_graph_needs_a_number(tmp_path: Path) -> None:
    text = changed(EVERY, "SELECT vid, count(*) AS n", "SELECT vid, string(count(*)) AS n")
    error = mistake(tmp_path, text)
    assert (error.code, "n is string" in error.message) == ("BAD_QOS", True)


def test_a_key_gets_its_own_line(tmp_path: Path) -> None:
    text = "network: n\nstreams:\n  s:\n    schema:\n      a: int\n      b: strnig\n"
    assert "net.yaml:6, stream s, key schema.b" in str(mistake(tmp_path, text))
    text = EVERY.replace(
        "compute: {mean: avg(speed), cars: count(DISTINCT vid)}", "compute:\n      a: avg(x)"
    )
    assert "box means, key compute.a" in str(mistake(tmp_path, text))
