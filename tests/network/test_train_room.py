"""Memory for queues that has no room for one train is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from auroral.errors import NetworkError
from auroral.network.network import Network

NETWORK = """
network: roads
streams:
  reports: {{schema: {{vid: int, pos: int}}}}
boxes:
  named:
    box: map
    input: reports
    keep: "*"
    compute: {{name: "cast(vid as string)"}}
outputs:
  alerts: {{from: named}}
engine:
  train: {train}
  memory: {memory}
"""
TUPLE_BYTES = 16 + 2 * 8 + 32
"""Of the widest arc: its position, two numbers and a text."""


def load(tmp_path: Path, train: int | str, memory: str) -> Network:
    file = tmp_path / "roads.yaml"
    file.write_text(NETWORK.format(train=train, memory=memory))
    return Network.load(file)


def test_the_error_says_where_how_much_and_what_would_fit(tmp_path: Path) -> None:
    with pytest.raises(NetworkError) as caught:
        load(tmp_path, 1_000_000, "1 MB").check()
    error = caught.value
    fits = (1 << 20) // TUPLE_BYTES
    assert error.code == "BAD_PARAMETER"
    assert error.where is not None
    assert error.where.startswith(f"{tmp_path}/roads.yaml:14")
    assert error.path == ("engine", "train")
    assert "1,000,000 tuples takes about 62 MB (64 bytes for each tuple of named)" in error.message
    assert "memory is '1 MB'" in error.message
    assert error.hint == f"memory: 62 MB has room for it, or train: {fits} fits"
    load(tmp_path, 1_000_000, "62 MB").check()
    load(tmp_path, fits, "1 MB").check()
    with pytest.raises(NetworkError):
        load(tmp_path, fits + 1, "1 MB").check()


def test_a_train_of_any_number_fits(tmp_path: Path) -> None:
    load(tmp_path, "auto", "1 MB").check()


def test_a_bound_by_size_fits_into_the_memory(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="may have '4 MB', but memory is '2 MB'") as caught:
        load(tmp_path, "{memory: 4 MB}", "2 MB").check()
    assert caught.value.path == ("engine", "train", "memory")
    load(tmp_path, "{memory: 2 MB}", "2 MB").check()
    # The least of both bounds counts.
    load(tmp_path, "{memory: 1 MB, tuples: 1000000}", "1 MB").check()
