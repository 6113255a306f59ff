"""Values of wrong types in what we once wrote: whoever reads it again refuses it, because nothing behind checks them.

Records of our own making are built without a check. So a
foreign value may only get there through a reader that checks it. Here each value of real files is another type in turn.
"""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eval_gate.errors import GateError
from eval_gate.results.run_reader import read_run, read_run_and_folder
from tests.support.program import gate

WRONG: tuple[Any, ...] = (True, 7, -1.5, 1e308, 10**30, "x", [], [1], [[]], {}, {"x": 1}, None)
ASK = ("--targets", "targets.yaml", "--target", "it")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Two runs in `main/` and one in `here/`, which regresses with re-runs; its two halves in `one/` and `two/`."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "evals").mkdir()
    case = {"input": {"message": "ask"}, "expect": {"responseContains": ["ok"]}}
    cases = [case | {"id": f"gs-{number}", "tags": ["t"]} for number in range(4)]
    (folder / "evals" / "a.golden.json").write_text(json.dumps(cases))
    answers(folder, "ok")
    for _ in range(2):
        assert gate(folder, "run", *ASK, "--output-dir", "main").returncode == 0
    answers(folder, "no")
    compared = ("--baseline", "main", "--reruns", "2", "--fail-on", "regressions")
    assert gate(folder, "run", *ASK, "--output-dir", "here", *compared).returncode == 1
    for name, part in (("one", "1/2"), ("two", "2/2")):
        assert gate(folder, "run", *ASK, "--output-dir", name, "--shard", part, *compared).returncode == 1
    return folder


def answers(folder: Path, said: str) -> None:
    described = {"name": "it", "provider": "cli", "command_template": f"echo {said}"}
    (folder / "targets.yaml").write_text(json.dumps([described]))


def in_(folder: Path, name: str, file: str = "run.json") -> Path:
    (found,) = sorted((folder / name).glob(f"*/{file}"))[-1:]
    return found


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def changed(document: Any, path: tuple[str | int, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    document = copy.deepcopy(document)
    at(document, path[:-1])[path[-1]] = wrong
    return document


def kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def wrongs(document: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Each place, and each value that is of another kind than what stands there, and every list and mapping."""
    for path in places(document):
        there = at(document, path)
        for wrong in WRONG:
            if kind(wrong) != kind(there) or (isinstance(wrong, list | dict) and wrong):
                yield path, wrong


def typed(value: Any, shape: Any) -> bool:
    """Whether checking what was read once more finds nothing, and nothing becomes anything else by it."""
    again = msgspec.convert(msgspec.to_builtins(value), shape)
    return bool(again == value and msgspec.json.encode(again) == msgspec.json.encode(value))


@pytest.mark.slow
def test_stored_result__value_of_another_type__is_refused_or_becomes_the_right_one(made, tmp_path) -> None:
    document = json.loads(in_(made, "here").read_text())
    file, refused = tmp_path / "run.json", 0
    for path, wrong in random.Random(13).sample(list(wrongs(document)), 800):
        file.write_text(json.dumps(changed(document, path, wrong)))
        try:
            run = read_run(str(file), tmp_path)
        except GateError as error:
            assert error.code in {"invalid-run-result", "unsupported-run-result-version"}, (path, wrong)
            refused += 1
        else:
            assert typed(run, type(run)), (path, wrong)
    assert refused > 600


READ_BY: dict[str, Callable[[Path, str], tuple[str, ...]]] = {
    "compare, as the change": lambda _, file: ("compare", "main", file),
    "compare, as the baseline": lambda made, file: ("compare", file, str(in_(made, "here"))),
    "report": lambda _, file: ("report", file, "--format", "md"),
    "merge, as a part": lambda made, file: ("merge", file, str(in_(made, "two")), "--output-dir", "merged"),
    "run, as the baseline": lambda _, file: ("run", *ASK, "--baseline", file, "--output-dir", "again"),
}


@pytest.mark.rows_each("reader")
@pytest.mark.parametrize("reader", READ_BY)
def test_stored_result__value_of_another_type__ends_the_command_in_a_sentence(made, tmp_path, reader) -> None:
    folder = shutil.copytree(made, tmp_path / "made")
    document = json.loads(in_(folder, "one" if "merge" in reader else "here").read_text())
    file = folder / "forged.json"
    every = [one for one in wrongs(document) if one[1] is not None]
    for path, wrong in random.Random(13).sample(every, 25):
        file.write_text(json.dumps(changed(document, path, wrong)))
        try:  # what a baseline was itself compared with is not read
            read_run_and_folder(str(file), folder, compared="as the baseline" not in reader)
        except GateError:
            done = gate(folder, *READ_BY[reader](folder, "forged.json"))
            said = re.search(r"error\[(invalid-run-result|unsupported-run-result-version)\]", done.stderr)
            assert (done.returncode, said is not None) == (2, True), (path, wrong, done.stderr)
            assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_journal__value_of_another_type__is_no_finished_trial(made, tmp_path) -> None:
    folder = shutil.copytree(made, tmp_path / "made")
    journal = in_(folder, "here", "cases.jsonl")
    line, *rest = journal.read_text().splitlines()
    resumed = ("run", *ASK, "--output-dir", "here", "--resume", journal.parent.name)
    every = [(path, wrong) for path, wrong in wrongs(json.loads(line)) if wrong not in (None, True, {}, [])]
    refused = 0
    for path, wrong in random.Random(13).sample(every, 25):
        journal.write_text("\n".join([json.dumps(changed(json.loads(line), path, wrong)), *rest, ""]))
        done = gate(folder, *resumed)
        assert "Traceback" not in done.stderr, (path, wrong, done.stderr)
        assert done.returncode in {1, 2, 3}, (path, wrong, done.stdout)
        refused += "error[invalid-journal]" in done.stderr
    assert refused > 15


@pytest.mark.parametrize("wrong", [1, "x", [], [[]], {"a.golden.json": 1}, {"a.golden.json": {"gs-0": {"runs": 7}}}])
def test_history__value_of_another_type__is_a_record_that_is_lost_and_no_pass(made, tmp_path, wrong) -> None:
    folder = shutil.copytree(made, tmp_path / "made")
    (folder / "history.json").write_text(json.dumps({"schemaVersion": 1, "runs": [], "suites": wrong}))
    done = gate(folder, "compare", "main", str(in_(folder, "here")), "--history", "history.json")
    assert "Traceback" not in done.stderr
    assert done.returncode in {1, 2, 3}, done.stdout + done.stderr
