"""Plain data as YAML that reads well and reads back the same.

The document is written here, not by a library, so that any text survives: what is not plainly a
word is quoted, what cannot be printed is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

WIDTH = 100
_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9_.()*/+=<> -]*")
_OTHER = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
"""Words that some reader of YAML takes for something else; as keys ours does not."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def yaml_text(document: Mapping[str, Any]) -> str:
    r"""The text of a document.

    >>> print(yaml_text({"network": "dam", "boxes": {"b": {"box": "filter", "where": "a = 'x'"}}}))
    network: dam
    boxes:
      b: {box: filter, where: "a = 'x'"}
    <BLANKLINE>
    """
    return "".join(f"{line}\n" for line in _block(document, 0))


def _block(node: Mapping[str, Any], level: int) -> Iterator[str]:
    for key, value in node.items():
        head = f"{'  ' * level}{_key(key)}:"
        line = f"{head} {_flow(value)}"
        # Sections are lists of names, one a line; below them, whatever fits stands in one.
        if isinstance(value, Mapping) and value and (level == 0 or len(line) > WIDTH):
            yield head
            yield from _block(value, level + 1)
        else:
            yield line


def _flow(node: Any) -> str:
    if isinstance(node, Mapping):
        return "{" + ", ".join(f"{_key(k)}: {_flow(v)}" for k, v in node.items()) + "}"
    if isinstance(node, list | tuple):
        return "[" + ", ".join(map(_flow, node)) + "]"
    if isinstance(node, str):
        return node if _is_plain(node) and node.lower() not in _OTHER else _quoted(node)
    if node is None or isinstance(node, bool):
        return {None: "null", True: "true", False: "false"}[node]
    return repr(node)


def _key(key: str) -> str:
    plain = _is_plain(key) and (key == "on" or key.lower() not in _OTHER)
    return key if plain else _quoted(key)


def _is_plain(text: str) -> bool:
    return bool(_WORDS.fullmatch(text)) and not text.endswith(" ")


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable() and letter != "\ufeff":
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
