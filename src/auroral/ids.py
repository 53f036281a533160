"""Identities: the names of arcs, queries, logs and consumers.

Names are kept as text, in the manifest and in statistics. Whoever needs a part of a name uses the
class here: one `parse`, one `str`. Nobody else knows which sign separates the parts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ArcId:
    """An arc: a stream, a box, or a port of a box.

    >>> ArcId.parse("across.rest"), str(ArcId("across"))
    (ArcId(producer='across', port='rest'), 'across')
    """

    producer: str
    port: str = ""

    @staticmethod
    def parse(text: str) -> ArcId:
        producer, _, port = text.partition(".")
        return ArcId(producer, port)

    def __str__(self) -> str:
        return f"{self.producer}.{self.port}" if self.port else self.producer


@dataclass(frozen=True)
class MemberId:
    """A query, a family of queries, or one member of a family.

    >>> MemberId.parse("alerts[17]"), str(MemberId("alerts"))
    (MemberId(family='alerts', key='17'), 'alerts')
    >>> MemberId.parse("alerts[17").key is None
    True
    """

    family: str
    key: str | None = None

    @staticmethod
    def parse(text: str) -> MemberId:
        family, bracket, key = text.partition("[")
        return MemberId(family, key[:-1] if bracket and key.endswith("]") else None)

    def __str__(self) -> str:
        return self.family if self.key is None else f"{self.family}[{self.key}]"


@dataclass(frozen=True)
class ChunkId:
    """Rows of a family that were registered together: `alerts`, then `alerts+1`, `alerts+2`, ...

    >>> ChunkId.parse("alerts+2"), str(ChunkId("alerts"))
    (ChunkId(family='alerts', number=2), 'alerts')
    """

    family: str
    number: int = 0

    @staticmethod
    def parse(text: str) -> ChunkId:
        family, _, number = text.partition("+")
        return ChunkId(family, int(number or 0))

    def __str__(self) -> str:
        return f"{self.family}+{self.number}" if self.number else self.family


@dataclass(frozen=True)
class QueryBoxId:
    """A box that a standalone query was compiled into: `hot#1`, `hot#2`, ...

    >>> QueryBoxId.parse("hot#2"), QueryBoxId.parse("across")
    (QueryBoxId(query='hot', number=2), None)
    >>> QueryBoxId.query_of("hot#2.late"), QueryBoxId.query_of("across")
    ('hot', None)
    """

    query: str
    number: int

    @staticmethod
    def parse(text: str) -> QueryBoxId | None:
        query, mark, number = text.partition("#")
        return QueryBoxId(query, int(number)) if mark and number.isdecimal() else None

    @staticmethod
    def query_of(text: str) -> str | None:
        """The query that a box is of, or an arc, a state table or a log of such a box."""
        query, mark, _ = text.partition("#")
        return query if mark and query else None

    def __str__(self) -> str:
        return f"{self.query}#{self.number}"


@dataclass(frozen=True)
class InnerBoxId:
    """A box inside an instance of a superbox; instances may be inside of instances.

    >>> InnerBoxId.parse("north/east/across"), InnerBoxId.parse("across")
    (InnerBoxId(instance='north/east', box='across'), None)
    >>> str(InnerBoxId("north", "across")), InnerBoxId.outermost("north/east/across")
    ('north/across', 'north')
    """

    instance: str
    box: str

    @staticmethod
    def parse(text: str) -> InnerBoxId | None:
        instance, slash, box = text.rpartition("/")
        return InnerBoxId(instance, box) if slash else None

    @staticmethod
    def outermost(text: str) -> str:
        """The box as the network declares it: the instance that holds all the others."""
        return text.partition("/")[0]

    def __str__(self) -> str:
        return f"{self.instance}/{self.box}"


def file_name(name: str) -> str:
    """The name of a box, an arc or a superbox as a part of the name of a file.

    >>> file_name("north/across.rest")
    'north-across.rest'
    """
    return name.replace("/", "-")


@dataclass(frozen=True)
class PartBoxId:
    """A box that stands in the running network for a part of a declared box.

    >>> str(PartBoxId("pay", "write")), PartBoxId.parse("pay@sorted"), PartBoxId.parse("pay")
    ('pay@write', PartBoxId(box='pay', part='sorted'), None)
    >>> PartBoxId.parse("far@copy2")
    PartBoxId(box='far', part='copy2')
    >>> PartBoxId.owner("pay@write"), PartBoxId.owner("pay")
    ('pay', 'pay')
    """

    box: str
    part: str

    @staticmethod
    def parse(text: str) -> PartBoxId | None:
        box, mark, part = text.partition("@")
        is_copy = part.startswith(_COPY) and part.removeprefix(_COPY).isdecimal()
        return PartBoxId(box, part) if mark and (part in _PARTS or is_copy) else None

    @staticmethod
    def owner(text: str) -> str:
        """The declared box that a box of the running network belongs to."""
        found = PartBoxId.parse(text)
        return text if found is None else found.box

    def __str__(self) -> str:
        return f"{self.box}@{self.part}"


@dataclass(frozen=True)
class EddyId:
    """The eddy that serves some arcs.

    >>> str(EddyId(("news", "ticks"))), EddyId.parse("eddy@news+ticks")
    ('eddy@news+ticks', EddyId(arcs=('news', 'ticks')))
    >>> EddyId.parse("across") is None
    True
    """

    arcs: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> EddyId | None:
        if not text.startswith(_EDDY):
            return None
        return EddyId(tuple(text.removeprefix(_EDDY).split("+")))

    @property
    def joined(self) -> str:
        """The arcs as statistics name them."""
        return "+".join(self.arcs)

    def __str__(self) -> str:
        return _EDDY + self.joined


@dataclass(frozen=True)
class StateLogId:
    """The log of one state table of a box, in one bucket.

    The state of eddies belongs to arcs and groups, whichever eddy serves these; it has no box.

    >>> str(StateLogId("crowd", "windows", 3)), str(StateLogId(None, "stem:ticks", 0))
    ('crowd#windows/3', 'eddy@stem:ticks/0')
    >>> StateLogId.parse("hot#1#windows/3"), StateLogId.parse("crowd")
    (StateLogId(box='hot#1', table='windows', bucket=3), None)
    """

    box: str | None
    table: str
    bucket: int

    @staticmethod
    def parse(text: str) -> StateLogId | None:
        owner, slash, bucket = text.rpartition("/")
        if not slash or not bucket.isdecimal():
            return None
        if owner.startswith(_EDDY):
            return StateLogId(None, owner.removeprefix(_EDDY), int(bucket))
        box, _, table = owner.rpartition("#")
        return StateLogId(box, table, int(bucket))

    def __str__(self) -> str:
        owner = _EDDY if self.box is None else f"{self.box}#"
        return f"{owner}{self.table}/{self.bucket}"


@dataclass(frozen=True)
class StreamLogId:
    """The log of a stream, or of where its tuples come from.

    A stream whose late tuples leave before it (`below: route`) is written to a log of its own.

    >>> str(StreamLogId("reports", "in")), StreamLogId.parse("origins@reports")
    ('reports@in', StreamLogId(stream='reports', kind='origins'))
    """

    stream: str
    kind: str = ""

    @staticmethod
    def parse(text: str) -> StreamLogId:
        if text.startswith(_ORIGINS):
            return StreamLogId(text.removeprefix(_ORIGINS), "origins")
        if text.endswith(_ENTRY):
            return StreamLogId(text.removesuffix(_ENTRY), "in")
        return StreamLogId(text)

    def __str__(self) -> str:
        if self.kind == "origins":
            return f"{_ORIGINS}{self.stream}"
        return f"{self.stream}{_ENTRY}" if self.kind == "in" else self.stream


@dataclass(frozen=True)
class ResultsLogId:
    """The log of results that the queries of one kind share: of an arc, or of a group of queries.

    >>> str(ResultsLogId("ticks"))
    'matches@ticks'
    """

    kind: str

    def __str__(self) -> str:
        return f"matches@{self.kind}"


@dataclass(frozen=True)
class HistoryIndexId:
    """The log of runs that organise the history of a connection point, kept in a log, by a key.

    >>> str(HistoryIndexId("recent", "across", "sid"))
    'index@recent of across by sid'
    >>> HistoryIndexId.parse("index@recent of across by sid")
    HistoryIndexId(point='recent', log='across', key='sid')
    """

    point: str
    log: str
    key: str

    @staticmethod
    def parse(text: str) -> HistoryIndexId | None:
        if not text.startswith(_INDEX):
            return None
        point, _, rest = text.removeprefix(_INDEX).partition(" of ")
        log, _, key = rest.partition(" by ")
        return HistoryIndexId(point, log, key)

    def __str__(self) -> str:
        return f"{_INDEX}{self.point} of {self.log} by {self.key}"


@dataclass(frozen=True)
class StoredTableId:
    """A stored data set (a dangling connection point) as the table side of a join.

    >>> str(StoredTableId("prices")), StoredTableId.parse("prices@stored")
    ('prices@stored', StoredTableId(point='prices'))
    >>> StoredTableId.parse("prices") is None
    True
    """

    point: str

    @staticmethod
    def parse(text: str) -> StoredTableId | None:
        return StoredTableId(text.removesuffix(_STORED)) if text.endswith(_STORED) else None

    def __str__(self) -> str:
        return self.point + _STORED


@dataclass(frozen=True)
class PendingLogId:
    """The log that keeps undelivered results of a removed standalone query."""

    query: int

    @staticmethod
    def parse(text: str) -> PendingLogId | None:
        if not text.startswith(_PENDING_LOG):
            return None
        return PendingLogId(int(text.removeprefix(_PENDING_LOG)))

    def __str__(self) -> str:
        return f"{_PENDING_LOG}{self.query}"


@dataclass(frozen=True)
class EarlierLogId:
    """The log of what an arc gave before it got other fields, until everybody has read it.

    >>> str(EarlierLogId("crowd", 17)), EarlierLogId.parse("earlier@17 of crowd.rest").arc
    ('earlier@17 of crowd', 'crowd.rest')
    """

    arc: str
    until: int

    @staticmethod
    def parse(text: str) -> EarlierLogId | None:
        if not text.startswith(_EARLIER_LOG):
            return None
        until, _, arc = text.removeprefix(_EARLIER_LOG).partition(" of ")
        return EarlierLogId(arc, int(until))

    def __str__(self) -> str:
        return f"{_EARLIER_LOG}{self.until} of {self.arc}"


@dataclass(frozen=True)
class OutputReader:
    """An output, or a query read by itself, among the consumers of a log.

    >>> str(OutputReader("alerts")), OutputReader.parse("output alerts[3]")
    ('output alerts', OutputReader(output='alerts[3]'))
    >>> OutputReader.parse("crowd") is None
    True
    """

    output: str

    @staticmethod
    def parse(text: str) -> OutputReader | None:
        if not text.startswith(_OUTPUT):
            return None
        return OutputReader(text.removeprefix(_OUTPUT))

    def __str__(self) -> str:
        return _OUTPUT + self.output


@dataclass(frozen=True)
class PendingReader:
    """A sink that has still to get the results before a moment of a removed query."""

    output: str
    until: int

    @staticmethod
    def parse(text: str) -> PendingReader | None:
        if not text.startswith(_PENDING):
            return None
        until, _, output = text.removeprefix(_PENDING).partition(" of ")
        return PendingReader(output, int(until))

    def __str__(self) -> str:
        return f"{_PENDING}{self.until} of {self.output}"


@dataclass(frozen=True)
class HistoryReader:
    """The consumer that keeps the history of a connection point or view in its log.

    >>> str(HistoryReader("recent")), HistoryReader.parse("history@recent")
    ('history@recent', HistoryReader(point='recent'))
    >>> HistoryReader.parse("crowd") is None
    True
    """

    point: str

    @staticmethod
    def parse(text: str) -> HistoryReader | None:
        return HistoryReader(text.removeprefix(_HISTORY)) if text.startswith(_HISTORY) else None

    def __str__(self) -> str:
        return _HISTORY + self.point


@dataclass(frozen=True)
class MarksLogId:
    """The log of the moves of the marks of a connection point's arc.

    >>> str(MarksLogId("recent")), MarksLogId.parse("marks@recent")
    ('marks@recent', MarksLogId(point='recent'))
    """

    point: str

    @staticmethod
    def parse(text: str) -> MarksLogId | None:
        return MarksLogId(text.removeprefix(_MARKS)) if text.startswith(_MARKS) else None

    def __str__(self) -> str:
        return _MARKS + self.point


@dataclass(frozen=True)
class AttachmentId:
    """An attachment; its boxes are named after it, as those of a query are: `attach@hot#1`.

    >>> str(AttachmentId("hot")), AttachmentId.of("attach@hot#1#windows/3")
    ('attach@hot', AttachmentId(name='hot'))
    >>> str(AttachmentId("hot").box(2)), AttachmentId.of("hot#1") is None
    ('attach@hot#2', True)
    """

    name: str

    @staticmethod
    def of(text: str) -> AttachmentId | None:
        """The attachment that a box is of, or an arc, a log or a consumer of such a box."""
        if not text.startswith(_ATTACHMENT):
            return None
        return AttachmentId(text.removeprefix(_ATTACHMENT).partition("#")[0])

    def box(self, number: int) -> QueryBoxId:
        return QueryBoxId(str(self), number)

    def __str__(self) -> str:
        return _ATTACHMENT + self.name


@dataclass(frozen=True)
class LogOwner:
    """The box or stream that a log belongs to."""

    name: str
    is_state: bool = False
    """Whether the log is what the box remembers, not what it has emitted."""


def owner_of(log: str) -> LogOwner:
    """Whose an arc, a state table or the origins of a stream are.

    >>> owner_of("across.rest"), owner_of("crowd#windows/3"), owner_of("origins@reports").name
    (LogOwner(name='across', is_state=False), LogOwner(name='crowd', is_state=True), 'reports')
    """
    state = StateLogId.parse(log)
    if state is not None:
        return LogOwner(state.box or log, is_state=True)
    if log.startswith(_ORIGINS):
        return LogOwner(log.removeprefix(_ORIGINS))
    return LogOwner(ArcId.parse(log).producer)


CLOCK_LOG = "clock@"
"""The log of moments and times from which heartbeats and timeouts are computed."""
ALL_QUERIES = "every query"
"""The consumer that takes the results of all queries of a log together."""
WATERMARKS = "progress@"
"""The consumer that computes watermarks."""
NEXT_EPOCH = "next@"
"""The consumer that retains input for boxes that start in the next epoch."""
HELD = "results"
"""The consumer that alone decides what a log of query results keeps."""

_PARTS = ("sorted", "write", "lookup")
_COPY = "copy"
_ATTACHMENT = "attach@"
_EDDY = "eddy@"
_HISTORY = "history@"
_MARKS = "marks@"
_ORIGINS = "origins@"
_ENTRY = "@in"
_INDEX = "index@"
_STORED = "@stored"
_PENDING_LOG = "rest@"
_EARLIER_LOG = "earlier@"
_OUTPUT = "output "
_PENDING = "rest "


def is_superbox(consumer: str) -> bool:
    """Whether a consumer of a log is a superbox of the network; those of attachments are not.

    >>> [is_superbox(name) for name in ("crowd", "output alerts", "progress@", "attach@hot#1")]
    [True, False, False, False]
    """
    special = (ALL_QUERIES, HELD, WATERMARKS, NEXT_EPOCH)
    others = (_OUTPUT, _PENDING, _HISTORY, _ATTACHMENT)
    return consumer not in special and not consumer.startswith(others)


def is_eddy(consumer: str) -> bool:
    """Whether a consumer of a log is an eddy."""
    return consumer.startswith(_EDDY)
