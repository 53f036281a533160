"""What `analyze` reports, and the errors it gives."""

from __future__ import annotations

import pytest

from auroral.errors import NetworkError
from auroral.network.types import Schema, Type
from auroral.sql.expressions.expression import analyze, evaluator

SCHEMA = Schema.parse("sid int, Pos int, name string, ok boolean, tags array<int>, at timestamp")


def refused(text: str) -> NetworkError:
    with pytest.raises(NetworkError) as caught:
        analyze(text, SCHEMA)
    return caught.value


def test_fields_are_spelled_and_ordered_as_in_the_schema() -> None:
    found = analyze("POS > 1 AND `sid` = pos", SCHEMA)
    assert found.fields == ("sid", "Pos")
    assert found.column is None
    assert found.in_catalogue


@pytest.mark.parametrize("text", ["pos", " (POS) ", "`Pos`", "((pos))"])
def test_a_bare_field_is_a_column(text: str) -> None:
    assert analyze(text, SCHEMA).column == "Pos"


def test_text_is_kept_verbatim() -> None:
    assert analyze(" pos  /* x */ +1", SCHEMA).text == " pos  /* x */ +1"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "EMPTY_EXPRESSION"),
        ("  \n", "EMPTY_EXPRESSION"),
        ("SELECT 1", "NOT_AN_EXPRESSION"),
        ("pos > 1; pos < 2", "NOT_AN_EXPRESSION"),
        ("pos AS p", "NOT_AN_EXPRESSION"),
        ("(SELECT 1)", "SUBQUERY"),
        ("pos IN (SELECT 1)", "SUBQUERY"),
        ("EXISTS (SELECT 1)", "SUBQUERY"),
        ("*", "STAR"),
        ("count(*)", "AGGREGATE"),
        ("sum(pos) + 1", "AGGREGATE"),
        ("row_number() OVER (ORDER BY pos)", "WINDOW_FUNCTION"),
        ("lag(pos)", "WINDOW_FUNCTION"),
        ("explode(tags)", "GENERATOR"),
        ("rand() < 0.5", "NON_DETERMINISTIC"),
        ("at < current_timestamp()", "NON_DETERMINISTIC"),
        ("at < now()", "NON_DETERMINISTIC"),
        ("current_date", "NON_DETERMINISTIC"),
        ("uuid()", "NON_DETERMINISTIC"),
        ("unix_timestamp()", "NON_DETERMINISTIC"),
        ("shuffle(tags)", "NON_DETERMINISTIC"),
        ("monotonically_increasing_id()", "NON_DETERMINISTIC"),
        ("speed > 1", "UNKNOWN_FIELD"),
        ("_seq", "UNKNOWN_FIELD"),
        ("_ts > 1", "UNKNOWN_FIELD"),
        ("_sub", "UNKNOWN_FIELD"),
        ("pos +", "SYNTAX_ERROR"),
        ("pos > > 3", "SYNTAX_ERROR"),
        ("'open", "SYNTAX_ERROR"),
        ("pos # 3", "SYNTAX_ERROR"),
        ("pos IS NULL = true", "SYNTAX_ERROR"),
        ("ok + 1", "TYPE_MISMATCH"),
        ("tags < 3", "TYPE_MISMATCH"),
        ("upper()", "WRONG_ARITY"),
        ("uper(name)", "UNKNOWN_FUNCTION"),
        ("NULL", "UNTYPED_NULL"),
        ("interval 1 day", "TYPE_MISMATCH"),
        ("name LIKE 'a\\\\b'", "BAD_PATTERN"),
        ("cast(pos AS whatever)", "UNKNOWN_TYPE"),
        ("(" * 500 + "pos" + ")" * 500, "SYNTAX_ERROR"),
    ],
)
def test_refusals_have_stable_codes(text: str, code: str) -> None:
    assert refused(text).code == code


def test_a_syntax_error_shows_the_place() -> None:
    error = refused("pos >= ) + 1")
    assert error.message == (
        "expected a value, field or function, found ')', at column 8: pos >= ▸) + 1"
    )


def test_a_type_error_names_operator_and_types() -> None:
    assert refused("ok + 1").message == "+: expected two numbers, found boolean, int"


def test_an_unknown_function_suggests_a_near_one() -> None:
    assert refused("uper(name)").hint == "did you mean upper?"


def test_an_unknown_field_lists_those_there_are() -> None:
    assert "Pos, at, name, ok, sid, tags" in refused("possition").message


def test_a_resolver_types_what_only_spark_knows() -> None:
    asked: list[str] = []

    def resolver(text: str, schema: Schema) -> Type:
        asked.append(text)
        return Type("string")

    found = analyze("soundex(name)", SCHEMA, resolver=resolver)
    assert (found.type, found.fields, found.in_catalogue) == (Type("string"), ("name",), False)
    assert asked == ["soundex(name)"]
    with pytest.raises(NetworkError) as caught:
        evaluator("soundex(name)", SCHEMA)
    assert caught.value.code == "NOT_IN_REFERENCE"


def test_a_resolver_is_not_asked_for_what_is_known_or_refused() -> None:
    def resolver(text: str, schema: Schema) -> Type:
        raise AssertionError("asked")

    assert analyze("pos + 1", SCHEMA, resolver=resolver).in_catalogue
    for text in ("rand()", "soundex(nope)", "soundex(sum(pos))"):
        with pytest.raises(NetworkError):
            analyze(text, SCHEMA, resolver=resolver)


def test_parameters_of_a_lambda_are_no_fields() -> None:
    found = analyze(
        "transform(tags, x -> x + sid)", SCHEMA, resolver=lambda *_: Type.parse("array<int>")
    )
    assert found.fields == ("sid", "tags")


def test_a_field_may_be_called_like_a_keyword() -> None:
    schema = Schema.parse("end int, left int, current_date date, interval int")
    assert analyze("end - left + interval", schema).fields == ("end", "left", "interval")
    assert analyze("case when end > 3 then 1 end", schema).fields == ("end",)
    assert analyze("current_date", schema).column == "current_date"
