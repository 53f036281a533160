"""The command `auroral`: one file per verb."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from auroral.cli import (
    analyze,
    attach,
    bench,
    catalog,
    check,
    diff,
    explain,
    find,
    remote,
    remote_debug,
    rescale,
    run,
    schema,
    serve,
    simulate,
)
from auroral.errors import AuroralError

app = typer.Typer(
    name="auroral",
    help="A data stream manager on Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"auroral {version('auroral')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_tell_version, help="tell the version and exit"
        ),
    ] = False,
) -> None:
    """Take what stands before the verb."""


app.command("check")(check.check)
app.command("run")(run.run)
app.command("serve")(serve.serve)
app.command("explain")(explain.explain)
app.command("schema")(schema.schema)
app.command("rescale")(rescale.rescale)
app.command("find")(find.find)
app.command("diff")(diff.diff)
app.add_typer(catalog.app, name="catalog")
app.command("attach")(attach.attach)
app.command("enqueue")(remote.enqueue)
app.command("dequeue")(remote.dequeue)
app.command("stats")(remote.stats)
app.command("pause")(remote.pause)
app.command("resume")(remote.resume)
app.command("step")(remote.step)
app.command("story")(remote.story)
app.command("sql")(remote.sql)
app.command("list")(remote_debug.entities)
app.command("describe")(remote_debug.describe)
app.command("breakpoints")(remote_debug.breakpoints)
app.command("detach")(remote_debug.detach)
app.command("replay")(remote_debug.replay)
app.command("set-qos")(remote_debug.set_qos)
app.command("bench")(bench.bench)
app.command("simulate")(simulate.simulate)
app.command("analyze")(analyze.analyze)


def main() -> None:
    """Run a command; a user's mistake is one sentence on standard error, never a traceback."""
    try:
        app()
    except AuroralError as error:
        sys.stderr.write(f"auroral: {error}\n")
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        # The reader of our output went away, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


if __name__ == "__main__":
    main()
