"""What a network file declares besides boxes: streams, tables, outputs and the rest."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictStr,
    WithJsonSchema,
)

from auroral.errors import NetworkError
from auroral.network.types import Schema
from auroral.progress.declaration import Progress
from auroral.progress.durations import parse_duration_us
from auroral.qos.graphs import QoS


class Declaration(BaseModel):
    """An immutable part of a network; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def document(self) -> dict[str, Any]:
        """The form the network file uses; what has its default value is left out."""
        return self.model_dump(mode="json", exclude_defaults=True)


DeclaredSchema = Annotated[
    Schema,
    BeforeValidator(Schema.parse),
    PlainSerializer(lambda schema: schema.declaration()),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "field names and their Spark SQL types",
        }
    ),
]
Options = Annotated[dict[str, Any], Field(description="format, path and options of the format")]


class Stream(Declaration):
    """An endless run of tuples of one schema."""

    schema_: Annotated[DeclaredSchema, Field(alias="schema")]
    progress: Progress | None = None
    source: Options | None = None

    def document(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True, by_alias=True)

    def model_post_init(self, _context: Any) -> None:
        if not len(self.schema_):
            raise NetworkError("BAD_SCHEMA", "a stream needs at least one field")
        if self.progress is None:
            return
        field = self.schema_.field(self.progress.on)
        if not field.type.is_orderable:
            raise NetworkError(
                "BAD_PROGRESS",
                f"progress on {field.name}: expected a number, date or timestamp, it is {field.type}",
            )
        self.progress.delay_in(field.type.name)
        for name in self.progress.by:
            self.schema_.field(name)


class Table(Declaration):
    """Stored rows that boxes read and update."""

    schema_: Annotated[DeclaredSchema, Field(alias="schema")]
    key: tuple[StrictStr, ...] = ()
    store: StrictStr | None = None

    def document(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True, by_alias=True)

    def model_post_init(self, _context: Any) -> None:
        for name in self.key:
            self.schema_.field(name)
        if self.store and not self.store.startswith(("sqlite://", "postgresql://")):
            raise NetworkError(
                "BAD_STORE", f"expected sqlite:///… or postgresql://…, found {self.store!r}"
            )


class KeepRows(Declaration):
    """History by count."""

    rows: Annotated[int, Field(gt=0)]


class ConnectionPoint(Declaration):
    """An arc that remembers history and takes new branches while running."""

    on: StrictStr
    keep: StrictStr | KeepRows
    key: StrictStr | None = None

    def model_post_init(self, _context: Any) -> None:
        if isinstance(self.keep, str):
            parse_duration_us(self.keep)


class Output(Declaration):
    """An arc delivered to an application, and what its tuples are worth."""

    from_: Annotated[StrictStr, Field(alias="from")]
    qos: QoS | None = None
    sink: Options | None = None

    def document(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True, by_alias=True)


class EngineOptions(Declaration):
    """How this network likes to be run."""

    headroom: Annotated[float, Field(gt=0, le=1)] = 0.8
    scheduler: Literal["qos", "round_robin"] = "qos"
    train: Annotated[int, Field(gt=0)] | None = None
