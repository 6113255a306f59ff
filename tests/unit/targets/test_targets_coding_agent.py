"""The prompt of agents that read files themselves."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Message
from eval_gate.targets.base import Request, TargetError
from eval_gate.targets.coding_agent import (
    ATTACHMENT_FILES,
    INPUT_FILES,
    build_prompt,
    format_file_link,
    list_linked_files,
    refuse_missing_file,
)

MESSAGES = (Message(role="user", content="Plan the stow."),)


def request(guidelines=(), files=(), question="Plan the stow.") -> Request:
    brief = CaseBrief(
        question="with the text of every file",
        linked_question=question,
        guideline_files=tuple(guidelines),
        input_files=tuple(files),
    )
    return Request("cargo", MESSAGES, brief=brief)


def test_prompt_document__files__are_linked_before_the_query() -> None:
    document = build_prompt(request(["/evals/a.instructions.md"], ["/evals/manifest.csv"]), INPUT_FILES, "Be exact.")
    assert document.startswith("Be exact.\n")
    places = [
        document.index(part)
        for part in (
            "guideline files",
            "* [a.instructions.md](file:///evals/a.instructions.md)",
            "input files",
            "* [manifest.csv](file:///evals/manifest.csv)",
            "ERROR: missing-file <file name>",
            "[[ ## user_query ## ]]\nPlan the stow.\n",
        )
    ]
    assert places == sorted(places)


def test_prompt_document__attachments__have_the_editors_word() -> None:
    document = build_prompt(request(files=["/evals/manifest.csv"]), ATTACHMENT_FILES)
    assert "attachment files" in document
    assert "guideline" not in document


def test_prompt_document__no_files__has_no_such_block() -> None:
    assert build_prompt(request(), INPUT_FILES) == "[[ ## user_query ## ]]\nPlan the stow.\n"


def test_prompt_document__no_brief__is_the_messages_as_one_text() -> None:
    several = (Message(role="system", content="You are the pilot."), Message(role="user", content="Any fog?"))
    document = build_prompt(Request("fog", several), INPUT_FILES)
    assert document == "[[ ## user_query ## ]]\n@[System]:\nYou are the pilot.\n\n@[User]:\nAny fog?\n"


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/e/über plan.md", "[über plan.md](file:///e/%C3%BCber%20plan.md)"),
        ("/e/a](http://x) (1).md", None),
        ("/e/100%#?.md", "[100%#?.md](file:///e/100%25%23%3F.md)"),
        ("/e/two\nlines.md", None),
    ],
)
def test_file_link__name_of_any_signs__is_one_link(path, link) -> None:
    made = format_file_link(path)
    assert link is None or made == link
    assert re.fullmatch(r"\[[^\[\]()\n]*\]\(file://[^()\s]*\)", made)
    assert unquote(made.rpartition("(file://")[2][:-1]) == path


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1))
def test_file_link__any_name__leads_back_to_the_file(name) -> None:
    made = format_file_link(f"/evals/{name}")
    assert re.fullmatch(r"\[[^\[\]()\n]*\]\(file://[^()\s]*\)", made)
    assert unquote(made.rpartition("(file://")[2][:-1]) == f"/evals/{name}"


def test_linked_files__twice_the_same__is_one_file() -> None:
    assert list_linked_files(request(["/e/a.md"], ["/e/b.md", "/e/a.md"])) == ("/e/a.md", "/e/b.md")


def test_refuse_missing_file__agent_says_so__is_an_error_and_no_answer() -> None:
    with pytest.raises(TargetError, match=r"could not read a file of the case: notes\.md"):
        refuse_missing_file(request(files=["/e/notes.md"]), "\nERROR: missing-file notes.md\nSorry.")


def test_refuse_missing_file__other_answers__are_answers() -> None:
    refuse_missing_file(request(files=["/e/notes.md"]), "The log says `ERROR: missing-file`.")
    refuse_missing_file(request(), "ERROR: missing-file notes.md")


def test_preambles__our_own_words__name_no_machine() -> None:
    from eval_gate.targets.command.codex import PREAMBLE

    assert "diff --git" in PREAMBLE
    assert str(Path.home()) not in PREAMBLE
