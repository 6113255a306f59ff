"""Which model plays the simulated users of a run, and what a run without one says."""

from __future__ import annotations

import asyncio
import json

import pytest

from eval_gate.config.loader import load_config
from eval_gate.config.selection import Selection
from eval_gate.engine.preparation.plan_builder import build_run_plan
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.run_plan import RunPlan
from eval_gate.errors import GateError
from eval_gate.model.case import CaseKey
from tests.support.cases import ScriptedTarget

FILE = "evals/desk.golden.json"
USER = {"goal": "a refund", "facts": ["order 4711"]}
PLAIN = {"id": "plain", "input": {"message": "hi"}, "expect": {"responseNonEmpty": True}}


def with_user(case_id: str) -> dict:
    return {"id": case_id, "user": USER, "expect": {"responseNonEmpty": True}}


def plan(folder, *cases: dict, **settings) -> RunPlan:
    (folder / "evals").mkdir(exist_ok=True)
    (folder / FILE).write_text(json.dumps(list(cases), indent=1))
    config = load_config({"evals": ["evals"]} | settings, {}, None)
    context = RunContext(folder, {"OPENAI_API_KEY": "key-of-nobody"}, custom_target=ScriptedTarget())

    async def build() -> RunPlan:
        made = await build_run_plan(config, Selection(), context)
        await made.aclose()
        return made

    return asyncio.run(build())


def test_user__of_no_model__is_an_error_that_names_all_cases(tmp_path) -> None:
    with pytest.raises(GateError, match="2 cases need a simulated user, and no model plays it") as caught:
        plan(tmp_path, with_user("one"), PLAIN, with_user("two"), judge="openai:gpt-4o")
    assert caught.value.code == "missing-simulated-user"
    assert [(one.message, one.file) for one in caught.value.problems] == [
        ("one: no simulated user", FILE),
        ("two: no simulated user", FILE),
    ]
    assert len({one.line for one in caught.value.problems}) == 2
    assert "simulatedUser" in (caught.value.hint or "")


def test_user__of_a_run__is_part_of_the_setup_of_its_cases_alone(tmp_path) -> None:
    made = plan(tmp_path, with_user("one"), PLAIN, simulatedUser="openai:gpt-4o-mini")
    fingerprints = made.setup_fingerprints[CaseKey(FILE, "one")]
    assert fingerprints.user == "openai:gpt-4o-mini (https://api.openai.com/v1)"
    assert fingerprints.user_setup is not None
    assert (fingerprints.judge, fingerprints.judge_setup) == (None, None)
    assert made.setup_fingerprints[CaseKey(FILE, "plain")].user is None
    assert made.evaluation_setup is not None
    assert [one.model for one in made.evaluation_setup.users] == ["gpt-4o-mini"]
    assert made.evaluation_setup.judges == ()


def test_user__goal_and_facts__are_the_prompt_and_the_model_is_not(tmp_path) -> None:
    made = plan(tmp_path, with_user("one"), simulatedUser="openai:gpt-4o-mini")
    other_model = plan(tmp_path, with_user("one"), simulatedUser="openai:gpt-4o")
    other_facts = with_user("one") | {"user": USER | {"facts": ["order 4712"]}}
    key = CaseKey(FILE, "one")
    one, other = made.setup_fingerprints[key], other_model.setup_fingerprints[key]
    assert (one.prompt, one.expectation) == (other.prompt, other.expectation)
    assert one.user_setup != other.user_setup
    assert made.suites[0].cases[0].fingerprint == other_model.suites[0].cases[0].fingerprint
    with_facts = plan(tmp_path, other_facts, simulatedUser="openai:gpt-4o-mini").setup_fingerprints[key]
    assert (with_facts.user_setup, with_facts.prompt == one.prompt) == (one.user_setup, False)
