"""What differs in how two runs were measured: which rules ask for less, and which cases are checked otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.policy_changes import NAME_RULES, NUMBER_RULES, find_policy_changes
from eval_gate.gate.setup_comparison import MAX_NAMED_CASES, find_setup_changes
from eval_gate.model.execution import CaseDetails
from eval_gate.model.policy import ComparedFile, ComparedProgram, ComparedPrograms, EvaluationSetup, RunPolicy
from eval_gate.model.result import WAITS_FOR_GATE, CaseFingerprints, Shard
from eval_gate.model.setup import SettingValue, TargetIdentity
from eval_gate.model.setup_change import SettingOwner, SetupChangeKind
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result

USUAL = RunPolicy(fail_on=("regressions",), false_alarm_rate=0.05, score_tolerance=0.1, reruns=6, trials=1)
LOOSER, STRICTER = SetupChangeKind.LOOSENED, SetupChangeKind.TIGHTENED


def _with(**rules: object) -> RunPolicy:
    return replace(USUAL, **rules)


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ({"fail_on": ("never",)}, LOOSER),
        ({"fail_on": ("failures",)}, STRICTER),
        ({"fail_on": ("failures", "regressions")}, STRICTER),
        ({"fail_on": ("regressions", "stale")}, STRICTER),
        ({"min_pass_rate": 0.9}, STRICTER),
        ({"max_errors": 1}, LOOSER),
        ({"max_errors": 0}, STRICTER),
        ({"pass_score": 0.5}, LOOSER),
        ({"score_tolerance": 0.5}, LOOSER),
        ({"max_score_drop": 0.5}, STRICTER),
        ({"reruns": 0}, STRICTER),
        ({"reruns": 1}, LOOSER),
        ({"reruns": 12}, STRICTER),
        ({"false_alarm_rate": 0.01}, LOOSER),
        ({"false_alarm_rate": 0.2}, STRICTER),
        ({"must_pass": ("a",)}, STRICTER),
        ({"allowed_regressions": 1}, LOOSER),
        ({"min_coverage": 0.5}, STRICTER),
        ({"max_latency_increase": 30.0}, STRICTER),
        ({"max_cost_increase": 0.0}, STRICTER),
        ({"max_token_increase": 1.0}, STRICTER),
        ({"waivers": "other.yaml"}, LOOSER),
        ({"trials": 3}, SetupChangeKind.CHANGED),
    ],
)
def test_changed_rules__one_rule__is_looser_one_way_and_tighter_the_other(rules, kind) -> None:
    (found,) = find_policy_changes(USUAL, _with(**rules))
    (back,) = find_policy_changes(_with(**rules), USUAL)
    assert found.kind is kind
    assert back.kind is {LOOSER: STRICTER, STRICTER: LOOSER}.get(kind, kind)
    assert (back.baseline, back.current) == (found.current, found.baseline)
    assert found.subject == back.subject == next(iter(rules)).replace("_", "-")


@pytest.mark.parametrize(
    ("was", "is_now", "kind"),
    [
        ((10, 8), (10, 7), LOOSER),
        ((10, 8), (20, 8), LOOSER),
        ((10, 8), (5, 4), SetupChangeKind.CHANGED),
        ((10, None), (10, 5), LOOSER),
        ((10, 6), (10, None), LOOSER),
        ((10, None), (10, 6), STRICTER),
    ],
)
def test_changed_rules__passes__are_looser_the_smaller_their_share_of_the_trials(was, is_now, kind) -> None:
    changes = find_policy_changes(*(_with(trials=trials, passes=passes) for trials, passes in (was, is_now)))
    (found,) = (one for one in changes if one.subject == "passes")
    assert found.kind is kind


@pytest.mark.parametrize(("was", "is_now", "kind"), [(0, 5, LOOSER), (5, 3, STRICTER), (5, 0, STRICTER)])
def test_changed_rules__limit_of_errors__is_looser_the_higher_it_is(was, is_now, kind) -> None:
    (found,) = find_policy_changes(_with(max_errors=was), _with(max_errors=is_now))
    assert found.kind is kind


@pytest.mark.parametrize(
    ("was", "is_now", "kind"),
    [
        ("policy>=0.7", "policy>=0.6", LOOSER),
        ("policy>=0.7", "policy>=0.8", STRICTER),
        ("policy>=0.7", "policy>0.7", STRICTER),
        ("policy>0.7", "policy>=0.7", LOOSER),
        ("toxicity<=0.1", "toxicity<=0.2", LOOSER),
        ("toxicity<=0.1", "toxicity<0.1", STRICTER),
        ("policy>=0.7", "policy<=0.9", LOOSER),
        ("policy=1", "policy=2", LOOSER),
        ("policy>=0.7", None, SetupChangeKind.CHANGED),
        (None, "policy>=0.7", SetupChangeKind.CHANGED),
        ("no rule at all", "policy>=0.7", SetupChangeKind.CHANGED),
    ],
)
def test_changed_rules__of_a_scorer__asking_for_something_else_is_never_harmless(was, is_now, kind) -> None:
    before, after = (_with(scores=() if rule is None else (rule, "other>=1")) for rule in (was, is_now))
    found = [one for one in find_policy_changes(before, after) if "other" not in f"{one.baseline}{one.current}"]
    assert [(one.kind, one.subject) for one in found] == [(kind, "score")]


def test_changed_rules__one_word_for_another__is_looser() -> None:
    (found,) = find_policy_changes(_with(fail_on=("regressions", "flaky")), _with(fail_on=("regressions", "stale")))
    assert found.kind is LOOSER


NEVER = {"fail_on": ("never",), "allowed_regressions": 5}


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        (None, ("fail_on",), ["allowed-regressions"]),
        (None, ("allowed_regressions", "fail_on"), []),
        (("fail_on",), (), ["allowed-regressions"]),
        (("fail_on", "nobody_knows"), ("allowed_regressions",), []),
        (None, (), ["allowed-regressions", "fail-on"]),
        (("allowed_regressions", "fail_on"), None, ["allowed-regressions", "fail-on"]),
    ],
)
def test_changed_rules__typed_at_a_terminal__are_no_change_of_rules_but_in_ci(then, now, told) -> None:
    found = find_policy_changes(_with(typed_settings=then), _with(typed_settings=now, **NEVER))
    assert sorted(one.subject for one in found) == told


def test_changed_rules__each_rule_of_a_policy__is_compared() -> None:
    told = {"fail_on", "fail_on_default", "typed_settings", "must_pass", "scores", "passes"}
    assert {*RunPolicy.__struct_fields__} == told | {*NUMBER_RULES, *NAME_RULES}


def test_changed_rules__trials_typed__are_said_since_they_are_measured_otherwise() -> None:
    (found,) = find_policy_changes(USUAL, _with(trials=3, typed_settings=("trials",)))
    assert (found.kind, found.subject) == (SetupChangeKind.CHANGED, "trials")


@given(st.sampled_from([0, 3, 6]), st.sampled_from([None, 0.5]), st.sampled_from([("a",), ("a", "b"), ()]))
def test_changed_rules__equal_policies__differ_in_nothing(reruns, rate, patterns) -> None:
    same = _with(reruns=reruns, min_pass_rate=rate, must_pass=patterns)
    assert find_policy_changes(same, same) == ()


def test_changed_rules__record_that_does_not_say__differs_in_nothing() -> None:
    assert find_policy_changes(_with(reruns=None, trials=None, false_alarm_rate=None), _with(trials=3)) == ()


def _kinds(then, now, policy: RunPolicy = USUAL, **options) -> dict[str, int]:
    found = find_setup_changes(GateCases.pair(then, now), policy, **options)
    return {one.kind.value: one.count for one in found.changes}


def _one(make, status: str = "passed", setup: EvaluationSetup | None = None, **fields):
    stick = {name: fields.pop(name) for name in tuple(fields) if name in CaseFingerprints.__struct_fields__}
    parts = {"prompt": "q", "expectation": "e"} | stick
    case = make_result("a", status, fingerprints=CaseFingerprints(**parts), **fields)
    return make(make_suite_result([case, make_result("b")]), setup=setup)


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ({}, {}, {}),
        ({}, {"expectation": "other", "fingerprint": "2"}, {"expectation": 1}),
        ({}, {"expectation": "other", "fingerprint": "2", "assertions_run": 1}, {"fewer_checks": 1}),
        ({}, {"expectation": "other", "fingerprint": "2", "assertions_run": 0}, {"no_checks": 1}),
        ({}, {"expectation": "other", "fingerprint": "2", "assertions_run": 0, "status": "failed"}, {"expectation": 1}),
        ({}, {"prompt": "other", "fingerprint": "2"}, {"prompt": 1}),
        ({"status": "failed"}, {"prompt": "other", "fingerprint": "2"}, {}),
        ({"cases_before": "b", "dependent": True}, {"cases_before": "c", "dependent": True}, {"cases_before": 1}),
        ({"cases_before": "b", "dependent": True}, {"cases_before": "c"}, {"cases_before": 1}),
        ({"cases_before": "b"}, {"cases_before": "c"}, {}),
        ({"cases_before": "b", "dependent": True, "status": "failed"}, {"cases_before": "c", "dependent": True}, {}),
        ({"status": "failed", "grader": "g"}, {"grader": "h"}, {"grader": 1}),
        ({"judge": "x"}, {"judge": "y"}, {"judge": 1}),
        ({"judge": "x"}, {}, {"judge": 1}),
        ({"judge": "x"}, {"expectation": "other", "fingerprint": "2"}, {"expectation": 1}),
        ({"seeds": "x"}, {"seeds": "y"}, {"seeds": 1}),
        ({"snapshot": "x"}, {"snapshot": "y"}, {}),
        ({}, {"status": "skipped"}, {"skipped": 1}),
        ({}, {"status": "skipped", "error": WAITS_FOR_GATE}, {}),
        ({}, {"fingerprint": "2"}, {"prompt_or_expectation": 1}),
        ({}, {"status": "failed"}, {}),
        ({}, {"status": "error"}, {}),
    ],
)
def test_differences__one_case__is_another_one_in_this_way(then, now, expected) -> None:
    assert _kinds(_one(make_baseline_run, **then), _one(make_run, **now)) == expected


def compared(path: str, digest: str) -> ComparedPrograms:
    return ComparedPrograms(
        files=(ComparedFile(path=path, digest=digest),), programs=(ComparedProgram(key="k", places=(path,)),)
    )


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (EvaluationSetup(snapshot="curl x"), EvaluationSetup(snapshot="curl x"), False),
        (EvaluationSetup(snapshot="curl x"), EvaluationSetup(snapshot="curl y"), True),
        (
            EvaluationSetup(snapshot="s", snapshot_program="k", programs=compared("now.py", "1")),
            EvaluationSetup(snapshot="s", snapshot_program="k", programs=compared("now.py", "2")),
            True,
        ),
        (EvaluationSetup(snapshot="a.json"), EvaluationSetup(snapshot="a.json", snapshot_is_file=True), True),
        (None, EvaluationSetup(snapshot="curl x"), False),
    ],
)
def test_differences__other_values_of_a_snapshot__only_count_where_somebody_made_them_others(then, now, said) -> None:
    found = _kinds(_one(make_baseline_run, snapshot="1", setup=then), _one(make_run, snapshot="2", setup=now))
    assert found == ({"snapshot_source": 1} if said else {})


def test_differences__another_source_of_the_snapshot__says_what_it_was_and_what_it_is() -> None:
    then = _one(make_baseline_run, snapshot="1", setup=EvaluationSetup(snapshot="curl x"))
    (found,) = find_setup_changes(
        GateCases.pair(then, _one(make_run, snapshot="2", setup=EvaluationSetup(snapshot="curl y"))), USUAL
    ).changes
    assert (found.kind, found.baseline, found.current) == (SetupChangeKind.SNAPSHOT_SOURCE, "curl x", "curl y")


@pytest.mark.parametrize(
    ("run", "skipped", "status", "expected"),
    [
        (2, 1, "passed", {"fewer_checks": 1}),
        (0, 3, "passed", {"no_checks": 1}),
        (3, 1, "passed", {}),
        (2, 0, "passed", {}),
        (2, 1, "failed", {}),
    ],
)
def test_differences__same_checks_of_which_fewer_could_be_made__is_said_of_a_case_that_passes(
    run, skipped, status, expected
) -> None:
    now = _one(make_run, status, assertions_run=run, assertions_skipped=skipped)
    assert _kinds(_one(make_baseline_run), now) == expected


def test_differences__older_record__only_says_what_its_fingerprints_say() -> None:
    then = make_baseline_run(make_suite_result([make_result("a", fingerprint="1"), make_result("b", fingerprint=None)]))
    now = make_run(
        make_suite_result(
            [make_result("a", fingerprint="2", fingerprints=CaseFingerprints(judge="x")), make_result("b")]
        )
    )
    assert _kinds(then, now) == {"prompt_or_expectation": 1}


def test_differences__cases_gone__counts_those_that_passed_and_names_the_first() -> None:
    then = make_baseline_run(
        {f"c{number:02}": "failed" if number < 5 else "passed" for number in range(50)} | {"x": "passed"}
    )
    found = find_setup_changes(GateCases.pair(then, make_run({"x": "passed"})), USUAL)
    (gone,) = found.changes
    assert (gone.kind, gone.count, len(gone.cases), found.removed_cases, found.changed_cases) == (
        SetupChangeKind.REMOVED,
        45,
        MAX_NAMED_CASES,
        45,
        0,
    )
    assert gone.cases[0].case_id == "c05"


@pytest.mark.parametrize("fields", [{"partial": True}, {"shard": Shard(index=1, count=2)}])
def test_differences__part_of_the_cases__nothing_is_gone(fields) -> None:
    then = make_baseline_run({"a": "passed", "b": "passed"})
    assert _kinds(then, make_run({"a": "passed"}, **fields)) == {}


def test_differences__changed__counts_each_case_once_and_only_those_that_passed() -> None:
    then, now = _one(make_baseline_run, judge="x", grader="g"), _one(make_run, judge="y", grader="h", expectation="o")
    assert find_setup_changes(GateCases.pair(then, now), USUAL).changed_cases == 1
    assert (
        find_setup_changes(GateCases.pair(_one(make_baseline_run, "failed", judge="x"), now), USUAL).changed_cases == 0
    )


def test_differences__another_simulated_user__is_named_as_a_judge_is() -> None:
    then, now = _one(make_baseline_run, user="customer (openai:a)"), _one(make_run, user="customer (openai:b)")
    changes = find_setup_changes(GateCases.pair(then, now), USUAL)
    (one,) = changes.changes
    assert (one.kind, one.baseline, one.current) == (SetupChangeKind.USER, "customer (openai:a)", "customer (openai:b)")
    assert changes.changed_cases == 1


@pytest.mark.parametrize("owner", [SettingOwner.JUDGE, SettingOwner.USER])
def test_differences__other_settings_of_a_model_that_takes_part__are_named(owner) -> None:
    def run(make, temperature: str):
        setting = SettingValue(name="temperature", value=temperature, default="none")
        model = TargetIdentity(name="m", provider="openai", identity="m (openai:a)", setup=(setting,))
        parts = {owner.value: "m (openai:a)", f"{owner.value}_setup": temperature}
        return replace(_one(make, **parts), setup=EvaluationSetup(**{f"{owner.value}s": (model,)}))

    (one,) = find_setup_changes(GateCases.pair(run(make_baseline_run, "0"), run(make_run, "1")), USUAL).changes
    assert (one.kind, one.owner, one.subject) == (SetupChangeKind.SETUP, owner, "m")
    assert (one.setting, one.baseline, one.current) == ("temperature", "0", "1")


def test_differences__recorded_replies_of_a_simulated_user__are_named() -> None:
    then = _one(make_baseline_run, user="m (openai:a)")
    now = replace(_one(make_run, user="m (openai:a)"), setup=EvaluationSetup(recording="r.jsonl"))
    kinds = [one.kind for one in find_setup_changes(GateCases.pair(then, now), USUAL).changes]
    assert kinds == [SetupChangeKind.RECORDING]


def test_differences__everything__the_weightiest_comes_first() -> None:
    then = replace(_one(make_baseline_run, judge="x"), policy=_with(must_pass=("a",)))
    now = _one(make_run, judge="y")
    kinds = [one.kind for one in find_setup_changes(GateCases.pair(then, now), _with(min_pass_rate=0.5)).changes]
    assert kinds == [SetupChangeKind.LOOSENED, SetupChangeKind.JUDGE, SetupChangeKind.TIGHTENED]


def test_differences__target_elsewhere_by_the_same_name__is_named() -> None:
    there, here = (TargetIdentity(name="desk", provider="http", identity=f"http://{host}/") for host in ("a", "b"))
    then, now = make_baseline_run({"a": "passed"}, target=there), make_run({"a": "passed"}, target=here)
    (found,) = find_setup_changes(GateCases.pair(then, now), USUAL).changes
    assert (found.kind, found.subject, found.baseline, found.current) == (
        SetupChangeKind.TARGET,
        "desk",
        "http://a/",
        "http://b/",
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, {}),
        ({"details": CaseDetails(replayed=True)}, {"recording": 1}),
        ({"judge": "x"}, {"recording": 1}),
        ({"details": CaseDetails(replayed=True), "status": "failed"}, {"recording": 1}),
    ],
    ids=["asked", "replayed", "judged", "fails now"],
)
def test_differences__answers_or_judges_that_were_recorded__are_named_where_the_case_passed(fields, said) -> None:
    then = _one(make_baseline_run, judge=fields.get("judge"))
    now = _one(make_run, setup=EvaluationSetup(recording="recording.jsonl"), **fields)
    assert _kinds(then, now) == said
    failed = _one(make_baseline_run, status="failed", judge=fields.get("judge"))
    assert _kinds(failed, now) == {}
    unrecorded = _one(make_run, setup=EvaluationSetup(), **fields)
    assert _kinds(then, unrecorded) == {}


@pytest.mark.parametrize(
    ("there", "here", "expected"),
    [
        ({"provider": "cli"}, {}, (SetupChangeKind.TARGET, "desk", "cli", "http")),
        ({"model": "m"}, {"model": "n"}, (SetupChangeKind.MODEL, "desk", "m", "n")),
        ({"name": "other"}, {}, (SetupChangeKind.TARGET, "", "other", "desk")),
        ({"name": "other", "identity": "y"}, {}, (SetupChangeKind.TARGET, "", "y", "x")),
    ],
    ids=["provider", "model", "name", "name and address"],
)
def test_differences__another_target__is_told_by_what_differs(there, here, expected) -> None:
    usual = {"name": "desk", "provider": "http", "identity": "x"}
    then = make_baseline_run({"a": "passed"}, target=TargetIdentity(**(usual | there)))
    now = make_run({"a": "passed"}, target=TargetIdentity(**(usual | here)))
    (found,) = find_setup_changes(GateCases.pair(then, now), USUAL).changes
    assert (found.kind, found.subject, found.baseline, found.current) == expected


def test_differences__case_that_had_to_pass__is_freed_where_no_pattern_means_it_any_more() -> None:
    def tagged(make, *tags: str):
        return make(make_suite_result([make_result("a", tags=tags), make_result("b")]))

    then = replace(tagged(make_baseline_run, "core"), policy=_with(must_pass=("tag:core", "other")))
    policy = _with(must_pass=("tag:core", "other"))
    (freed,) = find_setup_changes(GateCases.pair(then, tagged(make_run)), policy).changes
    assert (freed.kind, freed.subject, freed.baseline, freed.count) == (LOOSER, "must-pass", "a", 1)
    assert find_setup_changes(GateCases.pair(then, tagged(make_run, "core")), policy).changes == ()
    by_another = find_setup_changes(
        GateCases.pair(then, tagged(make_run)), _with(must_pass=("tag:core", "other", "a"))
    ).changes
    assert [one.kind for one in by_another] == [STRICTER]
