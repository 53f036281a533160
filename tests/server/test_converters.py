"""Converters: what is encoded can be decoded, and bad data is a dead letter, never an exception."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.errors import UsageError
from auroral.io.batches import EncodedBatch
from auroral.io.encoded import CsvText, JsonLinesText
from auroral.io.rows import RowReader
from auroral.network.types import Schema
from auroral.server import converters
from auroral.server.converters.syslog import SyslogConverter

NAMES = ("influx", "syslog", "xml")
SCHEMA = Schema.parse(
    "measurement string, host string, n bigint, small int, load double, ok boolean, day date,"
    " time timestamp, price decimal(12,3), data binary, tags array<string>, message string,"
    " facility int, severity int, hostname string, timestamp timestamp, `a b=c` string"
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "",
        "-",
        "_",
        " ",
        "a b",
        "x,y=z",
        'q"q',
        "c:\\new",
        "tail\\",
        "two\nlines",
        "\r",
        "]]>",
        "<a&b>",
    ]
)
TIMES = st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)).map(
    lambda t: t.replace(tzinfo=dt.UTC)
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "measurement": TEXT,
    "host": TEXT,
    "n": st.integers(-(2**63), 2**63 - 1),
    "small": st.integers(-(2**31), 2**31 - 1),
    "load": st.floats(),
    "ok": st.booleans(),
    "day": st.dates(),
    "time": TIMES,
    "price": st.decimals(-(10**8), 10**8, places=3),
    "data": st.binary(max_size=8),
    "tags": st.lists(st.none() | TEXT, max_size=3),
    "message": TEXT,
    "facility": st.integers(-3, 30),
    "severity": st.integers(0, 9),
    "hostname": TEXT,
    "timestamp": TIMES,
    "a b=c": TEXT,
}


def rows_of(schema: Schema) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({f.name: st.none() | VALUES[f.name] for f in schema})
    return st.lists(row, max_size=4)


def read(batch: EncodedBatch, schema: Schema = SCHEMA) -> tuple[pa.Table, list[str]]:
    chunk = RowReader("s", schema).read(batch)
    return chunk.tuples, [f"{letter.line}: {letter.reason}" for letter in chunk.dead]


def schema_for(name: str) -> Schema:
    """What a format can carry: syslog has no parameters with such names."""
    return Schema(tuple(f for f in SCHEMA if name != "syslog" or f.name != "a b=c"))


@pytest.mark.law
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_is_encoded_can_be_decoded(name: str, data: st.DataObject) -> None:
    schema = schema_for(name)
    table = pa.Table.from_pylist(data.draw(rows_of(schema)), schema=schema.arrow())
    encoded = converters.converter(name).encode(table)
    found, dead = read(converters.converter(name).decode(encoded, schema), schema)
    assert not dead
    assert repr(found.to_pylist()) == repr(table.to_pylist())


@pytest.mark.law
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_damaged_data_never_raise(name: str, data: st.DataObject) -> None:
    schema = schema_for(name)
    table = pa.Table.from_pylist(data.draw(rows_of(schema)), schema=schema.arrow())
    whole = converters.converter(name).encode(table)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    damaged = whole[:start] + data.draw(st.binary(max_size=6)) + whole[end:]
    for decode in (converters.converter(name).decode, converters.converter(name).decode_block):
        read(decode(damaged, schema), schema)
    read(converters.converter(name).decode(data.draw(st.binary(max_size=60)), schema), schema)


@pytest.mark.law
@pytest.mark.parametrize("name", ["influx", "syslog"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_feed_may_be_cut_anywhere(name: str, data: st.DataObject) -> None:
    found = converters.converter(name)
    schema = Schema.parse("n bigint, message string")
    message = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"\\'))
    row = st.fixed_dictionaries({"n": st.integers(0, 9), "message": st.none() | message})
    table = pa.Table.from_pylist(data.draw(st.lists(row, max_size=5)), schema=schema.arrow())
    whole = found.encode(table)
    held, rows = b"", []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        held += whole[start:end]
        ready = found.cut(held)
        block, held = held[:ready], held[ready:]
        tuples, dead = read(found.decode_block(block, schema), schema)
        assert not dead
        rows += tuples.to_pylist()
    assert not held
    assert rows == table.to_pylist()


def test_one_bad_record_costs_no_other() -> None:
    schema = Schema.parse("host string, load double")
    decoded = converters.converter("influx").decode(
        b'cpu,host=a load=1\ncpu,host=b load="x\n# a comment\n\ncpu load=2 nine\n'
        b"cpu,host=c load=3\n",
        schema,
    )
    found, dead = read(decoded, schema)
    assert found.to_pylist() == [{"host": "a", "load": 1.0}, {"host": "c", "load": 3.0}]
    assert [letter.partition(":")[0] for letter in dead] == ["2", "5"]


def test_a_value_that_does_not_fit_is_a_dead_letter_with_its_line() -> None:
    schema = Schema.parse("host string, n int")
    influx = converters.converter("influx").decode(b"m n=1i\nm n=2.5\nm n=3i,x=1\n", schema)
    found, dead = read(influx, schema)
    assert found.column("n").to_pylist() == [1]
    assert dead == ["2: n: expected int, found 2.5", "3: there is no field x"]
    text = b"<rows>\n<row><n>1</n></row>\n<row><n>one</n></row>\n</rows>"
    found, dead = read(converters.converter("xml").decode(text, schema), schema)
    assert found.column("n").to_pylist() == [1]
    assert dead == ["3: n: expected int, found 'one'"]


def test_influx_types_and_escapes() -> None:
    schema = Schema.parse(
        "measurement string, `my tag` string, i bigint, u bigint, f double, t boolean, s string,"
        " time timestamp"
    )
    line = rb'my\,cpu,my\ tag=a\=b i=-3i,u=4u,f=1e3,t=F,s="a \"b\" \\ c, d=e" 1465839830100400200'
    found, dead = read(converters.converter("influx").decode(line, schema), schema)
    assert not dead
    assert found.to_pylist() == [
        {
            "measurement": "my,cpu",
            "my tag": "a=b",
            "i": -3,
            "u": 4,
            "f": 1000.0,
            "t": False,
            "s": 'a "b" \\ c, d=e',
            "time": dt.datetime(2016, 6, 13, 17, 43, 50, 100400, dt.UTC),
        }
    ]


SYSLOG = Schema.parse(
    "facility int, severity int, timestamp timestamp, hostname string, app_name string,"
    " procid string, msgid string, structured_data string, iut string, message string"
)


def test_syslog_of_rfc_5424() -> None:
    text = (
        b"<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47"
        b' [exampleSDID@32473 iut="3" quote="a \\"b\\" \\]"] \xef\xbb\xbfAn event'
    )
    found, dead = read(converters.converter("syslog").decode(text, SYSLOG), SYSLOG)
    assert not dead
    assert found.to_pylist() == [
        {
            "facility": 20,
            "severity": 5,
            "timestamp": dt.datetime(2003, 10, 11, 22, 14, 15, 3000, dt.UTC),
            "hostname": "mymachine.example.com",
            "app_name": "evntslog",
            "procid": None,
            "msgid": "ID47",
            "structured_data": '{"exampleSDID@32473": {"iut": "3", "quote": "a \\"b\\" ]"}}',
            "iut": "3",
            "message": "An event",
        }
    ]


def test_syslog_of_rfc_3164_takes_the_nearest_year() -> None:
    new_year = dt.datetime(2026, 1, 1, 0, 0, 5, tzinfo=dt.UTC)
    found = SyslogConverter(lambda: new_year).decode(
        b"<34>Dec 31 23:59:59 mars su[12]: 'su root' failed\n<13>only text\nno priority\n"
        b"<192>1 - - - - - -\n",
        SYSLOG,
    )
    tuples, dead = read(found, SYSLOG)
    first, second = tuples.to_pylist()
    assert first["timestamp"] == dt.datetime(2025, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
    assert (first["hostname"], first["app_name"], first["procid"]) == ("mars", "su", "12")
    assert second["message"] == "only text"
    assert [letter.partition(":")[0] for letter in dead] == ["3", "4"]


def test_syslog_messages_may_be_preceded_by_their_length() -> None:
    schema = Schema.parse("message string")
    data = b"19 <13>1 - - - - - - a19 <13>1 - - - - - - \n<13>plain\n"
    found, dead = read(converters.converter("syslog").decode(data, schema), schema)
    assert not dead
    assert found.column("message").to_pylist() == ["a", "\n", "plain"]


@pytest.mark.parametrize(
    "document",
    [
        b'<!DOCTYPE r [<!ENTITY x "boom">]><rows><row><host>&x;</host></row></rows>',
        b'<!DOCTYPE r SYSTEM "file:///etc/hostname"><rows><row/></rows>',
        b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]><rows><row/></rows>',
    ],
)
def test_xml_with_a_document_type_is_refused(document: bytes) -> None:
    decoded = converters.converter("xml").decode(document, SCHEMA)
    assert not decoded.good
    assert [why for _, why, _ in decoded.bad] == ["a document type is not allowed"]


def test_xml_keeps_the_rows_before_the_mistake() -> None:
    schema = Schema.parse("n int")
    text = b'<trades>\n<trade n="1"/>\n<trade><n>2</n></trade>\n<trade><n>3</trade>\n</trades>'
    found, dead = read(converters.converter("xml").decode(text, schema), schema)
    assert found.column("n").to_pylist() == [1, 2]
    assert dead == ["4: invalid XML: mismatched tag"]


def test_an_xml_feed_has_one_element_per_line() -> None:
    schema = Schema.parse("n int")
    xml = converters.converter("xml")
    found, dead = read(
        xml.decode_block(b'<row n="1"/>\n<row n=/>\n<row><n>3</n></row>\n', schema), schema
    )
    assert found.column("n").to_pylist() == [1, 3]
    assert dead == ["2: invalid XML: not well-formed (invalid token)"]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("application/xml", "xml"),
        ("TEXT/XML;charset=utf-8", "xml"),
        ("application/vnd.influx.line-protocol", "influx"),
        ("application/syslog", "syslog"),
        ("application/json", None),
    ],
)
def test_a_media_type_has_a_converter(header: str, name: str | None) -> None:
    found = converters.for_media_type(header)
    assert (found and found.name) == name


def test_every_converter_is_found_by_its_types() -> None:
    for media_type in converters.media_types():
        assert converters.for_media_type(media_type) is not None


def test_an_unknown_converter_is_refused() -> None:
    with pytest.raises(UsageError, match=r"UNKNOWN_CONVERTER.*influx, syslog, xml"):
        converters.converter("influxx")


def test_names_that_a_format_cannot_have_are_refused() -> None:
    for name, column in (("influx", "a\nb"), ("syslog", "a b")):
        with pytest.raises(UsageError, match="CANNOT_ENCODE"):
            converters.converter(name).encode(pa.table({column: ["x"]}))


def test_json_lines_and_csv_come_as_bytes() -> None:
    schema = Schema.parse("a int, b string")
    lines = b'\xef\xbb\xbf{"a": 1, "b": "x"}\r\n\n{"a": "no"}\n{"a": 2\n{"b": "y"}'
    found, dead = read(JsonLinesText(lines), schema)
    assert [row["b"] for row in found.to_pylist()] == ["x", "y"]
    assert [letter.partition(":")[0] for letter in dead] == ["3", "4"]
    found, dead = read(CsvText(b'b,a\n"x\ny",1\nz,no\n,3'), schema)
    assert found.to_pylist() == [{"a": 1, "b": "x\ny"}, {"a": 3, "b": None}]
    assert dead == ["4: a: expected int, found 'no'"]
    found, dead = read(CsvText(b"1,x\n2\n", names=["a", "b"], line=7), schema)
    assert found.to_pylist() == [{"a": 1, "b": "x"}]
    assert dead == ["8: expected 2 fields, found 1"]
    assert read(CsvText(b"a,b\n"), schema)[0].num_rows == 0
    with pytest.raises(UsageError, match="HEADER_MISMATCH"):
        read(CsvText(b"a,c\n1,2\n"), schema)
