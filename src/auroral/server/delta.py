"""RFC 7396 merge patches between JSON documents.

A merge patch cannot say null: it means that a key is gone. So in documents that go by patches, a
key that is null and a key that is missing are the same.
"""

from __future__ import annotations

from typing import Any


def merge_patch(before: Any, after: Any) -> Any:
    """The patch that makes one document of another; `{}` if they are the same.

    >>> merge_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 2, "d": 4}, "e": [1]})
    {'b': {'d': 4}, 'e': [1], 'a': None}
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return without_nulls(after)
    patch: dict[str, Any] = {}
    for key, value in after.items():
        if value is None:
            continue
        known = before.get(key)
        if known is None:
            patch[key] = without_nulls(value)
        elif isinstance(value, dict):
            if not isinstance(known, dict):
                patch[key] = without_nulls(value)
            elif inner := merge_patch(known, value):
                patch[key] = inner
        elif not _is_same(known, value):
            patch[key] = value
    for key, value in before.items():
        if value is not None and after.get(key) is None:
            patch[key] = None
    return patch


def _is_same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[k], other[k]) for k in one)
    return bool(one == other)


def apply_patch(document: Any, patch: Any) -> Any:
    """The document that a patch makes, as RFC 7396 says; nothing is changed in place.

    >>> apply_patch({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_patch(result.get(key), value)
    return result


def without_nulls(document: Any) -> Any:
    """The document without keys that are null; nulls in lists stay."""
    if isinstance(document, dict):
        return {k: without_nulls(v) for k, v in document.items() if v is not None}
    return document
