"""Where feeds listen: a host and a port, or a Unix socket."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from auroral.errors import UsageError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class FeedAddress:
    """Either `host` and `port`, or the `path` of a Unix socket."""

    host: str = LOOPBACK
    port: int = 0
    path: str | None = None

    @staticmethod
    def parse(text: str, option: str) -> FeedAddress:
        """Read `PORT`, `HOST:PORT` or `unix:PATH`.

        >>> FeedAddress.parse("[::1]:8815", "--flight")
        FeedAddress(host='::1', port=8815, path=None)
        """
        if text.startswith("unix:"):
            path = text.removeprefix("unix:")
            if path:
                return FeedAddress(path=os.path.abspath(path))
        host, _, port = text.rpartition(":")
        if port.isdecimal() and int(port) < 1 << 16 and text:
            return FeedAddress(host.strip("[]") or LOOPBACK, int(port))
        raise UsageError(
            "BAD_ADDRESS", f"expected PORT, HOST:PORT or unix:PATH, found {text!r}", where=option
        )

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path is not None else f"{self.shown_host}:{self.port}"

    @property
    def shown_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.path is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def require_safe(self, option: str, *, tls: bool, insecure: bool) -> None:
        """Refuse to let others listen to tokens and data."""
        if not self.is_local and not tls and not insecure:
            raise UsageError(
                "INSECURE_BIND",
                f"{self} can be reached from other machines, and tokens and data are not encrypted",
                where=option,
                hint="bind to 127.0.0.1, use TLS where it is offered, or pass --insecure",
            )

    def clear_path(self) -> None:
        """Remove the socket that a process which is no more has left behind."""
        if self.path is None:
            return
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                if stat.S_ISSOCK(found.st_mode):
                    probe.connect(self.path)
            except OSError:
                os.unlink(self.path)
                return
        raise UsageError(
            "CANNOT_BIND", f"{self.path} exists already, and is no socket that is left over"
        )

    @contextlib.contextmanager
    def private(self) -> Iterator[str]:
        """The path to which a Unix socket is bound meanwhile, so that it is its owner's alone.

        It is bound in a directory that nobody else can enter, and gets its name when its mode is
        set; the mask of the process, which other threads make files by, stays as it is.
        """
        assert self.path is not None
        with tempfile.TemporaryDirectory(prefix=".", dir=os.path.dirname(self.path)) as directory:
            made = os.path.join(directory, "s")
            yield made
            os.chmod(made, 0o600)
            os.link(made, self.path)
