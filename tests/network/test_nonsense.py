"""Whatever a file says, only errors of ours come out."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from auroral import AuroralError, Network
from auroral.network import check

from .documents import EVERY, SOLDIERS

DOCUMENTS: list[dict[str, Any]] = [YAML(typ="safe").load(text) for text in (SOLDIERS, EVERY)]
WORDS = """
on by slack size advance within range inputs input box join map udf args returns
cars tolls accounts crowd.late lanes lanes.fast left.vid right.vid tup# first
count(*) sum( avg(pos) array<int> struct<a:int> decimal(5,2) timestamp date
SELECT FROM [ROWS [RANGE 2:2 math:floor os:environ builtins:dict a:b:c .x:y
""".split()  # noqa: SIM905
WORDS += """
5 minutes; SELECT * FROM cars; SELECT cars.* FROM cars; (((; ``; :; ?; \\; 5 s; 0 s; -1 s
SELECT (SELECT 1) FROM accounts; UPDATE accounts SET balance = (SELECT 1); FROM cars SELECT vid
SELECT * FROM cars UNION SELECT 1; vid IN (SELECT 1); x -> x; 1 / 0; NULL; true; 'a' = 1; CASE
""".replace("\n", "; ").split("; ")
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.integers()
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def spots(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path in a document."""
    keys = node.keys() if isinstance(node, dict) else range(len(node) if type(node) is list else 0)
    return [path, *(spot for key in keys for spot in spots(node[key], (*path, key)))]


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """A valid document with a few parts replaced, removed, renamed or swapped."""
    document = copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(spots(document)[1:] or [()]))
        if not path:
            break
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        change = draw(st.sampled_from(["replace", "replace", "remove", "rename", "copy"]))
        if change == "replace":
            parent[path[-1]] = draw(plain)
        elif change == "remove":
            del parent[path[-1]]
        elif change == "rename" and isinstance(parent, dict):
            parent[draw(st.sampled_from(WORDS) | st.text(max_size=4))] = parent.pop(path[-1])
        else:
            other = document
            for key in draw(st.sampled_from(spots(document)[1:])):
                other = other[key]
            parent[path[-1]] = copy.deepcopy(other)
    return document


def judged(document: Any) -> AuroralError | None:
    """What is wrong with a document; None if nothing is. It must survive being saved, then."""
    try:
        network = Network.parse(document)
        network.check()
    except AuroralError as error:
        return error
    assert Network.parse(network.document()) == network
    return None


def loaded(path: Path) -> AuroralError | None:
    try:
        Network.load(path).check()
    except AuroralError as error:
        return error
    return None


@settings(max_examples=400)
@given(mutants())
def test_only_our_errors_come_out(document: Any) -> None:
    error = judged(document)
    assert error is None or (error.code.isupper() and error.exit_code == 2)


@settings(max_examples=100)
@given(plain)
def test_only_our_errors_come_out_of_anything(document: Any) -> None:
    assert judged(document) is not None


@settings(max_examples=150)
@given(
    st.text(
        alphabet=st.sampled_from("abn:{}[]()-,#&*!|>'\"%@`\\ \t\r\n0189.<\u2028\x85"), max_size=40
    )
)
def test_only_our_errors_come_out_of_any_text(text: str) -> None:
    for suffix in ("yaml", "json"):
        path = Path(SCRATCH) / f"net.{suffix}"
        path.write_text("network: n\n" + text, encoding="utf-8")
        error = loaded(path)
        assert error is None or str(path) in str(error)


SCRATCH = ""


@pytest.fixture(autouse=True, scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> None:
    global SCRATCH  # noqa: PLW0603
    SCRATCH = str(tmp_path_factory.mktemp("nonsense"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_documents_are_valid(document: Any) -> None:
    assert judged(document) is None
    assert check.fallback_resolver is None
