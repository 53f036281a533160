"""What the REST interface takes and gives, so that its OpenAPI document is complete."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from auroral.server.tokens import Role

Json = JsonValue
Name = Annotated[str, Field(min_length=1, max_length=400)]


class WireModel(BaseModel):
    """A body or an answer; unknown keys of bodies are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ProblemDetails(WireModel):
    """An RFC 9457 problem; `code` is one of Auroral's error codes."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    where: str | None = None
    hint: str | None = None
    path: list[str | int] | None = None
    """Where in the document it is, such as `["boxes", "hot", "where"]`."""


class FieldInfo(WireModel):
    """A field of an arc or a table, and its Spark SQL type."""

    name: str
    type: str


class ArcInfo(WireModel):
    """The fields of an arc, and those by which it makes progress."""

    fields: list[FieldInfo]
    progress: list[str]


class CautionInfo(WireModel):
    """Something that is allowed but hardly meant."""

    code: str
    message: str
    where: str


class CheckReport(WireModel):
    """Every mistake that was found, and the types of all that could be typed."""

    ok: bool
    problems: list[ProblemDetails]
    cautions: list[CautionInfo]
    arcs: dict[str, ArcInfo]
    queries: dict[str, list[FieldInfo]]


class ChangeReport(WireModel):
    """What a change does, or would do."""

    added: list[str] = []
    removed: list[str] = []
    rebuilt: list[str] = []
    kept: list[str] = []
    drained: list[str] = []
    reset: list[str] = []


class Bookmark(WireModel):
    """A part of the canvas that a person named."""

    name: str
    x: float
    y: float
    zoom: float
    group: str | None = None
    """The group that was shown alone."""


class StudioLayout(WireModel):
    """Where people put things on the canvas."""

    positions: dict[str, tuple[float, float]] = {}
    open: dict[str, bool] = {}
    bookmarks: list[Bookmark] = []


class LayoutChange(WireModel):
    """What one person has changed on the canvas; null removes."""

    positions: dict[str, tuple[float, float] | None] = {}
    placed: dict[str, tuple[float, float]] = {}
    """Places that nobody chose: kept only where there is none."""
    open: dict[str, bool | None] = {}
    bookmarks: list[Bookmark] | None = None

    def applied(self, layout: StudioLayout) -> StudioLayout:
        """The layout after the change.

        >>> before = StudioLayout(positions={"a": (1, 1), "b": (2, 2)})
        >>> change = LayoutChange(positions={"a": None}, placed={"b": (0, 0), "c": (3, 3)})
        >>> change.applied(before).positions
        {'b': (2.0, 2.0), 'c': (3.0, 3.0)}
        """
        positions = {**self.placed, **layout.positions, **self.positions}
        opened = {**layout.open, **self.open}
        return StudioLayout(
            positions={name: at for name, at in positions.items() if at is not None},
            open={name: on for name, on in opened.items() if on is not None},
            bookmarks=layout.bookmarks if self.bookmarks is None else self.bookmarks,
        )


class PaletteExample(WireModel):
    """A small network, what goes in and what comes out."""

    network: dict[str, Json]
    in_: Annotated[dict[str, list[dict[str, Json]]], Field(alias="in")]
    out: list[dict[str, Json]]


class PaletteEntry(WireModel):
    """One thing that a network can be built of."""

    kind: str
    section: str
    summary: str
    telling: str
    inputs: Literal["none", "one", "two", "many"]
    ports: list[str]
    example: PaletteExample | None = None
    starter: dict[str, Json]


class FunctionInfo(WireModel):
    """A function that expressions, windows or queries may call."""

    name: str
    kind: str
    signature: str


class Starter(WireModel):
    """A network to begin with."""

    name: str
    title: str
    description: str
    network: dict[str, Json]


class InferredStream(WireModel):
    """A stream that fits some CSV."""

    stream: str
    declaration: dict[str, Json]
    rows: int


class WireLimits(WireModel):
    """What one request may carry."""

    body_bytes: int
    rows: int


class ServerInfo(WireModel):
    """What a client should know of the server first."""

    version: str
    network: str
    role: Role
    started_at: str
    master: str
    durable: bool
    limits: WireLimits


class EnqueueReceipt(WireModel):
    """What became of the rows of a request."""

    accepted: int
    dead: int
    moment: int | None
    """The moment of the first row; null if nothing was taken."""


class TableRows(WireModel):
    """Rows as lists of values, in the order of the fields."""

    fields: list[FieldInfo]
    rows: list[list[Json]]
    truncated: bool = False


class StreamPosition(WireModel):
    """How far a stream has been fed."""

    position: Json = None


class DrainOrder(WireModel):
    """How long to wait."""

    timeout_s: Annotated[float, Field(ge=0, le=3600)] = 20.0


class DrainReport(WireModel):
    """Whether everything that was enqueued is processed and delivered."""

    drained: bool


class NewQuery(WireModel):
    """A continuous query to register."""

    name: Name
    sql: Annotated[str, Field(min_length=1, max_length=1_000_000)]


class ModifyRequest(WireModel):
    """What to add to the network, and what to remove."""

    add: dict[str, Json] = {}
    remove: list[str] = []


class AttachedQuery(WireModel):
    """A query over what a connection point keeps, and over what flows."""

    point: Name
    query: Annotated[str, Field(min_length=1, max_length=1_000_000)]
    name: Name | None = None
    since: Json = None


class ReplayedStretch(WireModel):
    """A stretch of kept history that is to flow again."""

    point: Name
    since: Json = None
    until: Json = None
    query: Annotated[str, Field(max_length=1_000_000)] | None = None


class NamedThing(WireModel):
    """The name that something got."""

    name: str


class IdentifiedThing(WireModel):
    """The id that something got."""

    id: str


class SqlText(WireModel):
    """One SELECT, and how many of its rows are wanted."""

    query: Annotated[str, Field(min_length=1, max_length=1_000_000)]
    limit: Annotated[int, Field(ge=0, le=1_000_000)] = 100_000


class ApplicationChoice(WireModel):
    """One output's application, or everything."""

    application: Name | None = None


class StepOrder(WireModel):
    """How far to go while paused."""

    kind: Literal["train", "tuple"] = "train"
    application: Name | None = None
    count: Annotated[int, Field(ge=1, le=1000)] = 1


class NewBreakpoint(WireModel):
    """Where to stop, and on which tuples."""

    arc: Name
    condition: Annotated[str, Field(max_length=100_000)] | None = None
    enabled: bool = True


class BreakpointSwitch(WireModel):
    """Whether a breakpoint stops the engine."""

    enabled: bool


class BreakpointInfo(WireModel):
    """A breakpoint and how often it was hit."""

    id: str
    arc: str
    condition: str | None
    enabled: bool
    hits: int


class HitReport(WireModel):
    """The tuple at which the engine stands."""

    breakpoint: str
    arc: str
    moment: int
    fields: list[FieldInfo]
    """The types of its values; none if they cannot be told by the values."""
    tuple: dict[str, Json]
    at_us: int


class TraceRows(WireModel):
    """Tuples on an arc during a step, and how many more there were."""

    fields: list[FieldInfo]
    """The types of their values; none if they cannot be told by the values."""
    rows: list[dict[str, Json]]
    truncated: int


class TraceEntry(WireModel):
    """What a box did in a step."""

    step: int
    box: str
    superbox: str
    moments: tuple[int, int]
    """The first moment, and the one after the last."""
    in_: Annotated[dict[str, TraceRows], Field(alias="in")]
    out: dict[str, TraceRows]
    held: int | None
    kept: dict[str, TraceRows] = {}
    """Some rows of each of its state tables, as they were after the step."""
    late: dict[str, int]
    seconds: float


class DebugState(WireModel):
    """What is paused, and why."""

    paused: bool
    applications: list[str]
    hit: HitReport | None
    breakpoints: list[BreakpointInfo]
    trace: list[TraceEntry]


class StepReport(WireModel):
    """What a step did, and how things stand after it."""

    trace: list[TraceEntry]
    state: DebugState


class StoryLine(WireModel):
    """One decision, and how often it was made in a row."""

    at_us: int
    about: list[str]
    event: str
    why: str
    count: int


class Story(WireModel):
    """The latest decisions about a part of the network, newest last."""

    entries: list[StoryLine]


class HistorySeries(WireModel):
    """The last fifteen minutes of some figures."""

    at_s: list[float]
    series: dict[str, list[float | None]]


class Health(WireModel):
    """Whether the server runs, or the engine is ready."""

    status: Literal["ok", "starting", "failed"]
    detail: str | None = None


AnyObject = dict[str, Any]
