"""Where servers and feeds listen."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from auroral.errors import UsageError
from auroral.server.addresses import FeedAddress
from auroral.server.running import is_loopback, require_safe


@pytest.mark.parametrize("host", ["127.evil.example", "127.0.0.1.evil.example", "0.0.0.0", "::"])
def test_names_that_only_look_like_this_machine_are_others(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(UsageError, match="INSECURE_BIND"):
        require_safe(host, None, insecure=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "LOCALHOST"])
def test_this_machine_is_known_by_its_addresses(host: str) -> None:
    require_safe(host, None, insecure=False)


def test_a_socket_is_private_from_the_start_and_the_mask_stays(tmp_path: Path) -> None:
    place = FeedAddress.parse(f"unix:{tmp_path}/feed", "--lines")
    before = os.umask(0o022)
    try:
        with socket.socket(socket.AF_UNIX) as bound, socket.socket(socket.AF_UNIX) as client:
            with place.private() as path:
                bound.bind(path)
                bound.listen()
                assert Path(path).parent.stat().st_mode & 0o777 == 0o700
                assert not (tmp_path / "feed").exists()
                made = tmp_path / "by another thread"
                made.touch()
                assert made.stat().st_mode & 0o777 == 0o644
            assert (tmp_path / "feed").stat().st_mode & 0o777 == 0o600
            client.connect(f"{tmp_path}/feed")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["by another thread", "feed"]
    finally:
        os.umask(before)
