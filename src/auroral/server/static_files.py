"""The studio's built page: files named by hash are cached for ever, the page itself never."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

BUILT = Path(__file__).parent / "static"
_PAGE = "index.html"
_HASHED = re.compile(r"-[A-Za-z0-9_-]{8}\.[a-z0-9]+$")
_FOR_EVER, _NEVER = "public, max-age=31536000, immutable", "no-cache"
_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Auroral</title></head>
<body><h1>Auroral is running</h1>
<p>The studio is not built in this source checkout: run <code>make studio</code> and reload.</p>
<p>The REST interface is at <code>/api/v1</code>, its description, for
who sends a token, at <code>/openapi.json</code>.</p></body></html>
"""


class StudioFiles:
    """Serves the files of a directory, and its page for everything that has no suffix."""

    def __init__(self, directory: Path | None = None):
        self._directory = (directory or BUILT).resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405 if scope["type"] == "http" else 404)
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        if not (self._directory / _PAGE).is_file():
            if scope["path"] == "/":
                return HTMLResponse(_NOT_BUILT, headers={"Cache-Control": _NEVER})
            raise HTTPException(404)
        path = self._found(scope["path"])
        cached = _FOR_EVER if _HASHED.search(path.name) else _NEVER
        compressed = path.with_name(f"{path.name}.gz")
        takes = Headers(scope=scope).get("accept-encoding", "")
        headers = {"Cache-Control": cached, "Vary": "Accept-Encoding"}
        if "gzip" in takes and compressed.is_file():
            media = FileResponse(path).media_type
            headers["Content-Encoding"] = "gzip"
            return FileResponse(compressed, headers=headers, media_type=media)
        return FileResponse(path, headers=headers)

    def _found(self, asked: str) -> Path:
        """The file of a path; the page for `/`; nothing outside of the directory."""
        relative = asked.lstrip("/") or _PAGE
        try:
            path = (self._directory / relative).resolve()
            if path.is_relative_to(self._directory) and path.is_file():
                return path
        except (OSError, ValueError):
            pass
        raise HTTPException(404)
