"""Results on disk: whole or not at all, under names that cannot collide."""

import asyncio
import json

import pytest

from eval_gate.engine.run import Run
from eval_gate.errors import GateError
from eval_gate.files.writing import write_atomically
from eval_gate.results.read import read_record
from eval_gate.results.write import write_result
from tests.support.cases import Watching, make_case, make_plan, make_suite


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


def test_read_record__written__is_the_same(tmp_path) -> None:
    result = stored(tmp_path)
    assert read_record(tmp_path, result.run_id) == result


@pytest.mark.parametrize("run_id", ["unknown", "../etc", ""])
def test_read_record__no_such_run__says_so(tmp_path, run_id) -> None:
    with pytest.raises(GateError, match="there is no run"):
        read_record(tmp_path, run_id)


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
