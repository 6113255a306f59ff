"""From the messages of a case to what is sent, and to what graders are shown."""

import json

import pytest

from eval_gate.model.case import CaseBrief, EvalCase
from tests.support.agentv import Repository, suite


@pytest.fixture
def repository(tmp_path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.write("evals/rules.instructions.md", "Be brief.\n")
    made.write("evals/more.prompt.md", "\nBe kind.\n\n")
    made.write("evals/data.csv", "a,b\n1,2\n")
    made.write("evals/empty.txt", " \n")
    return made


TEXT = "{type: text, value: Look.}"
RULES = "{type: file, value: rules.instructions.md}"
MORE = "{type: file, value: more.prompt.md}"
DATA = "{type: file, value: data.csv}"
EMPTY = "{type: file, value: empty.txt}"
INLINE = '<file path="data.csv">\na,b\n1,2\n</file>'


def asking(repository: Repository, *messages: str, expected: str = "[]") -> EvalCase:
    listed = "".join(f"  - {message}\n" for message in messages)
    return repository.case(suite(f"id: one\noutcome: x\ninput:\n{listed}expected_messages: {expected}\n"))


def brief(case: EvalCase) -> CaseBrief:
    assert case.brief is not None
    return case.brief


def sent(case: EvalCase) -> list[tuple[str, object]]:
    return [(message.role, message.content) for message in case.messages]


@pytest.mark.contract("agentv.prompt.question", "agentv.prompt.files")
@pytest.mark.parametrize(
    ("message", "question", "linked"),
    [
        ("{role: user, content: Hi.}", "Hi.", "Hi."),
        ('{role: user, content: "\\n Hi.\\n\\n"}', "Hi.", "Hi."),
        ("{role: system, content: Hi.}", "Hi.", "Hi."),
        (f"{{role: user, content: [{TEXT}, {DATA}]}}", f"Look.\n\n{INLINE}", 'Look.\n\n<file: path="data.csv">'),
        (f"{{role: user, content: [{DATA}, {TEXT}]}}", f"{INLINE}\n\nLook.", '<file: path="data.csv">\n\nLook.'),
        (f"{{role: user, content: [{DATA}]}}", INLINE, '<file: path="data.csv">'),
        (f"{{role: user, content: [{TEXT}, {RULES}]}}", "Look.", "Look."),
        ("{role: user, content: {limit: 5, city: Ål}}", '{\n  "limit": 5,\n  "city": "Ål"\n}', None),
    ],
    ids=str,
)
def test_question__one_visible_message__is_its_parts_without_markers(repository, message, question, linked) -> None:
    case = asking(repository, message)
    assert brief(case).question == question
    assert brief(case).linked_question == (linked or question)
    assert sent(case)[-1] == ("user", question)


@pytest.mark.contract("agentv.prompt.question")
def test_question__messages_that_say_nothing__do_not_make_an_exchange(repository) -> None:
    case = asking(
        repository,
        f"{{role: system, content: [{RULES}]}}",
        f"{{role: user, content: [{EMPTY}]}}",
        "{role: user, content: Hi.}",
        "{role: user, content: '  '}",
    )
    assert brief(case).question == "Hi."
    assert sent(case) == [("system", "Be brief."), ("user", "Hi.")]


@pytest.mark.contract("agentv.prompt.question")
def test_question__one_message_of_an_assistant__has_its_marker(repository) -> None:
    case = asking(repository, "{role: assistant, content: Hi.}")
    assert brief(case).question == "@[Assistant]:\nHi."
    assert sent(case) == [("assistant", "Hi.")]


@pytest.mark.contract("agentv.prompt.question")
def test_question__silent_assistant__still_makes_an_exchange(repository) -> None:
    case = asking(repository, "{role: user, content: Hi.}", "{role: assistant, content: ''}")
    assert brief(case).question == "@[User]:\nHi."


@pytest.mark.contract("agentv.prompt.guidelines")
def test_guidelines__of_one_message__are_the_system_message_and_nothing_of_ours_is(repository) -> None:
    case = asking(repository, f"{{role: user, content: [{TEXT}, {RULES}, {MORE}, {RULES}]}}")
    assert sent(case) == [("system", "Be brief.\n\nBe kind."), ("user", "Look.")]
    assert brief(case).guidelines == "Be brief.\n\nBe kind."
    assert [path.rsplit("/", 1)[1] for path in brief(case).guideline_files] == [
        "rules.instructions.md",
        "more.prompt.md",
    ]


@pytest.mark.contract("agentv.prompt.guidelines", "agentv.prompt.chat")
def test_guidelines__of_several_turns__leave_a_mark_and_join_the_system_message(repository) -> None:
    case = asking(
        repository,
        "{role: system, content: You help.}",
        "{role: system, content: You smile.}",
        f"{{role: user, content: [{TEXT}, {RULES}, {DATA}]}}",
        "{role: assistant, content: Seen.}",
        "{role: tool, content: {rows: 1}}",
        "{role: system, content: Hurry.}",
        "{role: user, content: And now?}",
    )
    rest = "Look.\n\n<Attached: rules.instructions.md>\n\n" + INLINE
    assert brief(case).question == (
        f"@[System]:\nYou help.\n\n@[System]:\nYou smile.\n\n@[User]:\n{rest}\n\n@[Assistant]:\nSeen.\n\n"
        '@[Tool]:\n{\n  "rows": 1\n}\n\n@[System]:\nHurry.\n\n@[User]:\nAnd now?'
    )
    assert '<file: path="data.csv">' in brief(case).linked_question
    assert "a,b" not in brief(case).linked_question
    assert sent(case) == [
        ("system", "You help.\n\nYou smile.\n\n[[ ## Guidelines ## ]]\n\nBe brief."),
        ("user", rest),
        ("assistant", "Seen."),
        ("assistant", '@[Tool]:\n{\n  "rows": 1\n}'),
        ("assistant", "@[System]:\nHurry."),
        ("user", "And now?"),
    ]


@pytest.mark.contract("agentv.prompt.chat")
def test_chat__several_turns_without_system_and_guidelines__has_no_system_message(repository) -> None:
    case = asking(repository, "{role: user, content: A}", "{role: assistant, content: B}", "{role: user, content: C}")
    assert sent(case) == [("user", "A"), ("assistant", "B"), ("user", "C")]


@pytest.mark.contract("agentv.prompt.chat")
def test_chat__guidelines_without_a_system_turn__are_the_system_message(repository) -> None:
    case = asking(repository, f"{{role: user, content: [{TEXT}, {RULES}]}}", "{role: assistant, content: B}")
    assert sent(case)[0] == ("system", "[[ ## Guidelines ## ]]\n\nBe brief.")


@pytest.mark.contract("agentv.prompt.chat")
def test_chat__system_turns_alone__are_still_asked(repository) -> None:
    case = asking(repository, "{role: system, content: A}", "{role: system, content: B}")
    assert sent(case) == [("user", "@[System]:\nA\n\n@[System]:\nB")]


@pytest.mark.contract("agentv.prompt.reference")
@pytest.mark.parametrize(
    ("expected", "reference"),
    [
        ("[]", None),
        ("''", ""),
        ("Plain.", "Plain."),
        ('[{role: assistant, content: "  As it is.\\n"}]', "  As it is.\n"),
        ("[{role: user, content: Q}, {role: assistant, content: Last.}]", "Last."),
        (f"[{{role: assistant, content: [{TEXT}, {DATA}]}}]", "Look.\n\na,b\n1,2"),
        (f"[{{role: assistant, content: [{RULES}]}}]", "Be brief."),
        ("[{role: assistant, content: {answer: 5}}]", '{\n  "answer": 5\n}'),
        ("[{role: assistant, content: A, tool_calls: [{tool: t}]}]", "A"),
        (
            "[{role: assistant, tool_calls: [{tool: t, input: {a: 1}, output: x, id: c1}]}]",
            '[\n  {\n    "tool": "t",\n    "input": {\n      "a": 1\n    },\n    "output": "x"\n  }\n]',
        ),
        ("[{role: assistant, content: '', toolCalls: [{tool: t}]}]", '[\n  {\n    "tool": "t"\n  }\n]'),
    ],
    ids=str,
)
def test_reference_answer__last_expected_message__text_files_or_calls(repository, expected, reference) -> None:
    found = brief(asking(repository, "{role: user, content: Hi.}", expected=expected)).reference_answer
    assert found == (reference or None)


def test_messages__as_graders_see_them__have_the_text_of_files(repository) -> None:
    case = asking(
        repository,
        "{role: system, content: {limit: 5}}",
        f"{{role: user, content: [{TEXT}, {DATA}]}}",
        expected="[{role: assistant, tool_calls: [{tool: t, input: {a: 1}}]}]",
    )
    assert brief(case).input_messages == [
        {"role": "system", "content": {"limit": 5}},
        {
            "role": "user",
            "content": [{"type": "text", "value": "Look."}, {"type": "file", "path": "data.csv", "text": "a,b\n1,2\n"}],
        },
    ]
    assert brief(case).expected_messages == [
        {"role": "assistant", "tool_calls": [{"tool": "t", "input": {"a": 1}}]},
    ]


@pytest.mark.contract("agentv.files.line-ends")
def test_texts__windows_line_ends__become_plain(repository) -> None:
    document = {"id": "a", "outcome": "x\r\ny", "input": "one\r\ntwo", "expected_output": "three\r\nfour"}
    case = repository.load("evals/a.json", json.dumps({"evalcases": [document]})).cases[0]
    assert (brief(case).question, brief(case).expected_outcome, brief(case).reference_answer) == (
        "one\ntwo",
        "x\ny",
        "three\nfour",
    )


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("5", "expected_messages: expected a list of messages, or one text, got the number 5"),
        ("[{role: assistant}]", "expected_messages[0].content: is missing"),
        ("[{role: assistant, tool_calls: {}}]", "expected_messages[0].tool_calls: expected a list of tool calls"),
        ("[{role: assistant, tool_calls: [{name: t}]}]", "expected_messages[0].tool_calls[0].tool: is missing"),
        (
            "[{role: assistant, tool_calls: [{tool: t, input: .nan}]}]",
            "tool_calls[0].input: a number",
        ),
    ],
    ids=str,
)
def test_expected_messages__wrong_shape__is_refused(repository, expected, said) -> None:
    text = suite(f"id: a\noutcome: x\ninput: y\nexpected_messages: {expected}")
    assert said in "\n".join(repository.problems(text))


def test_input_messages__tool_calls__are_warned_about(repository) -> None:
    case = asking(
        repository,
        "{role: user, content: A}",
        "{role: assistant, tool_calls: [{tool: t}]}",
        "{role: tool, content: found}",
    )
    assert case.warnings == ("input[1].tool_calls: tool calls of input messages are not sent, only the text",)
    assert sent(case) == [("user", "A"), ("assistant", "@[Tool]:\nfound")]
