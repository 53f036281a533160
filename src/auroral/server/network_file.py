"""The network file and the layout beside it: written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from auroral.errors import UsageError
from auroral.network.files import document_text
from auroral.server.models import StudioLayout


class NetworkFile:
    """Where the network of a server is kept, and the layout of its canvas.

    The first time the file is replaced, what a person wrote stays as `FILE.bak`: comments and
    order of the file are lost when it is written anew. A backup that exists is never replaced: a
    server that starts again cannot tell whether a person wrote the file since.
    """

    def __init__(self, path: Path):
        self.path = path
        self.layout_path = path.with_name(f"{path.name}.layout.json")
        self.backup_path = path.with_name(f"{path.name}.bak")

    @property
    def files(self) -> tuple[Path, ...]:
        """All that it consists of."""
        return (self.path, self.layout_path, self.backup_path)

    def require_writable(self) -> None:
        """Refuse a change that could not be kept."""
        try:
            with tempfile.NamedTemporaryFile(dir=self.path.parent, prefix=f".{self.path.name}."):
                pass
        except OSError as error:
            raise _cannot_write(self.path, error) from None

    def write(self, document: dict[str, Any]) -> None:
        """Let the file say what runs."""
        text = document_text(document, self.path).encode()
        try:
            before = self.path.read_bytes() if self.path.exists() else None
        except OSError as error:
            raise _cannot_write(self.path, error) from None
        if before == text:
            return
        if before is not None and not self.backup_path.exists():
            replace_file(self.backup_path, before)
        replace_file(self.path, text)

    def layout(self) -> StudioLayout:
        """Where people put things; nothing yet if there is no such file."""
        try:
            return StudioLayout.model_validate_json(self.layout_path.read_bytes())
        except FileNotFoundError:
            return StudioLayout()
        except OSError as error:
            problem = f"cannot read the layout: {error.strerror}"
        except ValueError:
            problem = "the file is no layout"
        raise UsageError(
            "CANNOT_READ",
            problem,
            where=str(self.layout_path),
            hint="repair it, or move it away to begin with an empty one",
        )

    def save_layout(self, layout: StudioLayout) -> None:
        """Keep where people put things."""
        text = json.dumps(
            layout.model_dump(mode="json", exclude_none=True), indent=1, ensure_ascii=False
        )
        replace_file(self.layout_path, text.encode())


def replace_file(path: Path, content: bytes) -> None:
    """Put content in the place of a file; who reads it sees the old or the new one."""
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, mode)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError("CANNOT_WRITE", f"cannot write the file: {error.strerror}", where=str(path))
