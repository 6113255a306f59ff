"""What a run evaluated: every setting that can change a result is in a part, and each part changes alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from eval_gate.config.loader import load_config
from eval_gate.config.selection import Selection
from eval_gate.config.setting import Panel, Setting
from eval_gate.config.settings import EXTERNAL_RESULT_KEYS, POLICY_KEYS, SETTINGS
from eval_gate.engine.preparation import evaluated_state, program_files
from eval_gate.engine.preparation.plan_builder import build_run_plan
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.model.reuse import EvaluatedState, StatePart
from eval_gate.targets.kinds import find_kind
from eval_gate.targets.settings import find_no_effect
from tests.support.git import commit_all, git
from tests.support.setups import ENVIRONMENT, LEAST, OF_THE_RUN, RUN_WITHOUT_EFFECT, TEXTS, TOOLS, VALUES, SetUp

SUITE = "evals/a.eval.yaml"
PARTS = frozenset(StatePart)


def make_setup(
    target: Mapping[str, Any] | None = None,
    judge: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    files: Mapping[str, Any] | None = None,
    **environment: str,
) -> SetUp:
    """A suite whose only case a target of a list is asked and a judge of the list grades."""
    case = {
        "id": "a1",
        "expected_outcome": "ok",
        "input_messages": [{"role": "user", "content": "hi"}],
        "execution": {"target": "t1", "evaluators": [{"name": "l", "type": "llm_judge"}]},
    }
    targets = [
        {"name": "t1", **(target or LEAST["http"])},
        {"name": "j0", **(judge or {"provider": "mock"})},
        {"name": "t2", "provider": "mock"},
    ]
    own = {"evals": ["evals"], "judge": "j0", "measures": ["agent.py", "other.py"], "rubric": "always"}
    content = {
        **TEXTS,
        "tools.json": TOOLS,
        "other-tools.json": [TOOLS[0] | {"description": "Pays back."}],
        "other-seeds.json": '{"word": "other"}',
        "other-snapshot.json": TEXTS["snapshot.json"],
        "other-targets.yaml": {"targets": [{"name": "t1", "provider": "mock"}, targets[1]]},
        "targets.yaml": {"targets": targets},
        SUITE: {"evalcases": [case]},
        "eval-gate.json": own | dict(config or {}),
    }
    return SetUp(content | dict(files or {}), {**ENVIRONMENT, **environment}, {}, {})


def find_state(setup: SetUp) -> EvaluatedState:
    with TemporaryDirectory() as folder:
        state = setup.prepare(Path(folder)).evaluated_state
    assert state is not None
    return state


def list_changed(one: EvaluatedState, other: EvaluatedState) -> set[StatePart]:
    assert one.parts.keys() == other.parts.keys() == PARTS
    return {part for part in PARTS if one.parts[part] != other.parts[part]}


# ---- every setting of a run ----------------------------------------------------------------------------------------

SEEDED = {
    "evals/g.golden.json": [
        {"id": "g1", "input": {"message": "seeds"}, "expect": {"responseContains": ["{{seed:word}}"]}},
        {"id": "g2", "input": {"message": "now"}, "expect": {"responseContains": ["{{snapshot:now}}"]}},
    ],
    "targets.yaml": {
        "targets": [
            {"name": name, **(LEAST["mock"] if name == "j0" else LEAST["http"])} for name in ("t1", "j0", "default")
        ]
    },
}
CONVERSATION = [{"id": "u1", "user": {"goal": "a refund"}, "expect": {"responseContains": ["ok"]}}]
CHOSEN = {"provider": "openai", "model": "gpt-4o"}
RUN_VALUES: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    **{key: (values[0], {}) for key, values in OF_THE_RUN.items()},
    **{key: (value, {}) for key, value in RUN_WITHOUT_EFFECT.items()},
    "rubric": ("never", {}),
    "evals": ([SUITE], {}),
    "measures": ({"evals/*": ["agent.py"]}, {}),
    "reuse": (True, {}),
    "agentEndpoint": ("http://agent.test/v2", {}),
    "agentProtocol": ("ag-ui", {"config": {"agentEndpoint": "http://agent.test/v2"}}),
    "agentFunction": ("os.path:basename", {}),
    "target": ("t2", {}),
    "targets": ("other-targets.yaml", {}),
    "provider": ("gemini", {"config": CHOSEN, "GEMINI_API_KEY": "gemini-key-1"}),
    "model": ("gpt-5", {"config": CHOSEN}),
    "baseUrl": ("http://models.test/v1", {"config": CHOSEN}),
    "systemPromptPath": ("prompts/system.md", {"config": CHOSEN}),
    "baseAgentEndpoint": ("http://agent.test/base", {}),
    "baseAgentTarget": ("t2", {}),
    "baseAgentCommand": ("again {ids} {output}", {}),
    "judge": ("t2", {}),
    "simulatedUser": (
        "openai:gpt-5",
        {"config": CHOSEN | {"simulatedUser": "openai:gpt-4o"}, "files": {"evals/u.golden.json": CONVERSATION}},
    ),
    "seedManifestPath": ("other-seeds.json", {"config": {"seedManifestPath": "seeds.json"}, "files": SEEDED}),
    "modelProxy": ("http://127.0.0.1:8799", {}),
    "snapshotEnabled": (False, {"config": {"snapshotPath": "snapshot.json"}}),
    "snapshotPath": ("other-snapshot.json", {"config": {"snapshotPath": "snapshot.json"}, "files": SEEDED}),
    "snapshotCommand": ("echo {}", {}),
    "trials": (2, {}),
    "passes": (2, {"config": {"trials": 3}}),
    "keepResponses": ("failing", {}),
    "baseline": ("latest", {}),
    "history": ("runs", {}),
    "failOn": (["regressions"], {}),
    "minPassRate": (0.5, {}),
    "maxErrors": (1, {}),
    "passScore": (0.5, {}),
    "scoreTolerance": (0.2, {}),
    "maxScoreDrop": (0.2, {}),
    "falseAlarmRate": (0.01, {}),
    "reruns": (1, {}),
    "mustPass": (["a1"], {}),
    "allowedRegressions": (1, {}),
    "minCoverage": (0.5, {}),
    "maxLatencyIncrease": (10, {}),
    "maxCostIncrease": (10, {}),
    "maxTokenIncrease": (10, {}),
    "reportOnly": ("until 10 runs", {}),
    "waiversPath": ("waivers.yaml", {}),
    "resultsFormat": ("junit", {}),
    "scores": (["policy>=0.7"], {}),
}
"""Of every setting another value than its default, and what the set-up has besides."""
COMPARED_AS = {
    "the target": StatePart.TARGETS,
    "the base agent": None,
    "the judges of a case": StatePart.GRADERS,
    "the simulated user of a case": StatePart.GRADERS,
    "the seed values of a case": StatePart.EVALS,
    "the recording of model calls": StatePart.CONFIGURATION,
    "the source of the snapshot": StatePart.CONFIGURATION,
    "the rules": None,
}
ALSO = {
    "targets": {StatePart.GRADERS},  # the judge of the list
    "toolRegistryPath": {StatePart.TOOLS},
    "snapshotCommand": {StatePart.GRADERS},  # programs
}
"""Parts that the files behind a setting are in."""


def find_part(row: Setting) -> StatePart | None:
    """The part that a setting is in; None for one that is only about what becomes of a result."""
    if row.key in {"keepResponses", "trials", "passes", "reruns"}:
        return StatePart.CONFIGURATION
    if row.key in {"measures", "outputDir"}:  # both decide which files are measured
        return StatePart.MEASURES
    if row.key in POLICY_KEYS | {"reuse"} or row.panel in {Panel.OUTPUT, Panel.BASELINE}:
        return None
    if row.compared_as:
        return None if row.key in EXTERNAL_RESULT_KEYS else COMPARED_AS[row.compared_as]
    return StatePart.CONFIGURATION


def test_settings__every_one__has_a_value_here() -> None:
    assert SETTINGS.keys() == RUN_VALUES.keys()


@pytest.mark.parametrize("key", RUN_VALUES)
def test_state__one_setting_of_the_run__changes_its_part_alone(key) -> None:
    value, base = RUN_VALUES[key]
    before = make_setup(**base)
    after = before.changed(lambda one: one.files["eval-gate.json"].update({key: value}))
    part = find_part(SETTINGS[key])
    changed = list_changed(find_state(before), find_state(after))
    assert changed - ALSO.get(key, set()) == ({part} if part else set())
    assert changed >= ALSO.get(key, set())


# ---- every setting of a target or a judge --------------------------------------------------------------------------

KIND_VALUES = [(kind, key, value) for kind, values in VALUES.items() for key, (value, *_) in values.items()]


@cache
def find_kind_state(kind: str, role: str) -> EvaluatedState:
    return find_state(make_setup(**{role: LEAST[kind]}))


@pytest.mark.parametrize("role", ["target", "judge"])
@pytest.mark.parametrize(("kind", "key", "value"), KIND_VALUES, ids=[f"{kind}-{key}" for kind, key, _ in KIND_VALUES])
def test_state__one_setting_of_a_target_or_judge__changes_its_part_alone(kind, key, value, role) -> None:
    after = find_state(make_setup(**{role: {**LEAST[kind], key: value}}))
    part = StatePart.TARGETS if role == "target" else StatePart.GRADERS
    changed = list_changed(find_kind_state(kind, role), after)
    assert changed == {part}


@pytest.mark.parametrize("kind", LEAST)
def test_state__measures_of_a_target__are_measured_and_no_other_part(kind) -> None:
    before, after = find_kind_state(kind, "target"), find_state(make_setup({**LEAST[kind], "measures": ["LICENSE"]}))
    assert list_changed(before, after) == {StatePart.MEASURES}
    assert after.suites[0].patterns == ("LICENSE", "agent.py", "other.py")
    assert find_no_effect(find_kind(LEAST[kind]["provider"]).settings.model_fields["measures"]) is not None


# ---- what else a run is made of ------------------------------------------------------------------------------------


def change_case(setup: SetUp, **values: Any) -> None:
    setup.files[SUITE]["evalcases"][0].update(values)


GRADED = {"grade.py": "import rules\n", "rules.py": "A = 1\n"}
PROGRAM = {"name": "g", "type": "code_judge", "script": "python3 ../graders/grade.py"}
OTHERS = {
    "prompt": (lambda one: change_case(one, input_messages=[{"role": "user", "content": "hello"}]), {StatePart.EVALS}),
    "expectation": (lambda one: change_case(one, expected_outcome="yes"), {StatePart.EVALS}),
    "comment": (lambda one: one.files.update({SUITE: json.dumps(one.files[SUITE]) + "\n\n"}), {StatePart.EVALS}),
    "new case": (
        lambda one: one.files[SUITE]["evalcases"].append(one.files[SUITE]["evalcases"][0] | {"id": "a2"}),
        {StatePart.EVALS, StatePart.GRADERS, StatePart.TARGETS},
    ),
    "moved case": (
        lambda one: one.files[SUITE]["evalcases"][0]["execution"].update(target="t2"),
        {StatePart.EVALS, StatePart.TARGETS},
    ),
    "imported file": (lambda one: one.files.update({"graders/rules.py": "A = 2\n"}), {StatePart.GRADERS}),
    "system prompt": (lambda one: one.files.update({"prompts/system.md": "Be bad.\n"}), {StatePart.TARGETS}),
    "tool": (lambda one: one.files["tools.json"][0].update(description="Takes."), {StatePart.TOOLS, StatePart.TARGETS}),
    "measured file": (lambda one: one.files.update({"agent.py": "print(2)\n"}), set()),
    "file that nobody measures": (lambda one: one.files.update({"README.md": "x"}), set()),
    "targets that nobody asks": (
        lambda one: one.files["targets.yaml"]["targets"].append({"name": "t9", "provider": "mock"}),
        set(),
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_state__one_thing_of_the_run__changes_its_part_alone(what) -> None:
    change, parts = OTHERS[what]
    files = {f"graders/{name}": text for name, text in GRADED.items()}
    target = {**LEAST["model"], "systemPromptPath": "prompts/system.md"}
    before = make_setup(target, config={"toolRegistryPath": "tools.json"}, files=files)
    before.files[SUITE]["evalcases"][0]["execution"]["evaluators"].append(PROGRAM)
    one, other = find_state(before), find_state(before.changed(change))
    assert list_changed(one, other) == parts
    assert (one.suites != other.suites) is (what == "measured file")


def test_state__another_version_of_eval_gate__is_a_part(monkeypatch) -> None:
    before = find_state(make_setup())
    monkeypatch.setattr(evaluated_state, "__version__", "99")
    assert list_changed(before, find_state(make_setup())) == {StatePart.PROGRAM}


@pytest.mark.parametrize(
    "target",
    [
        {**LEAST["cli"], "env": {"AGENT_MODE": "${{ MODE }}"}},
        {**LEAST["cli"], "passEnv": ["MODE"]},
        {"provider": "http", "url": "http://agent.test", "headers": {"x-mode": "as ${{ MODE }}"}},
        {"provider": "http", "url": "http://agent.test/chat?mode=${{ MODE }}"},
        {"provider": "http", "url": "${{ MODE }}"},
    ],
)
def test_state__value_of_a_variable_of_a_target__is_of_the_targets(target) -> None:
    modes = (f"http://agent.test/chat?mode={mode}" for mode in ("plain", "strict", "plain"))
    one, other, again = (find_state(make_setup(target, MODE=mode)) for mode in modes)
    assert list_changed(one, other) == {StatePart.TARGETS}
    assert one == again


def test_state__key_or_token_of_a_target__may_be_another_one_in_each_run() -> None:
    target = {**LEAST["cli"], "passEnv": ["AGENT_TOKEN"], "env": {"A": "${{ AGENT_API_KEY }}"}}
    one, other = (find_state(make_setup(target, AGENT_TOKEN=key, AGENT_API_KEY=key)) for key in ("key-11", "key-22"))
    assert one == other


def test_state__file_of_a_grader_that_cannot_be_read__is_never_the_same(monkeypatch) -> None:
    setup = make_setup(files={"graders/grade.py": "1"})
    setup.files[SUITE]["evalcases"][0]["execution"]["evaluators"].append(PROGRAM)
    assert find_state(setup) == find_state(setup)
    monkeypatch.setattr(program_files.limits, "PROGRAM_FILES", 0)
    assert list_changed(find_state(setup), find_state(setup)) == {StatePart.GRADERS}


# ---- what suites measure -------------------------------------------------------------------------------------------


def test_state__nobody_measures__is_none_and_nothing_is_searched(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(evaluated_state, "MeasuredFiles", None)
    for measures in ([], {}, {"evals/other*": ["agent.py"]}, {"evals": []}):
        assert make_setup(config={"measures": measures}).prepare(tmp_path).evaluated_state is None


def test_state__lists_by_file_and_of_targets__are_joined_for_each_suite() -> None:
    golden = [{"id": "g1", "input": {"message": "hi"}, "expect": {"responseContains": ["ok"]}}]
    setup = make_setup(
        {**LEAST["http"], "measures": ["prompts/**"]},
        config={"measures": {"evals/*.eval.yaml": ["agent.py"], "**": ["env:MODE"], "none": ["x"]}, "target": None},
        files={"evals/b.golden.json": golden},
        MODE="plain",
    )
    setup.targets["t2"]["name"] = "default"
    state = find_state(setup)
    assert {one.suite: one.patterns for one in state.suites} == {
        SUITE: ("agent.py", "env:MODE", "prompts/**"),
        "evals/b.golden.json": (),
    }
    assert [(one.files, one.problem) for one in state.suites] == [(3, None), (0, None)]


def test_state__target_without_measures__is_not_covered_by_those_of_another_one() -> None:
    setup = make_setup({**LEAST["http"], "measures": ["agent.py"]}, config={"measures": []})
    case = setup.files[SUITE]["evalcases"][0]
    setup.files[SUITE]["evalcases"].append(case | {"id": "a2", "execution": {"target": "t2"}})
    setup.files["evals/b.eval.yaml"] = {"evalcases": [case]}
    assert [one.patterns for one in find_state(setup).suites] == [(), ("agent.py",)]


PROGRAMS = {
    "command": (LEAST["cli"], "agent.py"),
    "module": ({"provider": "cli", "commandTemplate": "python3 -m pack.main {PROMPT}"}, "pack/main.py"),
    "coding agent": ({"provider": "codex", "executable": "programs/codex"}, "programs/codex"),
    "function": ({"provider": "python", "function": "desk:answer"}, "desk.py"),
    "address": (LEAST["http"], None),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_state__program_of_the_target__has_to_be_measured(what, monkeypatch) -> None:
    target, program = PROGRAMS[what]
    files = {"pack/main.py": "1", "pack/__init__.py": "", "desk.py": "1"}
    setup = make_setup(target, config={"measures": ["LICENSE"]}, files={**files, "LICENSE": "x"})
    if what == "function":
        monkeypatch.setattr("eval_gate.targets.function.import_function", lambda *_: str)
    (suite,) = find_state(setup).suites
    assert suite.problem == (f"`{program}` is run by the target, but not measured" if program else None)
    assert (suite.digest is None) is (program is not None)
    setup.files["eval-gate.json"]["measures"] = ["LICENSE", "*.py", "pack/**", "programs/**"]
    assert find_state(setup).suites[0].problem is None


@pytest.mark.parametrize(
    ("command", "file"),
    [("npm start", "package.json"), ("make -C .. agent", "Makefile"), ("python3 ../agent.py", "__init__.py")],
)
def test_state__file_that_the_agents_program_reads_by_itself__counts_without_a_pattern(command, file) -> None:
    target = {"provider": "cli", "commandTemplate": f"{command} {{PROMPT}}"}
    one, other = (find_state(make_setup(target, files={file: text})) for text in "12")
    assert list_changed(one, other) == set()
    assert None is not one.suites[0].digest != other.suites[0].digest


def test_state__secret_in_patterns_or_settings__is_masked() -> None:
    setup = make_setup(config={"measures": ["agent.py", "key-ring/**"], "passEnv": ["RING"]}, RING="key-ring")
    assert "key-ring" not in str(find_state(setup))


def test_state__two_checkouts_of_one_commit__have_the_same(tmp_path) -> None:
    files = {f"graders/{name}": text for name, text in GRADED.items()}
    setup = make_setup(
        LEAST["cli"],
        {"provider": "cli", "commandTemplate": "python3 judge.py {PROMPT}"},
        {"toolRegistryPath": "tools.json", "seedManifestPath": "seeds.json", "snapshotPath": "snapshot.json"},
        files,
    )
    setup.files[SUITE]["evalcases"][0]["execution"]["evaluators"].append(PROGRAM)
    setup.write(tmp_path / "one")
    commit_all(tmp_path / "one")
    git(tmp_path, "clone", "--quiet", "one", "others/deep")
    states = []
    for folder in (tmp_path / "one", tmp_path / "others/deep"):
        config = load_config({}, setup.environment, folder / "eval-gate.json")
        plan = asyncio.run(build_run_plan(config, Selection(), RunContext(folder, setup.environment)))
        states.append(plan.evaluated_state)
    assert states[0] == states[1]
    assert states[0].suites[0].digest is not None
