"""What may be the name of a run: the same wherever one is written, read, resumed or named as a baseline."""

from __future__ import annotations

import pytest

from eval_gate.config.policy import Policy
from eval_gate.errors import GateError
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.results.result_names import is_run_id
from eval_gate.results.run_reader import find_newest_passed, read_resumed_run, read_run
from eval_gate.results.run_writer import make_run_folder, write_result
from tests.support.results import make_run
from tests.support.verdicts import judge_against


@pytest.mark.parametrize("run_id", ["0f8fad5b-d9cb-469f-a165-70867728950e", "a", "7", "v1.2", "run_1-b", "x" * 100])
def test_run_id__good__is_the_name_of_a_folder_and_leads_to_the_run(tmp_path, run_id) -> None:
    run = judge_against(make_run({"a": "passed"}, run_id=run_id), NOT_REQUESTED, Policy())
    write_result(tmp_path, run)
    assert is_run_id(run_id)
    assert read_run(run_id, tmp_path) == read_resumed_run(tmp_path, run_id) == run
    assert find_newest_passed(tmp_path).exact_reference == run_id


@pytest.mark.parametrize(
    "run_id",
    ["", ".", "..", ".hidden", "a/b", "a\\b", "../etc", "x" * 101, "é", "٣", "a b", "a\n", "latest", "latest.json"],
)
def test_run_id__what_is_a_path_or_means_something_else__is_none_anywhere(tmp_path, run_id) -> None:
    assert not is_run_id(run_id)
    with pytest.raises(GateError) as caught:
        make_run_folder(tmp_path, run_id)
    assert caught.value.code == "invalid-run-id"
    with pytest.raises(GateError) as caught:
        read_resumed_run(tmp_path, run_id)
    assert caught.value.code == "run-not-found"
    assert list(tmp_path.iterdir()) == []
