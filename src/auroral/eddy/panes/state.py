"""The state that a bucket keeps of panes: partial results, and the classes they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from auroral.eddy.panes.group import AggregateGroup, Classes
from auroral.eddy.panes.merging import Partials
from auroral.kernels.grouping import Ids, group_ids
from auroral.kernels.kernel import Appended
from auroral.kernels.ordering import whole
from auroral.kernels.stored import APPEND, renewed
from auroral.kernels.units import Mask

Changed = dict[str, pa.Table | Appended]


def tables(group: AggregateGroup) -> dict[str, pa.Schema]:
    """The state tables; columns of calls come and go with the queries that have them.

    `panes`: pane n is [n · width, (n + 1) · width), the floor so many widths; `classes`: the
    queries of each class.
    """
    by = [(f"by{at}", type.arrow()) for at, type in enumerate(group.shape.types[1:])]
    pane = [(name, pa.int64()) for name in ("pane", "width", "floor", "class", "oldest")]
    states = Partials(group.calls).fields()
    return {
        "panes": pa.schema([*pane, *by, *states, (APPEND, pa.int32())]),
        "classes": pa.schema([("class", pa.int64()), ("queries", pa.list_(pa.int32()))]),
    }


@dataclass(frozen=True)
class Stored:
    """State as it was read: `panes` have the columns of the calls there are now."""

    panes: pa.Table
    labels: Ids
    """What each class is called in `panes`."""
    classes: Classes
    widened: bool
    """Whether calls have come or gone since it was written."""

    @staticmethod
    def load(group: AggregateGroup, state: Mapping[str, pa.Table]) -> Stored:
        schemas = tables(group)
        panes = state.get("panes", schemas["panes"].empty_table())
        classes = state.get("classes", schemas["classes"].empty_table())
        widened = panes.column_names != schemas["panes"].names
        if widened:
            held = {name: whole(panes[name]) for name in panes.column_names}
            held |= Partials(group.calls).loaded(held, panes.num_rows)
            panes = pa.table({name: held[name] for name in schemas["panes"].names})
        panes = panes if panes.schema.equals(schemas["panes"]) else panes.cast(schemas["panes"])
        labels = np.asarray(whole(classes["class"]), np.int64)
        lists = Classes.stored(whole(classes["queries"]))
        return Stored(panes, labels, lists, widened)

    def joined(self, more: Classes) -> tuple[Stored, Ids]:
        """The state with further classes; and the label of each of them."""
        number, first = self.classes.then(more).numbered()
        new = first[first >= len(self.classes)]
        labels = np.concatenate(
            [self.labels, self.labels.max(initial=-1) + 1 + np.arange(len(new))]
        )
        # Stored classes differ from one another, so that they are numbered as they stand.
        classes = self.classes.then(more.take(new - len(self.classes)))
        return Stored(self.panes, labels, classes, self.widened), labels[number[len(self.labels) :]]

    def places(self, labels: Ids) -> Ids:
        """Where the classes with these labels stand."""
        order = np.argsort(self.labels)
        return order[np.searchsorted(self.labels, labels, sorter=order)]

    def changed(self, before: Stored, new: pa.Table, alive: Mask, group: AggregateGroup) -> Changed:
        """What to write; `alive` are stored partial results and then new ones."""
        cut = self.panes.num_rows
        kept = renewed(self.panes, alive[:cut], new.filter(pa.array(alive[cut:])))
        if self.widened and not isinstance(kept, pa.Table):
            kept = self.panes if kept is None else pa.concat_tables([self.panes, kept.table])
        if kept is None:
            return {}
        columns = [pa.array(self.labels), self.classes.column()]
        classes = pa.table(columns, schema=tables(group)["classes"])
        if isinstance(kept, Appended):
            more = classes.slice(len(before.classes))
            return {"panes": kept} | ({"classes": Appended(more)} if more.num_rows else {})
        used = np.isin(self.labels, np.asarray(whole(kept["class"]), np.int64))
        return {"panes": _merged(kept, group), "classes": classes.filter(pa.array(used))}


def _merged(panes: pa.Table, group: AggregateGroup) -> pa.Table:
    """Merge the partial results of one pane that several appends have left."""
    names = ["pane", "width", "floor", "class", *(f"by{at}" for at in range(len(group.shape.by)))]
    slot, one = group_ids([panes[name] for name in names], panes.num_rows)
    if len(one) == panes.num_rows:
        return panes
    functions = Partials(group.calls)
    states = {field.name: whole(panes[field.name]) for field in functions.fields()}
    columns = {name: whole(panes[name]).take(pa.array(one)) for name in [*names, APPEND]}
    columns |= functions.merge(states, np.arange(len(slot)), slot, len(one))
    oldest = np.asarray(whole(panes["oldest"]), np.int64)
    least = oldest[one]
    np.minimum.at(least, slot, oldest)
    columns["oldest"] = pa.array(least)
    return pa.table([columns[name] for name in panes.column_names], schema=panes.schema)
