"""What every box declares, and the register of the boxes there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from auroral.errors import NetworkError, UsageError
from auroral.network.declarations import Described
from auroral.network.function import Function
from auroral.network.types import Schema, Type
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress

Resolver = Callable[[str, Schema], Type]
"""Asks Spark's analyzer for the type of an expression."""


@dataclass(frozen=True)
class Scope:
    """What a box may look up while it is checked."""

    resolver: Resolver | None = None
    tables: Mapping[str, Schema] = field(default_factory=dict)
    directory: Path | None = None
    """Where modules of Python functions are looked up, besides the module path."""
    imports: bool = False
    """Whether those modules may be imported, which runs their code."""
    functions: Mapping[str, Function] = field(default_factory=dict)
    """The Python functions that expressions may call, by their names in lower case."""
    table_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fields by which the rows of each table are known."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The arcs that outputs of superboxes stand for."""

    def arc(self, name: str) -> str:
        """The arc that a name means."""
        return self.aliases.get(name, name)


_NO_MEANING = ("on_change", "description", "tags")
LATE = "late"
LATE_PORTS = frozenset((LATE, "left_late", "right_late"))
"""Ports for tuples that came too late; nothing is promised there."""


def late_arc(producer: str) -> str:
    """The arc of tuples that came too late for a box, or for a stream that routes them."""
    return f"{producer}.{LATE}"


class Box(Described):
    """One operator: its parameters, what it reads, what it makes.

    Ports: `""` is the arc named like the box, others are `box.port`.
    """

    kind: ClassVar[str]
    executable: ClassVar[bool] = False
    """Whether Spark runs it yet; a network with others can be checked but not run."""
    stateful: ClassVar[bool] = False
    """Whether it remembers tuples: it ends a superbox then."""
    counts_arrivals: ClassVar[bool] = False
    """Whether it counts a stream's tuples as they arrive: none of them may leave before."""
    takes_tables: ClassVar[bool] = False
    """Whether a table may stand in place of an arc."""
    uses_tables: ClassVar[bool] = False
    """Whether it runs statements in the database of a table: in a superbox of such boxes then."""

    box: str
    on_change: Literal["keep", "drain", "reset"] = "keep"
    """What becomes of its state when it is declared otherwise: keep it if it still fits, close its
    windows first, or begin anew."""

    def meaning(self) -> dict[str, Any]:
        """Its parameters without what does not change what it does; functions as they are."""
        parameters = self.model_dump(exclude_defaults=True)
        return {k: v for k, v in parameters.items() if k not in _NO_MEANING}

    def as_declared(self) -> Box:
        """The box that it stands for, if the optimiser has put it in the place of another."""
        return self

    def state_shape(self) -> dict[str, Any]:
        """What its state depends on: boxes of the same shape can go on with each other's state."""
        return {k: v for k, v in self.meaning().items() if k not in ("input", "inputs")}

    @property
    def times_out(self) -> bool:
        """Whether the clock can make it emit, or forget."""
        return False

    @property
    def has_table(self) -> bool:
        """Whether one of its inputs must be a table."""
        return False

    @property
    def revises(self) -> bool:
        """Whether it emits corrections of what it has emitted before."""
        return False

    @property
    def passes_revisions(self) -> bool:
        """Whether corrections may reach it: it passes them on as it passes other tuples."""
        return not self.stateful

    def sources(self) -> tuple[str, ...]:
        """The arcs (or tables) it reads, in order."""
        raise NotImplementedError

    def functions(self) -> tuple[Function, ...]:
        """The Python functions that its computed fields name."""
        computed: Mapping[str, object] = getattr(self, "compute", {})
        return tuple(how for how in computed.values() if isinstance(how, Function))

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        """The schema of each port; raises NetworkError if the inputs do not fit."""
        raise NotImplementedError

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        """The fields it reads of each input."""
        raise NotImplementedError

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        """What its outputs promise, given what its inputs do; tables and late arcs: nothing."""
        raise NotImplementedError

    def relies_on(self, inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        """For each input of a stateful box, the mark by which it judges that input's tuples."""
        raise NotImplementedError


BOXES: dict[str, type[Box]] = {}
BoxType = TypeVar("BoxType", bound=type[Box])
BoxT = TypeVar("BoxT", bound=Box)


def register(cls: BoxType) -> BoxType:
    """Make a box known by its `kind`."""
    BOXES[cls.kind] = cls
    return cls


VARIANTS: dict[tuple[str, str], type[Box]] = {}
"""Boxes that a file declares by a kind and one of its keys: `box: map` with `state`."""


def register_variant(kind: str, key: str) -> Callable[[BoxType], BoxType]:
    """Make a box known that stands for `box: kind` where `key` is given and not false."""

    def enter(cls: BoxType) -> BoxType:
        VARIANTS[kind, key] = cls
        return cls

    return enter


def class_of(declared: Mapping[str, object], kind: str) -> type[Box]:
    """The box that a declaration of a known kind means."""
    for (of, key), cls in VARIANTS.items():
        if of == kind and declared.get(key, False) is not False:
            return cls
    return BOXES[kind]


class OneInput(Box):
    """A box with a single input arc."""

    input: str

    def sources(self) -> tuple[str, ...]:
        return (self.input,)


class ManyInputs(Box):
    """A box with several input arcs in an order that matters."""

    inputs: tuple[str, ...]

    def sources(self) -> tuple[str, ...]:
        return self.inputs


def require_inputs(box: ManyInputs, count: int) -> None:
    """Refuse any other number of inputs."""
    if len(box.inputs) != count:
        raise NetworkError(
            "BAD_PARAMETER",
            f"{box.kind} takes {count} inputs, found {len(box.inputs)}: {list(box.inputs)}",
            where="key inputs",
        )


def rewired(box: BoxT, sources: Sequence[str]) -> BoxT:
    """The same box, reading other arcs."""
    one = "input" in type(box).model_fields
    return box.model_copy(update={"input": sources[0]} if one else {"inputs": tuple(sources)})


@contextmanager
def at_key(key: str) -> Iterator[None]:
    """Mistakes found inside stand under this key of the box."""
    try:
        yield
    except NetworkError as error:
        raise error.at(f"key {key}") from None


def not_executable(place: str, box: Box) -> UsageError:
    """The named refusal of boxes that can be declared but not run yet."""
    return UsageError(
        "BOX_NOT_EXECUTABLE",
        f"this version checks {box.kind} boxes but does not run them yet",
        where=place,
    )
