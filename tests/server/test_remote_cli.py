"""Commands against a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from auroral.cli import remote
from auroral.cli.main import app
from auroral.errors import AuroralError, UsageError
from auroral.network.yaml_text import yaml_text
from tests.server.feeding import Served, hot_network, served
from tests.server.test_client import plant

Command = Callable[..., Result]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(plant()) as found:
        yield found


@pytest.fixture
def command(server: Served, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command as an editor; an error that was told is raised."""
    monkeypatch.setenv("AURORAL_SERVER", server.url)
    monkeypatch.setenv("AURORAL_TOKEN", server.tokens["editor"])
    return run


def run(*arguments: str | Path) -> Result:
    found = CliRunner().invoke(app, [str(one) for one in arguments])
    if isinstance(found.exception, AuroralError):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_files_go_in_and_results_come_out(server: Served, command: Command, tmp_path: Path) -> None:
    table = pa.table({"sid": [3], "pos": [33.0], "name": ["c"]})
    pq.write_table(table, tmp_path / "c.parquet")
    csv = written(tmp_path / "a.csv", "name,pos,sid\na,31,1\nb,x,9\n")
    lines = written(tmp_path / "b.jsonl", '{"sid": 2, "pos": 32}\n')
    assert "1 in, 1 dead letters" in command("enqueue", "reports", csv).stderr
    for path in (lines, tmp_path / "c.parquet"):
        assert "1 in" in command("enqueue", "reports", path).stderr
    server.engine.drain()
    rows = [json.loads(line) for line in command("dequeue", "hot").stdout.splitlines()]
    assert [row["sid"] for row in rows] == [1, 2, 3]
    command("enqueue", "reports", lines)
    server.engine.drain()
    command("dequeue", "hot", "--output", tmp_path / "hot.csv", "--limit", "5")
    assert (tmp_path / "hot.csv").read_text() == "sid,pos,name\n2,32,\n"


@pytest.mark.parametrize(
    ("file", "code"),
    [("hot.txt", "UNKNOWN_FORMAT"), ("nowhere/hot.csv", "CANNOT_WRITE")],
    ids=["no format", "no directory"],
)
def test_rows_are_not_taken_if_they_cannot_be_written(
    server: Served, command: Command, tmp_path: Path, file: str, code: str
) -> None:
    server.engine.enqueue("reports", [{"sid": 4, "pos": 50.0}])
    server.engine.drain()
    with pytest.raises(AuroralError, match=code):
        command("dequeue", "hot", "--output", tmp_path / file)
    network = written(tmp_path / "network.yaml", yaml_text(server.client().network.document()))
    rows = written(tmp_path / "rows.jsonl", '{"sid": 5, "pos": 50}\n')
    with pytest.raises(AuroralError, match=code):
        command(
            *("run", network, "--input", f"reports={rows}"),
            *("--output", f"all={tmp_path / 'all.csv'}", "--output", f"hot={tmp_path / file}"),
        )
    server.engine.drain()
    assert server.engine.dequeue("hot").column("sid").to_pylist() == [4]


def test_rows_that_a_full_disk_does_not_hold_are_printed(
    server: Served, command: Command, tmp_path: Path
) -> None:
    server.engine.enqueue("reports", [{"sid": 6, "pos": 50.0}])
    server.engine.drain()
    full = tmp_path / "full.jsonl"
    full.symlink_to("/dev/full")
    found = CliRunner().invoke(app, ["dequeue", "hot", "--output", str(full)])
    assert "CANNOT_WRITE" in str(found.exception)
    assert json.loads(found.stdout)["sid"] == 6
    assert "standard output" in found.stderr


def test_files_that_cannot_be_read_are_told_before_a_network_is_deployed(
    server: Served, command: Command, tmp_path: Path
) -> None:
    document = server.client().network.document()
    document["outputs"]["other"] = {"from": "filter_1.rest"}
    network = written(tmp_path / "network.yaml", yaml_text(document))
    for name in ("rows.txt", "nowhere.csv"):
        with pytest.raises(UsageError, match=r"BAD_OPTION|CANNOT_READ"):
            command("run", network, "--input", f"reports={tmp_path / name}")
    assert "other" not in server.engine.network.outputs


def test_large_csv_files_keep_their_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auroral.io.readers.blocks.BLOCK_BYTES", 64)
    path = written(tmp_path / "a.csv", "a,b\n" + "".join(f'{i},"x\ny"\n' for i in range(50)))
    parts = [content for content, _ in remote.parts_of(path)]
    assert len(parts) > 3
    assert all(part.startswith(b"a,b\n") for part in parts)
    assert sum(part.count(b'"x\ny"') for part in parts) == 50


def test_a_network_is_deployed_fed_and_read(
    server: Served, command: Command, tmp_path: Path
) -> None:
    document = server.client().network.document()
    document["outputs"]["cold"] = {"from": "filter_1.rest"}
    file = written(tmp_path / "network.yaml", yaml_text(document))
    rows = written(tmp_path / "rows.jsonl", '{"sid": 7, "pos": 1}\n')
    result = tmp_path / "cold.jsonl"
    said = command("run", file, "--input", f"reports={rows}", "--output", f"cold={result}").stderr
    assert "added outputs.cold" in said
    assert json.loads(result.read_text())["sid"] == 7
    again = command("run", file, "--server", server.url)
    assert "runs already as the file says" in again.stderr
    with pytest.raises(UsageError, match=r"BAD_OPTION.*--state"):
        command("run", file, "--state", tmp_path)


def test_history_is_asked(server: Served, command: Command) -> None:
    server.engine.enqueue("reports", [{"sid": 77, "pos": 1.0}])
    found = command("attach", "recent", "SELECT sid FROM recent WHERE sid = 77")
    assert [json.loads(line) for line in found.stdout.splitlines()] == [{"sid": 77}]
    assert not server.engine.stats()["attachments"]


def test_a_query_is_detached_if_its_results_cannot_be_written(
    server: Served, command: Command, tmp_path: Path
) -> None:
    for path, code in (("nowhere/a.csv", "CANNOT_WRITE"), ("a.txt", "UNKNOWN_FORMAT")):
        with pytest.raises(AuroralError, match=code):
            command("attach", "recent", "SELECT sid FROM recent", "--output", tmp_path / path)
        assert not server.engine.stats()["attachments"]


def test_what_runs_is_told(server: Served, command: Command) -> None:
    assert "stream reports: in" in command("stats").stdout
    assert json.loads(command("stats", "--json").stdout)["streams"]["reports"]
    assert command("pause").stdout.startswith("paused")
    assert command("step").stdout == "nothing waits\n"
    server.engine.enqueue("reports", [{"sid": 5, "pos": 50.0}])
    trace = command("step", "--kind", "tuple", "--count", "2").stdout
    assert "filter_1" in trace
    assert '"sid": 5' in trace
    assert command("resume").stdout == "running\n"
    assert command("pause", "hot").stdout == "paused: hot\n"
    command("resume", "hot")
    command("story", "filter_1")
    json.loads(command("story", "filter_1", "--json").stdout)
    with pytest.raises(UsageError, match="NO_SPARK"):
        command("sql", "SELECT 1")


def test_parts_are_listed_described_and_debugged(
    server: Served, command: Command, tmp_path: Path
) -> None:
    assert "boxes filter_1" in command("list").stdout.splitlines()
    assert command("list", "outputs").stdout.split() == sorted(server.engine.network.outputs)
    with pytest.raises(UsageError, match=r"UNKNOWN_ENTITY.*streams"):
        command("list", "nonsense")
    assert json.loads(command("describe", "hot").stdout)["kind"] == "output"
    said = command("breakpoints", "--add", "reports", "--where", "sid = 12345").stdout
    id, _, rest = said.strip().partition(" ")
    assert rest == "reports where sid = 12345: 0 hits"
    assert command("breakpoints", "--remove", id).stdout == ""
    with pytest.raises(UsageError, match=r"BAD_OPTION.*--add"):
        command("breakpoints", "--where", "sid = 1")
    graphs = written(tmp_path / "qos.json", '{"latency": [[0, 1], [5, 0]]}')
    command("set-qos", "hot", graphs)
    quality = server.engine.describe("hot")["quality"]["qos"]
    assert [list(point) for point in quality["latency"]] == [[0, 1], [5, 0]]
    command("set-qos", "hot")
    with pytest.raises(UsageError, match="CANNOT_READ"):
        command("set-qos", "hot", tmp_path / "nowhere.json")


def test_history_flows_again_until_it_is_detached(server: Served, command: Command) -> None:
    server.engine.enqueue("reports", [{"sid": 78, "pos": 1.0}])
    server.engine.drain()
    name = command("replay", "recent", "SELECT sid FROM recent WHERE sid = 78").stdout.strip()
    server.engine.drain()
    rows = command("dequeue", name).stdout.splitlines()
    assert [json.loads(line) for line in rows] == [{"sid": 78}]
    command("detach", name)
    with pytest.raises(UsageError, match="UNKNOWN_ATTACHMENT"):
        command("detach", name)


def test_tokens_come_from_files_too(server: Served, tmp_path: Path) -> None:
    roles = {role: server.tokens[role] for role in ("viewer", "operator", "editor")}
    for text in (json.dumps(roles), f"{roles['viewer']}\n"):
        file = written(tmp_path / "tokens", text)
        assert "stream" in run("stats", "--server", server.url, "--token-file", file).stdout
    assert "stream" in run("stats", "--server", server.url, "--token", roles["viewer"]).stdout


def test_missing_servers_and_tokens_are_told(server: Served, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"NO_SERVER.*AURORAL_SERVER"):
        run("stats")
    with pytest.raises(UsageError, match=r"NO_TOKEN.*AURORAL_TOKEN"):
        run("stats", "--server", server.url)
    with pytest.raises(UsageError, match="CANNOT_READ"):
        run("stats", "--server", server.url, "--token-file", tmp_path / "nowhere")
    with pytest.raises(UsageError, match="BAD_TOKEN_FILE"):
        run("stats", "--server", server.url, "--token-file", written(tmp_path / "t", "{}"))
    with pytest.raises(UsageError, match="BAD_OPTION"):
        run(
            "enqueue",
            "reports",
            written(tmp_path / "a.txt", ""),
            "--server",
            server.url,
            "--token",
            "x",
        )
    with pytest.raises(UsageError, match=r"BAD_OPTION.*STATE POINT SQL"):
        run("attach", "only")


def test_a_small_network_can_be_put_in_place(tmp_path: Path) -> None:
    with served() as server:
        server.client().modify(network=hot_network())
        assert server.client().preview_change(network=hot_network())["added"] == []
