"""Types and schemas: what is read, how it is written, what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from auroral import NetworkError, Schema
from auroral.network.types import Type


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("INT", "int"),
        ("integer", "int"),
        ("long", "bigint"),
        ("byte", "tinyint"),
        ("short", "smallint"),
        ("real", "float"),
        ("bool", "boolean"),
        ("timestamp_ltz", "timestamp"),
        ("decimal", "decimal(10,0)"),
        ("numeric( 5 )", "decimal(5,0)"),
        ("dec(38,38)", "decimal(38,38)"),
        (" array < map<string , array<int>> > ", "array<map<string,array<int>>>"),
        ("struct<a:int,`b c`:string>", "struct<a:int,`b c`:string>"),
        ("struct<>", "struct<>"),
    ],
)
def test_types_read(written: str, read: str) -> None:
    assert str(Type.parse(written)) == read
    assert Type.parse(read) == Type.parse(written)
    assert isinstance(Type.parse(read).arrow(), pa.DataType)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("", "BAD_TYPE"),
        ("itn", "UNKNOWN_TYPE"),
        ("varchar(5)", "UNKNOWN_TYPE"),
        ("int int", "BAD_TYPE"),
        ("int(5)", "BAD_TYPE"),
        ("5", "BAD_TYPE"),
        ("decimal(0)", "BAD_TYPE"),
        ("decimal(39)", "BAD_TYPE"),
        ("decimal(5,6)", "BAD_TYPE"),
        ("decimal(5", "BAD_TYPE"),
        ("decimal(x)", "BAD_TYPE"),
        ("decimal(" + "9" * 5000 + ")", "BAD_TYPE"),
        ("decimal(²)", "BAD_TYPE"),
        ("array", "BAD_TYPE"),
        ("array<>", "BAD_TYPE"),
        ("map<int>", "BAD_TYPE"),
        ("struct<a int>", "BAD_TYPE"),
        ("struct<a:int", "BAD_TYPE"),
        ("array<" * 5000 + "int" + ">" * 5000, "BAD_TYPE"),
    ],
)
def test_types_refused(written: str, code: str) -> None:
    with pytest.raises(NetworkError) as raised:
        Type.parse(written)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("a", "BAD_TYPE"),
        ("a int,", "BAD_TYPE"),
        (", int", "BAD_TYPE"),
        ("a int b int", "BAD_TYPE"),
        ("größe int", "BAD_TYPE"),
        ("` int", "BAD_TYPE"),
        ("a int, A string", "DUPLICATE_FIELD"),
        ("_ts int", "RESERVED_FIELD"),
        ("a " + "array<" * 5000, "BAD_TYPE"),
    ],
)
def test_schemas_refused(written: str, code: str) -> None:
    with pytest.raises(NetworkError) as raised:
        Schema.parse(written)
    assert raised.value.code == code


def test_fields_are_found_without_regard_to_case() -> None:
    schema = Schema.parse({"Sid": "int", "größe": "double"})
    assert schema.field("SID").name == "Sid"
    assert "GRÖSSE" not in schema
    assert str(schema) == "Sid int, `größe` double"
    assert Schema.parse(str(schema)) == schema
    with pytest.raises(
        NetworkError, match=r"no field Siid; there are Sid, größe \(did you mean Sid"
    ):
        schema.field("Siid")
