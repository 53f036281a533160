"""Auroral: a data stream manager on Spark."""

from functools import lru_cache
from typing import TYPE_CHECKING

import auroral.boxes  # noqa: F401  (makes the boxes known)
from auroral.boxes.order import Order
from auroral.boxes.window import Window
from auroral.continuous.boxing.expansion import never_closing, query_schemas
from auroral.errors import AuroralError, NetworkError, RunError, SinkError, StateError, UsageError
from auroral.io.open import check_sink, check_sources
from auroral.io.sinks.csv import CsvSink
from auroral.io.sinks.jsonl import JsonlSink
from auroral.io.sinks.parquet import ParquetSink
from auroral.io.sources.iterable import IterableSource
from auroral.network import check, endpoints
from auroral.network.declarations import ConnectionPoint, EngineOptions, Output, Stream, Table
from auroral.network.function import NOTHING, function
from auroral.network.network import Network
from auroral.network.queries import Family, Query
from auroral.network.types import Schema, Type
from auroral.progress.declaration import Delayed, Heartbeat, Ordered, Progress, Punctuated
from auroral.qos.graphs import QoS
from auroral.scheduling.table_stages import taking_turns

if TYPE_CHECKING:
    from auroral.client import Client
    from auroral.engine import Engine, Follower

__version__ = "0.1.0"


@lru_cache(maxsize=4096)
def _ask_spark(text: str, schema: Schema) -> Type:
    """The type of an expression that only Spark can tell; starts Spark if need be."""
    from auroral.spark.session.analysis import spark_resolver
    from auroral.spark.session.session import start_session, step_session

    return spark_resolver(step_session(start_session(for_analysis=True)))(text, schema)


check.fallback_resolver = _ask_spark
check.query_checker = query_schemas
check.caution_finder = lambda network: [*never_closing(network), *taking_turns(network)]
endpoints.sink_checker = check_sink
endpoints.source_checker = check_sources

__all__ = [
    "NOTHING",
    "AuroralError",
    "Client",
    "ConnectionPoint",
    "CsvSink",
    "Delayed",
    "Engine",
    "EngineOptions",
    "Family",
    "Follower",
    "Heartbeat",
    "IterableSource",
    "JsonlSink",
    "Network",
    "NetworkError",
    "Order",
    "Ordered",
    "Output",
    "ParquetSink",
    "Progress",
    "Punctuated",
    "QoS",
    "Query",
    "RunError",
    "Schema",
    "SinkError",
    "StateError",
    "Stream",
    "Table",
    "UsageError",
    "Window",
    "function",
]


def __getattr__(name: str) -> object:
    # Engine needs Spark, Client an HTTP library; networks and tests without them start faster.
    if name == "Engine":
        from auroral.engine import Engine

        return Engine
    if name == "Follower":
        from auroral.engine import Follower

        return Follower
    if name == "Client":
        from auroral.client import Client

        return Client
    raise AttributeError(f"module 'auroral' has no attribute {name!r}")
