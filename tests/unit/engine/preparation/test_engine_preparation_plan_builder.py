"""What a plan that cannot be made gives back, and what one is made of without a request."""

from __future__ import annotations

import asyncio
import json

import pytest

from eval_gate.config.loader import load_config
from eval_gate.config.selection import Selection
from eval_gate.engine.preparation.plan_builder import build_run_plan
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import GateError
from tests.support.cases import ScriptedTarget

STUBBED = {"id": "gs-1", "input": {"message": "hi"}, "stubs": {"get_weather": {}}, "expect": {"responseNonEmpty": True}}


TALK = {"id": "gs-2", "turns": [{"message": "hi", "expect": {"responseNonEmpty": True}}]}


class ClosableTarget(ScriptedTarget):
    """A target that knows whether it was closed."""

    closed = False
    conversation_problem = "it forgets"

    async def aclose(self) -> None:
        self.closed = True


def plan(folder, case: dict, target: ClosableTarget, **settings):
    (folder / "evals").mkdir()
    (folder / "evals" / "weather.golden.json").write_text(json.dumps([case]))
    config = load_config({"evals": ["evals"]} | settings, {}, None)
    return asyncio.run(build_run_plan(config, Selection(), RunContext(folder, {}, custom_target=target)))


@pytest.mark.parametrize(
    ("case", "settings", "code"),
    [
        (STUBBED, {}, "unsupported-stubs"),
        (STUBBED | {"stubs": None}, {"snapshotEnabled": True}, "missing-snapshot-source"),
        (TALK, {}, "unsupported-conversation"),
    ],
    ids=["a case that the target does not take", "a snapshot from nowhere", "a conversation that it cannot hold"],
)
def test_plan__cannot_be_made__targets_are_closed(tmp_path, case, settings, code) -> None:
    target = ClosableTarget()
    with pytest.raises(GateError) as caught:
        plan(tmp_path, {key: value for key, value in case.items() if value is not None}, target, **settings)
    assert caught.value.code == code
    assert target.closed


def test_plan__target_cannot_hold_a_conversation__names_case_line_and_reason(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        plan(tmp_path, TALK, ClosableTarget())
    assert [(one.message, one.file, one.line) for one in caught.value.problems] == [
        ("case gs-2 has several turns, and the target scripted cannot: it forgets", "evals/weather.golden.json", 1)
    ]


def test_plan__is_made__its_targets_stay_open(tmp_path) -> None:
    target = ClosableTarget()
    made = plan(tmp_path, {"id": "gs-1", "input": {"message": "hi"}, "expect": {"responseNonEmpty": True}}, target)
    assert made.list_targets()
    assert not target.closed


def test_plan_offline__variable_server_and_snapshot__are_left_out_and_nothing_starts(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    case = {"id": "gs-1", "input": {"message": "hi"}, "expect": {"responseContains": ["{{snapshot:a}}"]}}
    (tmp_path / "evals" / "weather.golden.json").write_text(json.dumps([case]))
    servers = {"mcpServers": {"one": {"command": "touch", "args": [str(tmp_path / "started")]}}}
    (tmp_path / "tools.json").write_text(json.dumps(servers))
    target = {"name": "a", "provider": "http", "url": "http://x.test/", "headers": {"key": "${{ AGENT_KEY }}"}}
    config = load_config(
        {"evals": ["evals"], "target": "a", "toolRegistryPath": "tools.json", "snapshotCommand": "touch started"},
        {},
        None,
        defaults={"targets": [target]},
    )
    made = asyncio.run(build_run_plan(config, Selection(), RunContext(tmp_path, {}), offline=True))
    assert [case.id for case in made.list_runnable_cases()] == ["gs-1"]
    assert not (tmp_path / "started").exists()
