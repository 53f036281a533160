"""Segment logs, cursors, retention, compaction and the manifest."""

from auroral.ids import HELD
from auroral.storage.change import Change, Forgotten, MovedLog, UnwrittenSegment
from auroral.storage.journal import Journal
from auroral.storage.manifest import Manifest, QueryRow, ShedRow
from auroral.storage.segment import Segment
from auroral.storage.store import DURABILITIES, Store

__all__ = [
    "DURABILITIES",
    "HELD",
    "Change",
    "Forgotten",
    "Journal",
    "Manifest",
    "MovedLog",
    "QueryRow",
    "Segment",
    "ShedRow",
    "Store",
    "UnwrittenSegment",
]
