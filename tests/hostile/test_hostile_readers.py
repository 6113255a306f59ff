"""Finding 9: 90,000 unknown keys took 16 s, a registry of 22 MB 15 s and 1.9 GB. A megabyte of anything costs little.

The inputs are those of `benchmarks/hostile.py`, which measures all of them; here a smaller size of the worst kinds, and
only processor time that linear work needs many times less of.
"""

import json
from pathlib import Path

import pytest

from benchmarks import hostile
from eval_gate.errors import GateError, find_nearest
from eval_gate.model.limits import FINDINGS, RUBRIC_CHECKS
from eval_gate.reports.wording.problems import render_error
from tests.support.bounds import within_cpu
from tests.support.measured import measured

SIZE = 60_000
KINDS = (
    "a list of numbers",
    "a list of mappings",
    "a mapping of nearly right keys",
    "lists in lists",
    "a text of lines",
)


@pytest.mark.rows_each("reader")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", hostile.READERS)
def test_finding_9__too_much_of_anything__is_read_or_refused_soon(tmp_path, monkeypatch, capsys, reader, kind) -> None:
    monkeypatch.chdir(tmp_path)
    make, work = hostile.READERS[reader]
    document, filler = make(), hostile.FILLERS[kind](SIZE)
    places = list(hostile.holes(document))
    for path in (places[0], places[1], places[-1]):
        text = hostile.with_hole(document, path).replace(json.dumps(hostile.HOLE), filler)
        with within_cpu(2, f"{reader}: {kind} at {path}"):
            try:
                work(tmp_path, text)
            except GateError as error:
                said = list(render_error(error))
                assert len(said) <= 60
                assert max(map(len, said)) < 5_000


@pytest.mark.slow
def test_finding_9__90_000_unknown_keys__are_counted(tmp_path) -> None:
    (tmp_path / "eval-gate.json").write_text("{" + ",".join(f'"k{n}": 1' for n in range(40_000)) + "}")
    done = measured(tmp_path, "validate")
    assert done.code == 2
    assert done.cpu_s < 10  # it was 16 for twice as many
    assert "eval-gate.json:1: k0: unknown key" in done.stderr
    with pytest.raises(GateError) as caught:
        hostile._config(tmp_path, (tmp_path / "eval-gate.json").read_text(), "eval-gate.json")
    assert len(caught.value.problems) == FINDINGS + 1
    assert str(caught.value.problems[-1]).endswith("and 39,500 more unknown keys")


def test_finding_9__a_registry_of_22_mb__is_refused_before_it_is_built(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    case = {"id": "gs-1", "input": {"message": "ask"}, "expect": {"responseContains": ["ok"]}}
    (tmp_path / "evals" / "a.golden.json").write_text(json.dumps([case]))
    idle = measured(tmp_path, "validate")
    assert idle.code == 0, idle.stderr
    for size, said in ((22_000_000, "is larger than 16,000,000 bytes"), (15_000_000, "has more than 250,000 values")):
        nested = '{"name":"a","parameters":' + '{"a":' * 100 + "{}" + "}" * 100 + "}"
        (tmp_path / "tools.json").write_text("[" + hostile.many(nested, size) + "]")
        done = measured(tmp_path, "validate", "--tool-registry", "tools.json")
        assert done.code == 2
        assert said in done.stderr
        assert done.peak_mb - idle.peak_mb < 150
        assert done.cpu_s - idle.cpu_s < 5


@pytest.mark.slow
def test_nearest__a_word_nobody_wrote__is_not_looked_for() -> None:
    assert find_nearest("timeoutMz", ["timeoutMs"]) == "timeoutMs"
    assert find_nearest("timeoutMs" * 100, ["timeoutMs" * 100]) is None
    with within_cpu(15):  # as many words as are looked at take 2 to 3 s
        find_nearest("a" * 150, ("a" * 140 + str(number) for number in range(1_000_000)))


def test_finding_9__a_suite_with_many_odd_keys__says_how_many_more(tmp_path, monkeypatch) -> None:
    case = {"id": "gs-1", "input": {"message": "ask"}, "expect": {"responseContains": ["ok"]}}
    case |= {f"descriptionn{number}": 1 for number in range(20_000)}
    (tmp_path / "a.golden.json").write_text(json.dumps([case]))
    monkeypatch.chdir(tmp_path)
    files = hostile.find_eval_files(["a.golden.json"], Path())
    with within_cpu(6):
        (suite,) = hostile.load_suites(files, Path(), hostile.ReadOptions())
    assert len(suite.warnings) <= FINDINGS + 2
    assert any("19,500 more warnings" in warning for warning in suite.warnings)
    with pytest.raises(GateError) as caught:
        hostile.load_suites(files, Path(), hostile.ReadOptions(strict=True))
    assert any("19,500 more warnings" in str(problem) for problem in caught.value.problems)


@pytest.mark.parametrize(("count", "code"), [(RUBRIC_CHECKS, 0), (RUBRIC_CHECKS + 1, 2)])
def test_agentv__more_checks_of_a_rubric_than_anybody_grades__are_refused(tmp_path, count, code) -> None:
    case = {"id": "a", "criteria": "polite", "input": "q", "assertions": ["ok"] * count}
    (tmp_path / "a.eval.jsonl").write_text(json.dumps(case) + "\n")
    done = measured(tmp_path, "validate", "a.eval.jsonl")
    assert ("has more than 10,000 checks" in done.stderr) == (code == 2), done.stderr
