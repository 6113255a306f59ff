"""Another set-up than the baseline's: which setting, whose, in how many cases, and whether it can block."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.loader import load_config
from eval_gate.config.setting import Setting
from eval_gate.config.settings import POLICY_KEYS, SETTINGS, RunConfig
from eval_gate.engine.preparation.program_files import ProgramFiles
from eval_gate.engine.preparation.setup_fingerprints import build_evaluation_setup
from eval_gate.engine.run_plan import ExecutionFingerprints
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.setup_comparison import find_setup_changes
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.case import CaseKey, EvalCase, Location
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import CaseFingerprints, RunResult
from eval_gate.model.setup import SettingRole, SettingValue, TargetIdentity
from eval_gate.model.setup_change import SetupChange, SetupChangeKind
from eval_gate.results.run_setup import RunSetup
from eval_gate.struct import replace
from eval_gate.targets.setup import compute_agent_setup
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result

OF_A_WHOLE_RUN = {
    "the target",
    "the base agent",
    "the rules",
    "the judges of a case",
    "the simulated user of a case",
    "the seed values of a case",
    "the source of the snapshot",
    "the recording of model calls",
}
"""As what settings are compared that do not stand in the set-up by themselves."""
MOST_LEFT_OUT = 24
"""Settings that cannot change a result: a short list, in which each says why."""


def identity(name: str = "a", fingerprint: str = "1", file: str | None = "targets.yaml", **setup: str) -> Any:
    settings = tuple(SettingValue(name=key, value=value, default="usual") for key, value in setup.items())
    return TargetIdentity(
        name=name, provider="http", identity="http://x", setup=settings, fingerprint=fingerprint, file=file
    )


def run(make: Any, *targets: TargetIdentity, setup: EvaluationSetup | None = None, **asked: str | None) -> RunResult:
    """A run in which each case was asked of the target of this name."""
    by_name = {target.name: target for target in targets}
    cases = [
        make_result(
            case_id,
            target=name if name != targets[0].name else None,
            fingerprints=CaseFingerprints(target=by_name[name or targets[0].name].fingerprint),
        )
        for case_id, name in asked.items()
    ]
    made = make_suite_result(cases)
    return make(made, target=targets[0], targets=targets if len(targets) > 1 else (), setup=setup)


def differences(then: RunResult, now: RunResult) -> list[SetupChange]:
    return [*find_setup_changes(GateCases.pair(then, now), load_config({}, {}, None).policy.to_run_policy(now)).changes]


def test_target__another_setting__is_said_by_name_with_its_cases_and_counts() -> None:
    then = run(make_baseline_run, identity(), a="a", b="a")
    now = run(make_run, identity(fingerprint="2", responsePath="extra"), a="a", b="a")
    (one,) = differences(then, now)
    assert (one.kind, one.subject, one.setting) == (SetupChangeKind.SETUP, "a", "responsePath")
    assert (one.baseline, one.current, one.count) == ("usual", "extra", 2)
    assert (
        find_setup_changes(GateCases.pair(then, now), load_config({}, {}, None).policy.to_run_policy(now)).changed_cases
        == 2
    )


@pytest.mark.parametrize("role", SettingRole)
def test_target__setting_of_the_agent_itself__is_said_and_blocks_nothing(role) -> None:
    setting = SettingValue(name="temperature", value="1", role=role)
    then = run(make_baseline_run, identity(), a="a")
    now = run(make_run, replace(identity(fingerprint="2"), setup=(setting,)), a="a")
    (one,) = differences(then, now)
    assert (one.kind, one.setting, one.baseline, one.current) == (SetupChangeKind.AGENT, "temperature", None, "1")
    assert (
        find_setup_changes(GateCases.pair(then, now), load_config({}, {}, None).policy.to_run_policy(now)).changed_cases
        == 0
    )


def test_target__settings_that_no_record_shows__are_said_all_the_same() -> None:
    then, now = run(make_baseline_run, identity(), a="a"), run(make_run, identity(fingerprint="2"), a="a")
    (one,) = differences(then, now)
    assert (one.kind, one.setting) == (SetupChangeKind.SETUP, "settings")


@pytest.mark.parametrize("moved", ["a", "c"])
def test_case__asked_of_another_target__is_the_one_that_is_said(moved) -> None:
    """Also where the first case moves, so that another target is the run's own."""
    here, mock = identity(), identity("mock", "2")
    then = run(make_baseline_run, here, mock, a="a", b="a", c="a")
    order = (mock, here) if moved == "a" else (here, mock)
    now = run(make_run, *order, **{case: "mock" if case == moved else "a" for case in "abc"})
    (one,) = differences(then, now)
    assert (one.kind, one.baseline, one.current, one.count) == (SetupChangeKind.TARGET_ASSIGNMENT, "a", "mock", 1)
    assert [case.case_id for case in one.cases] == [moved]


def test_case__of_two_targets_with_one_name__is_held_against_its_own() -> None:
    one, other = identity(fingerprint="1"), identity(fingerprint="2", responsePath="extra")
    then, now = run(make_baseline_run, one, a="a"), run(make_run, one, a="a")
    assert differences(then, replace(now, targets=(other, one))) == []


def test_records_of_older_versions__are_no_change() -> None:
    old = replace(identity(), fingerprint=None)
    then = make_baseline_run({"a": "passed"}, target=old)
    assert differences(then, run(make_run, identity(responsePath="extra"), a="a")) == []


VALUES: list[Any] = [
    *(77, 0.31, "2m", "http://other.test/v1", ["other>=0.7"], "mistyped {output}", "regressions", "jsonl"),
    *("langgraph", "record", "none", [{"name": "x", "provider": "mock"}], ["other"], ["regressions"], "other"),
    "until 10 runs",
]
"""One of these, or true or false, can be the value of any setting."""
NEEDED = {"passes": {"trials": 100}}
"""Settings without which another one is an error."""


def changed(row: Setting) -> dict[str, Any]:
    """The configuration with another value of this setting."""
    for value in (*VALUES, not row.default):
        config = {row.key: value, **NEEDED.get(row.key, {})}
        try:
            made = load_config(config, {}, None)
        except Exception:  # noqa: BLE001 (of another type than this setting)
            continue
        if _held(made, row) != row.default:
            return config
    raise AssertionError(f"no other value was found for {row.key}")


def _held(config: RunConfig, row: Setting) -> Any:
    from eval_gate.config.setting import iter_values

    return next(value for one, value in iter_values(config) if one.key == row.key)


@pytest.mark.parametrize("row", [row for row in SETTINGS.values() if not row.no_effect], ids=lambda row: row.key)
def test_settings__each_that_can_change_a_result__is_seen_by_the_gate(row: Setting, tmp_path) -> None:
    """By its own value, or as what its row says; also those that somebody adds tomorrow."""
    if row.compared_as:
        assert row.compared_as in OF_A_WHOLE_RUN
        if row.compared_as != "the rules":
            return  # tests/integration/test_integration_setup.py
    usual, other = load_config(NEEDED.get(row.key, {}), {}, None), load_config(changed(row), {}, None)
    before, after = (
        replace(
            build_evaluation_setup(one, ProgramFiles(tmp_path)),
            scores=tuple(map(str, one.results.scores)),
            trials=one.limits.trials,
            passes=one.limits.passes,
        )
        for one in (usual, other)
    )
    then = run(make_baseline_run, identity(), setup=before, a="a")
    then = replace(then, policy=usual.policy.build_run_policy(before))
    now = run(make_run, identity(), setup=after, a="a")
    found = find_setup_changes(GateCases.pair(then, now), other.policy.build_run_policy(after)).changes
    assert len(found) == 1, row.key
    assert row.key in POLICY_KEYS or row.compared_as or found[0].setting == row.key


def test_settings__that_cannot_change_a_result__are_few_and_say_why() -> None:
    left_out = {row.key: row.no_effect for row in SETTINGS.values() if row.no_effect}
    assert len(left_out) <= MOST_LEFT_OUT
    assert not POLICY_KEYS & left_out.keys()
    assert all(len(reason.split()) > 4 for reason in left_out.values())
    assert not [row.key for row in SETTINGS.values() if row.no_effect and row.compared_as]


SOURCES = ["prompt", "expectation", "grader", "seeds", "judge", "judge_setup", "target", "agent", "timeout_ms"]


AGENT = SuiteAgent(name="A", model="m", instructions="be brief", tools=("readFile", "writeFile"))
OTHER_AGENT = {"instructions": "be long", "tools": ("readFile",), "max_turns": 4}


@pytest.mark.parametrize("changed", sorted({*SuiteAgent.__struct_fields__} - {"name", "model"}))
def test_suite__anything_about_its_agent_is_another__gate_and_resume_see_it(changed) -> None:
    other = replace(AGENT, **{changed: OTHER_AGENT[changed]})
    case = EvalCase(id="a", suite="e", messages=(), location=Location(file="e", line=1), fingerprint="f", agent=AGENT)
    sticks = [CaseFingerprints(agent=compute_agent_setup(one).fingerprint) for one in (AGENT, other)]
    before, after = (ExecutionFingerprints(None, {case.key: stick}).compute(case) for stick in sticks)
    assert before != after
    bare = TargetIdentity(name="evals/a.json", provider="agent-evals", identity="A")
    then, now = (
        replace(
            make(make_suite_result([make_result("a", fingerprints=stick)], eval_file="evals/a.json")),
            suite_agents=(compute_agent_setup(agent).apply_to(bare),),
        )
        for make, agent, stick in ((make_baseline_run, AGENT, sticks[0]), (make_run, other, sticks[1]))
    )
    (one,) = differences(then, now)
    assert (one.kind, one.owner, one.subject, one.count) == (SetupChangeKind.AGENT, "suite", "evals/a.json", 1)
    assert one.setting.lower() == changed.replace("_", "")
    said = f"agent of suite evals/a.json: {one.setting} {one.baseline} → {one.current}"
    assert said in RunSetup.from_run(then).iter_differences(RunSetup.from_run(now))


@given(st.sampled_from(SOURCES), st.booleans())
def test_fingerprint__any_one_source_is_another__resume_and_gate_see_it(source: str, of_run: bool) -> None:
    plain = CaseFingerprints(**{name: "1" for name in SOURCES if name != "timeout_ms"}, timeout_ms=1)
    other = replace(plain, **{source: 2 if source == "timeout_ms" else "2"})
    setting = (SettingValue(name="timeoutMs", value="1", default="60000"),)
    how, changed_how = EvaluationSetup(), EvaluationSetup(settings=setting if of_run else ())
    case = EvalCase(id="a", suite="e", messages=(), location=Location(file="e", line=1), fingerprint="f")
    before = ExecutionFingerprints(how, {CaseKey("e", "a"): plain}).compute(case)
    assert before == ExecutionFingerprints(how, {CaseKey("e", "a"): plain}).compute(case)
    assert before != ExecutionFingerprints(changed_how, {CaseKey("e", "a"): other}).compute(case)
    there, here = (
        make(
            make_suite_result([make_result("a", fingerprints=yardstick)]),
            target=identity(fingerprint=yardstick.target),
            setup=measured,
        )
        for make, yardstick, measured in ((make_baseline_run, plain, how), (make_run, other, changed_how))
    )
    assert differences(there, here)
