"""The boxes: what each one means. Importing this package makes them all known."""

from auroral.boxes.aggregate import Aggregate
from auroral.boxes.bsort import BSort
from auroral.boxes.dedup import Dedup
from auroral.boxes.filter import Filter
from auroral.boxes.join import Join
from auroral.boxes.latch import Latch
from auroral.boxes.map import Map
from auroral.boxes.number import Number
from auroral.boxes.read import Read
from auroral.boxes.resample import Resample
from auroral.boxes.stateful_map import StatefulMap
from auroral.boxes.union import Union
from auroral.boxes.update import Update
from auroral.boxes.wait_for import WaitFor

__all__ = [
    "Aggregate",
    "BSort",
    "Dedup",
    "Filter",
    "Join",
    "Latch",
    "Map",
    "Number",
    "Read",
    "Resample",
    "StatefulMap",
    "Union",
    "Update",
    "WaitFor",
]
