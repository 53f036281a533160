"""The client: the Engine's methods over the server's REST interface."""

from __future__ import annotations

import json
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pyarrow as pa

from auroral.client.declared import changes
from auroral.client.follower import RemoteFollower
from auroral.client.rows import (
    arrow_rows,
    as_json,
    encoded,
    lists_of,
    parts_of,
    table_of,
)
from auroral.client.taking import PAGE, PageTaker
from auroral.client.traces import state_of, trace_of
from auroral.client.transport import ARROW, JSON, Transport, error_of, named
from auroral.errors import NetworkError, RunError, UsageError
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.qos.graphs import QoS

_POLL_S = 20.0
"""How long one request waits for the engine to be drained."""
_PAGE = PAGE
_MOST_SQL_ROWS = 1_000_000
"""So many rows of a SELECT may be asked for; a server gives fewer in one answer."""


class Client:
    """An engine that a server runs: `auroral serve` prints its URL, its token file has tokens.

    The methods are those of `Engine`, and raise the same errors. What only makes sense in the
    engine's own process is not there: starting it, binding sources, sinks and Spark streams.
    `verify` is a file with certificates to trust, or False to trust any; `timeout_s` is how long
    a call waits for an answer.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = 60.0,
        verify: bool | str | ssl.SSLContext = True,
        transport: httpx.BaseTransport | None = None,
    ):
        if not isinstance(token, str) or not token or not token.isascii():
            raise UsageError("BAD_CALL", "expected a token of the server")
        self._server = Transport(
            url, token, timeout_s=timeout_s, verify=verify, transport=transport
        )
        self._schemas: dict[str, Schema] = {}
        self._reader = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._takers: dict[tuple[Any, ...], PageTaker] = {}
        """By output, or what else results are taken from."""

    def close(self) -> None:
        """Close the connections; the engine goes on."""
        self._server.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def server(self) -> dict[str, Any]:
        """Version, network, role of the token, and limits."""
        return dict(self._server.json("GET", "server"))

    # ── data in and out ──

    def enqueue(self, stream: str, rows: Any, *, position: Any | None = None) -> int:
        """Push tuples: dicts, tuples, Arrow, pandas or a Spark DataFrame; returns how many fit.

        It returns when they are durable. Rows that do not fit become dead letters. With `position`
        (any JSON value) the batch is taken once. A large batch goes in parts: if it is interrupted,
        the same call with the same position goes on where it was.
        """
        rows = _as_batch(rows)
        table = arrow_rows(rows, self._schema(stream), stream)
        if table is None:
            lists = [as_json(part) for part in lists_of(rows)]
            return self._send(stream, lists, position, None)
        return self._send(stream, parts_of(table), position, ARROW)

    def _send(
        self, stream: str, parts: Sequence[Any], position: Any | None, type: str | None
    ) -> int:
        first, of = 0, len(parts)
        if position is not None and of > 1:
            first = _next_part(self.position(stream), position, of)
        accepted = 0
        for number in range(first, of):
            part, here = parts[number], position
            if position is not None and number < of - 1:
                here = {"batch": position, "part": number, "of": of}
            given = {"body": part} if type is None else {"content": encoded(part), "type": type}
            query = {} if here is None else {"position": _json(here)}
            try:
                answer = self._server.json("POST", f"streams/{named(stream)}", query=query, **given)
            except UsageError:
                self._schemas.pop(stream, None)  # it may have been declared anew
                raise
            accepted += int(answer["accepted"])
        return accepted

    def enqueue_encoded(
        self, stream: str, content: bytes, media_type: str, *, position: Any | None = None
    ) -> dict[str, Any]:
        """Push rows as they are: CSV, NDJSON, an Arrow stream, or what a converter reads.

        Returns how many were `accepted`, how many are `dead`, and the first `moment`.
        """
        query = {} if position is None else {"position": _json(position)}
        path = f"streams/{named(stream)}"
        return dict(self._server.json("POST", path, content=content, type=media_type, query=query))

    def send(self, stream: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Enqueue one tuple made by hand, or refuse it if it does not fit; returns its `moment`."""
        if not isinstance(row, Mapping):
            raise UsageError("BAD_CALL", f"a tuple is a mapping of fields, not {row!r:.60}")
        path, query = f"streams/{named(stream)}", {"strict": "true"}
        answer = self._server.json("POST", path, body=as_json(row), query=query)
        return {"moment": answer["moment"]}

    def position(self, stream: str) -> Any | None:
        """The position of the last batch or source chunk that was taken."""
        return self._server.json("GET", f"streams/{named(stream)}/position")["position"]

    def dequeue(self, output: str, limit: int | None = None, *, shed: bool = False) -> pa.Table:
        """What came on an output since the last call, in order of emission.

        Rows that a failed call has taken are not lost: the next call of this client with the same
        `shed` gives them. With `shed` the column `_shed` says which share of the input tuples that
        a result comes from was dropped by load shedding.
        """
        query = {"shed": "true"} if shed else {}
        return self._taken(f"outputs/{named(output)}", query, limit)

    def dequeue_all(self, name: str | None = None, limit: int | None = None) -> pa.Table:
        """The results of many queries, each tuple once, with the list of its `queries`."""
        return self._taken("results", {"name": name}, limit)

    def _taken(self, path: str, query: Mapping[str, Any], limit: int | None) -> pa.Table:
        """Take page by page; a call that fails loses nothing, the next one goes on."""
        if limit == 0:  # who asks wants the schema
            return self._table("GET", path, query={**query, "limit": 0})
        # Turns are those of a reader: results of another form are taken by another.
        reader = f"{self._reader}-shed" if "shed" in query else self._reader

        def ask(turn: int, most: int) -> pa.Table:
            wanted = {**query, "limit": most, "reader": reader, "turn": turn}
            return self._table("GET", path, query=wanted)

        with self._lock:
            taker = self._takers.setdefault((path, *query.values()), PageTaker(ask))
        return taker.take(limit, _PAGE)

    def follow(self, output: str) -> RemoteFollower:
        """Follow what an output or query gives from now on, without taking it."""
        return RemoteFollower(self._server, output)

    def table(self, name: str) -> pa.Table:
        """The rows of a table as they are now, in the order of its key.

        A large table comes in several answers: what changes meanwhile may be in them or not.
        """
        return pa.concat_tables(self._pages(f"tables/{named(name)}", {"limit": _PAGE}))

    def drain(self, timeout_s: float | None = None) -> None:
        """Wait until everything that has been enqueued is processed and delivered."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = _POLL_S if deadline is None else max(deadline - time.monotonic(), 0.0)
            wait_s = min(left, _POLL_S)
            answer = self._server.json(
                "POST",
                "control/drain",
                body={"timeout_s": wait_s},
                timeout_s=wait_s + self._server.timeout_s,
            )
            if answer["drained"]:
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise RunError("TIMEOUT", f"not everything was processed within {timeout_s:g} s")

    # ── queries and change ──

    @property
    def network(self) -> Network:
        """The declared network that runs."""
        return Network.parse(self._server.json("GET", "network"))

    def version(self) -> str:
        """What tells the network that runs from any other; `modify` takes it as `expected`."""
        return str(self._server.request("GET", "network").headers.get("ETag", ""))

    def modify(
        self,
        *,
        add: Mapping[str, Any] | None = None,
        remove: Sequence[str] = (),
        network: Network | None = None,
        expected: str | None = None,
    ) -> dict[str, list[str]]:
        """Change the network while it runs, as `Engine.modify`; returns what was done.

        A whole network is refused if it is no more the version that is `expected`.
        """
        if network is not None:
            _require_alone(add, remove)
            return self._put(network, {}, {"If-Match": expected} if expected else {})
        body = {"add": changes(add or {}), "remove": _names(remove)}
        return dict(self._server.json("POST", "modify", body=body))

    def preview_change(
        self,
        *,
        add: Mapping[str, Any] | None = None,
        remove: Sequence[str] = (),
        network: Network | None = None,
    ) -> dict[str, list[str]]:
        """What `modify` would do, without doing it; what it would refuse is refused."""
        if network is not None:
            _require_alone(add, remove)
            return self._put(network, {"dry_run": "true"}, {})
        body = {"add": changes(add or {}), "remove": _names(remove)}
        return dict(self._server.json("POST", "modify", body=body, query={"dry_run": "true"}))

    def _put(
        self, network: Network, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> dict[str, list[str]]:
        if not isinstance(network, Network):
            raise UsageError("BAD_CALL", f"network is a Network, found {network!r}")
        document = (network.compact or network).document()
        return dict(
            self._server.json("PUT", "network", body=document, query=query, headers=headers)
        )

    def typecheck(self, network: Network | None = None) -> dict[str, str]:
        """Every arc of this network, or of another one, with its schema."""
        report = self._check(network)
        if not report["ok"]:
            raise error_of({"type": NetworkError.__name__, **report["problems"][0]})
        return {name: str(_schema(arc["fields"])) for name, arc in report["arcs"].items()}

    def _check(self, network: Network | None) -> dict[str, Any]:
        document = (
            self._server.json("GET", "network")
            if network is None
            else (network.compact or network).document()
        )
        return dict(self._server.json("POST", "check", body=document))

    def matches(self, query: str | None = None) -> pa.Table:
        """How often each query matched, exactly once, and on how many tuples it failed."""
        return pa.concat_tables(self._pages("matches", {"query": query, "limit": _PAGE}))

    def set_qos(self, output: str, qos: QoS | Mapping[str, Any] | None) -> None:
        """Judge an output, or a view, by other graphs from now on; None: by the default."""
        body = qos.document() if isinstance(qos, QoS) else as_json(qos)
        self._server.request(
            "PUT", f"outputs/{named(output)}/qos", content=_json(body).encode(), type=JSON
        )

    # ── the past ──

    def attach(
        self,
        point: str,
        query: str | Callable[..., Any],
        *,
        name: str | None = None,
        since: Any = None,
    ) -> str:
        """Attach a query, SQL over the point's name, to a connection point or a view."""
        if not isinstance(query, str):
            raise UsageError("BAD_CALL", "a server takes a query as SQL, not as a function")
        body = {"point": point, "query": query, "name": name, "since": as_json(since)}
        return str(self._server.json("POST", "attach", body=body)["name"])

    def detach(self, name: str) -> None:
        """End an attached query; what nobody has taken of its results is dropped."""
        self._server.request("DELETE", f"attach/{named(name)}")

    def replay(
        self, point: str, since: Any = None, until: Any = None, into: str | None = None
    ) -> str:
        """Let a stretch of kept history flow again into a branch of its own; returns its name."""
        body = {"point": point, "since": as_json(since), "until": as_json(until), "query": into}
        return str(self._server.json("POST", "replay", body=body)["name"])

    def sql(self, query: str, limit: int | None = None) -> pa.Table:
        """The first rows of a SELECT over tables and what connection points and views keep.

        If more rows are wanted than the server puts into one answer, that is a `TRUNCATED`.
        """
        most = _PAGE if limit is None else min(limit, _MOST_SQL_ROWS)
        answer = self._rows("POST", "sql", body={"query": query, "limit": most})
        table = table_of(answer)
        if answer.headers.get("X-Truncated") and (limit is None or table.num_rows < limit):
            raise RunError(
                "TRUNCATED",
                "the SELECT has more rows than the server gives in one answer",
                where="sql",
                hint="ask for parts: ORDER BY with LIMIT and OFFSET, or a narrower WHERE",
            )
        return table

    def point_rows(
        self,
        point: str,
        key: Any = None,
        since: Any = None,
        until: Any = None,
        limit: int = 1000,
        before: int | None = None,
    ) -> pa.Table:
        """What a connection point or view keeps, by key and by time; the latest `limit` rows.

        Of these only the ones whose moment (`_seq`) is below `before`, if that is given.
        """
        given = {"key": key, "since": since, "until": until}
        query = {name: _text(value) for name, value in given.items() if value is not None}
        if before is not None:
            query["before"] = str(max(before, 0))
        path, left = f"points/{named(point)}/rows", limit
        pages: list[pa.Table] = []
        for page in self._pages(path, {**query, "limit": max(min(left, _PAGE), 1)}):
            pages.insert(0, page.slice(max(page.num_rows - left, 0)))
            left -= pages[0].num_rows
            if left <= 0:
                break
        return pa.concat_tables(pages)

    # ── looking ──

    def list_entities(self) -> dict[str, list[str]]:
        """The names of streams, boxes, outputs and the rest."""
        found: dict[str, list[str]] = self._server.json("GET", "entities", query={"limit": _PAGE})
        for kind, names in found.items():
            page = names
            while len(page) == _PAGE:
                query = {"kind": kind, "limit": _PAGE, "after": page[-1]}
                page = self._server.json("GET", "entities", query=query)[kind]
                names.extend(page)
        return found

    def describe(self, name: str) -> dict[str, Any]:
        """What is known of one entity: its declaration, schema, counts and progress."""
        return dict(self._server.json("GET", f"entities/{named(name)}"))

    def stats(self) -> dict[str, Any]:
        """Tuples in and out, steps, times, queues, dead letters and progress."""
        return dict(self._server.json("GET", "stats"))

    def story(self, name: str) -> list[dict[str, Any]]:
        """Why a box, output, stream or query ran, waited, was moved or shed; newest last."""
        return list(self._server.json("GET", f"story/{named(name)}")["entries"])

    def sample(self, arc: str, limit: int = 100, where: str | None = None) -> pa.Table:
        """The latest tuples of an arc, output, query or point, newest last."""
        query = {"limit": limit, "where": where}
        return self._table("GET", f"arcs/{named(arc)}/sample", query=query)

    # ── finding out ──

    def pause(self, application: str | None = None) -> dict[str, Any]:
        """Let nothing run, or no box that serves only paused outputs; returns `debug_state()`."""
        body = {"application": application}
        return state_of(self._server.json("POST", "control/pause", body=body))

    def resume(self, application: str | None = None) -> dict[str, Any]:
        """Go on after `pause` or a breakpoint, with everything or one output."""
        body = {"application": application}
        return state_of(self._server.json("POST", "control/resume", body=body))

    def step(
        self, kind: str = "train", application: str | None = None, count: int = 1
    ) -> list[dict[str, Any]]:
        """While paused, run the next train, or the next moment through all boxes it reaches."""
        if kind not in ("train", "tuple"):
            raise UsageError("BAD_CALL", f"kind is train or tuple, not {kind!r}")
        body = {"kind": kind, "application": application, "count": count}
        trace = self._server.json("POST", "control/step", body=body)["trace"]
        return trace_of(trace)

    def debug_state(self) -> dict[str, Any]:
        """Whether and what is paused, which breakpoint was hit, all breakpoints, the last trace."""
        return state_of(self._server.json("GET", "control"))

    def set_breakpoint(
        self, arc: str, condition: str | None = None, *, enabled: bool = True
    ) -> str:
        """Pause before a tuple of an arc that satisfies a condition is processed; returns an id."""
        body = {"arc": arc, "condition": condition, "enabled": enabled}
        return str(self._server.json("POST", "control/breakpoints", body=body)["id"])

    def remove_breakpoint(self, id: str) -> None:
        """Forget a breakpoint."""
        self._server.request("DELETE", f"control/breakpoints/{named(id)}")

    def enable_breakpoint(self, id: str, enabled: bool = True) -> None:
        """Let a breakpoint stop the engine, or not."""
        self._server.request("PATCH", f"control/breakpoints/{named(id)}", body={"enabled": enabled})

    # ── inside ──

    def _rows(self, method: str, path: str, **given: Any) -> httpx.Response:
        return self._server.request(method, path, accept=f"{ARROW}, {JSON};q=0.5", **given)

    def _table(self, method: str, path: str, **given: Any) -> pa.Table:
        return table_of(self._rows(method, path, **given))

    def _pages(self, path: str, query: Mapping[str, Any]) -> Iterator[pa.Table]:
        """The tables of an answer and of those that it says follow."""
        while True:
            answer = self._rows("GET", path, query=query)
            yield table_of(answer)
            following = answer.links.get("next")
            if following is None:
                return
            query = dict(parse_qsl(urlsplit(following["url"]).query, keep_blank_values=True))

    def _schema(self, stream: str) -> Schema:
        """The schema of a stream, asked once."""
        if stream not in self._schemas:
            declared = self._server.json("GET", "network").get("streams", {})
            if stream not in declared:
                self._server.request("POST", f"streams/{named(stream)}", body=[])  # says what is
                return Schema(())
            self._schemas[stream] = Schema.parse(declared[stream]["schema"])
        return self._schemas[stream]


def _as_batch(rows: Any) -> Any:
    """Rows that can be looked at twice."""
    if isinstance(rows, Mapping):
        return [rows]
    if type(rows).__module__.startswith("pyspark.sql.") and hasattr(rows, "toArrow"):
        return rows.toArrow()
    if isinstance(rows, (str, bytes)) or not (hasattr(rows, "__iter__") or hasattr(rows, "schema")):
        raise UsageError(
            "BAD_BATCH", f"expected dicts, tuples, Arrow or pandas, found {type(rows).__name__}"
        )
    if isinstance(rows, (list, pa.Table, pa.RecordBatch)) or hasattr(rows, "columns"):
        return rows
    return list(rows)


def _next_part(reached: Any, position: Any, of: int) -> int:
    """The part to go on with, given the position that the server has."""
    if reached == position:
        return of
    if isinstance(reached, dict) and reached.get("batch") == position and reached.get("of") == of:
        return int(reached["part"]) + 1
    return 0


def _schema(fields: Sequence[Mapping[str, str]]) -> Schema:
    return Schema.parse({field["name"]: field["type"] for field in fields})


def _require_alone(add: Any, remove: Any) -> None:
    if add or remove:
        raise UsageError("BAD_CALL", "give a whole network, or what to add and remove")


def _names(names: Sequence[str] | str) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _json(value: Any) -> str:
    return json.dumps(as_json(value))


def _text(value: Any) -> str:
    found = as_json(value)
    return found if isinstance(found, str) else _json(found)
