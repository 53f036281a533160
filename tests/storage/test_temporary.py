"""Temporary directories: private while a process lives, swept once it is dead."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from auroral.storage import Store, temporary
from auroral.storage.temporary import TemporaryDirectory, sweep_abandoned

KILLED = """
import os, signal
from auroral.storage import Store
store = Store()
print(store.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_swept", False)
    return tmp_path


def test_what_a_killed_process_left_is_swept_at_the_next_start(place: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(place)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED], env=environment, stdout=subprocess.PIPE, check=False
    )
    assert done.returncode == -signal.SIGKILL
    left = Path(done.stdout.decode().strip())
    assert left.parent == place
    assert (left / "manifest.db").exists()
    store = Store()
    assert not left.exists()
    assert store.directory.exists()
    store.close()
    assert not list(place.iterdir())


def test_what_others_have_or_made_is_not_swept(place: Path) -> None:
    with TemporaryDirectory() as used:
        (place / "auroral-notmine_").mkdir()
        (place / "auroral-notes").mkdir()
        (place / "auroral-12345678").write_text("a file")
        sweep_abandoned()
        names = {path.name for path in place.iterdir()}
        assert names == {"auroral-notmine_", "auroral-notes", "auroral-12345678", used.name}
        assert stat.S_IMODE(used.stat().st_mode) == 0o700
    assert not used.exists()
