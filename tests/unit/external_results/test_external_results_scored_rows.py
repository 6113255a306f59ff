"""What is the same for all tools that have a score for each scorer."""

import pytest

from eval_gate.external_results.braintrust import STATUSES as BRAINTRUST
from eval_gate.external_results.result_rows import ExecutionEnding, RowPlace, RowScore
from eval_gate.external_results.statuses import PromptedCase, build_prompted_row, build_score, end_execution
from eval_gate.model.execution import ErrorKind, Status

YES, NO = RowScore("exact", 1.0, True), RowScore("polite", 0.0, False)
NUMBER, LENGTH = RowScore("f1", 0.7), RowScore("length", 12.0, decides=False)
BROKE, EMPTY = RowScore("judge", None, reason="no key", grader_failed=True), RowScore("judge", None)
PLACE = RowPlace("r.json", 3)


@pytest.mark.parametrize(
    ("scores", "error", "ended"),
    [
        ([YES], "KeyError", (Status.ERROR, ErrorKind.AGENT_ERROR, "KeyError")),
        ([YES], "ECONNREFUSED", (Status.ERROR, ErrorKind.AGENT_UNREACHABLE, "ECONNREFUSED")),
        ([], None, (Status.ERROR, ErrorKind.EVALUATION_ERROR, "no scorer gave a score")),
        ([EMPTY], None, (Status.ERROR, ErrorKind.EVALUATION_ERROR, "no scorer gave a score")),
        ([YES, BROKE], None, (Status.ERROR, ErrorKind.EVALUATION_ERROR, "judge: no key")),
        ([YES, NO, BROKE], None, (Status.FAILED, ErrorKind.AGENT_ERROR, "polite: 0.0")),
        ([YES, LENGTH], None, (Status.PASSED, ErrorKind.AGENT_ERROR, None)),
        ([YES, NUMBER], None, (None, ErrorKind.AGENT_ERROR, None)),
    ],
)
def test_end_execution__error_and_scores__decide_in_this_order(scores, error, ended) -> None:
    assert end_execution(scores, error, scorer="scorer") == ExecutionEnding(*ended)


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (True, RowScore("exact", 1.0, True)),
        (False, RowScore("exact", 0.0, False)),
        (0.5, RowScore("exact", 0.5)),
        (None, RowScore("exact", None, decides=False)),
        (
            "good",
            RowScore("exact", None, None, "its `scores` is good, which is not a known status", grader_failed=True),
        ),
    ],
)
def test_build_score__a_value__means_what_the_table_says_unless_it_is_a_number(value, score) -> None:
    assert build_score(BRAINTRUST[0], "exact", value) == score


@pytest.mark.parametrize("prompt", ["Refund order 4711", "Refund " * 100])
def test_build_prompted_row__a_prompt__is_what_the_tool_is_told_of_a_re_run(prompt) -> None:
    row = build_prompted_row(PromptedCase("s", prompt, "yes", "input"), ExecutionEnding(None), PLACE)
    assert (row.rerun_name, row.id == prompt, row.expectation) == (prompt, len(prompt) < 200, ("yes",))
    assert row.longer_name == f"{row.id} → yes"


def test_build_prompted_row__a_case_with_its_own_name__has_it() -> None:
    row = build_prompted_row(PromptedCase("s", "Refund", None, "inputs.id"), ExecutionEnding(None), PLACE, 4711)
    assert (row.id, row.rerun_name, row.longer_name, row.expectation) == ("4711", None, None, ())
