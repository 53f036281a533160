"""`auroral run` as a user sees it: in this process, on the session of the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.spark

NETWORK = """
network: border
streams:
  left: {schema: {id: int, name: string, x: double}}
  right: {schema: {id: int, name: string, x: double}}
boxes:
  both: {box: union, inputs: [left, right]}
  big: {box: filter, input: both, where: x >= 2 OR x IS NULL}
outputs:
  out: {from: big}
  all: {from: both}
"""
LEFT = 'id,name,x\n1,a,2\n2,,0.5\n3,"c,\n""d""",\n'
RIGHT = """{"id": 10, "name": "é", "x": 1e22}
{"id": 11, "x": 0.1}
{"id": "bad"}
{"id": 12, "name": "z", "x": 3}
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def auroral(command: Run, tmp_path: Path) -> Run:
    """Runs a command in a directory with a network and two inputs."""
    (tmp_path / "net.yaml").write_text(NETWORK)
    (tmp_path / "left.csv").write_text(LEFT)
    (tmp_path / "right.jsonl").write_text(RIGHT)
    return command


INPUTS = ("--input", "left=left.csv", "--input", "right=right.jsonl")
OUT = ("--output", "out=out.csv", "--output", "big.rest=rest.jsonl")
EXPECTED = 'id,name,x\n1,a,2\n10,é,1e22\n3,"c,\n""d""",\n12,z,3\n'


@pytest.mark.parametrize("train", [None, "1", "2", "1000"])
def test_the_result_does_not_depend_on_the_train(auroral: Run, train: str | None) -> None:
    extra = ("--train", train) if train else ()
    code, _, said = auroral("run", "net.yaml", *INPUTS, *OUT, *extra)
    assert code == 0, said
    assert Path("out.csv").read_text() == EXPECTED
    rest = [json.loads(line) for line in Path("rest.jsonl").read_text().splitlines()]
    assert rest == [{"id": 2, "name": None, "x": 0.5}, {"id": 11, "name": None, "x": 0.1}]
    letters = [json.loads(line) for line in Path("dead-letters.jsonl").read_text().splitlines()]
    assert [(d["source"], d["line"]) for d in letters] == [("right", 3)]
    assert "dead letters: 1 → dead-letters.jsonl" in said
    assert "output out: 4 out → out.csv" in said
    assert "output all: 6 made, not delivered (no sink)" in said


def test_a_sink_that_fails_stops_alone(auroral: Run) -> None:
    Path("full.jsonl").symlink_to("/dev/full")
    outputs = ("--output", "out=out.csv", "--output", "all=full.jsonl")
    code, _, said = auroral("run", "net.yaml", *INPUTS, *outputs, "--state", "s")
    assert code == 1
    assert Path("out.csv").read_text() == EXPECTED
    assert "output out: 4 out → out.csv\n" in said
    assert "output all: 0 out → full.jsonl, the rest not: that failed\n" in said
    last = said.splitlines()[-1]
    assert last.startswith("auroral: SINK_FAILED: output all: CANNOT_WRITE: full.jsonl: ")
    assert last.endswith("(once that is mended, the same command goes on)")
    Path("full.jsonl").unlink()
    code, _, said = auroral("run", "net.yaml", *INPUTS, *outputs, "--state", "s")
    assert code == 0, said
    assert Path("out.csv").read_text() == EXPECTED
    assert Path("full.jsonl").read_text().count("\n") == 6


def test_a_run_without_any_sink_left_ends(auroral: Run) -> None:
    Path("full.jsonl").symlink_to("/dev/full")
    net = NETWORK.replace(
        "left: {schema", "left: {source: {format: rate, rows_per_second: 50}, schema"
    )
    Path("net.yaml").write_text(net.replace("x >= 2", "x >= 0"))
    code, _, said = auroral("run", "net.yaml", "--output", "out=full.jsonl", "--for", "60")
    assert code == 1, said
    assert "SINK_FAILED: output out: CANNOT_WRITE" in said.splitlines()[-1]


def test_rows_come_in_order_of_arrival(auroral: Run) -> None:
    Path("left.csv").write_text("id,name,x,_at\n1,a,9,5\n2,b,9,1\n3,c,9,3\n")
    Path("right.jsonl").write_text('{"id": 10, "x": 9, "_at": 3}\n{"id": 11, "x": 9, "_at": 0.5}\n')
    code, _, said = auroral("run", "net.yaml", *INPUTS, *OUT, "--train", "2")
    assert code == 0, said
    assert [line.split(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]] == [
        "11",
        "2",
        "3",
        "10",
        "1",
    ]


def test_without_outputs_results_are_shown(auroral: Run) -> None:
    code, shown, said = auroral("run", "net.yaml", *INPUTS)
    assert code == 0, said
    assert 'out {"id":1,"name":"a","x":2}' in shown
    assert "done after" in said


def test_a_finished_run_is_not_repeated(auroral: Run) -> None:
    for _ in range(2):
        code, _, said = auroral("run", "net.yaml", *INPUTS, *OUT, "--state", "state")
        assert code == 0, said
        assert Path("out.csv").read_text() == EXPECTED
    assert "this run ended before" in said


def test_a_held_run_goes_on_when_the_file_has_grown(auroral: Run) -> None:
    first = ("run", "net.yaml", "--input", "left=left.csv", "--output", "out=out.csv")
    again = (*first, "--state", "state", "--hold")
    assert auroral(*again)[0] == 0
    with Path("left.csv").open("a") as file:
        file.write("4,late,7\n")
    code, _, said = auroral(*again)
    assert code == 0, said
    assert Path("out.csv").read_text() == 'id,name,x\n1,a,2\n3,"c,\n""d""",\n4,late,7\n'


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "none.yaml"), 2, "CANNOT_READ: none.yaml"),
        (("run", "net.yaml"), 2, "NOTHING_TO_READ"),
        (("run", "net.yaml", "--input", "left"), 2, "takes NAME=PATH"),
        (("run", "net.yaml", "--input", "lft=left.csv"), 2, "did you mean left?"),
        (("run", "net.yaml", "--input", "left=none.csv"), 2, "none.csv"),
        (("run", "net.yaml", "--input", "left=left.txt"), 2, "UNKNOWN_FORMAT"),
        (("run", "net.yaml", *INPUTS, "--output", "ot=o.csv"), 2, "there is no output ot"),
        (("run", "net.yaml", *INPUTS, "--output", "out=no/such/o.csv"), 1, "CANNOT_WRITE"),
        (("run", "net.yaml", *INPUTS, "--train", "0"), 2, "train"),
        (("run", "net.yaml", *INPUTS, "--for", "-1"), 2, "--for"),
        (("run", "net.yaml", *INPUTS, "--master", "foo"), 2, "there is no Spark master foo"),
        (("run", "net.yaml", *INPUTS, "--clock", "sundial"), 2, "BAD_OPTION"),
        (("bench", "nothing"), 2, "UNKNOWN_BENCHMARK"),
        (("fly",), 2, "No such command"),
    ],
)
def test_mistakes_are_one_sentence(
    auroral: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    found, _, error = auroral(*words)
    assert found == code, error
    assert said in error
    assert "Traceback" not in error


def test_bad_files_are_named(auroral: Run) -> None:
    Path("left.csv").write_text("")
    code, _, said = auroral("run", "net.yaml", *INPUTS, *OUT)
    assert (code, "EMPTY_FILE" in said, "left.csv" in said) == (2, True, True)
    Path("left.csv").write_text("id,name,y\n1,a,2\n")
    code, _, said = auroral("run", "net.yaml", *INPUTS, *OUT)
    assert (code, "HEADER_MISMATCH" in said) == (2, True)


def test_an_edited_file_changes_a_run_that_has_not_ended(auroral: Run) -> None:
    run = ("run", "net.yaml", *INPUTS, *OUT, "--state", "state")
    assert auroral(*run, "--hold")[0] == 0
    Path("net.yaml").write_text(NETWORK.replace("x >= 2", "x >= 3"))
    code, shown, _ = auroral("diff", "state", "net.yaml")
    assert (code, shown) == (0, "rebuilt  boxes.big\n")
    code, _, said = auroral(*run)
    assert (code, "rebuilt" in said) == (0, True)
    code, shown, _ = auroral("diff", "state", "net.yaml")
    assert (code, shown) == (0, "nothing changes\n")
    Path("net.yaml").write_text(NETWORK.replace("x >= 2", "x >= 4"))
    code, _, said = auroral(*run)
    assert (code, "INPUT_ENDED" in said) == (2, True)


def test_a_state_of_another_network_is_refused(auroral: Run) -> None:
    assert auroral("run", "net.yaml", *INPUTS, *OUT, "--state", "state")[0] == 0
    Path("net.yaml").write_text(NETWORK.replace("network: ", "network: other_"))
    for call in (
        ("run", "net.yaml", *INPUTS, *OUT, "--state", "state"),
        ("diff", "state", "net.yaml"),
    ):
        code, _, said = auroral(*call)
        assert (code, "STATE_OF_OTHER_NETWORK" in said) == (1, True)


def test_check_explain_and_schema(auroral: Run) -> None:
    code, shown, _ = auroral("check", "net.yaml")
    assert code == 0
    assert "big.rest  id int, name string, x double" in shown
    code, shown, _ = auroral("explain", "net.yaml")
    assert code == 0
    assert "superbox both" in shown
    assert "keeps   big, both" in shown
    assert "FileScan parquet" in shown
    code, shown, _ = auroral("schema")
    assert json.loads(shown)["title"] == "Auroral network"


def test_inputs_are_not_written_over(auroral: Run) -> None:
    code, _, said = auroral("run", "net.yaml", *INPUTS, "--output", "out=left.csv")
    assert code == 2
    assert "SAME_FILE: left.csv: it is the source of left" in said
    assert Path("left.csv").read_text() == LEFT
    both = ("--output", "out=z.csv", "--output", "all=z.csv")
    code, _, said = auroral("run", "net.yaml", *INPUTS, *both)
    assert code == 2
    assert "SAME_FILE: z.csv: the sink of out and the sink of all would both write to it" in said
    assert "starting Spark" not in said
