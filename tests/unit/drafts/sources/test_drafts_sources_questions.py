"""Files of questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_gate.drafts.sources.questions import read_questions
from eval_gate.errors import GateError
from eval_gate.model.limits import DRAFT_LINE_BYTES, DRAFT_PROMPT, DRAFT_PROMPTS, TURNS


def write(folder: Path, data: str | bytes) -> Path:
    file = folder / "questions.txt"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return file


def test_questions__blank_lines_comments_and_repeats__are_left_out(tmp_path: Path) -> None:
    file = write(tmp_path, "\ufeff# weather\r\nHow is Oslo?\r\n\r\n  How is Rome?  \n#How is Paris?\nHow is Oslo?\n")
    suite = read_questions(file, tmp_path, "evals/a.golden.json")
    assert suite.file == "evals/a.golden.json"
    assert {case.location.file for case in suite.cases} == {"questions.txt"}
    assert [(case.messages[0].content, case.location.line) for case in suite.cases] == [
        ("How is Oslo?", 2),
        ("How is Rome?", 4),
    ]


def test_questions__as_turns__lines_without_a_blank_one_between_them_are_a_conversation(tmp_path: Path) -> None:
    file = write(tmp_path, "Hi.\n# about money\nHow much?\n\n\nHow is Rome?\n \nHi.\nHow much?\n\nHi.\n")
    chat, alone, first = read_questions(file, tmp_path, "a.json", as_turns=True).cases
    assert chat.conversation is not None
    assert chat.conversation.stop_score is None
    assert [turn.message for turn in chat.conversation.turns] == ["Hi.", "How much?"]
    assert (chat.messages, chat.location.line) == ((), 1)
    assert [(case.messages[0].content, case.location.line) for case in (alone, first)] == [
        ("How is Rome?", 6),
        ("Hi.", 11),
    ]
    assert alone.conversation is None
    assert len({case.fingerprint for case in (chat, alone, first)}) == 3


def test_questions__wrong_turn__is_named_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path, "a\n# b\n" + "x" * (DRAFT_PROMPT + 1) + "\n\n" + "\n".join(map(str, range(TURNS + 1))))
    with pytest.raises(GateError) as error:
        read_questions(file, tmp_path, "a.json", as_turns=True)
    assert [str(one) for one in error.value.problems] == [
        f"questions.txt:3: is longer than {DRAFT_PROMPT:,} characters",
        "questions.txt:5: has more than 100 turns without a blank line",
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "questions.txt: has no question"),
        (b"# only a comment\n\n", "questions.txt: has no question"),
        (b"How?\nna\xefve\n", "questions.txt:2: is not UTF-8"),
        (b"x" * (DRAFT_PROMPT + 1), f"questions.txt:1: is longer than {DRAFT_PROMPT:,} characters"),
        (b"\n".join(b"%d" % number for number in range(DRAFT_PROMPTS + 1)), "has more than 10,000 questions"),
        (b"#" * (DRAFT_LINE_BYTES + 1), f"is larger than {DRAFT_LINE_BYTES:,} bytes"),
    ],
)
def test_questions__file_without_usable_ones__is_refused_with_the_place(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(GateError) as error:
        read_questions(write(tmp_path, data), tmp_path, "a.json")
    assert error.value.code == "invalid-questions"
    assert said in "\n".join(map(str, error.value.problems))


def test_questions__missing_file__is_refused(tmp_path: Path) -> None:
    with pytest.raises(GateError, match="is not a file of questions"):
        read_questions(tmp_path / "none.txt", tmp_path, "a.json")
