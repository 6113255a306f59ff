"""What changed where nothing failed: every kind, and all that is left out."""

from __future__ import annotations

import pytest

from eval_gate.config.settings import ResponseRetention, RetentionRules
from eval_gate.gate.behaviour_changes import add_behaviour_changes, find_behaviour_changes, limit_behaviour_changes
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.verdict_decision import GateInputs, decide_provisional_verdict, decide_verdict
from eval_gate.model.behaviour_change import BehaviourChanges, BehaviourKind, ParameterDifference
from eval_gate.model.comparison import Outcome
from eval_gate.model.execution import Status
from eval_gate.model.limits import BEHAVIOUR_CHANGES, BEHAVIOUR_PARAMETERS, BEHAVIOUR_TOOLS
from eval_gate.model.result import CaseFingerprints, CaseResult, RunResult
from eval_gate.results.baseline import Baseline
from eval_gate.results.case_behaviour import split_tool
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.struct import replace
from tests.support.behaviours import SAID, make_behaving, make_branch, make_details, make_here
from tests.support.chat_results import make_conversation
from tests.support.results import make_baseline_run, make_result, make_suite_result
from tests.support.verdicts import REGRESSIONS

KIND, HOW = BehaviourKind, ParameterDifference
LOOKUP = ("lookup", {"id": "A7"})
OTHER = make_behaving("other", make_details([LOOKUP]))
"""A case that does the same in every run, so that the agent is known to list its calls."""
REFUSAL = "I am sorry, but I cannot help with this."


def find_changes(now: RunResult, baseline: RunResult, history: History = EMPTY_HISTORY) -> BehaviourChanges:
    return find_behaviour_changes(GateCases.pair(baseline, now), history)


def seen(then, now, said=SAID, says=SAID) -> list[tuple]:
    """What is said of a case with these calls, and which said this, on both sides."""
    baseline, _ = make_branch([make_behaving("a", make_details(then, said)), OTHER])
    found = find_changes(make_here(make_behaving("a", make_details(now, says)), OTHER), baseline)
    assert found.cases == bool(found.changes)
    return [(one.kind, one.tool, one.parameter, one.difference, one.baseline, one.current) for one in found.changes]


def changed(runs, now) -> list[str]:
    """The kinds of change of a case that did this in the runs of the branch, oldest first, and now that."""
    baseline, history = make_branch(*[[make_behaving("a", *made(run)), OTHER] for run in runs])
    found = find_changes(make_here(make_behaving("a", *made(now)), OTHER), baseline, history)
    return [str(one.kind) for one in found.changes]


def made(run) -> list:
    """The executions of a case: a list of calls for each, or of calls and what it said."""
    executions = run if isinstance(run, tuple) else (run,)
    return [make_details(one) if isinstance(one, list) else make_details([LOOKUP], one) for one in executions]


def called(**arguments) -> list:
    return [("lookup", arguments)]


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ([LOOKUP], [LOOKUP], []),
        ([LOOKUP], [("search", {})], [(KIND.TOOL, None, None, None, "lookup", "search")]),
        ([LOOKUP], [LOOKUP, ("send", {})], [(KIND.TOOL, None, None, None, None, "send")]),
        ([LOOKUP, ("send", {})], [LOOKUP], [(KIND.TOOL, None, None, None, "send", None)]),
        ([LOOKUP], [], [(KIND.TOOL, None, None, None, "lookup", None)]),
        ([], [LOOKUP], [(KIND.TOOL, None, None, None, None, "lookup")]),
        ([LOOKUP], [LOOKUP, LOOKUP], [(KIND.CALL_COUNT, "lookup", None, None, "1", "2")]),
        (called(id="A7"), called(id="B9"), [(KIND.PARAMETER, "lookup", "id", HOW.VALUE, '"A7"', '"B9"')]),
        (called(id=7), called(id="7"), [(KIND.PARAMETER, "lookup", "id", HOW.TYPE, "7", '"7"')]),
        (called(on=True), called(on=1), [(KIND.PARAMETER, "lookup", "on", HOW.TYPE, "true", "1")]),
        (called(on=True), called(on=False), [(KIND.PARAMETER, "lookup", "on", HOW.VALUE, "true", "false")]),
        (called(n=5), called(n=-5.5), [(KIND.PARAMETER, "lookup", "n", HOW.VALUE, "5", "-5.5")]),
        (called(n=5), called(n=5.0), []),
        (called(a=1, b=2), called(b=2, a=1), []),
        (called(a=1, b=2), called(a=1), [(KIND.PARAMETER, "lookup", "b", HOW.MISSING, "2", None)]),
        (called(a=1), called(a=1, b=None), [(KIND.PARAMETER, "lookup", "b", HOW.ADDED, None, "null")]),
        (
            called(order={"id": 1, "of": {"day": "Süd"}}),
            called(order={"id": 1, "of": {"day": "Nord"}}),
            [(KIND.PARAMETER, "lookup", "order.of.day", HOW.VALUE, '"Süd"', '"Nord"')],
        ),
        (called(ids=[1, 2]), called(ids=[1, 3]), [(KIND.PARAMETER, "lookup", "ids", HOW.VALUE, "[1, 2]", "[1, 3]")]),
        ([*called(id=1), *called(id=2)], [*called(id=2), *called(id=1)], []),
        (
            [*called(id=1), *called(id=2)],
            [*called(id=3), *called(id=1)],
            [(KIND.PARAMETER, "lookup", "id", HOW.VALUE, "2", "3")],
        ),
        (
            [*called(id=1), *called(id=2)],
            [*called(id=1), *called()],
            [(KIND.PARAMETER, "lookup", "id", HOW.MISSING, "2", None)],
        ),
        ([("a", {}), ("b", {})], [("b", {}), ("a", {})], []),
        (called(), called(x={}), [(KIND.PARAMETER, "lookup", "x", HOW.ADDED, None, "{}")]),
    ],
)
def test_behaviour__calls_of_both_runs__are_told_apart(then, now, expected) -> None:
    assert seen(then, now) == expected


@pytest.mark.parametrize(
    ("said", "says", "lost"),
    [
        (SAID, SAID, False),
        (SAID, SAID.upper(), False),
        (SAID, SAID.replace("Sunday", "Monday"), False),
        (SAID, f"Good news! {SAID}", False),
        (SAID, SAID[: len(SAID) // 2], True),
        (SAID, REFUSAL, True),
        (SAID, "", True),
        ("", SAID, False),
        ("ご注文は日曜日に届きます", "ご注文は月曜日に届きます", False),
        ("ご注文は日曜日に届きます", "申し訳ありません", True),
    ],
)
def test_behaviour__response__counts_when_many_of_its_words_are_lost(said, says, lost) -> None:
    kinds = [one[0] for one in seen([LOOKUP], [LOOKUP], said, says)]
    assert kinds == [KIND.RESPONSE] * lost


def test_behaviour__lost_response__is_shown_with_its_number_of_words() -> None:
    ((*_, baseline, current),) = seen([LOOKUP], [LOOKUP], SAID, "Sent.")
    assert (baseline, current) == (f"14 words: {SAID}", "1 word: Sent.")
    ((*_, current),) = seen([LOOKUP], [LOOKUP], SAID, "")
    assert current == "0 words"


@pytest.mark.parametrize("sides", [("failed", "passed"), ("passed", "failed"), ("passed", "error")])
def test_behaviour__case_that_does_not_pass_in_both_runs__is_left_to_the_verdict(sides) -> None:
    details = make_details([LOOKUP]), make_details([("search", {})])
    then, now = (make_result("a", status, details=one) for status, one in zip(sides, details, strict=True))
    baseline, history = make_branch([then, OTHER])
    assert not find_changes(make_here(now, OTHER), baseline, history).changes


@pytest.mark.parametrize(
    "fields",
    [
        {"fingerprint": "another prompt"},
        {"fingerprints": CaseFingerprints(seeds="2", snapshot="1")},
        {"fingerprints": CaseFingerprints(seeds="1", snapshot="2")},
    ],
)
def test_behaviour__case_that_is_asked_something_else__is_not_compared(fields) -> None:
    before = {"fingerprint": "the prompt", "fingerprints": CaseFingerprints(seeds="1", snapshot="1")}
    baseline, history = make_branch([make_behaving("a", make_details([LOOKUP]), **before), OTHER])
    now = make_behaving("a", make_details([("search", {})]), **(before | fields))
    assert not find_changes(make_here(now, OTHER), baseline, history).changes


def test_behaviour__renamed_case__is_compared_by_its_old_name() -> None:
    baseline, history = make_branch([make_behaving("a", make_details([LOOKUP]), fingerprint="same"), OTHER])
    now = make_behaving("b", make_details([("search", {})]), fingerprint="same")
    (change,) = find_changes(make_here(now, OTHER), baseline, history).changes
    assert change.case_id == "b"


# What is not known is not said


@pytest.mark.parametrize(
    ("details", "kinds"),
    [
        (make_details([("search", {"id": "B9"})], REFUSAL), [KIND.TOOL, KIND.RESPONSE]),
        (make_details([("search", {"id": "B9"})], None, tool_calls=()), [KIND.TOOL]),
        (make_details([("lookup", {"id": "B9"})], None, tool_calls=()), []),
        (make_details([("lookup", {"id": "B9"})] * 2, tool_calls=make_details([LOOKUP]).tool_calls), [KIND.CALL_COUNT]),
        (make_details([LOOKUP], REFUSAL, response_truncated=True), []),
        (make_details([LOOKUP], REFUSAL, dropped_counts={"characters": 9}), []),
    ],
)
def test_behaviour__response_that_is_not_kept_or_truncated__says_nothing(details, kinds) -> None:
    for then, now in ((make_details([LOOKUP]), details), (details, make_details([LOOKUP]))):
        baseline, _ = make_branch([make_behaving("a", then), OTHER])
        found = find_changes(make_here(make_behaving("a", now), OTHER), baseline)
        assert [one.kind for one in found.changes] == kinds


def test_behaviour__truncated_arguments__are_not_compared() -> None:
    cut = make_details([LOOKUP])
    cut = replace(cut, tool_calls=(replace(cut.tool_calls[0], arguments='{"id":"B', truncated_parts=("arguments",)),))
    baseline, _ = make_branch([make_behaving("a", make_details([LOOKUP])), OTHER])
    assert not find_changes(make_here(make_behaving("a", cut), OTHER), baseline).changes


@pytest.mark.parametrize("silent", ["baseline", "here", "both"])
def test_behaviour__agent_that_lists_no_call_in_any_case__has_unknown_calls(silent) -> None:
    then, now = make_details([LOOKUP]), make_details([])
    then, now = {"baseline": (now, then), "here": (then, now), "both": (now, now)}[silent]
    baseline, _ = make_branch([make_behaving("a", then), make_behaving("b", then)])
    found = find_changes(make_here(make_behaving("a", now), make_behaving("b", now)), baseline)
    assert not found.changes


def test_behaviour__more_tools_or_parameters_than_are_compared__says_nothing_of_them() -> None:
    tools = [(f"t{number}", {}) for number in range(BEHAVIOUR_TOOLS + 1)]
    assert seen(tools, tools[1:]) == []
    many = {f"p{number}": number for number in range(BEHAVIOUR_PARAMETERS + 1)}
    assert seen([("lookup", many)], [("lookup", many | {"p0": "other"})]) == []


# What varies by itself is left out


@pytest.mark.parametrize(
    ("runs", "now", "kinds"),
    [
        ([[LOOKUP]], [("search", {})], ["tool"]),
        ([[LOOKUP]] * 3, [("search", {})], ["tool"]),
        ([[("search", {})], [LOOKUP], [LOOKUP], [LOOKUP], [LOOKUP]], [("search", {})], []),
        ([[("stock", {})], [LOOKUP], [LOOKUP], [LOOKUP], [LOOKUP]], [("search", {})], ["tool"]),
        ([([LOOKUP], [("search", {})])], [("search", {})], []),
        ([([LOOKUP], [LOOKUP, LOOKUP])], [LOOKUP, LOOKUP, LOOKUP], []),
        ([[LOOKUP], [LOOKUP]], ([LOOKUP], [("search", {})]), []),
        ([[LOOKUP], [LOOKUP]], ([("search", {})], [("search", {})]), ["tool"]),
        ([called(t=1), called(t=2), called(t=3)], called(t=4), []),
        ([called(t=1), called(t=2)], called(t=3), []),
        ([called(t=1)] * 3 + [called(t=2)], called(t=3), ["parameter"]),
        ([called(t=1), called(t=1, u=1), called(t=1)], called(t=1, u=1), []),
        ([called(t=1), called(t=1)], called(t=1, u=1), ["parameter"]),
        ([[LOOKUP], [LOOKUP, LOOKUP], [LOOKUP], [LOOKUP], [LOOKUP], [LOOKUP]], [LOOKUP] * 4, []),
        ([called(t=1, id=1), called(t=2, id=1), called(t=3, id=1)], called(t=4, id=2), ["parameter"]),
        ([SAID, SAID, SAID], REFUSAL, ["response"]),
        ([SAID, REFUSAL, SAID], "It was sent to you.", []),
        ([SAID, REFUSAL], "It was sent to you.", []),
        ([(SAID, REFUSAL)], REFUSAL, []),
        ([SAID], (SAID, REFUSAL), []),
        ([SAID], (REFUSAL, REFUSAL), ["response"]),
    ],
)
def test_behaviour__history__says_what_varies_by_itself(runs, now, kinds) -> None:
    assert changed(runs, now) == kinds


def test_behaviour__runs_of_another_target_or_prompt__say_nothing_about_what_varies() -> None:
    same = make_behaving("a", make_details([LOOKUP]))
    other_prompt = make_behaving("a", make_details([("search", {})]), fingerprint="another prompt")
    baseline, history = make_branch([other_prompt, OTHER], [same, OTHER])
    now = make_here(make_behaving("a", make_details([("search", {})])), OTHER)
    assert find_changes(now, baseline, history).cases == 1
    old = replace(history.runs[1], target="another model")
    baseline, history = make_branch([make_behaving("a", make_details([("search", {})])), OTHER], [same, OTHER])
    assert find_changes(now, baseline, history).cases == 0
    history = replace(history, runs=(history.runs[0], old))
    assert find_changes(now, baseline, history).cases == 1


def test_behaviour__calls_of_which_only_the_first_are_stored__say_nothing_about_parameters() -> None:
    some = make_details(called(id="B9") * 2)
    some = replace(some, tool_calls=some.tool_calls[:1])
    baseline, _ = make_branch([make_behaving("a", make_details(called(id="A7") * 2)), OTHER])
    assert not find_changes(make_here(make_behaving("a", some), OTHER), baseline).changes


def test_behaviour__case_that_passed_once_of_three_times_in_the_baseline__is_left_to_the_verdict() -> None:
    then = make_behaving("a", make_details([LOOKUP]), make_details([LOOKUP]), make_details([LOOKUP]))
    failed = tuple(replace(one, status=Status.FAILED) for one in then.trials[1:])
    then = replace(then, trials=(then.trials[0], *failed), passed=False, status=Status.FAILED)
    baseline, history = make_branch([then, OTHER])
    now = make_here(make_behaving("a", make_details([("search", {})])), OTHER)
    assert not find_changes(now, baseline, history).changes


def test_behaviour__failed_executions__do_not_count() -> None:
    flaky = make_behaving("a", make_details([LOOKUP]), make_details([("search", {})]), make_details([LOOKUP]))
    failed = replace(flaky.trials[1], status=Status.FAILED)
    flaky = replace(flaky, trials=(flaky.trials[0], failed, flaky.trials[2]), flaky=True)
    baseline, history = make_branch([flaky, OTHER])
    now = make_here(make_behaving("a", make_details([("search", {})])), OTHER)
    assert [one.kind for one in find_changes(now, baseline, history).changes] == [KIND.TOOL]


@pytest.mark.parametrize(("flickering", "said"), [(0, 1), (1, 1), (2, 0)])
def test_behaviour__what_varies_in_many_other_cases__may_vary_in_all(flickering, said) -> None:
    """A branch of three runs; the tool comes and goes in so many of ten cases."""
    steady, more = make_details([LOOKUP, ("stock", {})]), make_details([LOOKUP])
    cases = [f"c{number}" for number in range(10)]
    runs = [
        [make_behaving(name, more if place < flickering and run == 1 else steady) for place, name in enumerate(cases)]
        for run in range(3)
    ]
    baseline, history = make_branch(*runs)
    now = make_here(*[make_behaving(name, more if name == "c9" else steady) for name in cases])
    assert find_changes(now, baseline, history).cases == said


def test_behaviour__responses_that_lose_their_words_in_many_other_cases__say_nothing() -> None:
    def run(number: int) -> list:
        said = [REFUSAL if number == 1 and place < 2 else SAID for place in range(6)]
        return [make_behaving(f"c{place}", make_details([LOOKUP], one)) for place, one in enumerate(said)]

    now = make_here(*run(0)[:5], make_behaving("c5", make_details([LOOKUP], REFUSAL)))
    assert find_changes(now, *make_branch(run(0), run(0), run(0))).cases == 1
    assert find_changes(now, *make_branch(run(0), run(1), run(0))).cases == 0


# With one earlier run


def test_behaviour__value_that_differs_in_most_cases_of_one_earlier_run__is_left_out() -> None:
    then = [make_behaving(f"c{n}", make_details([("lookup", {"id": n, "at": f"10:0{n}"})])) for n in range(5)]
    now = [make_behaving(f"c{n}", make_details([("lookup", {"id": n, "at": f"11:0{n}"})])) for n in range(4)]
    now.append(make_behaving("c4", make_details([("lookup", {"id": 40, "at": "10:04"})])))
    baseline, _ = make_branch(then)
    found = find_changes(make_here(*now), baseline)
    assert [(one.case_id, one.parameter) for one in found.changes] == [("c4", "id")]
    assert found.cases == 1


def test_behaviour__same_new_value_in_all_cases__is_a_change_of_each() -> None:
    then, now = ([make_behaving(f"c{n}", make_details(called(limit=limit))) for n in range(3)] for limit in (10, 5))
    found = find_changes(make_here(*now), make_branch(then)[0])
    assert found.cases == 3


def test_behaviour__value_that_differs_in_few_cases__is_a_change_of_each() -> None:
    then = [make_behaving(f"c{n}", make_details(called(id=n))) for n in range(5)]
    now = [make_behaving(f"c{n}", make_details(called(id=n if n < 3 else n + 10))) for n in range(5)]
    found = find_changes(make_here(*now), make_branch(then)[0])
    assert found.cases == 2


def test_behaviour__every_response_in_other_words__is_left_out() -> None:
    then = [make_behaving(f"c{n}", make_details([LOOKUP], f"{SAID} {n}")) for n in range(4)]
    now = [make_behaving(f"c{n}", make_details([LOOKUP], f"{REFUSAL} {n}")) for n in range(4)]
    found = find_changes(make_here(*now), make_branch(then)[0])
    assert found.cases == 0


def test_behaviour__steady_history__names_what_differs_in_most_cases() -> None:
    then = [make_behaving(f"c{n}", make_details(called(id=n))) for n in range(3)]
    now = [make_behaving(f"c{n}", make_details(called(id=n + 10))) for n in range(3)]
    baseline, history = make_branch(then, then)
    found = find_changes(make_here(*now), baseline, history)
    assert found.cases == 3


# In a verdict


def judge(runs, now, **fields):
    baseline, history = make_branch(*runs)
    inputs = GateInputs(Baseline(baseline, "main", history=history), REGRESSIONS, **fields)
    return decide_verdict(now, inputs)


def test_verdict__case_behaves_differently__stays_green_and_shows_both_sides() -> None:
    now = make_here(make_behaving("a", make_details([("search", {})])), OTHER)
    same = [make_behaving("a", make_details([LOOKUP])), OTHER]
    judged, plain = judge([same], now), judge([same], make_here(*same))
    assert judged.comparison.behaviour_changes.cases == 1
    assert plain.comparison.behaviour_changes.cases == 0
    a, other = judged.comparison.changes
    assert (a.behaves_differently, other.behaves_differently) == (True, False)
    assert a.baseline_result.details.tools_called == ("lookup",)
    assert other.baseline_result is None
    assert judged.verdict == plain.verdict
    assert judged.verdict.outcome is Outcome.PASSED
    assert [one.change for one in judged.comparison.changes] == [one.change for one in plain.comparison.changes]


def test_verdict__graded_case_that_passes_by_the_pass_score__is_compared_and_has_a_history() -> None:
    def made(number: int, tool: str):
        details = make_details([(tool, {"trace": number})])
        return [make_result("a", "failed", graded=True, score=0.8, details=details), OTHER]

    policy = replace(REGRESSIONS, pass_score=0.7)
    baseline, history = make_branch(*[made(number, "lookup") for number in range(4)])
    inputs = GateInputs(Baseline(baseline, "main", history=history), policy)
    same, other = (decide_verdict(make_here(*made(9, tool)), inputs) for tool in ("lookup", "search"))
    assert same.comparison.behaviour_changes.changes == ()
    assert [one.kind for one in other.comparison.behaviour_changes.changes] == [KIND.TOOL]


def test_provisional_verdict__case_behaves_differently__is_the_same_without_it() -> None:
    now = make_here(make_behaving("a", make_details([("search", {})])), OTHER)
    baseline, history = make_branch([make_behaving("a", make_details([LOOKUP])), OTHER])
    inputs = GateInputs(Baseline(baseline, "main", history=history), REGRESSIONS)
    judged, provisional = decide_verdict(now, inputs), decide_provisional_verdict(now, inputs)
    assert provisional.comparison.behaviour_changes is None
    assert provisional.verdict == judged.verdict


def test_verdict__stored_run_without_history_any_more__keeps_what_it_knew() -> None:
    runs = [[make_behaving("a", make_details([("lookup", {"t": n})])), OTHER] for n in range(4)]
    judged = judge(runs, make_here(make_behaving("a", make_details([("lookup", {"t": 9})])), OTHER))
    assert judged.comparison.behaviour_changes.cases == 0
    baseline, _ = make_branch(*runs)
    again = decide_verdict(judged, GateInputs(Baseline(baseline, "main"), REGRESSIONS))
    assert again.comparison.behaviour_changes == judged.comparison.behaviour_changes


def test_verdict__pattern_that_the_baseline_was_stored_without__shows_no_value_and_no_change_of_its_own() -> None:
    arguments = {"card": "4111", "number": 4222, "id": "A7", "4333": 1}
    then = make_details([("lookup", arguments)], f"{SAID} 4444")
    now = make_details([("lookup", {"card": "***", "number": "***", "id": "B9", "***": 1})], "Sent.")
    retention = RetentionRules(patterns=("^[0-9]{4}$", "A7", " [0-9]{4}"))
    judged = judge(
        [[make_behaving("a", then, then), OTHER]], make_here(make_behaving("a", now, now), OTHER), retention=retention
    )
    found = judged.comparison.behaviour_changes.changes
    assert [(one.parameter, one.baseline, one.current) for one in found] == [
        ("id", '"***"', '"B9"'),
        (None, f"{len(SAID.split()) - 1} words: {SAID.replace('A7', '***')}***", "1 word: Sent."),
    ]


def test_verdict__name_of_a_parameter_that_differs_everywhere__is_masked() -> None:
    then, now = (
        [make_behaving(f"c{n}", make_details([("lookup", {name: side})])) for n in range(3)]
        for side, name in (("a", "jane"), ("b", "***"))
    )
    judged = judge([then], make_here(*now), retention=RetentionRules(patterns=("jane",)))
    assert [one.parameter for one in judged.comparison.behaviour_changes.changes] == ["***"] * 3


def test_verdict__pattern_that_takes_too_long__compares_only_tools() -> None:
    then = make_details([("lookup", {"id": "a" * 60 + "!"})], "a" * 60 + "!")
    now = make_details([("lookup", {"id": "***"}), ("send", {})], "***")
    retention = RetentionRules(patterns=("(a+)+$",))
    judged = judge([[make_behaving("a", then), OTHER]], make_here(make_behaving("a", now), OTHER), retention=retention)
    assert [one.kind for one in judged.comparison.behaviour_changes.changes] == [KIND.TOOL]


def test_verdict__only_the_mask_is_new__says_nothing() -> None:
    then, now = (make_details([("lookup", {"card": card})]) for card in ("4111", "***"))
    retention = RetentionRules(patterns=("[0-9]{4}",))
    judged = judge([[make_behaving("a", then), OTHER]], make_here(make_behaving("a", now), OTHER), retention=retention)
    assert judged.comparison.behaviour_changes.cases == 0
    assert not any(one.behaves_differently for one in judged.comparison.changes)


def test_verdict__responses_are_not_kept__names_tools_only() -> None:
    then = make_details([("lookup", {"secret": "4111"})])
    now = make_details([("search", {})], None, tool_calls=())
    judged = judge(
        [[make_behaving("a", then), OTHER]],
        make_here(make_behaving("a", now), OTHER),
        retention=RetentionRules(ResponseRetention.NONE),
    )
    (change,) = judged.comparison.behaviour_changes.changes
    assert (change.baseline, change.current) == ("lookup", "search")


def test_verdict__responses_of_failing_cases_only_are_kept__has_no_response_of_the_baseline() -> None:
    then, now = make_details([LOOKUP]), make_details([("search", {})], None, tool_calls=())
    retention = RetentionRules(ResponseRetention.FAILING)
    judged = judge([[make_behaving("a", then), OTHER]], make_here(make_behaving("a", now), OTHER), retention=retention)
    side = judged.comparison.changes[0].baseline_result.details
    assert (side.response, side.tool_calls, side.tools_called) == (None, (), ("lookup",))


def test_limit__very_many_long_changes__are_counted_and_truncated() -> None:
    then = [make_behaving(f"c{n}", make_details(called(id="x" * 1000))) for n in range(BEHAVIOUR_CHANGES + 5)]
    now = [make_behaving(f"c{n}", make_details(called(id="y" * 1000))) for n in range(BEHAVIOUR_CHANGES + 5)]
    found = limit_behaviour_changes(find_changes(make_here(*now), make_branch(then)[0]))
    assert (found.cases, len(found.changes)) == (BEHAVIOUR_CHANGES + 5, BEHAVIOUR_CHANGES)
    assert {len(one.current) for one in found.changes} == {200}


def test_add_behaviour_changes__baseline_of_another_program__has_nothing_to_say() -> None:
    bare = make_baseline_run(make_suite_result([make_result("a", details=make_details([], None))]))
    judged = judge([[make_result("a")]], make_here(make_result("a")))
    again = add_behaviour_changes(
        judged.comparison, GateCases.pair(bare, make_here(make_result("a"))), EMPTY_HISTORY, RetentionRules()
    )
    assert again.behaviour_changes.cases == 0


TALK = [("Find it.", SAID, [LOOKUP]), ("Send it.", SAID, [("send", {"to": "A"})]), ("Thanks.", SAID, [])]


def see_talk(*turns, letters="PPP", then=TALK, fields=(), then_fields=()) -> list[tuple]:
    """What is said of a conversation of these turns, which had the usual ones on the other side."""
    sides = [
        make_behaving("a", make_conversation(said, letters[: len(said)], **dict(more)))
        for said, more in ((then, then_fields), (turns, fields))
    ]
    found = find_changes(make_here(sides[1], OTHER), make_branch([sides[0], OTHER])[0])
    return [(one.turn, one.kind, one.tool, one.baseline, one.current) for one in found.changes]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (TALK, []),
        ([(*TALK[0][:2], [("search", {})]), *TALK[1:]], [(1, KIND.TOOL, None, "lookup", "search")]),
        (
            [(*TALK[0][:2], []), TALK[1], (*TALK[2][:2], [LOOKUP])],
            [(1, KIND.TOOL, None, "lookup", None), (3, KIND.TOOL, None, None, "lookup")],
        ),
        ([TALK[0], (*TALK[1][:2], [TALK[1][2][0]] * 2), TALK[2]], [(2, KIND.CALL_COUNT, "send", "1", "2")]),
        ([TALK[0], (*TALK[1][:2], [("send", {"to": "B"})]), TALK[2]], [(2, KIND.PARAMETER, "send", '"A"', '"B"')]),
        (
            [TALK[0], ("Send it.", REFUSAL, TALK[1][2]), TALK[2]],
            [(2, KIND.RESPONSE, None, f"14 words: {SAID}", f"9 words: {REFUSAL}")],
        ),
    ],
    ids=["same", "another tool", "moved to another turn", "count", "parameter", "response"],
)
def test_behaviour_changes__conversation__are_those_of_a_turn(turns, expected) -> None:
    assert see_talk(*turns) == expected


def test_behaviour_changes__simulated_user__are_those_of_all_turns_and_say_nothing_of_responses() -> None:
    user = {"user_end": "reached"}
    moved = [("Hi.", REFUSAL, []), ("Find and send.", REFUSAL, [LOOKUP, TALK[1][2][0]])]
    assert see_talk(*moved, fields=user, then_fields=user) == []
    assert see_talk(TALK[0], fields=user, then_fields=user) == [(None, KIND.TOOL, None, "send", None)]


def test_behaviour_changes__turns_are_kept_of_one_side_only__nothing_is_compared() -> None:
    assert see_talk(*TALK, then_fields={"turns": ()}) == []
    assert see_talk(*TALK, fields={"tools_called": ("9" * 5_000 + ":x",)}, then_fields={"user_end": "reached"}) == []


@pytest.mark.parametrize("tool", ["3:lookup", "12", ":", "x:y", f"{'9' * 5_000}:x", "²:x", ""])
def test_split_tool__any_name__keeps_all_of_it(tool) -> None:
    turn, name = split_tool(tool)
    assert (f"{turn}:{name}" if turn else name) == tool
    assert split_tool(f"7:{tool}") == (7, tool)


def make_checked(**fields) -> CaseResult:
    return make_behaving("a", make_details([LOOKUP], fields=fields))


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ({"x.y": "a"}, {"x.y": "b"}, [(KIND.FIELD, None, "x.y", HOW.VALUE, '"a"', '"b"')]),
        ({"n": 1}, {"n": "1"}, [(KIND.FIELD, None, "n", HOW.TYPE, "1", '"1"')]),
        ({"n": 1}, {"n": 1.0}, []),
        ({"n": 1}, {"n": 1, "more": 2}, []),
        ({}, {"n": 1}, []),
    ],
)
def test_behaviour__fields_checked_in_both_runs__are_told_apart(then, now, expected) -> None:
    baseline, _ = make_branch([make_checked(**then)])
    found = find_changes(make_here(make_checked(**now)), baseline).changes
    assert [(x.kind, x.tool, x.parameter, x.difference, x.baseline, x.current) for x in found] == expected


def test_behaviour__fields_value_that_keeps_changing_on_the_branch__is_left_out() -> None:
    baseline, history = make_branch(*[[make_checked(n=number)] for number in range(4)])
    assert find_changes(make_here(make_checked(n=9)), baseline, history).changes == ()
    baseline, history = make_branch(*[[make_checked(n=1)] for _ in range(4)])
    (change,) = find_changes(make_here(make_checked(n=9)), baseline, history).changes
    assert (change.parameter, change.baseline, change.current) == ("n", "1", "9")
