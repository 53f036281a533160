"""Tokens and roles: who may look, who may operate, who may change the network."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from auroral.errors import UsageError

Role = Literal["viewer", "operator", "editor"]
ROLES: tuple[Role, ...] = get_args(Role)
"""From the least to the most; each may do what those before it may."""
_TOKEN_BYTES = 32
_SHORTEST = 16


def may(role: Role, needed: Role) -> bool:
    """Whether a role includes another.

    >>> may("operator", "viewer"), may("operator", "editor")
    (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)


class AccessTokens:
    """One token for each role.

    >>> tokens = AccessTokens.made()
    >>> tokens.role_of(tokens["operator"]), tokens.role_of("guess")
    ('operator', None)
    """

    def __init__(self, by_role: Mapping[Role, str]):
        self._by_role = dict(by_role)

    def __getitem__(self, role: Role) -> str:
        return self._by_role[role]

    @classmethod
    def made(cls) -> AccessTokens:
        """New ones."""
        return cls({role: secrets.token_urlsafe(_TOKEN_BYTES) for role in ROLES})

    @classmethod
    def kept(cls, path: Path) -> AccessTokens:
        """Those of a file that only its owner can read; it is made if there is none."""
        if not path.exists():
            made = cls.made()
            made._write(path)
            return made
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise UsageError(
                "TOKENS_EXPOSED",
                "others than its owner can read the file of tokens",
                where=str(path),
                hint=f"chmod 600 {path}, or delete it: new tokens are made then",
            )
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            given = {role: found[role] for role in ROLES}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _unusable(path, str(error)) from None
        if not all(isinstance(token, str) and len(token) >= _SHORTEST for token in given.values()):
            raise _unusable(path, f"a token is text of at least {_SHORTEST} characters")
        if len(set(given.values())) < len(given):
            raise _unusable(path, "two roles have the same token")
        return cls(given)

    def _write(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            problem = f"cannot write the file of tokens: {error.strerror}"
            raise UsageError("CANNOT_WRITE", problem, where=str(path)) from None
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(self._by_role, file, indent=2)
            file.write("\n")

    def role_of(self, token: str) -> Role | None:
        """The role of a token; takes the same time for every wrong one."""
        given = token.encode()
        found: Role | None = None
        for role in ROLES:
            if hmac.compare_digest(self._by_role[role].encode(), given):
                found = role
        return found


def _unusable(path: Path, why: str) -> UsageError:
    return UsageError(
        "BAD_TOKEN_FILE",
        f'expected {{"viewer": …, "operator": …, "editor": …}}: {why}',
        where=str(path),
        hint="delete it: new tokens are made then",
    )
