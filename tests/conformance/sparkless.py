"""An engine without Spark: kernels and tasks as they are, expressions by the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import auroral.spark.running.stateful_runner
from auroral.boxes import Union
from auroral.engine import Engine
from auroral.network.check import what_boxes_see
from auroral.network.network import Network
from auroral.reference.network import _operator
from auroral.reference.operator import Emission, Tuple
from auroral.spark.plans.plan import arc_schema, in_order
from auroral.spark.plans.stateful import StatefulPlan
from auroral.spark.running.runner import Runner, StepResult
from auroral.spark.running.stateful_runner import StatefulRunner
from auroral.spark.running.train_file import TrainFile
from auroral.spark.running.worker import NOTE, PORT, Job, reading_task, task, write_job
from auroral.sql.expressions.expression import evaluator
from tests.conftest import require_sound

Hidden = dict[str, Any]
Carried = list[tuple[Hidden, dict[str, Any]]]
"""Tuples with their hidden fields."""
Files = Mapping[str, Sequence[TrainFile]]


class NoSession:
    """Stands where a Spark session would."""

    class sparkContext:  # noqa: N801
        master = "local[1]"

    class conf:  # noqa: N801
        @staticmethod
        def set(_key: str, _value: str) -> None: ...

    def newSession(self) -> NoSession:  # noqa: N802
        return self


def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let steps run in this process."""
    monkeypatch.setattr(StatefulRunner, "run", _run_stateful)
    monkeypatch.setattr(StatefulRunner, "warm_up", lambda _self: None)
    monkeypatch.setattr(Runner, "run", _run_plain)
    monkeypatch.setattr(Runner, "warm_up", lambda _self, _superbox: None)
    for runner in (StatefulRunner, Runner):
        monkeypatch.setattr(runner, "has_room", lambda *_: True)


@contextmanager
def make_engine(network: Network, *, bind: Any = (), **options: Any) -> Iterator[Engine]:
    """As the fixture of that name; an engine that crashed is dropped as it stands."""
    given = {"background": False, **options}
    engine = Engine(network, spark=NoSession(), **given)  # type: ignore[arg-type]
    for output, sink in bind:
        engine.bind_sink(output, sink)
    engine.start()
    try:
        yield engine
        if engine._loop.failure is None and not given["background"]:
            require_sound(engine._store)
    except Exception:
        engine.shutdown()
        raise
    except BaseException:
        engine._started = False
        engine._loop._stopping.set()
        engine._store.close()
        raise
    engine.shutdown()


def _run_stateful(
    self: StatefulRunner, train: Files, job: Job
) -> tuple[list[dict[str, Any]], pa.Table | None]:
    physical, layout = self.physical, self._layout
    assert self.superbox.stateful is not None
    checked, box = self._checked, self.superbox.stateful
    arcs = checked.network.boxes[box].sources()
    if self.reads:
        files = {port: [str(f.path) for f in train.get(arc, ())] for port, arc in enumerate(arcs)}
        rows = sum(file.rows for held in train.values() for file in held)
        parallel = auroral.spark.running.stateful_runner.PARALLEL_ROWS
        tasks = self.buckets if rows > parallel else 1
        write_job(self._job, replace(job, files=files))
        work = reading_task(physical.kernel, layout, str(self._job), tasks)
        made = [
            batch
            for number in range(tasks)
            for batch in work(iter([pa.record_batch([pa.array([number])], ["id"])]))
        ]
    else:
        write_job(self._job, job)
        given = _through(self._checked, self.superbox.boxes[:-1], train)
        work = task(physical.kernel, layout, str(self._job))
        batches = [_batch(self, port, given.get(arc, [])) for port, arc in enumerate(arcs)]
        whole = pa.concat_tables([b for b in batches if b.num_rows] or batches[:1])
        made = list(work(iter(whole.combine_chunks().to_batches())))
    if not made:
        return [], None
    result = pa.Table.from_batches(made)
    if not physical.returns:
        return StatefulPlan(None, None).split(result)  # type: ignore[arg-type]
    main = arc_schema(checked.arcs[box].schema, ranked=True)
    plan = StatefulPlan(None, main)  # type: ignore[arg-type]
    return plan.split(_finished(result, self))


def _batch(runner: StatefulRunner, port: int, tuples: Carried) -> pa.Table:
    """What a kernel takes of one input."""
    physical, layout = runner.physical, runner._layout
    own = {carrier: name for name, carrier, _ in layout.inputs[port]}
    types = {carrier: type for placed in layout.inputs for _, carrier, type in placed}
    schema = physical.inputs[port].schema
    texts = physical.inputs[port].texts
    columns: dict[str, pa.Array] = {
        "_seq": pa.array([h["_seq"] for h, _ in tuples], pa.int64()),
        "_ts": pa.array([h["_ts"] for h, _ in tuples], pa.int64()),
        "_sub": pa.array([_sub(h) for h, _ in tuples], pa.binary()),
    }
    if len(physical.inputs) > 1:
        columns[PORT] = pa.array([port] * len(tuples), pa.int8())
    for carrier in sorted(types, key=lambda name: int(name[1:]) if name[1:].isdigit() else 0):
        if carrier in own:
            find = evaluator(texts[own[carrier]][0], schema)
            values = [find(row) for _, row in tuples]
        else:
            values = [None] * len(tuples)
        columns[carrier] = pa.array(values, types[carrier])
    return pa.table(columns)


def _finished(result: pa.Table, runner: StatefulRunner) -> pa.Table:
    """The rest of a predicate, arithmetic on aggregates."""
    physical = runner.physical
    assert not physical.calls, "joins that call Python functions need Spark"
    returned = physical.returned()
    texts = physical.compute or {name: f"`{name}`" for name, _ in physical.returns}
    finds = [evaluator(text, returned) for text in texts.values()]
    keep = evaluator(physical.where, returned) if physical.where is not None else None
    assert runner.superbox.stateful is not None
    types = [f.type.arrow() for f in runner._checked.arcs[runner.superbox.stateful].schema]
    rows: list[list[Any]] = []
    for row in result.to_pylist():
        note = row[NOTE]
        for name, parts in physical.structs.items():
            row[name] = {part: row[column] for column, part in parts}
        if note is None and keep is not None and keep(row) is not True:
            continue
        values = [None if note is not None else find(row) for find in finds]
        rows.append([note, row["_seq"], row["_ts"], row["_sub"], *values])
    names = [NOTE, "_seq", "_ts", "_sub", *(f"v{n}" for n in range(len(finds)))]
    held = [pa.string(), pa.int64(), pa.int64(), pa.binary(), *types]
    columns = [pa.array([row[n] for row in rows], type) for n, type in enumerate(held)]
    return pa.Table.from_arrays(columns, names=names)


def _run_plain(self: Runner, superbox: Any, train: Files, *, through_driver: bool) -> StepResult:
    made = _through(self.checked, superbox.boxes, train)
    result = StepResult()
    for arc in superbox.terminals:
        tuples = made.get(arc, [])
        ranked = any("_sub" in hidden for hidden, _ in tuples)
        schema = arc_schema(self.checked.arcs[arc].schema, ranked)
        rows = [{**hidden, **row} for hidden, row in tuples]
        columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in schema]
        result.tables[arc] = in_order(pa.Table.from_arrays(columns, schema=schema))
        result.counts[arc] = len(rows)
    return result


def _through(checked: Any, boxes: Sequence[str], train: Files) -> dict[str, Carried]:
    """What boxes that remember nothing make of a train."""
    arcs: dict[str, Carried] = {source: _read(files) for source, files in train.items()}
    scope = what_boxes_see(checked.network, None)
    for name in boxes:
        box = checked.network.boxes[name]
        schemas = checked.schemas_of(name)
        operator = _operator(name, box, schemas, scope)
        for port, arc in enumerate(box.sources()):
            for hidden, row in arcs.get(arc, ()):
                if isinstance(box, Union):  # one moment may come on several ways
                    hidden = {**hidden, "_sub": port.to_bytes(2, "big") + _sub(hidden)}
                for emitted in operator.push(port, Tuple(row)):
                    assert isinstance(emitted, Emission)
                    if emitted.port is not None:
                        out = f"{name}.{emitted.port}" if emitted.port else name
                        arcs.setdefault(out, []).append((hidden, emitted.tuple.row))
    return arcs


def _read(files: Sequence[TrainFile]) -> Carried:
    found: Carried = []
    for file in files:
        for row in pq.read_table(str(file.path)).to_pylist():
            hidden = {n: row.pop(n) for n in ("_seq", "_ts", "_sub") if n in row}
            found.append((hidden, row))
    return sorted(found, key=lambda one: (one[0]["_seq"], _sub(one[0])))


def _sub(hidden: Hidden) -> bytes:
    return hidden.get("_sub") or b""
