"""Details are dropped from a run result that is too large, and the next run is compared with it all the same."""

import msgspec
import pytest

from eval_gate.config.policy import Policy
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import CaseClass
from eval_gate.model.conversation import Message
from eval_gate.model.execution import CaseDetails, EvaluatorResult, Status, StoredCall, Trial, TurnResult
from eval_gate.model.limits import STORED_FIELD, STORED_FIELDS, STORED_RESPONSE
from eval_gate.model.result import CaseFingerprints, CaseText, RunResult
from eval_gate.results.baseline import Baseline
from eval_gate.results.detail_truncation import drop_all_details, drop_passing_details, truncate_fields
from eval_gate.struct import replace
from eval_gate.text.dotted_path import WHOLE_BODY
from tests.support.results import make_result, make_run, make_suite_result

SAID = "what only details say"
DETAILS = CaseDetails(
    tools_called=("t",),
    response=SAID,
    response_length=len(SAID),
    conversation=(Message(role="user", content=SAID),),
    tool_calls=(StoredCall(name="t", arguments={"a": SAID}, result=SAID),),
    turns=(TurnResult(message=SAID, response=SAID, error=SAID, status=Status.FAILED),),
)
JUDGED = EvaluatorResult(
    name="j",
    type="llm_judge",
    score=1,
    reasoning=SAID,
    hits=(SAID,),
    evaluator_provider_request={"model": "judge-1", "userPrompt": SAID},
)
CHECK = EvaluatorResult(name="c", type="equals", score=1, hits=(SAID,))
ASKED = CaseText(prompt=SAID, expectation=(SAID,))
KNOWN = CaseFingerprints(prompt="a" * 16, expectation="b" * 16)


def case_of(case_id: str, status: str = "passed", **fields):
    """A case with details of every kind."""
    letter = "P" if status == "passed" else "F"
    trial = Trial(
        status=Status(status), score=float(letter == "P"), duration_ms=1.0, details=DETAILS, evaluator_results=(CHECK,)
    )
    values = {
        "details": DETAILS,
        "evaluator_results": (JUDGED, CHECK),
        "text": ASKED,
        "fingerprints": KNOWN,
        "error": None,
        "description": "",
    }
    found = make_result(case_id, status, **(values | fields))
    return replace(found, trials=(trial, replace(trial, decisive=True)))


def run_of(*cases, run_id: str = "r") -> RunResult:
    return make_run(make_suite_result(list(cases)), run_id=run_id)


def compared(now: RunResult, before: RunResult) -> RunResult:
    return decide_verdict(now, GateInputs(Baseline(before, "main"), Policy()))


def says(run: RunResult) -> dict[str, bool]:
    """Which cases still say what only details say."""
    return {case.id: SAID in msgspec.json.encode(case).decode() for _, case in run.iter_cases()}


def test_drop_passing_details__no_comparison__drops_those_of_all_that_simply_pass() -> None:
    wavering = case_of("wavers", flaky=True)
    dropped = drop_passing_details(run_of(case_of("passes"), case_of("fails", "failed"), wavering))
    assert says(dropped.run) == {"passes": False, "fails": True, "wavers": True}
    assert [key.case_id for key in dropped.cases] == ["passes"]


def test_drop_passing_details__compared__keeps_those_of_cases_that_changed() -> None:
    grades = {"graded": True, "fingerprints": KNOWN}
    before = run_of(
        case_of("same"),
        case_of("heals", "failed"),
        case_of("asks anew", fingerprint="another"),
        case_of("falls", score=1.0, **grades),
        run_id="b",
    )
    now = run_of(
        case_of("same"), case_of("heals"), case_of("asks anew"), case_of("falls", score=0.5, **grades), case_of("new")
    )
    run = compared(now, before)
    assert says(drop_passing_details(run).run) == {
        "same": False,
        "heals": True,
        "asks anew": True,
        "falls": True,
        "new": False,
    }


def test_drop_details__a_case__keeps_what_it_is_compared_by() -> None:
    (found,) = (case for _, case in drop_passing_details(run_of(case_of("a", usage=None))).run.iter_cases())
    assert found.details == CaseDetails(
        tools_called=("t",), response_length=len(SAID), turns=(TurnResult(status=Status.FAILED),)
    )
    (judged,) = found.evaluator_results
    assert (judged.name, judged.score, judged.evaluator_provider_request["model"]) == ("j", 1, "judge-1")
    assert [trial.status.value for trial in found.list_executions()] == ["passed", "passed"]
    assert found.fingerprints == KNOWN


@pytest.mark.parametrize("fields", [{"graded": True}, {"fingerprints": None}])
def test_drop_details__checks_that_nothing_else_stands_for__keep_names_and_scores(fields) -> None:
    (found,) = (case for _, case in drop_passing_details(run_of(case_of("a", **fields))).run.iter_cases())
    assert [(one.name, one.score, one.hits) for one in found.evaluator_results] == [("j", 1, ()), ("c", 1, ())]


def test_drop_all_details__both_sides__say_nothing_and_count_as_they_did() -> None:
    run = compared(
        run_of(case_of("passes"), case_of("breaks", "failed"), case_of("bare", text=None)),
        run_of(case_of("passes"), case_of("breaks"), case_of("bare"), run_id="b"),
    )
    dropped = drop_all_details(run)
    assert SAID not in msgspec.json.encode(dropped.run).decode()
    assert len(dropped.cases) == 3
    sides = [change.baseline_result.status.value for change in dropped.run.comparison.changes if change.baseline_result]
    assert sides == ["passed"]


def test_drop_all_details__nothing_to_drop__counts_no_case() -> None:
    bare = drop_all_details(run_of(case_of("a"), case_of("b", "failed"))).run
    assert drop_all_details(bare) == (bare, set())
    assert drop_passing_details(bare) == (bare, set())


@pytest.mark.parametrize("drop", [drop_passing_details, drop_all_details])
def test_drop_details__of_a_baseline__changes_no_class_and_no_verdict(drop) -> None:
    before = run_of(
        case_of("same"), case_of("breaks"), case_of("heals", "failed"), case_of("still", "failed"), case_of("gone")
    )
    now = run_of(
        case_of("same"), case_of("breaks", "failed"), case_of("heals"), case_of("still", "failed"), case_of("added")
    )
    whole, less = compared(now, before), compared(now, drop(before).run)
    classes = [
        {change.key.case_id: change.change for change in run.comparison.changes if change.change is not None}
        for run in (whole, less)
    ]
    assert classes[0] == classes[1]
    assert classes[0]["same"] is CaseClass.STILL_PASSING
    assert whole.verdict == less.verdict
    assert whole.comparison.setup_changes == less.comparison.setup_changes


def test_truncate_fields__values_beyond_the_limits__are_cut_and_a_whole_body_is_dropped() -> None:
    fields = truncate_fields({f"f{number}": "x" * STORED_RESPONSE for number in range(STORED_FIELDS + 1)})
    assert (len(fields), {len(str(value)) for value in fields.values()}) == (STORED_FIELDS, {STORED_FIELD})
    assert truncate_fields({WHOLE_BODY: {"a": "x" * 9_000}}) == {WHOLE_BODY: {"a": "x" * 9_000}}
    assert truncate_fields({WHOLE_BODY: {"a": "x" * STORED_RESPONSE}}) == {}
