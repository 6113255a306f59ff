"""Results on disk: whole or not at all, under names that cannot collide."""

import asyncio
import functools
import json

import msgspec
import pytest

from eval_gate.engine.run import Run
from eval_gate.errors import GateError
from eval_gate.files.writing import write_atomically
from eval_gate.model.execution import CaseDetails, EvaluatorResult
from eval_gate.model.limits import DEPTH
from eval_gate.results import run_parsing, run_writer
from eval_gate.results.run_reader import read_resumed_run, read_run
from eval_gate.results.run_writer import write_result
from tests.support.cases import Watching, make_case, make_plan, make_suite
from tests.support.results import make_result, make_run, make_suite_result


def stored(folder, *suites):
    plan = make_plan(*suites)
    result = asyncio.run(Run(plan, folder, Watching()).execute())
    write_result(folder, result)
    return result


@pytest.mark.contract("result.written")
def test_write_result__suites__one_file_each_beside_the_record(tmp_path) -> None:
    result = stored(
        tmp_path, make_suite(file="a/x.golden.json"), make_suite(file="b/x.golden.json"), make_suite(file="run.json")
    )
    names = {file.name for file in (tmp_path / result.run_id).glob("*.json")}
    assert names == {"run.json", "x.golden.json", "x.golden-2.json", "run-2.json"}
    suite = json.loads((tmp_path / result.run_id / "x.golden-2.json").read_text())
    assert suite["evalFile"] == "b/x.golden.json"
    assert json.loads((tmp_path / "latest.json").read_text())["runId"] == result.run_id


@pytest.mark.contract("result.fields")
def test_write_result__suite_file__has_every_field_of_the_contract(tmp_path) -> None:
    result = stored(tmp_path, make_suite(make_case("a"), make_case("b", skip_reason="later")))
    suite = json.loads((tmp_path / result.run_id / "weather.golden.json").read_text())
    assert suite.keys() >= {
        *("runId", "timestamp", "tier", "toolName", "agentEndpoint", "metadata", "stalenessWarnings", "cases"),
        *("summary", "baselineRunId", "regressions", "newPasses"),
    }
    assert suite["metadata"].keys() == {"toolVersion", "descriptionHash", "registrySize", "evalFileHash"}
    assert suite["summary"].keys() >= {
        *("totalCases", "passed", "failed", "skippedAssertions", "totalDurationMs", "estimatedCostUsd"),
    }
    case = suite["cases"][0]
    assert case.keys() >= {
        *("id", "description", "passed", "durationMs", "assertionsRun", "assertionsSkipped", "error", "details"),
    }
    assert case["details"].keys() >= {"toolsCalled", "responseLength", "skippedTokens"}
    assert (suite["baselineRunId"], suite["regressions"], suite["newPasses"]) == (None, [], [])


LONG = 10_000


def long_run(passing: int = 10, failing: int = 1):
    """Cases whose answers are most of it."""
    said = CaseDetails(response="x" * LONG, response_length=LONG)
    statuses = {f"p{number}": "passed" for number in range(passing)} | {f"f{n}": "failed" for n in range(failing)}
    return make_run(make_suite_result([make_result(*one, details=said) for one in statuses.items()]), warnings=("w",))


@pytest.fixture
def limited(monkeypatch):
    """Let run results have so many bytes, or so many values."""

    def limit(most: int = 128_000_000, values: int = 6_000_000) -> None:
        for module in (run_writer, run_parsing.limits):
            monkeypatch.setattr(module, "RESULT_BYTES", most)
            monkeypatch.setattr(module, "RESULT_VALUES", values)
        monkeypatch.setattr(run_parsing, "MAX_RESULT_BYTES", most)

    return limit


def answers(run) -> dict[str, bool]:
    return {case.id: case.details.response is not None for _, case in run.iter_cases()}


def test_write_result__within_the_limits__is_indented_and_whole(tmp_path) -> None:
    run = long_run()
    written = write_result(tmp_path, run)
    assert written.run is run
    assert written.file.read_bytes() == msgspec.json.format(msgspec.json.encode(run), indent=2)


def test_write_result__too_large__drops_details_of_passing_cases_and_says_so(tmp_path, limited) -> None:
    limited(100_000)
    record, run = write_result(tmp_path, long_run())
    assert answers(run) == {**{f"p{number}": False for number in range(10)}, "f0": True}
    dropped, before = run.warnings
    assert dropped.startswith("the run result would exceed 100,000 bytes, 6,000,000 values or 200 levels: ")
    assert dropped.endswith("dropped details of 10 cases that passed and did not change")
    assert before == "w"
    assert b"\n" not in record.read_bytes()
    assert read_run(str(record), tmp_path) == run
    (suite,) = record.parent.glob("weather*.json")
    assert len(json.loads(suite.read_text())["cases"]) == 11


def test_write_result__still_too_large__drops_all_details(tmp_path, limited) -> None:
    limited(100_000)
    record, run = write_result(tmp_path, long_run(failing=10))
    assert not any(answers(run).values())
    assert run.warnings[0].endswith("dropped details of 20 cases")
    assert len(run.warnings) == 2
    assert read_run(str(record), tmp_path) == run


def test_write_result__too_large_without_any_details__says_that_no_run_can_read_it(tmp_path, limited) -> None:
    limited(5_000)
    record, run = write_result(tmp_path, long_run(passing=100))
    assert run.warnings[0].startswith("no later run can read this run result as its baseline")
    assert run.warnings[1].endswith("dropped details of 101 cases")
    assert json.loads(record.read_text())["warnings"] == list(run.warnings)
    with pytest.raises(GateError, match="larger than"):
        read_run(str(record), tmp_path)


def test_write_result__written_again__drops_and_says_nothing_more(tmp_path, limited) -> None:
    limited(30_000)
    run = write_result(tmp_path, long_run()).run
    assert write_result(tmp_path, run).run == run


def test_write_result__more_values_than_are_read__drops_details_too(tmp_path, limited) -> None:
    limited(values=2_000)
    said = tuple(EvaluatorResult(name=f"{number}", type="x", score=1, hits=("h",)) for number in range(20))
    run = make_run(make_suite_result([make_result(f"{n}", evaluator_results=said) for n in range(8)]))
    record, written = write_result(tmp_path, run)
    assert "dropped details of 8 cases" in written.warnings[0]
    assert read_run(str(record), tmp_path) == written


def test_write_result__an_answer_nested_too_deeply__is_dropped(tmp_path) -> None:
    deep = functools.reduce(lambda inner, _: [inner], range(DEPTH - 5), 1)
    facts = EvaluatorResult(name="j", type="x", score=1, evaluator_provider_request={"seen": deep})
    run = make_run(make_suite_result([make_result("a", evaluator_results=(facts,))]))
    record, written = write_result(tmp_path, run)
    assert len(written.warnings) == 1
    assert read_run(str(record), tmp_path) == written


def test_read_record__written__is_the_same(tmp_path) -> None:
    result = stored(tmp_path)
    assert read_resumed_run(tmp_path, result.run_id) == result


@pytest.mark.parametrize("run_id", ["unknown", "../etc", ""])
def test_read_record__no_such_run__says_so(tmp_path, run_id) -> None:
    with pytest.raises(GateError, match=r"run .* not found"):
        read_resumed_run(tmp_path, run_id)


def test_write_atomically__fails__leaves_the_old_file_and_no_rest(tmp_path) -> None:
    file = tmp_path / "x.json"
    write_atomically(file, "old")
    with pytest.raises(TypeError):
        write_atomically(file, None)
    assert file.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_write_atomically__lone_surrogate_from_a_model__is_written_as_an_escape(tmp_path) -> None:
    write_atomically(tmp_path / "x.json", "a\ud800b")
    assert (tmp_path / "x.json").read_bytes() == b"a\\ud800b"
