"""Of most cases of a large run nothing is to be said, and none of those is looked at for a list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import Policy
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import GroundKind
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.console.summary import render_console
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.case_lists import CaseLists
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.view.rows import CaseRow
from tests.support.histories import Asked, Branch, Engine
from tests.support.verdicts import (
    REGRESSIONS,
    STEADY,
    make_executed,
    make_judged,
    make_waiver,
    make_waivers,
    rules_of,
)

EXECUTED = st.sampled_from(["P", "F", "PF", "FPP", "FFF", "C", "T", "U", "O", "CPP"])
RECORD = st.sampled_from([STEADY, "P", "F", "FFFFFFFF", "PFPFPFPFPF", "FPPPPPPPPP", "C", "CPPP", ".PPP"])
IDS = [f"case {number}" for number in range(8)]
LISTS = [name for name in vars(CaseLists) if name not in {"run", "verdict", "context", "cases", "notable", "rows"}]


def executed(drawn, scores):
    """Cases by name, some of them graded."""
    return [
        make_executed(name, letters, graded=True, score=scores[name])
        if name in scores
        else make_executed(name, letters)
        for name, letters in drawn.items()
    ]


def list_shown_keys(run):
    """The keys of every list, in its order, and what blocks."""
    view = build_view(run, ReportContext())
    found = {}
    for name in LISTS:
        if name.startswith("_") or not isinstance(listed := getattr(view, name), tuple):
            continue
        found[name] = [getattr(one, "key", one) for one in listed if not hasattr(one, "rows")]
    return found, view.blockers, view.counts


@given(
    st.dictionaries(st.sampled_from(IDS), EXECUTED, min_size=1),
    st.none() | st.dictionaries(st.sampled_from(IDS), RECORD, min_size=1),
    st.dictionaries(st.sampled_from(IDS), st.sampled_from([1.0, 0.9, 0.5])),
    st.sampled_from(["waiver", "quarantine"]),
    st.sampled_from(
        [REGRESSIONS, Policy(rules_of("failures", "flaky")), Policy(pass_score=0.8, max_score_drop=0.01), Policy()]
    ),
)
def test_lists__without_the_rows_of_cases_that_pass_as_before__hold_the_same(
    here, records, scores, kind, policy
) -> None:
    waivers = make_waivers(make_waiver("case 1", kind))
    run = make_judged(executed(here, scores), records, policy=policy, waivers=waivers)
    found = list_shown_keys(run)
    assert len(found[0]) > 15
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CaseRow, "is_notable", True)
        assert list_shown_keys(run) == found


def test_noted__cases_that_pass_as_before__are_none_of_them() -> None:
    run = make_judged({"a": "P", "b": "F", "c": "P"}, {"a": STEADY, "b": STEADY, "c": STEADY})
    assert [row.id for row in build_view(run, ReportContext()).notable] == ["b"]
    alone = make_judged({"a": "P", "b": "F"})
    assert [row.id for row in build_view(alone, ReportContext()).notable] == ["b"]


def judge_shared_runs():
    """Judge a case that fails every re-run, where executions of one run belong together on the branch."""
    branch = Branch()
    for run in range(10):
        failing = {case for case in range(60) if case % 20 == run}
        asked = [Asked("a.json", f"case-{case}", "F" if case in failing else "P") for case in range(60)]
        branch = branch.pushed(asked, REGRESSIONS, run)
    inputs = GateInputs(branch.baseline, REGRESSIONS)
    cases = [Asked("a.json", f"case-{case}", "F" if case == 15 else "P") for case in range(60)]
    return decide_verdict(Engine(cases).run(inputs), inputs)


def test_unconfirmed__every_rerun_failed__lacks_evidence_and_no_reruns() -> None:
    run = judge_shared_runs()
    view = build_view(run, ReportContext())
    (row,) = view.unconfirmed
    assert (row.id, row.decided_by, row.case.reruns > 0) == ("case-15", GroundKind.RUN_SHARE, True)
    shown = render_console(view, ConsoleStyle())
    assert "TOO LITTLE EVIDENCE" in shown
    assert "1 with too little evidence" in view.counts
    assert "missing" not in f"{shown}{view.counts}"


@pytest.mark.parametrize(
    ("end", "value", "suspected"), [("gate_failed", "0, 1 more suspected", 1), ("budget_used", "0", 0)]
)
def test_rules__suspected__are_those_of_the_list(end, value, suspected) -> None:
    run = make_judged(
        [make_executed("a", "F", rerun_stop_reason=end), make_executed("b", "P")], dict.fromkeys("ab", STEADY)
    )
    assert [one.change for one in run.comparison.changes if one.case_id == "a"] == [CaseClass.SUSPECTED_REGRESSION]
    view = build_view(run, ReportContext())
    assert {rule.name: rule.value for rule in view.rules}["Regressions"] == value
    assert len(view.suspected) == suspected
