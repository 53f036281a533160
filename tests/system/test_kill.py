"""Real processes, really killed: the same command goes on as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

NETWORK = """
network: kill
streams:
  a: {schema: {n: bigint, v: int}, progress: {on: n, ordered: true}}
  b: {schema: {n: bigint, v: int}}
boxes:
  both: {box: union, inputs: [a, b]}
  some: {box: filter, input: both, where: v % 3 <> 0}
  more: {box: map, input: some, keep: "*", compute: {w: n * 2}}
  sums: {box: aggregate, input: a, order: {on: n, by: [v]}, window: {size: 500},
         compute: {c: count(*), s: sum(n)}}
  again: {box: map, input: a, compute: {m: n, v: v}}
  pairs: {box: join, inputs: [a, again], left: {on: n}, right: {on: m}, within: 11,
          on: left.v = right.v}
  both_of: {box: map, input: pairs, compute: {n: n, m: m}}
outputs:
  out: {from: more}
  rest: {from: some.rest}
  sums: {from: sums}
  pairs: {from: both_of}
"""
ROWS = 6_000
COMMAND = (
    *("run", "net.yaml", "--input", "a=a.csv", "--input", "b=b.csv"),
    *("--output", "out=out.csv", "--output", "rest=rest.jsonl", "--train", "400"),
    *("--output", "sums=sums.csv", "--output", "pairs=pairs.csv"),
    *("--state", "state", "--master", "local[2]"),
)


def start(place: Path) -> subprocess.Popen[str]:
    # A session of its own, so that Spark's JVM is killed with it.
    return subprocess.Popen(
        [sys.executable, "-m", "auroral.cli.main", *COMMAND],
        cwd=place,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def ends_within(process: subprocess.Popen[str], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def until_written(process: subprocess.Popen[str], path: Path, count: int) -> None:
    """Wait until a file has more than so many lines, or the process has ended."""
    while lines(path) <= count and not ends_within(process, 0.01):
        pass


def test_kill_nine_at_any_moment_loses_and_repeats_nothing(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(NETWORK)
    for name, sign in (("a", 1), ("b", -1)):
        rows = (f"{sign * i},{'' if i % 97 == 0 else i % 11}" for i in range(ROWS))
        bad = ["x,1"] if name == "a" else []
        (tmp_path / f"{name}.csv").write_text("n,v\n" + "\n".join([*rows, *bad]) + "\n")
    chance = random.Random(5)
    kills = 0
    for target in (0, ROWS // 8, ROWS // 2, ROWS):
        process = start(tmp_path)
        until_written(process, tmp_path / "out.csv", target)
        # Somewhere within the next steps.
        if not ends_within(process, chance.random() * 0.2):
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills >= 2, "the run was over before it could be killed"
    process = start(tmp_path)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said

    def expected(i: int) -> list[tuple[int, int | None]]:
        v = None if i % 97 == 0 else i % 11
        return [(i, v), (-i, v)]

    every = [row for i in range(ROWS) for row in expected(i)]
    wanted = [f"{n},{v},{2 * n}" for n, v in every if v is not None and v % 3]
    found = (tmp_path / "out.csv").read_text().splitlines()
    assert found[0] == "n,v,w"
    assert found[1:] == wanted
    rest = (tmp_path / "rest.jsonl").read_text().splitlines()
    assert len(rest) == len(every) - len(wanted)
    assert len((tmp_path / "state" / "dead-letters.jsonl").read_text().splitlines()) == 1
    assert (tmp_path / "sums.csv").read_text().splitlines() == ["n,v,c,s", *sums()]
    assert (tmp_path / "pairs.csv").read_text().splitlines() == ["n,m", *pairs()]


def sums() -> list[str]:
    """Windows of 500 by v, NULL first."""
    rows = []
    for start in range(0, ROWS, 500):
        groups: dict[int, list[int]] = {}
        for i in range(start, start + 500):
            groups.setdefault(-1 if i % 97 == 0 else i % 11, []).append(i)
        rows += [
            f"{start},{'' if v < 0 else v},{len(groups[v])},{sum(groups[v])}"
            for v in sorted(groups)
        ]
    return rows


def pairs() -> list[str]:
    """Each tuple with itself and with the one 11 before: the left one arrives first."""
    rows = []
    for i in range(ROWS):
        if i % 97:
            if i >= 11 and (i - 11) % 97:
                rows += [f"{i},{i - 11}", f"{i - 11},{i}"]
            rows.append(f"{i},{i}")
    return rows


def test_control_c_stops_cleanly_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(NETWORK)
    for name in "ab":
        text = "n,v\n" + "".join(f"{i},{i % 11}\n" for i in range(ROWS))
        (tmp_path / f"{name}.csv").write_text(text)
    process = start(tmp_path)
    until_written(process, tmp_path / "out.csv", 1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    if "stopped after" in said:
        assert "the same command goes on from here" in said
    process = start(tmp_path)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert lines(tmp_path / "out.csv") == 1 + sum(2 for i in range(ROWS) if i % 11 % 3)


def test_a_full_disk_is_one_sentence_and_the_run_goes_on_later(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(NETWORK)
    for name in "ab":
        text = "n,v\n" + "".join(f"{i},{i % 11}\n" for i in range(ROWS))
        (tmp_path / f"{name}.csv").write_text(text)
    # A limit on the size of files stands for a full disk: writes fail in the same way.
    limited = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from auroral.spark.session.session import start_session\n"
        "start_session('local[2]')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))\n"
        f"sys.argv = ['auroral', *{COMMAND!r}]\n"
        "from auroral.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "CANNOT_WRITE" in done.stderr
    assert "Traceback" not in done.stderr
    process = start(tmp_path)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert lines(tmp_path / "out.csv") == 1 + sum(2 for i in range(ROWS) if i % 11 % 3)


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"JAVA_HOME": "/nowhere"}, "NO_JAVA"),
        ({"JAVA_HOME": "old"}, "WRONG_JAVA"),
    ],
)
def test_java_that_is_missing_or_too_old(
    tmp_path: Path, environment: dict[str, str], code: str
) -> None:
    (tmp_path / "net.yaml").write_text(NETWORK)
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("n,v\n1,1\n")
    old = tmp_path / "old"
    (old / "bin").mkdir(parents=True)
    (old / "bin" / "java").touch(mode=0o755)
    (old / "release").write_text('JAVA_VERSION="11.0.2"\n')
    done = subprocess.run(
        [sys.executable, "-m", "auroral.cli.main", *COMMAND],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert code in done.stderr
    assert "Traceback" not in done.stderr
