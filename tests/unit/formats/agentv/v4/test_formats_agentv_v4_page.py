"""docs/agentv.md says of AgentV 4 what the code does: which assertions are read, and what is refused and why."""

import re
from pathlib import Path

import pytest

from eval_gate.formats.agentv.evaluator_reader import V4_EVALUATOR_MODELS
from eval_gate.formats.agentv.file_model import CODE_JUDGE, LLM_JUDGE, TOOL_TRAJECTORY
from eval_gate.formats.agentv.v4.unsupported_features import (
    UNSUPPORTED_CALL_KEYS,
    UNSUPPORTED_CHECK_KEYS,
    UNSUPPORTED_KEYS,
    UNSUPPORTED_WORKSPACE_KEYS,
)

PAGE = (Path(__file__).parents[5] / "docs" / "agentv.md").read_text()
OLD = {*CODE_JUDGE, *LLM_JUDGE, *TOOL_TRAJECTORY, "rubric"} - {"llm-grader", "tool-trajectory"}
"""Names of 1.6, which stand in the table above, and one that AgentV has given up."""


def table(heading: str) -> list[tuple[str, str]]:
    """The first two cells of every row."""
    rows = PAGE.partition(f"\n| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [(row.split(" | ")[0].removeprefix("| "), row.split(" | ")[1].removesuffix(" |")) for row in rows]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


@pytest.mark.contract("agentv.today.page")
def test_page__assertions__are_those_that_are_read() -> None:
    told = {name for kind, _ in table("assertion") for name in names(kind.partition(" with ")[0])}
    told |= names(PAGE.partition("a text; ")[2].partition(" with ")[0])
    assert told == set(V4_EVALUATOR_MODELS) - OLD


@pytest.mark.contract("agentv.today.page")
def test_page__what_is_refused__is_what_the_code_refuses_in_its_words() -> None:
    rows = table("refused")
    for key, why in UNSUPPORTED_KEYS.items():
        assert [said for told, said in rows if key in names(told)][:1] == [why], key
    for key, why in UNSUPPORTED_CALL_KEYS.items():
        assert (f"`{key}` of an expected call", why) in rows
    for key, why in UNSUPPORTED_WORKSPACE_KEYS.items():
        assert (f"`{key}` of a workspace", why) in rows
    for key in UNSUPPORTED_CHECK_KEYS:
        assert (f"`{key}` of a criterion", "a criterion is either met or not") in rows


@pytest.mark.contract("agentv.today.page")
def test_page__keys_that_are_told_to_be_refused__are() -> None:
    plain = [told for told, _ in table("refused") if re.fullmatch(r"(`\w+`(, )?)+", told)]
    assert {name for told in plain for name in names(told)} - {"include"} == set(UNSUPPORTED_KEYS)
