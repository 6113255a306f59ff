"""Whole set-ups of which one source has another value: the gate, `--resume` and recorded responses see it, each time.

And the other way round: what only writes the same otherwise is seen by none of them. Set-ups are drawn, and prepared
as a run prepares them; a few go through the command line.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eval_gate.config.loader import load_config
from eval_gate.config.settings import POLICY_KEYS, SETTINGS
from eval_gate.engine.run_plan import ExecutionFingerprints, RunPlan
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.setup_comparison import find_setup_changes
from eval_gate.model.setup_change import SetupChange, SetupChangeKind, SetupChanges
from eval_gate.results.run_setup import RunSetup
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.kinds import find_kind
from eval_gate.targets.settings import find_no_effect
from tests.integration.test_integration_models import completion
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent
from tests.support.setups import (
    AGENT,
    EXCLUDES,
    GRADERS,
    LEAST,
    MODELS,
    OF_THE_AGENT,
    OF_THE_RUN,
    RUN_WITHOUT_EFFECT,
    SPELLED_OUT,
    TOOLS,
    VALUES,
    WITHOUT_EFFECT,
    Mutation,
    SetUp,
    described,
    record_of,
    recorded_by,
    run_settings,
    setups,
    suite_case,
)
from tests.support.sizes import size

FIELDS = [(kind, setting) for kind, values in VALUES.items() for setting in values]
FEW = 3
"""Set-ups that the fast tier tries with each source."""
MANY = 60
"""The same of the full tier at night."""


# ---- what one mutation is ---------------------------------------------------------------------------------------


def of_a_target(draw: st.DrawFn, before: SetUp) -> Mutation:
    """A field of a target that is asked gets another value, goes or comes."""
    kind, setting = draw(st.sampled_from(FIELDS))
    name = draw(st.sampled_from(sorted({*before.asked.values()} & before.kinds.keys())))
    before = before.with_target(draw(described(name, kind)))
    after, concerned = another_field(draw, before, name, setting), before.asked_of(name)
    return Mutation(
        before,
        f"{kind}.{setting}",
        after,
        concerned,
        blocks=(kind, setting) not in OF_THE_AGENT,
        said=(name, setting),
        asked_anew=concerned if kind in MODELS else frozenset(),
    )


def of_a_judge(draw: st.DrawFn, before: SetUp) -> Mutation | None:
    """A field of a judge that grades: whatever it is about, it blocks."""
    judges = [one for one in ("j0", "j1", "j2") if before.judged_by(one)]
    if not judges:
        return None
    kind, setting = draw(st.sampled_from(FIELDS))
    name = draw(st.sampled_from(judges))
    before = before.with_target(draw(described(name, kind)))
    after = another_field(draw, before, name, setting)
    return Mutation(before, f"judge {kind}.{setting}", after, before.judged_by(name), said=(name, setting))


def another_field(draw: st.DrawFn, before: SetUp, name: str, setting: str) -> SetUp:
    """The set-up where this setting of the target has another value, or goes, or comes."""
    kind, now = before.kinds[name], before.targets[name]
    assume(not EXCLUDES.get(setting, frozenset()) & now.keys())
    values = [value for value in VALUES[kind][setting] if value != now.get(setting)]
    if setting in now and setting not in LEAST[kind]:
        values.append(None)
    value = draw(st.sampled_from(values))

    def change(one: SetUp) -> None:
        if value is None:
            del one.targets[name][setting]
        else:
            one.targets[name][setting] = value

    return before.changed(change)


def of_the_address(_: st.DrawFn, before: SetUp) -> Mutation | None:
    """The vendor's own variable leads the models to another server."""
    addressed = {name for name, kind in before.kinds.items() if kind == "model" and "baseUrl" in before.targets[name]}
    concerned = frozenset(
        case
        for case, name in before.asked.items()
        if name not in addressed and before.kinds.get(name, "model") == "model"
    )
    judged = {
        case
        for name in ("j0", "j1", "j2")
        if before.kinds[name] == "model" and name not in addressed
        for case in before.judged_by(name)
    }
    if not concerned:
        return None
    after = before.changed(lambda _: None, OPENAI_BASE_URL="http://moved.test/v1")
    said = (sorted({before.asked[case] for case in concerned})[0], "baseUrl")
    return Mutation(before, "OPENAI_BASE_URL", after, concerned | judged, said=said, asked_anew=concerned)


def of_a_prompt(draw: st.DrawFn, before: SetUp) -> Mutation | None:
    """The file with a model's system prompt, or what the registry says of a tool, is another one: the agent's own."""
    models = {name for name in before.asked.values() if before.kinds.get(name) in MODELS}
    prompted = sorted(name for name in models if "systemPromptPath" in before.targets[name])
    registry = before.files["eval-gate.json"].get("toolRegistryPath")
    if prompted and draw(st.booleans()):
        name = draw(st.sampled_from(prompted))
        file = before.targets[name]["systemPromptPath"]
        alike = [one for one in prompted if before.targets[one]["systemPromptPath"] == file]
        concerned = frozenset(case for one in alike for case in before.asked_of(one))
        after = before.changed(lambda one: one.files.update({file: "Be bad.\n"}))
        return Mutation(before, "system prompt", after, concerned, False, (name, "systemPrompt"), concerned)
    if registry is None or not models:
        return None
    concerned = frozenset(case for one in models for case in before.asked_of(one))
    changed = [TOOLS[0] | {"description": "Takes."}]
    after = before.changed(lambda one: one.files.update({registry: changed}))
    suite = frozenset(before.of_suite)
    return Mutation(before, "tools", after, concerned | suite, False, (sorted(models)[0], "tools"), concerned)


def of_a_grader(draw: st.DrawFn, before: SetUp) -> Mutation | None:
    """A file that a grader is made of, or that lies beside one that is a program, or that a judge's command runs."""
    found = {
        file: frozenset(case for case, how in before.graders.items() if how in {name, "program", "composite"})
        for name, (_, files) in GRADERS.items()
        for file in files
    }
    programs = [name for name in ("j0", "j1", "j2") if before.kinds[name] == "cli" and before.judged_by(name)]
    named = [name for name in programs if "agent.py" in before.targets[name]["commandTemplate"]]
    if named:
        found["agent.py"] = frozenset(case for name in named for case in before.judged_by(name))
    file = draw(st.sampled_from([file for file, cases in found.items() if cases] or [None]))
    if file is None:
        return None
    after = before.changed(lambda one: one.files.update({file: one.files[file].replace("\n", " # changed\n", 1)}))
    return Mutation(before, f"file {file}", after, found[file])


def of_a_case(draw: st.DrawFn, before: SetUp) -> Mutation | None:
    """One case of several is asked of another target, or asked or held against something else."""
    case = draw(st.sampled_from(sorted(before.graders)))
    place = sorted(before.graders).index(case)
    what = draw(st.sampled_from(["target", "question", "expectation"]))

    def change(one: SetUp) -> None:
        found = one.files["evals/a.eval.yaml"]["evalcases"][place]
        match what:
            case "target":
                others = [name for name in ("default", "t1", "t2", "t3") if name != found["execution"]["target"]]
                found["execution"]["target"] = draw(st.sampled_from(others))
            case "question":
                found["input_messages"][0]["content"] += "!"
            case "expectation":
                found["expected_outcome"] += "!"

    after = before.changed(change)
    is_model = before.kinds[before.asked[case]] in MODELS
    if what == "target":
        alike = [{**one.targets[one.asked[case]], "name": ""} for one in (before, after)]
        if alike[0] == alike[1]:
            return None  # two names of one target: nothing is asked otherwise
    anew = frozenset({case}) if is_model and what == "question" else frozenset()
    return Mutation(before, f"case {what}", after, frozenset({case}), asked_anew=anew)


def of_the_cases_before(draw: st.DrawFn, before: SetUp) -> Mutation | None:
    """Other cases, another order, or another time limit before a case that works in the same folder."""
    ids = before.of_suite
    if not ids:
        return None
    at = draw(st.integers(0, len(ids) - 2))
    what = draw(st.sampled_from(["order", "new", "prompt", "limit", "gone"]))

    def change(one: SetUp) -> None:
        cases = one.files["evals/s.json"]["cases"]
        match what:
            case "order":
                cases[at], cases[at + 1] = cases[at + 1], cases[at]
            case "new":
                cases.insert(at, suite_case("new"))
            case "prompt":
                cases[at]["prompt"] += "!"
            case "limit":
                cases[at]["timeout"] = 7000
            case "gone":
                del cases[at]

    concerned = ids[at + 1 :] if what == "gone" else ids[at:]
    anew = {ids[at]} if what == "prompt" else set()
    return Mutation(
        before, f"cases before: {what}", before.changed(change), frozenset(concerned), asked_anew=frozenset(anew)
    )


def of_the_suites_agent(draw: st.DrawFn, before: SetUp) -> Mutation | None:
    """The agent that an Agent Evals suite describes is what is tested: said, and no reason to block."""
    ids = frozenset(before.of_suite)
    if not ids:
        return None
    name, value = draw(
        st.sampled_from([("instructions", "be long"), ("tools", [*AGENT["tools"], "deleteFile"]), ("maxTurns", 3)])
    )
    after = before.changed(lambda one: one.files["evals/s.json"]["agent"].update({name: value}))
    anew = ids if name != "maxTurns" else frozenset()
    return Mutation(before, f"agent {name}", after, ids, blocks=False, asked_anew=anew)


def of_the_run(draw: st.DrawFn, before: SetUp) -> Mutation:
    """A setting of the run that is compared by its own value."""
    name, value = draw(st.sampled_from(of_the_run_settings(before)))

    def change(one: SetUp) -> None:
        if value is None:
            del one.files["eval-gate.json"][name]
        else:
            one.files["eval-gate.json"][name] = value

    return Mutation(before, f"run {name}", before.changed(change), frozenset(before.asked), said=("", name))


def of_the_run_settings(before: SetUp) -> list[tuple[str, Any]]:
    config = before.files["eval-gate.json"]
    return [(name, value) for name, value in run_settings() if config.get(name) != value] + [
        (name, None) for name in OF_THE_RUN if name in config
    ]


def of_the_values(draw: st.DrawFn, before: SetUp) -> Mutation:
    """What tokens stand for in the files of seeds and of the snapshot, or which judge grades by default."""
    file, case, old = draw(st.sampled_from([("seeds.json", "g1", "ok"), ("snapshot.json", "g2", "ok")]))
    after = before.changed(lambda one: one.files.update({file: one.files[file].replace(old, "other")}))
    return Mutation(before, f"values of {file}", after, frozenset({case}))


Source = Callable[[st.DrawFn, SetUp], Mutation | None]
SOURCES: list[Source] = [
    *(of_a_target, of_a_judge, of_the_address, of_a_prompt, of_a_grader),
    *(of_a_case, of_the_cases_before, of_the_suites_agent, of_the_run, of_the_values),
]


# ---- what sees it -----------------------------------------------------------------------------------------------


def differences(then: RunPlan, now: RunPlan) -> SetupChanges:
    """What the gate says of a run beside a baseline; every case passed in both."""
    here = record_of(now)
    return find_setup_changes(
        GateCases.pair(record_of(then), here), load_config({}, {}, None).policy.to_run_policy(here)
    )


def made_anew(then: RunPlan, now: RunPlan) -> frozenset[str]:
    """The cases of both that `--resume` runs again, by id."""
    first, second = (ExecutionFingerprints(plan.evaluation_setup, plan.setup_fingerprints) for plan in (then, now))
    before = {case.key: first.compute(case) for case in then.list_runnable_cases()}
    return frozenset(c.id for c in now.list_runnable_cases() if c.key in before and before[c.key] != second.compute(c))


def cases_of(found: SetupChange) -> set[str]:
    return {case.case_id for case in found.cases}


def is_named(found: SetupChange, whose: str, setting: str) -> bool:
    """Whether this names the setting; of an address or a model it is enough that it names both."""
    if (found.subject, found.setting) == (whose, setting):
        return True
    is_place = setting in {
        *("url", "model", "endpoint", "baseUrl", "commandTemplate", "resumeCommand", "executable", "args")
    }
    at_judge = found.kind is SetupChangeKind.JUDGE and (found.current or "").startswith(f"{whose} ")
    return is_place and (
        at_judge or (found.kind in {SetupChangeKind.TARGET, SetupChangeKind.MODEL} and found.subject == whose)
    )


def check_seen(mutation: Mutation, then: RunPlan, now: RunPlan) -> None:
    """The gate, `--resume` and recorded responses see it, for the cases that it concerns and no others."""
    gate = differences(then, now)
    assert gate.changed_cases == (len(mutation.concerns) if mutation.blocks else 0), (mutation.name, gate)
    elsewhere = {SetupChangeKind.TARGET, SetupChangeKind.MODEL} & {one.kind for one in gate.changes}
    if mutation.blocks or not elsewhere:  # that is said of the target as a whole
        about = [one for one in gate.changes if one.kind is not SetupChangeKind.REMOVED]
        assert set().union(*map(cases_of, about)) == mutation.concerns, (mutation.name, gate)
    assert made_anew(then, now) == mutation.concerns, mutation.name
    if mutation.said is not None:
        whose, setting = mutation.said
        assert any(is_named(one, whose, setting) for one in gate.changes), (mutation.name, gate)
        words = [*RunSetup.from_run(record_of(then)).iter_differences(RunSetup.from_run(record_of(now)))]
        assert any(whose in one and f"{setting} " in one for one in words), (mutation.name, words)
    if mutation.asked_anew:
        before, after = recorded_by(then), recorded_by(now)
        same = {case for case in mutation.asked_anew if set(before[case]) & set(after[case])}
        assert not same, mutation.name


def check_unseen(name: str, then: RunPlan, now: RunPlan) -> None:
    """None of them sees anything."""
    gate = differences(then, now)
    assert not gate.changes, (name, gate)
    assert not made_anew(then, now), name
    assert not [*RunSetup.from_run(record_of(then)).iter_differences(RunSetup.from_run(record_of(now)))], name
    assert recorded_by(then) == recorded_by(now), name


@st.composite
def mutated(draw: st.DrawFn, source: Source) -> Mutation:
    """A set-up, and what it becomes when this source has another value."""
    found = source(draw, draw(setups()))
    assume(found is not None)
    return found


def see(source: Source, examples: int) -> None:
    """Try so many set-ups."""

    @settings(max_examples=examples)
    @given(mutated(source))
    def tried(mutation: Mutation) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "checkout")
            then = mutation.before.prepare(root)
            check_seen(mutation, then, mutation.after.prepare(root))

    tried()


@pytest.mark.rows_each("source")
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_setup__one_source_is_another__is_seen_by_gate_resume_and_recordings(source: Source) -> None:
    see(source, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_setup__one_source_of_many_is_another__is_seen_by_gate_resume_and_recordings(source: Source) -> None:
    see(source, size(MANY))


# ---- what is no change ------------------------------------------------------------------------------------------


def reversed_keys(value: Any) -> Any:
    """The same JSON with the keys of every object in the other order."""
    if isinstance(value, list):
        return [reversed_keys(one) for one in value]
    return {key: reversed_keys(value[key]) for key in reversed(value)} if isinstance(value, dict) else value


def with_other_keys(_: st.DrawFn, one: SetUp) -> None:
    one.files.update({name: reversed_keys(content) for name, content in one.files.items()})


def with_other_numbers(_: st.DrawFn, one: SetUp) -> None:
    """Every whole number is written as a fraction, and thousands with an exponent."""

    def written(value: Any) -> str:
        text = json.dumps(value)
        return re.sub(r"(?<=[\[ ])([1-9])(000)?(?=[,\]}])", lambda found: found[1] + ("e3" if found[2] else ".0"), text)

    for name in ("targets.yaml", "evals/a.eval.yaml", "evals/b.golden.json", "evals/s.json"):
        if name in one.files:
            one.files[name] = written(one.files[name])


def with_other_line_ends(_: st.DrawFn, one: SetUp) -> None:
    for name, content in one.files.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1)
        one.files[name] = text.replace("\n", "\r\n")


def with_settings_without_effect(draw: st.DrawFn, one: SetUp) -> None:
    for name, target in one.targets.items():
        preset = target.get("agentProtocol") if one.kinds[name] == "cli" else None  # it reads the response alone
        left_out = {"modelPath", "tracePath"} if preset else set()
        pool = {key: value for key, value in WITHOUT_EFFECT[one.kinds[name]].items() if key not in left_out}
        target.update({key: pool[key] for key in draw(st.sets(st.sampled_from(sorted(pool))))})
        if one.asked_of(name) and draw(st.booleans()):
            target["judgeTarget"] = "j0"
    chosen = draw(st.sets(st.sampled_from(sorted(RUN_WITHOUT_EFFECT))))
    one.files["eval-gate.json"].update({key: RUN_WITHOUT_EFFECT[key] for key in chosen})


def with_defaults_spelled_out(draw: st.DrawFn, one: SetUp) -> None:
    for name, target in one.targets.items():
        kind, preset = one.kinds[name], target.get("agentProtocol")  # what a preset says is no default
        pool = {"form": None} if kind == "http" and preset else SPELLED_OUT[kind]
        for key in sorted(draw(st.sets(st.sampled_from(sorted(pool))))):
            target.setdefault(key, pool[key])
    for case in one.files["evals/b.golden.json"]:
        case["expect"] |= {"responseMatches": [], "toolsNotCalled": None, "responseNotContains": []}
        case |= {"tags": None, "difficulty": None}
    one.files["eval-gate.json"] |= {"strict": one.files["eval-gate.json"].get("strict", False), "trials": 1}


def with_snake_case(_: st.DrawFn, one: SetUp) -> None:
    def snake(key: str) -> str:
        return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key)

    for target in one.files["targets.yaml"]["targets"]:
        renamed = {snake(key): value for key, value in target.items()}
        target.clear()
        target.update(renamed)


def with_parts_for_texts(_: st.DrawFn, one: SetUp) -> None:
    for case in one.files["evals/a.eval.yaml"]["evalcases"]:
        message = case["input_messages"][0]
        message["content"] = [{"type": "text", "value": message["content"]}]
    for name, target in one.targets.items():
        for key in ("responsePath", "idField") if one.kinds[name] == "http" else ():
            if isinstance(target.get(key), str):
                target[key] = [target[key]]
        if isinstance(target.get("failure"), list):
            target["failure"] = [{"path": path} for path in target["failure"]]


def with_other_order(_: st.DrawFn, one: SetUp) -> None:
    """Targets of a list, cases that do not depend on each other, files that nothing names."""
    one.files["targets.yaml"]["targets"].reverse()
    for case in one.files["evals/b.golden.json"]:
        case["description"] = "said otherwise"
    one.files["evals/b.golden.json"].reverse()
    one.files["notes/more.md"] = "nobody reads this"
    one.files["targets.yaml"]["targets"].append({"name": "unused", "provider": "mock"})


Rewriting = Callable[[st.DrawFn, SetUp], None]
REWRITINGS: list[Rewriting] = [
    *(with_other_keys, with_other_numbers, with_other_line_ends, with_settings_without_effect),
    *(with_defaults_spelled_out, with_snake_case, with_parts_for_texts, with_other_order),
]


@st.composite
def rewritten(draw: st.DrawFn, rewriting: Rewriting) -> tuple[SetUp, SetUp]:
    before = draw(setups())
    return before, before.changed(lambda one: rewriting(draw, one))


def see_nothing(rewriting: Rewriting, examples: int) -> None:
    @settings(max_examples=examples)
    @given(rewritten(rewriting))
    def tried(drawn: tuple[SetUp, SetUp]) -> None:
        before, after = drawn
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "checkout")
            then = before.prepare(root)
            check_unseen(rewriting.__name__, then, after.prepare(root))

    tried()


@pytest.mark.rows_each("rewriting")
@pytest.mark.parametrize("rewriting", REWRITINGS, ids=lambda rewriting: rewriting.__name__)
def test_setup__is_written_otherwise__is_no_change_to_anybody(rewriting: Rewriting) -> None:
    see_nothing(rewriting, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("rewriting", REWRITINGS, ids=lambda rewriting: rewriting.__name__)
def test_setup__any_of_many_is_written_otherwise__is_no_change_to_anybody(rewriting: Rewriting) -> None:
    see_nothing(rewriting, size(MANY))


# ---- nothing is left out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", VALUES)
def test_mutations__every_setting_of_a_kind__is_among_them_or_has_no_effect(kind: str) -> None:
    """Also one that somebody adds tomorrow."""
    found = find_kind(LEAST[kind]["provider"])
    assert found is not None
    known = {
        field.alias or name for name, field in found.settings.model_fields.items() if find_no_effect(field) is None
    }
    others = {*VALUES["model"], *VALUES["azure"], "thinkingBudget"} if kind in MODELS else set()
    if found.settings is CliSettings:  # `conversation` decides which of the two it is
        others = {*VALUES["cli"], *VALUES["lines"], "conversation"}
    assert known - {"provider"} <= VALUES[kind].keys() | others


def test_mutations__every_setting_without_effect__is_among_the_rewritings() -> None:
    for kind, pool in WITHOUT_EFFECT.items():
        found = find_kind(LEAST[kind]["provider"])
        assert found is not None
        known = {field.alias or name for name, field in found.settings.model_fields.items() if find_no_effect(field)}
        known -= {"name", "judgeTarget", "userTarget", "measures"}  # each of them is told as something else
        assert known - pool.keys() <= {"healthcheck", *WITHOUT_EFFECT["model"]}, kind
    of_a_run = {row.key for row in SETTINGS.values() if row.no_effect and row.key not in POLICY_KEYS}
    assert of_a_run - RUN_WITHOUT_EFFECT.keys() <= {
        "evals",
        "keepResponses",
        *("baseline", "history"),
    }


def test_mutations__every_setting_of_a_run__is_among_them_or_compared_otherwise() -> None:
    known = {row.key for row in SETTINGS.values() if not row.no_effect and not row.compared_as}
    assert known - POLICY_KEYS == {*OF_THE_RUN}


# ---- through the command line -----------------------------------------------------------------------------------


CASES = {"h1": "http", "m1": "model", "c1": "command", "k1": "mock"}
KEY = {"OPENAI_API_KEY": "sk-test-abcdef"}


async def answers(exchange: Exchange) -> None:
    exchange.answer({"response": "ok", "extra": "ok", "toolCalls": []})


async def chats(exchange: Exchange) -> None:
    exchange.answer(completion("ok"))


def project(http: str, models: str) -> dict[str, Any]:
    """A target of each kind with a case of its own, a grader that imports, a judge that is a program, and a suite."""
    graders = [
        {"name": "g", "type": "code_judge", "script": "python3 grade.py"},
        {"name": "l", "type": "llm_judge", "judge_target": "j"},
    ]
    cases = [
        {"id": case, "expected_outcome": "ok", "input_messages": [{"role": "user", "content": f"hi {case}"}]}
        | {"execution": {"target": target, "evaluators": graders}}
        for case, target in CASES.items()
    ]
    targets = [
        {"name": "http", "provider": "http", "url": http},
        {"name": "model", "provider": "openai", "model": "gpt-4o", "baseUrl": models},
        {"name": "command", "provider": "cli", "commandTemplate": "echo ok {PROMPT}"},
        {"name": "mock", "provider": "mock", "response": "ok"},
        {"name": "j", "provider": "cli", "commandTemplate": "python3 judge.py {PROMPT}"},
    ]
    return {
        "targets.yaml": {"targets": targets},
        "evals/a.eval.yaml": {"evalcases": cases},
        "evals/s.json": {"name": "s", "agent": dict(AGENT), "cases": [suite_case("s0"), suite_case("s1")]},
        "evals/grade.py": "import rules\nprint('{\"score\": 1}')\n",
        "evals/rules.py": "STRICT = 1\n",
        "judge.py": "print('{\"score\": 1}')\n",
        "eval-gate.json": {"evals": ["evals"], "recording": "auto", "measures": ["*.py"]},
    }


def put(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def target_of(files: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in files["targets.yaml"]["targets"] if one["name"] == name)


def cases_in(files: dict[str, Any]) -> list[dict[str, Any]]:
    return files["evals/a.eval.yaml"]["evalcases"]


OF_CASES = "cases, graders, the agent, or their files"
CRLF = {"evals/rules.py": "STRICT = 1\r\n", "judge.py": "print('{\"score\": 1}')\r\n"}
CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], int, str, str, int, int]] = {
    "response path": (
        *(lambda files: target_of(files, "http").update(responsePath="extra"), 1),
        *("target `http`: `responsePath` `response` → `extra` (1 case): `h1`", "responsePath response → extra", 1, 0),
    ),
    "temperature": (
        *(lambda files: target_of(files, "model").update(temperature=1), 0),
        *("target `model`: `temperature` not set → `1` (1 case): `m1`", "temperature not set → 1", 1, 1),
    ),
    "moved case": (
        *(lambda files: cases_in(files)[3]["execution"].update(target="command"), 1),
        *(
            "target of 1 case: `mock` → `command`: `k1`",
            OF_CASES,
            1,
            0,
        ),
    ),
    "imported file": (
        *(lambda files: files.update({"evals/rules.py": "STRICT = 0\n"}), 1),
        *(
            "grader of 4 cases changed: `evals/rules.py",
            OF_CASES,
            4,
            0,
        ),
    ),
    "judge's script": (
        *(lambda files: files.update({"judge.py": "print('{\"score\": 1.0}')\n"}), 1),
        *("grader of 4 cases changed: `judge.py`", OF_CASES, 4, 0),
    ),
    "agent of a suite": (
        *(lambda files: files["evals/s.json"]["agent"].update(instructions="be long"), 0),
        *("agent of suite `evals/s.json`: `instructions` `#", "agent of suite evals/s.json: instructions #", 2, 2),
    ),
    "cases before": (
        *(lambda files: files["evals/s.json"]["cases"].reverse(), 1),
        *(
            "2 cases that pass in the baseline now run after other cases",
            OF_CASES,
            2,
            0,
        ),
    ),
    "measures": (
        *(lambda files: files["eval-gate.json"].update(measures={"evals/*": ["*.py", "!judge.py"]}), 1),
        *(
            'setting `measures` `*.py` → `{"evals/*":["*.py","!judge.py"]}` (6 cases)',
            'measures *.py → {"evals/*":["*.py","!judge.py"]}',
            *(6, 0),
        ),
    ),
    "measures of a target": (
        *(lambda files: target_of(files, "http").update(measures=["evals/*.py"]), 1),
        *(
            "setting `targets[http].measures` not set → `evals/*.py` (6 cases)",
            "targets[http].measures not set → evals/*.py",
            *(6, 0),
        ),
    ),
    "harmless": (
        *(
            lambda files: [target_of(files, "http").update(workers=2, maxRetries=7, method="post"), files.update(CRLF)],
            0,
        ),
        *("", "", 0, 0),
    ),
}
"""What the change does, its exit code, what is said in the gate and by `--resume`, how many executions are made again,
and how often the model is asked."""


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_run__one_source_is_another__is_seen_at_a_terminal(tmp_path, change) -> None:
    do, code, gate_says, resume_says, again, asked = CHANGES[change]
    with agent(answers) as http, agent(chats) as model:
        base = f"{model.url.removesuffix('/chat')}/v1"
        run, environment = ("run", "--fail-on", "regressions,changed"), KEY | {"OPENAI_BASE_URL": base}
        files = project(http.url, base)
        put(tmp_path, files)
        first = gate(tmp_path, *run, **environment)
        assert first.returncode == 0, first.stdout + first.stderr
        run_id = record(tmp_path)["runId"]
        do(files)
        put(tmp_path, files)
        done = gate(tmp_path, *run, "--baseline", run_id, "--recording", "off", **environment)
        before = len(model.requests)
        resumed = gate(tmp_path, "run", "--resume", run_id, **environment)
        assert len(model.requests) - before == asked, resumed.stdout + resumed.stderr
    assert done.returncode == code, done.stdout + done.stderr
    said, resumed_said = (" ".join((one.stdout + one.stderr).split()) for one in (done, resumed))
    assert gate_says in said, done.stdout
    assert ("evaluation setup changed since the baseline" in said) == bool(gate_says), done.stdout
    assert resume_says in resumed_said
    plural = "s" if again != 1 else ""
    assert (f"repeating {again} finished execution{plural}, because the setup changed" in resumed_said) == bool(
        again
    ), resumed_said
