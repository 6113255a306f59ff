"""Conversations in tool-forge files: turns, simulated users, and what is refused, each with its place."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from eval_gate.formats.base import EvalFileError, EvalSource, ReadOptions
from eval_gate.formats.discovery import DIALECTS, recognize_document
from eval_gate.formats.tool_forge import dialect as tool_forge
from eval_gate.model.case import CaseTurn, ConversationSpec, EvalCase, EvalSuite, MistakeKind, SimulatedUser
from eval_gate.model.limits import TURN_CHARACTERS, TURNS
from eval_gate.model.specs import evaluator as specs
from eval_gate.text.sources.json import parse_json

ASKED = {"toolsCalled": ["find_order"]}
RUBRIC = [{"dimension": "kindness", "maxScore": 5, "criteria": "stays polite"}]
TURNS_WRITTEN = [{"message": "I want my money back."}, {"message": "How much?", "expect": ASKED}]
USER = {"goal": "get a refund", "facts": ["order 4711"]}


def chat(*turns, **fields) -> dict:
    return {"id": "gs-1", "turns": list(turns) or TURNS_WRITTEN} | fields


def play(user=USER, **fields) -> dict:
    return {"id": "gs-1", "user": user, "expect": ASKED} | fields


def turn(message="hi", **expect) -> dict:
    return {"message": message} | ({"expect": expect} if expect else {})


def load(*cases, strict: bool = False, file: str = "evals/refund.golden.json") -> EvalSuite:
    data = json.dumps(list(cases), indent=1).encode()
    parsed, positions = parse_json(data, file)
    return tool_forge.load_suite(parsed, positions, EvalSource(file, data, Path(file), Path()), ReadOptions(strict))


def read(case: dict, **options) -> EvalCase:
    return load(case, **options).cases[0]


def read_conversation(case: dict) -> ConversationSpec:
    conversation = read(case).conversation
    assert conversation is not None
    return conversation


def refused(*cases, strict: bool = False) -> list[str]:
    with pytest.raises(EvalFileError) as caught:
        load(*cases, strict=strict)
    return [str(problem).removeprefix("evals/refund.golden.json:") for problem in caught.value.problems]


def test_load__turns__are_a_conversation_whose_expect_is_about_the_whole() -> None:
    whole = {"toolsCalled": ["find_order", "refund"], "maxTokens": 4000}
    case = read(chat(expect=whole, rubric=RUBRIC))
    asked = specs.ToolsCalled(names=("find_order",))
    assert case.messages == ()
    assert case.conversation == ConversationSpec(
        turns=(CaseTurn(message="I want my money back."), CaseTurn(message="How much?", evaluators=(asked,))),
        all_evaluators=(asked, *case.evaluators),
    )
    assert [one.type for one in case.evaluators] == ["toolsCalled", "maxTokens", "rubric"]
    assert case.all_evaluators is case.conversation.all_evaluators
    assert case.warnings == ()


def test_load__rubric_of_a_conversation__has_what_the_user_asks_for() -> None:
    questions = [
        one.question
        for case in (chat(rubric=RUBRIC), play(rubric=RUBRIC))
        for one in read(case).evaluators
        if isinstance(one, specs.Rubric)
    ]
    assert questions == ["I want my money back.\n\nHow much?", "get a refund"]


def test_load__turn_fails__no_further_one_is_sent_by_default() -> None:
    assert read_conversation(chat()).stop_score == read_conversation(chat(onTurnFailure="stop")).stop_score == 1
    assert read_conversation(chat(onTurnFailure="continue")).stop_score is None


def test_load__user__is_played_with_what_the_file_says() -> None:
    persona = {"persona": "impatient", "maxMessages": 6, "firstMessage": "hi, my lamp is broken"}
    case = read(play(USER | persona))
    assert case.messages == ()
    assert read_conversation(play(USER | persona)) == ConversationSpec(
        user=SimulatedUser(
            goal="get a refund",
            persona="impatient",
            facts=("order 4711",),
            max_messages=6,
            first_message="hi, my lamp is broken",
        ),
        all_evaluators=case.evaluators,
    )
    assert read_conversation(play({"goal": "g"})).user == SimulatedUser(goal="g")


REFUSED = [
    (chat(turn("")), "6: [0].turns[0].message: must not be empty"),
    (chat(turn(" \n")), "6: [0].turns[0].message: must not be blank"),
    (chat(turn(1)), "6: [0].turns[0].message: expected text, got the number 1"),
    *(
        (chat(one), f'5: [0].turns[0].message: is missing in the case "gs-1"; {said}')
        for one, said in [
            ({"mesage": "hi"}, '"mesage" is not known here (did you mean "message"?)'),
            ({"text": "hi", "notes": "n"}, '"text" is not known here'),
            ({"role": "user", "content": "hi"}, '"role", "content" are not known here'),
            ({"input": {"message": "hi"}}, '"input" is not known here'),
        ]
    ),
    (
        play({"gaol": "g"}),
        '4: [0].user.goal: is missing in the case "gs-1"; "gaol" is not known here (did you mean "goal"?)',
    ),
    (
        {"id": "gs-1", "input": {"turns": []}, "expect": {}},
        '4: [0].input.message: is missing in the case "gs-1"; "turns" is not known here',
    ),
    (
        {"id": "gs-1", "simulatedUser": USER, "expect": {}},
        '2: [0].input: is missing in the case "gs-1"; "simulatedUser" is not known here',
    ),
    *(
        (
            {"id": "gs-1", "turns": [{"message": "a"}, {"message": "b", key: {}}]},
            f'2: [0]: needs `expect` in a turn or in the case (or `rubric`) in the case "gs-1"; {said}',
        )
        for key, said in [
            ("expects", '"expects" is not known here (did you mean "expect"?)'),
            ("assertions", '"assertions" is not known here'),
        ]
    ),
    (chat("hi"), '5: [0].turns[0]: expected a mapping, got text "hi"'),
    ({"id": "gs-1", "turns": [], "expect": {}}, "4: [0].turns: needs at least 1, got an empty list"),
    ({"id": "gs-1", "turns": {"message": "hi", "expect": {}}}, "4: [0].turns: expected a list, got a mapping"),
    ({"id": "gs-1", "turns": "hi", "expect": {}}, '4: [0].turns: expected a list, got text "hi"'),
    (chat(turn(), turn(toolsCalled="x")), '11: [0].turns[1].expect.toolsCalled: expected a list, got text "x"'),
    (
        chat(turn(toolsCalled=[], toolsAcceptable=[["a"]])),
        "7: [0].turns[0].expect: toolsCalled and toolsAcceptable exclude each other: keep one",
    ),
    (chat(*[turn(toolsCalled=[])] * (TURNS + 1)), "4: [0].turns: has more than 100"),
    (
        chat(turn("x" * (TURN_CHARACTERS + 1))),
        "6: [0].turns[0].message: is longer than 100000 characters",
    ),
    (chat(turn()), '2: [0]: needs `expect` in a turn or in the case (or `rubric`) in the case "gs-1"'),
    (chat(input={"message": "hi"}), "17: [0].input: `turns` and `input` exclude each other: keep one"),
    (chat(user=USER), "17: [0].user: `turns` and `user` exclude each other: keep one"),
    (play(input={"message": "hi"}), "15: [0].input: `user` and `input` exclude each other: keep one"),
    ({"id": "gs-1", "expect": {}}, '2: [0].input: is missing in the case "gs-1"'),
    (
        {"id": "gs-1", "turn": [{"message": "a"}], "expect": {}},
        '2: [0].input: is missing in the case "gs-1"; "turn" is not known here (did you mean "turns"?)',
    ),
    ({"id": "gs-1", "input": None, "expect": {}}, '4: [0].input: is missing in the case "gs-1"'),
    (
        chat(onTurnFailure="contnue"),
        "17: [0].onTurnFailure: expected 'stop' or 'continue', got text \"contnue\" (did you mean \"continue\"?)",
    ),
    (play(onTurnFailure="continue"), '2: [0]: `onTurnFailure` needs `turns` in the case "gs-1"'),
    (play({}), '4: [0].user.goal: is missing in the case "gs-1"'),
    (play({"goal": " "}), "5: [0].user.goal: must not be blank"),
    (play(USER | {"facts": "order 4711"}), '6: [0].user.facts: expected a list, got text "order 4711"'),
    (play(USER | {"facts": ["a", ""]}), "8: [0].user.facts[1]: must not be empty"),
    (play(USER | {"maxMessages": 0}), "9: [0].user.maxMessages: must be >= 1, got the number 0"),
    (play(USER | {"maxMessages": 51}), "9: [0].user.maxMessages: must be <= 50, got the number 51"),
    (play(USER | {"firstMessage": " "}), "9: [0].user.firstMessage: must not be blank"),
    ({"id": "gs-1", "user": USER}, '2: [0]: needs `expect` (or `rubric`) in the case "gs-1"'),
    (play("a person"), '4: [0].user: expected a mapping, got text "a person"'),
]


@pytest.mark.parametrize(("case", "problem"), REFUSED, ids=lambda value: str(value)[:60])
def test_load__wrong_conversation__is_refused_with_line_and_field(case, problem) -> None:
    assert refused(case) == [problem]


def test_load__many_mistakes__are_reported_at_once() -> None:
    assert refused(chat(turn(""), turn(maxTokens=0)), play({"goal": 1})) == [
        "6: [0].turns[0].message: must not be empty",
        "11: [0].turns[1].expect.maxTokens: must be > 0, got the number 0",
        "19: [1].user.goal: expected text, got the number 1",
    ]


NOTHING = "the case passes with every response"
LINTED = [
    (chat(turn(), {"message": "a", "expect": {}}), ["10: [0].turns[1].expect: `expect` is empty: " + NOTHING]),
    (chat(turn(responseContains=[])), ["7: [0].turns[0].expect: nothing is checked: " + NOTHING]),
    (chat(turn(), expect={}), ["9: [0].expect: `expect` is empty: " + NOTHING]),
    (
        chat(turn(noToolErrors=True, responseContain=["x"])),
        [
            (
                '9: [0].turns[0].expect.responseContain: unknown assertion "responseContain" '
                '(did you mean "responseContains"?): it is not checked'
            )
        ],
    ),
    (
        chat(turn() | {"toolsCalled": [], "expct": {}, "rubric": [], "input": "a", "other": 1}, expect=ASKED),
        [
            '7: [0].turns[0].toolsCalled: unknown key "toolsCalled" (it belongs in `expect`): it is not checked',
            '8: [0].turns[0].expct: unknown key "expct" (did you mean "expect"?): it is not checked',
            '9: [0].turns[0].rubric: unknown key "rubric" (it belongs in the case): it is not checked',
            '10: [0].turns[0].input: unknown key "input" (it belongs in the case): it is not checked',
            '11: [0].turns[0].other: unknown key "other": it is not checked',
        ],
    ),
    (
        chat(onTurnFailur="stop"),
        ['17: [0].onTurnFailur: unknown key "onTurnFailur" (did you mean "onTurnFailure"?): it is ignored'],
    ),
    (
        play(USER | {"maxMessage": 3}),
        ['9: [0].user.maxMessage: unknown key "maxMessage" (did you mean "maxMessages"?): it is ignored'],
    ),
    (
        chat(turn(responseMatches=["a", "("])),
        ["10: [0].turns[0].expect.responseMatches[1]: /(/ is not a valid pattern: Unbalanced parenthesis"],
    ),
]


@pytest.mark.parametrize(("case", "problems"), LINTED, ids=lambda value: str(value)[:60])
def test_lint_case__what_checks_nothing__is_refused_and_else_warned_about(case, problems) -> None:
    assert refused(case, strict=True) == problems
    loaded = read(case)
    told = [problem.split(": ", 2) for problem in problems]
    turns = [re.fullmatch(r"\[0\]\.(turns\[\d\]).*", field) for _, field, _ in told]
    if loaded.mistakes:
        assert [mistake.message for mistake in loaded.mistakes] == [message for *_, message in told]
    else:
        assert loaded.warnings == tuple(
            f"{turn[1]} in line {line}: {message}" if turn else message
            for turn, (line, _, message) in zip(turns, told, strict=True)
        )


def test_load__turn_with_unknown_expectations_alone__is_skipped_with_the_place() -> None:
    loaded = read(chat({"message": "a", "expect": {"responseContain": ["x"]}}))
    (mistake,) = loaded.mistakes
    assert (mistake.kind, mistake.field) == (
        MistakeKind.UNKNOWN_EXPECTATIONS,
        "[0].turns[0].expect.responseContain",
    )
    assert loaded.skip_reason == mistake.message


def test_load__pattern_of_a_turn__is_a_mistake_with_its_place() -> None:
    (mistake,) = read(chat(turn(), turn(), turn(responseMatches=["("]))).mistakes
    assert mistake.field == "[0].turns[2].expect.responseMatches[0]"
    assert mistake.location.line == 15


def test_load__tokens_in_messages__are_warned_about_wherever_they_are_sent() -> None:
    token = "{{seed:a}}"
    user = {"goal": token, "persona": token, "facts": [token], "firstMessage": token}
    said = f"{token} is sent as it is: tokens are not replaced in messages"
    warnings = read(chat(turn(token), turn(token), expect=ASKED)).warnings
    assert warnings == (f"turns[0] in line 6: {said}", f"turns[1] in line 9: {said}")
    assert read(play(user)).warnings == (said,) * 4


def test_load__regression_file__wants_seed_values_in_turns_too() -> None:
    case = chat(turn(responseContains=["{{snapshot:a}}"])) | {"createdAt": "2026-01-01", "bugRef": "#1"}
    said = "{{snapshot:a}} changes from run to run: regression cases use seed values only"
    assert read(case, file="a.regression.json").warnings == (f"turns[0] in line 8: {said}",)


ONE_MESSAGE = {"id": "gs-1", "input": {"message": "hi"}, "expect": {"responseNonEmpty": True}}


@pytest.mark.parametrize(
    ("fields", "fingerprints"),
    [
        (
            {},
            (
                "108010279ed2bca7d6867f958043a030c513c17043f90ec9f53947a2af9155b7",
                *("877b7cb0e515814d", "f7d94a0814d93e21"),
            ),
        ),
        (
            {"rubric": [{"dimension": "d", "maxScore": 3, "criteria": "c"}], "referenceData": {"c": 21}},
            (
                "fa0def61f7bae2e80058ca65813a5d91fb578edd71101cbea3ae1c901f7216fd",
                *("877b7cb0e515814d", "bfce19bc72f5218c"),
            ),
        ),
        (
            {"expect": {}},
            (
                "ecc70fa04f209902129dc8052acfba4489150ece01b1ec6df9e6c8107b9cb271",
                *("877b7cb0e515814d", "4f53cda18c2baa0c"),
            ),
        ),
    ],
    ids=str,
)
def test_fingerprint__case_with_one_message__is_the_one_it_had_before_conversations(fields, fingerprints) -> None:
    loaded = read(ONE_MESSAGE | fields)
    assert (loaded.fingerprint, loaded.prompt_fingerprint, loaded.expectation_fingerprint) == fingerprints


FIRST = turn("a", toolsCalled=[])
PROMPTS = [
    chat(FIRST, turn("b")),
    chat(turn("a"), turn("c"), expect=ASKED),
    chat(turn("a"), expect=ASKED),
    chat(FIRST, turn("b"), onTurnFailure="continue"),
    chat(FIRST, turn("b"), maxTurns=2),
    chat(FIRST, turn("b"), stubs={}),
    play(),
    play(USER | {"persona": "p"}),
    play(USER | {"maxMessages": 3}),
    play(USER | {"firstMessage": "hi"}),
    play(USER | {"facts": []}),
    {"id": "gs-1", "input": {"message": "a"}, "expect": ASKED},
]
EXPECTATIONS = [
    chat(FIRST, turn("b")),
    chat(turn("a"), turn("b", toolsCalled=[])),
    chat(turn("a"), turn("b"), expect={"toolsCalled": []}),
    chat(FIRST, turn("b"), expect={"toolsCalled": []}),
    chat(FIRST, turn("b"), rubric=RUBRIC),
]


def test_fingerprint__other_messages_or_rules__are_another_prompt() -> None:
    cases = [read(case) for case in PROMPTS]
    assert len({case.prompt_fingerprint for case in cases}) == len({case.fingerprint for case in cases}) == len(PROMPTS)


def test_fingerprint__expectation_of_another_turn__is_another_one_of_the_same_prompt() -> None:
    cases = [read(case) for case in EXPECTATIONS]
    assert len({case.expectation_fingerprint for case in cases}) == len(EXPECTATIONS)
    assert len({case.prompt_fingerprint for case in cases}) == 1


def test_fingerprint__same_conversation_in_other_words__is_the_same() -> None:
    same = read(chat(FIRST, turn("b")))
    for other in (
        chat(FIRST, turn("b"), onTurnFailure="stop", maxTurns=5, description="d", expect={"responseContains": []}),
        chat(FIRST, {"message": "b", "expect": {"responseMatches": [".*"]}}, user=None, input=None),
    ):
        assert read(other).fingerprint == same.fingerprint


VALID = [chat(), play(), ONE_MESSAGE, chat(user=None, input=None), chat(turn(), expect={}), chat(turn(), rubric=RUBRIC)]
SCHEMA = jsonschema.Draft202012Validator(
    {"$ref": "#/$defs/ToolForgeCase"} | {"$defs": tool_forge.build_json_schema()["$defs"]}
)
READER_ONLY = "toolsCalled and toolsAcceptable exclude each other"


@pytest.mark.parametrize("case", VALID, ids=str)
def test_build_json_schema__conversation_that_is_read__is_valid(case) -> None:
    assert read(case).id == "gs-1"
    SCHEMA.validate(case)


@pytest.mark.parametrize(
    "case", [case for case, problem in REFUSED if READER_ONLY not in problem], ids=lambda case: str(case)[:60]
)
def test_build_json_schema__conversation_that_is_refused__is_not_valid(case) -> None:
    assert not SCHEMA.is_valid(case)


@pytest.mark.parametrize(
    ("document", "dialect"),
    [
        ([chat()], "tool-forge"),
        ({"cases": [chat(turn())]}, "tool-forge"),
        ({"cases": [{"id": "a", "turns": [{"expect": {}}]}]}, "tool-forge"),
        ([{"id": "a", "user": {"goal": "g"}}], "tool-forge"),
        ([chat(input={"message": "hi"})], "tool-forge"),
        ({"tests": [{"id": "a", "mode": "conversation", "input": "a", "turns": [{"input": "b"}]}]}, "agentv"),
        ({"cases": [{"id": "a", "input": "a", "turns": [{"input": "b"}]}]}, "agentv"),
        ({"tests": [{"id": "a", "criteria": "c", "input": "a", "turns": [{"message": "b"}]}]}, "agentv"),
        ({"agent": {}, "cases": [{"id": "a", "prompt": "p", "turns": [{"message": "b"}]}]}, "agent-evals"),
    ],
    ids=str,
)
def test_recognize_document__turns__belong_to_the_format_whose_keys_they_have(document, dialect) -> None:
    assert recognize_document(document, Path("a.json")) is DIALECTS[dialect]


@pytest.mark.parametrize(
    "case", [{"id": "a", "turns": [{"text": "b"}]}, {"user": {"name": "n"}}, {"turns": 3}], ids=str
)
def test_recognize_document__other_turns_and_users__are_no_evals(case) -> None:
    assert recognize_document([case], Path("a.json")) is None
