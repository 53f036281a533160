"""Commands against a server: feed, take, look and debug a network that `auroral serve` runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from errno import EACCES, EISDIR
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from auroral.cli.display import outside_lines, status_line
from auroral.cli.written import TableWriter, write_tables
from auroral.client import Client
from auroral.client.rows import as_json as plain
from auroral.errors import UsageError
from auroral.io.readers import lexer
from auroral.io.readers.blocks import blocks, cannot_read, cut_lines
from auroral.network.network import Network

SERVER, TOKEN = "AURORAL_SERVER", "AURORAL_TOKEN"
_MOST_ROWS = 10_000
_WAIT_S = 1.0
_TEXTS = {".csv": "text/csv", ".jsonl": "application/x-ndjson", ".ndjson": "application/x-ndjson"}

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar=SERVER,
        show_envvar=True,
        help="the server that runs the network",
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="T",
        help=f"a token; others may see it in the list of processes: prefer {TOKEN} or a file",
    ),
]
TokenFileOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="F", help="the server's file of tokens")
]
CaOption = Annotated[
    Path | None, typer.Option("--ca", metavar="PEM", help="certificates to trust, for https")
]


def connected(
    server: str | None, token: str | None, token_file: Path | None, ca: Path | None
) -> Client:
    """A client for the options that say where the server is and who asks."""
    if not server:
        raise UsageError(
            "NO_SERVER",
            "this needs a server",
            hint=f"give --server URL, or set {SERVER}; `auroral serve FILE` starts one",
        )
    found = token or (_token_of(token_file) if token_file else os.environ.get(TOKEN))
    if not found:
        raise UsageError(
            "NO_TOKEN",
            "the server wants a token",
            hint=f"set {TOKEN}, or give --token-file with the server's file of tokens",
        )
    return Client(server, found.strip(), verify=str(ca) if ca else True)


def _token_of(path: Path) -> str:
    """The token of a file: the editor's of a server's file, or the file's only text."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(
            "CANNOT_READ", f"cannot read the file of tokens: {reason}", where=str(path)
        ) from None
    if not text.startswith("{"):
        return text
    try:
        tokens = json.loads(text)
        return str(next(tokens[r] for r in ("editor", "operator", "viewer") if r in tokens))
    except (ValueError, StopIteration, TypeError):
        problem = 'expected a token, or {"viewer": …, "operator": …, "editor": …}'
        raise UsageError("BAD_TOKEN_FILE", problem, where=str(path)) from None


# ── a whole network ──


def deploy(
    client: Client, network: Network, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> None:
    """Let the server run a network, feed it, and write what it gives.

    Files that cannot be read or written are told before anything is sent or taken.
    """
    for path in inputs.values():
        require_readable(Path(path))
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(closing(TableWriter(name, Path(path), taken=True)))
            for name, path in outputs.items()
        }
        _say_report(client.modify(network=network))
        for output, writer in writers.items():
            writer.write(client.dequeue(output, 0))
        for stream, path in inputs.items():
            accepted, dead = feed(client, stream, Path(path))
            typer.echo(f"stream {stream}: {accepted:,} in{_dead(dead)} ← {path}", err=True)
        if inputs or outputs:
            client.drain()
        for output, writer in writers.items():
            writer.write(client.dequeue(output))
            typer.echo(f"output {output}: {writer.rows:,} out → {outputs[output]}", err=True)


def _say_report(report: Mapping[str, Sequence[str]]) -> None:
    """Tell what a change did."""
    said = [f"{what} {', '.join(names)}" for what, names in report.items() if names]
    typer.echo("\n".join(said) if said else "the network runs already as the file says", err=True)


def feed(client: Client, stream: str, path: Path) -> tuple[int, int]:
    """Send a file to a stream, in parts; returns how many rows fit, and how many did not."""
    accepted = dead = 0
    for content, media_type in parts_of(path):
        receipt = client.enqueue_encoded(stream, content, media_type)
        accepted += receipt["accepted"]
        dead += receipt["dead"]
    return accepted, dead


def require_readable(path: Path) -> None:
    """Refuse a file that `parts_of` cannot read."""
    suffix = path.suffix.lower()
    if suffix not in _TEXTS and suffix != ".parquet":
        known = ", ".join((*_TEXTS, ".parquet"))
        raise UsageError("BAD_OPTION", f"expected a file with one of {known}", where=str(path))
    try:
        path.stat()
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        if not os.access(path, os.R_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
    except OSError as error:
        raise cannot_read(str(path), error) from None


def parts_of(path: Path) -> Iterator[tuple[bytes, str]]:
    """A file in parts that stand for themselves, and their media type."""
    require_readable(path)
    media_type = _TEXTS.get(path.suffix.lower())
    if media_type == "text/csv":
        header = b""
        for block in blocks(str(path), 0, 1, lexer.cut):
            yield header + block.data, media_type
            if not header:
                first = next((r for r in lexer.records(block.data) if r.fields != [None]), None)
                header = block.data[: first.after] if first else b""
    elif media_type is not None:
        for block in blocks(str(path), 0, 1, cut_lines):
            yield block.data, media_type
    else:
        yield from _parquet_parts(path)


def _parquet_parts(path: Path) -> Iterator[tuple[bytes, str]]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_MOST_ROWS):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                yield sink.getvalue().to_pybytes(), "application/vnd.apache.arrow.stream"
    except OSError as error:
        raise cannot_read(str(path), error) from None
    except pa.ArrowInvalid as error:
        raise UsageError("CANNOT_READ", f"cannot read {path}: {error}", where=str(path)) from None


def _dead(count: int) -> str:
    return f", {count:,} dead letters" if count else ""


# ── commands ──


def enqueue(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".csv, .jsonl or .parquet")],
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Send the rows of a file to a stream of a server."""
    with connected(server, token, token_file, ca) as client:
        accepted, dead = feed(client, stream, file)
    typer.echo(f"{accepted:,} in{_dead(dead)}", err=True)


def dequeue(
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="an output or a query")],
    limit: Annotated[int | None, typer.Option(min=0, help="about how many rows")] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--output", help="write a .csv, .jsonl or .parquet", show_default="standard output"
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="show what comes, without taking it, until Ctrl-C"),
    ] = False,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Take what an output of a server has; or follow what it gives."""
    with connected(server, token, token_file, ca) as client:
        if not follow:
            rows = write_tables(_taken(client, output, limit), output, to, taken=True)
        else:
            with client.follow(output) as follower:
                rows = write_tables(_first(iter(follower), limit), output, to)
    typer.echo(f"{rows:,} rows", err=True)


def _taken(client: Client, output: str, limit: int | None) -> Iterator[pa.Table]:
    """What an output has, behind an empty table: it opens the file before anything is taken."""
    yield client.dequeue(output, 0)
    yield client.dequeue(output, limit)


def _first(tables: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """Tables up to a number of rows."""
    left = limit
    for table in tables:
        yield table if left is None else table.slice(0, left)
        left = None if left is None else left - table.num_rows
        if left is not None and left <= 0:
            return


def stats(
    as_json: Annotated[bool, typer.Option("--json", help="everything, for machines")] = False,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Tell how a network on a server is doing."""
    with connected(server, token, token_file, ca) as client:
        found = client.stats()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    rate = sum(stream.get("rate") or 0.0 for stream in found["streams"].values())
    typer.echo(status_line(found, rate))
    for name, stream in found["streams"].items():
        line = f"in {stream['in']:,} ({stream.get('rate') or 0:,.0f}/s)"
        typer.echo(f"  stream {name}: {line}, waiting {stream['waiting']:,}{_dead(stream['dead'])}")
    for name, output in found["outputs"].items():
        utility = (found["qos"].get(name) or {}).get("utility")
        told = "" if utility is None else f", utility {utility:.2f}"
        failed = f", failed: {output['failed']}" if output.get("failed") else ""
        line = f"out {output['out']:,}, waiting {output['waiting']:,}"
        typer.echo(f"  output {name}: {line}{told}{failed}")
    for line in outside_lines(found):
        typer.echo(f"  {line}")


def pause(
    application: Annotated[
        str | None, typer.Argument(metavar="[OUTPUT]", help="only what serves this output")
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Pause a network on a server, or one of its outputs; input is still taken."""
    with connected(server, token, token_file, ca) as client:
        _say_state(client.pause(application))


def resume(
    application: Annotated[
        str | None, typer.Argument(metavar="[OUTPUT]", help="only what serves this output")
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Let a paused network on a server go on."""
    with connected(server, token, token_file, ca) as client:
        _say_state(client.resume(application))


def _say_state(state: Mapping[str, Any]) -> None:
    if state["applications"]:
        typer.echo(f"paused: {', '.join(state['applications'])}")
    else:
        typer.echo("paused" if state["paused"] else "running")


def step(
    application: Annotated[
        str | None, typer.Argument(metavar="[OUTPUT]", help="only what serves this output")
    ] = None,
    kind: Annotated[str, typer.Option(help="train, or tuple: one moment")] = "train",
    count: Annotated[int, typer.Option(min=1, help="how many")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Run one step of a paused network on a server, and tell what went in and came out."""
    with connected(server, token, token_file, ca) as client:
        trace = client.step(kind, application, count)
    if as_json:
        typer.echo(json.dumps(plain(trace), indent=2))
        return
    for entry in trace:
        typer.echo(f"{entry['box']} ({entry['seconds'] * 1000:.1f} ms)")
        for way in ("in", "out"):
            for arc, rows in entry[way].items():
                left_out = entry["truncated"].get(arc)
                more = f" … {left_out} more" if left_out else ""
                typer.echo(f"  {way} {arc}: {len(rows)} tuples{more}")
                for row in rows:
                    typer.echo(f"    {json.dumps(plain(row), ensure_ascii=False)}")
    if not trace:
        typer.echo("nothing waits")


def story(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a box, output, stream or query")],
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Tell what a server decided about a part of its network, newest last."""
    with connected(server, token, token_file, ca) as client:
        entries = client.story(name)
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    for entry in entries:
        times = f" ({entry['count']} times)" if entry["count"] > 1 else ""
        typer.echo(f"{entry['event']}{times}: {entry['why']}")


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="a SELECT")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--output", help="write a .csv, .jsonl or .parquet", show_default="standard output"
        ),
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Ask the tables and the kept history of a network on a server."""
    with connected(server, token, token_file, ca) as client:
        write_tables((client.sql(one) for one in (query,)), "sql", to)


def attach_there(client: Client, point: str, query: str, follow: bool) -> Iterator[pa.Table]:
    """What a query gives over the history of a point on a server; then what flows."""
    name = client.attach(point, query)
    try:
        with client.follow(name) as follower:  # only tells when there is something to take
            yield client.dequeue(name, 0)  # opens the file that is written
            client.drain()
            yield client.dequeue(name)
            while follow:
                if follower.next(_WAIT_S) is not None:
                    yield client.dequeue(name)
    finally:
        client.detach(name)
