"""New eval files of drafts: they are valid, readable, and hold no more than they should."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eval_gate.drafts.draft_file import FORMATS, DraftFile, build_draft_file, find_format
from eval_gate.drafts.observation import Observation
from eval_gate.errors import GateError
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import EvalFile, load_suites
from eval_gate.model.case import EvalCase
from eval_gate.model.conversation import Message, Response, ToolCall
from eval_gate.process.signals import run_async
from eval_gate.struct import replace
from eval_gate.text.mask import MASK
from eval_gate.text.tokens import find_tokens

NAMES = {"tool-forge": "first.golden.json", "agentv": "first.eval.yaml"}


def observe(question: str, *texts: str, calls: Sequence[ToolCall] = (), **parts: object) -> Observation:
    return Observation(question, tuple(Response(text=text, tool_calls=tuple(calls)) for text in texts), **parts)


WEATHER = observe(
    "How is the weather in Lisbon?",
    "It is 21 °C in Lisbon.",
    "It is 21 °C and sunny in Lisbon.",
    calls=[ToolCall(name="get_weather", params={"city": "Lisbon", "days": 1}, success=True)],
)


def build(name: str, *observations: Observation) -> DraftFile:
    return run_async(build_draft_file(observations, FORMATS[name], Path("/nowhere") / NAMES[name], Path("/nowhere")))


def load(name: str, folder: Path, built: DraftFile) -> tuple[EvalCase, ...]:
    file = folder / NAMES[name]
    file.write_text(built.text, encoding="utf-8")
    [suite] = load_suites([EvalFile(file, explicit=True)], folder, ReadOptions(strict=True))
    return suite.cases


def test_tool_forge__case__is_ordered_as_a_person_writes_it() -> None:
    [case] = json.loads(build("tool-forge", WEATHER).text)
    assert list(case) == ["id", "description", "draft", "input", "expect"]
    assert list(case["expect"]) == [
        *("toolsCalled", "toolParams", "noToolErrors", "responseNonEmpty"),
        *("responseContains", "responseContainsNumber", "responseNotContains"),
    ]
    assert (case["id"], case["draft"]) == ("gs-get-weather-001", True)
    assert case["input"] == {"message": WEATHER.question}


def test_agentv__case__is_ordered_as_a_person_writes_it() -> None:
    text = build("agentv", WEATHER).text
    assert text == (
        "tests:\n"
        "  - id: get-weather-001\n"
        '    description: "calls get_weather, answers with 21, Lisbon"\n'
        "    draft: true\n"
        '    input: "How is the weather in Lisbon?"\n'
        "    assertions:\n"
        "      - type: tool-trajectory\n"
        "        mode: exact\n"
        "        expected:\n"
        "          - {tool: get_weather, args: {city: Lisbon, days: 1}, args_match: superset}\n"
        "      - {type: execution-metrics, max_tool_calls: 1}\n"
        "      - {type: contains-all, value: [Lisbon]}\n"
        '      - {type: contains-number, value: "21"}\n'
        '      - {type: contains, value: "{\\"", negate: true}\n'
    )


@pytest.mark.parametrize("name", FORMATS)
def test_file__read_as_strictly_as_a_run_can__has_each_question_as_a_draft(name: str, tmp_path: Path) -> None:
    others = [observe("Who are you?", "I am Aria, a bot for the weather."), observe("How many?", "42")]
    cases = load(name, tmp_path, build(name, WEATHER, *others))
    assert [case.messages[-1].content for case in cases] == [WEATHER.question, "Who are you?", "How many?"]
    assert all(case.draft and case.evaluators and not case.warnings for case in cases)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "executions",
    [
        [["a", "b"], ["b", "a"]],
        [["a"], ["a", "a"]],
        [["a"], ["a", "b"]],
        [["a"], ["b"]],
        [[], []],
    ],
)
def test_case__whatever_tools_its_executions_called__passes_with_each_of_them(
    name: str, executions: list[list[str]]
) -> None:
    responses = [
        Response(text="It is 21.", tool_calls=tuple(ToolCall(name=one, success=True) for one in tools))
        for tools in executions
    ]
    built = build(name, Observation("How?", tuple(responses)))
    assert (len(built.cases), built.skipped) == (1, ())


@pytest.mark.parametrize("name", FORMATS)
def test_ids__are_numbered_for_each_tool(name: str) -> None:
    none = observe("Who are you?", "A bot of 2 words.")
    camel = observe("When?", "At 10:00.", calls=[ToolCall(name="openingHours")])
    unknown = Observation("How?", (Response(text="So it is 21.", tool_calls_known=False),))
    ids = [case.id.removeprefix("gs-") for case in build(name, WEATHER, none, WEATHER, camel, unknown).cases]
    assert ids == ["get-weather-001", "no-tool-001", "get-weather-002", "opening-hours-001", "question-001"]


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (observe("How?", errors=("agent error: HTTP 500",)), "agent error: HTTP 500"),
        (observe("How?"), "no response"),
        (observe(f"My key is {MASK}", "It is 21."), "it holds a secret or personal data, which was masked"),
        (observe("  ", "It is 21."), "the question is empty"),
        (observe("half \ud800", "It is 21."), "it is not valid Unicode"),
        (observe("x" * 200_000, "It is 21."), "it is longer than 100,000 characters"),
    ],
)
@pytest.mark.parametrize("name", FORMATS)
def test_question__of_which_no_case_can_be_made__is_skipped_with_its_reason(
    name: str, observation: Observation, reason: str
) -> None:
    built = build(name, observation, WEATHER)
    assert [(one.observation, one.reason) for one in built.skipped] == [(observation, reason)]
    assert len(built.cases) == 1


def test_further_turn__has_the_messages_before_it_in_each_format(tmp_path: Path) -> None:
    earlier = (Message(role="user", content="Is Dune there?"), Message(role="assistant", content="No.\nSorry: {{x}}"))
    observation = observe("And Solaris?", "It is in room 21.", earlier_messages=earlier)
    [case] = load("tool-forge", tmp_path, build("tool-forge", observation))
    assert case.conversation is not None
    assert [turn.message for turn in case.conversation.turns] == ["Is Dune there?", "And Solaris?"]
    [case] = load("agentv", tmp_path, build("agentv", observation))
    assert [(one.role, one.content) for one in case.messages] == [
        ("user", "Is Dune there?"),
        ("assistant", "No.\nSorry: {{x}}"),
        ("user", "And Solaris?"),
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_response__leaves_nothing_of_it_in_the_file(name: str, tmp_path: Path) -> None:
    tokens = "{{seed:cities[0].name}} {{date}} ${{ secrets.KEY }}"
    hostile = f"In {tokens} it is \x1b[31m Lis\u202ebon: - *a &b !!python/x, 21 \ud800"
    calls = [ToolCall(name="get_weather", params={"city": "{{seed:x}}", "q\u202e": 1, "at": "${{ X }}"}, success=True)]
    built = build(name, observe("How is {{seed:city}}? # - [x] 'y' \"z\": {}", hostile, hostile, calls=calls))
    [case] = load(name, tmp_path, built)
    expected = built.text.replace(json.dumps(case.messages[-1].content), "")
    assert not find_tokens(expected)
    assert not any(one in built.text for one in ("\u202e", "\x1b", "${{", "{{date}}", "\ud800"))
    assert case.messages[-1].content == "How is {{seed:city}}? # - [x] 'y' \"z\": {}"


@settings(max_examples=40)
@example(question="What?", text="\ufeff", city="")
@given(question=st.text(min_size=1, max_size=80), text=st.text(max_size=200), city=st.text(max_size=30))
@pytest.mark.parametrize("name", FORMATS)
def test_any_text__is_written_so_that_it_is_read_as_it_was__or_skipped(
    name: str, question: str, text: str, city: str
) -> None:
    calls = [ToolCall(name="get_weather", params={"city": city, city: 1e-7}, success=True)]
    built = build(name, observe(question, text, text, calls=calls))
    assert len(built.cases) + len(built.skipped) == 1
    if built.cases:
        document = json.loads(built.text) if name == "tool-forge" else yaml.safe_load(built.text)["tests"]
        assert (document[0]["input"]["message"] if name == "tool-forge" else document[0]["input"]) == question
    else:
        reason = built.skipped[0].reason
        assert not reason.startswith("its own responses")
        if reason.startswith("its format"):
            assert name == "agentv"
            assert question.strip() != question or "\r" in question


def test_format__unknown_name_or_other_suffix_or_existing_file__is_refused(tmp_path: Path) -> None:
    existing = tmp_path / "a.golden.json"
    existing.write_text("[]")
    for name, file, code in [
        ("agent-v", tmp_path / "b.yaml", "unknown-value"),
        ("agentv", tmp_path / "b.json", "invalid-output-path"),
        ("tool-forge", existing, "draft-file-exists"),
    ]:
        with pytest.raises(GateError) as error:
            find_format(name, file)
        assert error.value.code == code
    assert find_format("agentv", tmp_path / "b.yml") is FORMATS["agentv"]


def test_build_draft_file__responses_share_only_a_field__tool_forge_has_a_case() -> None:
    texts = ("It was refunded today.", "Your money is underway!")
    responses = tuple(Response(text=text, body={"order": {"status": "refunded"}}) for text in texts)
    observation = Observation("Where is it?", tuple(replace(one, tool_calls_known=False) for one in responses))
    [case] = json.loads(build("tool-forge", observation).text)
    assert case["expect"]["fields"] == {"order.status": "refunded"}
    assert build("agentv", observation).skipped[0].reason.startswith("its responses share no tool call, fact or field")
