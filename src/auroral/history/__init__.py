"""History organised by key: sorted runs of a log, lookups in them, and what a lookup costs."""

from auroral.history.access import AccessChoice, choose_access, choose_join
from auroral.history.index import KeptMoments, KeyedHistory, Lookup
from auroral.history.maintenance import HistoryMaintenance
from auroral.history.predicate import Interval, KeyPredicate, can_be_key, key_predicate

__all__ = [
    "AccessChoice",
    "HistoryMaintenance",
    "Interval",
    "KeptMoments",
    "KeyPredicate",
    "KeyedHistory",
    "Lookup",
    "can_be_key",
    "choose_access",
    "choose_join",
    "key_predicate",
]
