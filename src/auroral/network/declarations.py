"""What a network file declares besides boxes: streams, tables, outputs and the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from auroral.errors import NetworkError
from auroral.network.environment import has_variables
from auroral.network.positions import DocumentPositions
from auroral.network.types import Field as SchemaField
from auroral.network.types import Schema
from auroral.network.validation import explained
from auroral.progress.declaration import Progress
from auroral.progress.durations import parse_duration_us
from auroral.qos.graphs import QoS
from auroral.validation import carried


class Declaration(BaseModel):
    """An immutable part of a network; unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(
        cls, declared: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        """Say every mistake as a NetworkError; inside a network it is carried to its place."""
        try:
            return handler(declared)
        except ValidationError as error:
            if info.context is IN_NETWORK:
                raise
            raise explained(error, cls, declared, DocumentPositions()) from None
        except NetworkError as error:
            if info.context is IN_NETWORK:
                raise carried(error) from None
            raise

    def document(self) -> dict[str, Any]:
        """The form the network file uses; what has its default value is left out."""
        return self.model_dump(mode="json", exclude_defaults=True)


class Described(Declaration):
    """A part of a network that people look for: it may say what it is, and have tags.

    Neither has any effect on results.
    """

    description: StrictStr | None = None
    tags: tuple[StrictStr, ...] = ()

    def document(self) -> dict[str, Any]:
        found = super().document()
        return {**{key: found[key] for key in found if key not in NOTES}, **notes(found)}

    def meaning(self) -> dict[str, Any]:
        """The form the network file uses, without what has no effect."""
        return {key: part for key, part in super().document().items() if key not in NOTES}


NOTES = ("description", "tags")
"""The keys that are for people only."""


def notes(document: Any) -> dict[str, Any]:
    """The description and the tags of a declaration in plain data."""
    given = document if isinstance(document, Mapping) else {}
    return {key: given[key] for key in NOTES if key in given}


IN_NETWORK = {"in": "network"}
"""The validation context of parts of a network, whose mistakes get the network's places."""


def _carry(declared: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    try:
        return handler(declared)
    except NetworkError as error:
        raise (carried(error) if info.context is IN_NETWORK else error) from None
    except OverflowError:
        raise carried(NetworkError("BAD_PARAMETER", f"too large: {declared!r}")) from None


Placed = WrapValidator(_carry)
"""Lets mistakes of models from below this layer know the key they stand under."""
DeclaredSchema = Annotated[
    Schema,
    BeforeValidator(Schema.parse),
    PlainSerializer(lambda schema: schema.declaration()),
    Placed,
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "minProperties": 1,
                },
                {"type": "string"},
            ],
            "description": "field names and their Spark SQL types",
        }
    ),
]
DAY_US = 86_400_000_000
STORES = ("sqlite://", "postgresql://")
DATA_SETS = ("parquet:", "csv:", *STORES)
"""How the address of a stored data set begins."""
Options = Annotated[dict[str, Any], Field(description="format, path and options of the format")]


def _one_or_several(declared: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """An entry, or a list of entries, of which each is checked as one alone."""
    if isinstance(declared, list | tuple):
        if not declared:
            raise NetworkError("BAD_PROGRESS", "expected at least one entry, found none")
        return tuple(_entry(one, handler) for one in declared)
    return handler(declared)


def _entry(declared: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    if declared is None:
        raise NetworkError(
            "BAD_PROGRESS",
            f"expected keys ({', '.join(Progress.model_fields)}) in each entry, found nothing",
        )
    try:
        return handler(declared)
    except ValidationError as error:
        raise explained(error, Progress, declared, DocumentPositions()) from None


def _written(progress: Progress | tuple[Progress, ...] | None) -> Any:
    if isinstance(progress, tuple):
        return [_written(one) for one in progress]
    return progress and progress.model_dump(mode="json", exclude_defaults=True)


class _OrList:
    """Says in the JSON schema that a list of the same is allowed."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:
        options = handler(core)["anyOf"]
        several = {"type": "array", "items": options[0], "minItems": 1}
        return {"anyOf": [options[0], several, *options[1:]]}


if TYPE_CHECKING:
    DeclaredProgress = Progress | tuple[Progress, ...] | None
else:
    DeclaredProgress = Annotated[
        Progress | None,
        WrapValidator(_one_or_several),
        Placed,
        PlainSerializer(_written),
        _OrList(),
    ]


class Stream(Described):
    """An endless run of tuples of one schema."""

    schema_: Annotated[DeclaredSchema, Field(alias="schema")]
    progress: DeclaredProgress = None
    """How it makes progress; a list if several of its fields do."""
    source: Options | Annotated[tuple[Options, ...], Field(min_length=1)] | None = None
    """Where its tuples come from; a list if several sources feed it."""

    @property
    def sources(self) -> tuple[dict[str, Any], ...]:
        """Its declared sources, however many."""
        if self.source is None:
            return ()
        return (self.source,) if isinstance(self.source, dict) else self.source

    @property
    def progressing(self) -> tuple[Progress, ...]:
        """Its declared progress, of however many fields."""
        if self.progress is None:
            return ()
        return (self.progress,) if isinstance(self.progress, Progress) else self.progress

    @property
    def routed(self) -> tuple[Progress, ...]:
        """The entries below whose marks tuples leave on the arc `S.late`."""
        return tuple(progress for progress in self.progressing if progress.below == "route")

    @property
    def punctuated(self) -> Progress | None:
        """The entry that punctuations in the data speak of: the one that says so, or the first."""
        return next(
            (p for p in self.progressing if p.punctuated), next(iter(self.progressing), None)
        )

    def model_post_init(self, _context: Any) -> None:
        _require_fields(self.schema_, "stream")
        for progress in self.progressing:
            self._require_progress(progress)
        fields = [self.schema_.field(progress.on).name for progress in self.progressing]
        twice = next((name for name in fields if fields.count(name) > 1), None)
        if twice is not None:
            raise NetworkError(
                "BAD_PROGRESS", f"{twice} is declared to make progress twice", where="key progress"
            )
        if sum(progress.punctuated for progress in self.progressing) > 1:
            raise NetworkError(
                "BAD_PROGRESS",
                "the data carry punctuations of one field: expected at most one entry with"
                " punctuated: true",
                where="key progress",
            )

    def _require_progress(self, progress: Progress) -> None:
        field = _field(self.schema_, progress.on, "progress.on")
        if not field.type.is_orderable:
            raise NetworkError(
                "BAD_PROGRESS",
                f"progress needs a number, date or timestamp, but {field.name} is {field.type}",
                where="key progress.on",
            )
        for name in progress.by:
            _field(self.schema_, name, "progress.by")
        _require_delay(progress, field)
        beat = progress.heartbeat
        if beat is not None and beat.unit is not None and not field.type.is_numeric:
            raise NetworkError(
                "BAD_PROGRESS",
                f"a unit says what numbers count, but {field.name} is {field.type}",
                where="key progress.heartbeat.unit",
                hint="leave it out: a heartbeat knows dates and timestamps",
            )


class Table(Described):
    """Stored rows that boxes read and update."""

    schema_: Annotated[DeclaredSchema, Field(alias="schema")]
    key: tuple[StrictStr, ...] = ()
    store: StrictStr | None = None

    def model_post_init(self, _context: Any) -> None:
        _require_fields(self.schema_, "table")
        for name in self.key:
            _field(self.schema_, name, "key")
        if self.store is not None and not has_variables(self.store):
            require_store(self.store)


class Keep(Declaration):
    """History by time, by count, or both; where both are given, both bounds hold."""

    time: StrictStr | None = None
    rows: Annotated[StrictInt, Field(gt=0)] | None = None


KEEP_ALL = "all"
"""What `keep` says if nothing is ever dropped."""


class ConnectionPoint(Described):
    """An arc that remembers history and takes new branches while running.

    With `store` it stands for a stored data set instead, of a `schema` and a `key`.
    """

    on: StrictStr | None = None
    keep: StrictStr | Keep | None = None
    key: StrictStr | None = None
    store: StrictStr | None = None
    schema_: Annotated[DeclaredSchema | None, Field(alias="schema")] = None

    @property
    def dangling(self) -> bool:
        """Whether it stands for a stored data set and not for an arc."""
        return self.store is not None

    def model_post_init(self, _context: Any) -> None:
        if self.store is not None:
            self._require_dangling()
            return
        if self.schema_ is not None:
            problem = "schema belongs to a stored data set; an arc has a schema already"
            raise NetworkError("BAD_PARAMETER", problem, where="key schema", hint="drop it")
        for key in ("on", "keep"):
            if getattr(self, key) is None:
                raise NetworkError(
                    "MISSING_KEY",
                    f"expected {key}: a connection point is on an arc and keeps some history,"
                    " or stands for a store",
                )
        require_keep(self.keep)

    def _require_dangling(self) -> None:
        assert self.store is not None
        for key in ("on", "keep"):
            if getattr(self, key) is not None:
                problem = f"a connection point for a stored data set has no {key}"
                raise NetworkError("BAD_PARAMETER", problem, where=f"key {key}", hint="drop it")
        if self.schema_ is None or self.key is None:
            missing = "schema" if self.schema_ is None else "key"
            problem = f"expected {missing}: a stored data set has a schema and a key"
            raise NetworkError("MISSING_KEY", problem)
        _require_fields(self.schema_, "connection point")
        _field(self.schema_, self.key, "key")
        if not has_variables(self.store) and not self.store.startswith(DATA_SETS):
            raise NetworkError(
                "BAD_STORE",
                "expected parquet:PATH, csv:PATH, sqlite:///FILE#TABLE or postgresql://…#TABLE,"
                f" found {self.store!r}",
                where="key store",
            )


class ViewDeclaration(Declaration):
    """A path without an application yet, whose results can be kept for those to come."""

    from_: Annotated[StrictStr, Field(alias="from")]
    qos: Annotated[QoS | None, Placed] = None
    keep: StrictStr | Keep | None = None
    materialize: Literal["none", "part", "full"] | None = None
    """How much of its results is kept; by default all that `keep` says, or nothing without it."""

    @property
    def materialized(self) -> Literal["none", "part", "full"]:
        """How much of its results is kept."""
        return self.materialize or ("none" if self.keep is None else "full")

    def model_post_init(self, _context: Any) -> None:
        if self.keep is not None:
            require_keep(self.keep)
        if self.materialized == "full" and self.keep is None:
            problem = "materialize: full needs keep, which says how much that is"
            raise NetworkError("MISSING_KEY", problem, hint="keep: all, or a time, or rows")
        if self.materialized == "none" and self.keep is not None:
            problem = "materialize: none keeps nothing, but there is a keep"
            raise NetworkError("BAD_PARAMETER", problem, where="key keep", hint="drop one of them")


class Output(Described):
    """An arc delivered to an application, and what its tuples are worth."""

    from_: Annotated[StrictStr, Field(alias="from")]
    qos: Annotated[QoS | None, Placed] = None
    sink: Options | None = None


class Group(Described):
    """Boxes, instances of superboxes and other groups that a person sees as one.

    >>> Group(members=("across", "crowd")).document()
    ['across', 'crowd']
    """

    members: tuple[StrictStr, ...]

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, declared: Any) -> Any:
        """The members alone are a group, too."""
        if isinstance(declared, Mapping | Group):
            return declared
        listed = isinstance(declared, list | tuple)
        if not listed or not all(isinstance(member, str) for member in declared):
            problem = f"expected a list of boxes and groups, found {declared!r:.100}"
            raise carried(NetworkError("BAD_PARAMETER", problem))
        return {"members": declared}

    def document(self) -> Any:
        """The form the network file uses: the members alone if there is nothing else to say."""
        found = super().document()
        return found["members"] if set(found) == {"members"} else found


SchedulerName = Literal["auto", "rr", "fifo", "qos", "qos-bucketed", "feedback", "thread-per-box"]
SuperboxMode = Literal["auto", "box", "application", "spanner", "fuse"]
TraversalName = Literal["auto", "mc", "ml", "mm"]
SheddingMode = Literal["auto", "off", "random", "semantic", "admission"]
LEAST_MEMORY_BYTES = 1 << 20
"""The least memory for queues."""


class TrainOptions(Declaration):
    """What bounds a train: the least of all that are given.

    >>> options = TrainOptions(tuples=500, spread="2 s", cost="100 ms", memory="4 MB")
    >>> options.spread_s, options.cost_s, options.bytes
    (2.0, 0.1, 4194304)
    """

    tuples: Annotated[StrictInt, Field(gt=0)] | None = None
    """So many tuples."""
    spread: StrictStr | Annotated[StrictFloat, Field(gt=0)] | None = None
    """How much later its youngest tuple may have arrived than its oldest."""
    cost: StrictStr | Annotated[StrictFloat, Field(gt=0)] | None = None
    """How long a step is expected to take at most."""
    memory: StrictStr | Annotated[StrictInt, Field(gt=0)] | None = None
    """How many bytes its tuples may have."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in ("spread", "cost"):
            text = getattr(self, key)
            if isinstance(text, str):
                _require_some_time(text, f"train.{key}")
        if self.memory is not None:
            size_bytes(self.memory, "train.memory")
        if (self.tuples, self.spread, self.cost, self.memory) == (None, None, None, None):
            problem = "expected tuples, spread, cost or memory, found none of them"
            raise NetworkError("MISSING_KEY", problem, where="key train", hint="or train: auto")
        return self

    @property
    def spread_s(self) -> float | None:
        """The spread of arrival times in seconds."""
        return _seconds(self.spread, "train.spread")

    @property
    def cost_s(self) -> float | None:
        """The expected time of a step in seconds."""
        return _seconds(self.cost, "train.cost")

    @property
    def bytes(self) -> int | None:
        """The size of its tuples."""
        return None if self.memory is None else size_bytes(self.memory, "train.memory")


def _seconds(given: str | float | None, key: str) -> float | None:
    return duration_us(given, key) / 1e6 if isinstance(given, str) else given


class EngineOptions(Declaration):
    """How this network likes to be run."""

    headroom: Annotated[StrictFloat, Field(gt=0, le=1)] = 0.8
    """The share of the machine that the steady load may use; the rest is for queries to come."""
    scheduler: SchedulerName = "auto"
    """Which application runs next."""
    superbox: SuperboxMode = "auto"
    """How many boxes run as one."""
    traversal: TraversalName = "auto"
    """In which order the boxes of an application run."""
    spanner: Annotated[StrictInt, Field(gt=0)] = 5
    """How many boxes with tuples a plan of `superbox: spanner` begins with."""
    train: Annotated[StrictInt, Field(gt=0)] | Literal["auto"] | TrainOptions = "auto"
    """The most tuples of a step, or other bounds of it."""
    shedding: SheddingMode = "auto"
    """What is dropped in an overload; auto: nothing unless an output has a loss or value graph."""
    memory: StrictStr | Annotated[StrictInt, Field(gt=0)] = "1 GB"
    """How many bytes of queues may be in memory; 1 MB at least."""
    optimize: StrictBool = True
    """Whether boxes that commute change places while tuples flow."""
    order: Literal["enforce"] | None = None
    flush: Literal["eager", "slow", "lazy"] = "slow"
    routing: Literal["tickets", "random", "fixed", "optimal"] = "tickets"
    jars: tuple[StrictStr, ...] = ()
    workers: Annotated[StrictInt, Field(gt=0)] | Literal["auto"] = "auto"
    """How many steps may be under way at the same time."""
    step_timeout: StrictStr | None = "10 min"
    """A step that takes longer is ended, and its query or box does nothing more."""
    durability: Literal["power", "process"] = "power"
    """What a state directory survives: a power failure, or only the end of the process."""
    buckets: Annotated[StrictInt, Field(gt=0, le=4096)] | None = None
    """Into how many parts keyed state is split; None: twice the cores, when it is made."""
    view_memory: StrictStr | Annotated[StrictInt, Field(gt=0)] = "256 MB"
    """How many bytes the views that are kept in part may take together."""

    @model_validator(mode="after")
    def _check_step_timeout(self) -> Self:
        if self.step_timeout is not None and duration_us(self.step_timeout, "step_timeout") == 0:
            problem = f"a step needs some time, found {self.step_timeout!r}"
            raise NetworkError("BAD_DURATION", problem, where="key step_timeout")
        return self

    @model_validator(mode="after")
    def _check_view_memory(self) -> Self:
        size_bytes(self.view_memory, "view_memory")
        return self

    @model_validator(mode="after")
    def _check_memory(self) -> Self:
        if size_bytes(self.memory, "memory") < LEAST_MEMORY_BYTES:
            least = LEAST_MEMORY_BYTES >> 20
            problem = f"expected {least} MB at least, found {self.memory!r}: no train would fit"
            raise NetworkError("BAD_PARAMETER", problem, where="key memory")
        return self

    @property
    def train_tuples(self) -> int | None:
        """The most tuples of a step; None: any number."""
        if isinstance(self.train, TrainOptions):
            return self.train.tuples
        return None if self.train == "auto" else self.train

    @property
    def train_bounds(self) -> TrainOptions | None:
        """Other bounds of a step than its tuples, if there are any."""
        train = self.train
        if not isinstance(train, TrainOptions):
            return None
        return train if (train.spread, train.cost, train.memory) != (None, None, None) else None

    @property
    def memory_bytes(self) -> int:
        """How many bytes of queues may be in memory."""
        return size_bytes(self.memory, "memory")

    @property
    def view_bytes(self) -> int:
        """How many bytes the views that are kept in part may take together."""
        return size_bytes(self.view_memory, "view_memory")

    @property
    def step_timeout_s(self) -> float | None:
        """The longest time of a step; None: any."""
        timeout = self.step_timeout
        return None if timeout is None else duration_us(timeout, "step_timeout") / 1e6


def require_keep(keep: str | Keep | None) -> None:
    """Refuse a `keep` that keeps nothing, or does not say how much."""
    if isinstance(keep, str) and keep != KEEP_ALL:
        _require_some_time(keep, "keep")
    elif isinstance(keep, Keep) and keep.time is not None:
        _require_some_time(keep.time, "keep.time")
    elif isinstance(keep, Keep) and keep.rows is None:
        problem = "expected time, rows or both, found neither"
        raise NetworkError("MISSING_KEY", problem, where="key keep")


def _require_some_time(text: str, key: str) -> None:
    if duration_us(text, key) == 0:
        raise NetworkError("BAD_DURATION", "expected some time, found none", where=f"key {key}")


def require_store(store: str) -> None:
    """Refuse the address of a store that cannot be one."""
    if not store.startswith(STORES):
        raise NetworkError(
            "BAD_STORE",
            f"expected sqlite:///… or postgresql://…, found {store!r}",
            where="key store",
        )


def duration_us(text: str, key: str) -> int:
    """The microseconds of a duration under a key; a mistake says which."""
    try:
        return parse_duration_us(text)
    except OverflowError:
        raise NetworkError("BAD_DURATION", f"{text!r} is too long", where=f"key {key}") from None
    except NetworkError as error:
        raise error.at(f"key {key}") from None


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)


def size_bytes(size: str | int, key: str) -> int:
    """A number of bytes, given as a number or as text.

    >>> size_bytes("256 MB", "view_memory"), size_bytes(1024, "view_memory")
    (268435456, 1024)
    """
    if isinstance(size, int):
        return size
    found = _SIZE.fullmatch(size)
    count = (
        0
        if found is None
        else int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " "))
    )
    if not count:
        problem = f"cannot read {size!r} as a size; expected some bytes, as in '256 MB'"
        raise NetworkError("BAD_PARAMETER", problem, where=f"key {key}")
    return count


def _require_delay(progress: Progress, field: SchemaField) -> None:
    delay, key = progress.delay, "key progress.delay"
    try:
        progress.delay_in(field.type.name)
    except (OverflowError, ValueError):
        raise NetworkError("BAD_PROGRESS", f"{delay!r} is no delay", where=key) from None
    except NetworkError as error:
        raise error.at(key) from None
    if field.type.name == "date" and delay is not None:
        days = duration_us(delay, "progress.delay") / DAY_US if isinstance(delay, str) else delay
        if days != int(days):
            raise NetworkError(
                "BAD_PROGRESS", f"a delay on a date is whole days, found {delay!r}", where=key
            )


def _field(schema: Schema, name: str, key: str) -> SchemaField:
    try:
        return schema.field(name)
    except NetworkError as error:
        raise error.at(f"key {key}") from None


def _require_fields(schema: Schema, what: str) -> None:
    if not len(schema):
        raise NetworkError("BAD_SCHEMA", f"a {what} needs at least one field", where="key schema")
