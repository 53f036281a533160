"""Families as they grow and shrink: which member has which key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import auroral as au
from auroral.eddy import families
from auroral.eddy.families import Families, FamilyMembers, family_of
from auroral.eddy.registered import RegisteredQuery
from auroral.engine.queries.registrar import Registrar
from auroral.ids import ChunkId

_SQL = "SELECT * FROM s WHERE n = :n"


def _registrar() -> Registrar:
    net = au.Network("n")
    net.stream("s", "n bigint")
    return Registrar(net)


_READ = _registrar()


def _entry(name: str, keys: pa.Array | list[Any]) -> RegisteredQuery:
    values = pa.table({"key": keys, "n": pa.array(range(len(keys)), pa.int64())})
    return _READ.entry(name, au.Family(_SQL, values, "key"))


@st.composite
def _changes(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Keys that come and keys that go, call by call."""
    some = st.lists(st.integers(0, 12), unique=True, max_size=6)
    return draw(st.lists(st.tuples(some, some), max_size=8))


@pytest.mark.parametrize("small", [0, 3, 1_000])
@pytest.mark.parametrize("type", [pa.int64(), pa.int8(), pa.string(), pa.date32()])
@given(calls=_changes())
def test_members_are_found_by_their_keys(
    small: int, type: pa.DataType, calls: list[tuple[list[int], list[int]]]
) -> None:
    """Whether entries are large or small, a family is what a dictionary says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "SMALL", small)
        family = FamilyMembers()
        family.add(_entry("f", pa.array([], type)))
        there: dict[int, tuple[str, int]] = {}
        for number, (come, go) in enumerate(calls, 1):
            texts = {k: str(pa.scalar(k, pa.int32()).cast(type)) for k in range(13)}
            entry = _entry(str(ChunkId("f", number)), pa.array(come, pa.int32()).cast(type))
            assert entry.keys is not None
            going: dict[str, list[int]] = {}
            for key in set(go) & set(there):
                name, member = there.pop(key)
                going.setdefault(name, []).append(member)
            twice = family.taken(entry.keys, going)
            assert (twice is None) == (not set(come) & set(there))
            assert twice is None or twice in {texts[key] for key in set(come) & set(there)}
            for name, members in going.items():
                family.entries[name].gone |= dict.fromkeys(members, number)
            if twice is None:
                family.add(entry)
                assert family.last_number == number
                there |= {key: (entry.name, n) for n, key in enumerate(come)}
            found = family.find([*texts.values(), "none", "+7", ""])
            assert {key: (e.name, n) for key, (e, n) in found.items()} == {
                texts[key]: member for key, member in there.items()
            }


def test_a_key_is_found_as_it_is_written() -> None:
    for count in (3, 2_000):
        family = FamilyMembers()
        family.add(_entry("f", pa.array(range(count))))
        assert family.find(["2"])["2"][1] == 2
        assert family.find(["02", " 2", "2.0", "+2"]) == {}


def test_a_family_ends_with_its_last_entry() -> None:
    held = Families()
    first, second = _entry("f", [1, 2]), _entry("f+1", [3])
    for entry in (first, second, _READ.entry("q", au.Query("SELECT * FROM s"))):
        held.add(entry)
    family = held.get("f")
    assert family is not None
    assert (list(held.names()), family.last_number, family.key_type) == (["f"], 1, pa.int64())
    held.remove(second)
    assert family.find(["3"]) == {}
    assert set(family.find(["1", "3"])) == {"1"}
    held.remove(first)
    assert held.get("f") is None


def test_a_key_that_came_again_stays_when_the_old_one_is_forgotten() -> None:
    family = FamilyMembers()
    old, new = _entry("f", ["a"]), _entry("f+1", ["a"])
    family.add(old)
    old.gone[0] = 5
    family.add(new)
    assert family.find(["a"]) == {"a": (new, 0)}
    family.remove(old)
    assert family.find(["a"]) == {"a": (new, 0)}


def test_entries_go_in_any_order() -> None:
    family = FamilyMembers()
    entries = [_entry("f", ["a", "b"]), _entry("f+1", ["a"])]
    for entry in entries:
        family.add(entry)
        entry.gone[0] = 5
    for entry in reversed(entries):
        family.remove(entry)
    assert family.find(["a", "b"]) == {}


def test_names_of_entries() -> None:
    assert family_of(str(ChunkId("alerts", 17))) == family_of("alerts") == "alerts"
