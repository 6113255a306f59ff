"""The fingerprint of a case: equal where the question is the same, different where it is another."""

import textwrap

import pytest

from tests.support.agentv import Repository

FILES = {
    "evals/rules.instructions.md": "Be brief.\n",
    "evals/data.csv": "a,b\n",
    "evals/gold.md": "Gold.\n",
    "evals/judge.md": "Grade {{candidate_answer}}.\n",
    "evals/checks/check.py": "print()\n",
}
SUITE = """\
    description: First.
    evalcases:
      - id: one
        note: First.
        expected_outcome: Says so.
        input_messages:
          - role: user
            content:
              - {type: text, value: Go.}
              - {type: file, value: rules.instructions.md}
              - {type: file, value: data.csv}
        expected_messages:
          - {role: assistant, content: [{type: file, value: gold.md}]}
        execution:
          evaluators:
            - {name: a, type: llm_judge, prompt: judge.md, weight: 2}
            - {name: b, type: code_judge, script: python3 check.py, cwd: checks}
            - type: composite
              evaluators: [{name: c, type: code_judge, script: x, cwd: checks}]
              aggregator: {type: code_judge, path: y, cwd: checks}
            - {type: tool_trajectory, mode: exact, expected: [{tool: t}]}
    """


def fingerprint(folder, suite: str = SUITE, *, git: bool = True, **files: str) -> str:
    repository = Repository(folder, git=git)
    for name, text in (FILES | {f"evals/{name.replace('__', '.')}": text for name, text in files.items()}).items():
        repository.write(name, text)
    return repository.case(suite).fingerprint


@pytest.mark.contract("agentv.files.fingerprint")
def test_fingerprint__two_checkouts_in_different_folders__is_the_same(tmp_path) -> None:
    first = fingerprint(tmp_path / "here")
    assert first == fingerprint(tmp_path / "somewhere" / "else")
    assert first == fingerprint(tmp_path / "plain", git=False)
    assert len(first) == 64


@pytest.mark.contract("agentv.files.fingerprint")
def test_fingerprint__absolute_path_of_an_attachment__is_not_in_it(tmp_path) -> None:
    made = set()
    for folder in (tmp_path / "a", tmp_path / "b"):
        made.add(fingerprint(folder, SUITE.replace("value: data.csv", f"value: {folder}/evals/data.csv")))
    assert len(made) == 1


@pytest.mark.contract("agentv.files.fingerprint")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("note: First.", "note: Second."),
        ("description: First.", "description: Second."),
        ("id: one\n        note: First.", "note: First.\n        id: one"),
        (
            "{name: a, type: llm_judge, prompt: judge.md, weight: 2}",
            "{weight: 2, prompt: judge.md, type: llm_judge, name: a}",
        ),
        ("expected_outcome:", "criteria:"),
        ("type: llm_judge", "type: llm-judge"),
        ("weight: 2}", "weight: 2.0}"),
        ("id: one", "id: two"),
        ("note: First.", "draft: true"),
        ("        note: First.\n", "        conversation_id: c\n        tags: [slow]\n"),
        ("prompt: judge.md", 'prompt: "Grade {{candidate_answer}}.\\n"'),
    ],
)
def test_fingerprint__what_is_not_asked__does_not_change_it(tmp_path, old, new) -> None:
    assert old in SUITE
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b", SUITE.replace(old, new))


@pytest.mark.contract("agentv.files.fingerprint")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Says so.", "Says no."),
        ("value: Go.", "value: Go!"),
        ("role: user", "role: system"),
        ("weight: 2", "weight: 3"),
        ("prompt: judge.md, ", ""),
        ("python3 check.py", "python3 other.py"),
        ("script: python3 check.py, cwd: checks", "script: python3 check.py, cwd: ."),
        ("mode: exact", "mode: in_order"),
        ("tool: t", "tool: u"),
        ("- {role: assistant, content: [{type: file, value: gold.md}]}", "- {role: assistant, content: Gold.}"),
    ],
)
def test_fingerprint__what_is_asked_or_expected__changes_it(tmp_path, old, new) -> None:
    assert old in SUITE
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b", SUITE.replace(old, new))


@pytest.mark.contract("agentv.files.fingerprint")
@pytest.mark.parametrize("name", ["rules__instructions__md", "data__csv", "gold__md", "judge__md"])
def test_fingerprint__content_of_every_file__is_in_it(tmp_path, name) -> None:
    changed = {name: "Other {{candidate_answer}}.\n"}
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b", **changed)


@pytest.mark.contract("agentv.files.fingerprint")
def test_fingerprint__file_that_is_no_guideline_any_more__changes_it(tmp_path) -> None:
    changed = fingerprint(tmp_path / "b", __agentv__yaml="guideline_patterns: []\n")
    assert fingerprint(tmp_path / "a") != changed


@pytest.mark.contract("agentv.files.fingerprint")
def test_fingerprint__file_level_evaluators__are_in_it_too(tmp_path) -> None:
    head, cases = textwrap.dedent(SUITE).split("    execution:\n")
    listed = textwrap.dedent(cases)
    moved = "execution:\n" + textwrap.indent(listed, "  ") + head
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b", moved)


ASKED = """\
    evalcases:
      - id: one
        expected_outcome: Says so.
        input_messages: {input}
        expected_messages: {expected}
    """


@pytest.mark.contract("agentv.files.fingerprint", "case.same-expectation")
@pytest.mark.parametrize(
    "written",
    [
        {"input": "[{role: user, content: Go.}]"},
        {"input": "[{role: user, content: [{type: text, value: Go.}]}]"},
        {"expected": "[{role: assistant, content: [{type: text, value: Gold.}]}]"},
        {"expected": "[{role: assistant, content: Gold., tool_calls: []}]"},
        {"input": '"Go."', "expected": '[{role: assistant, content: "Gold."}]\n    rubrics: null'},
    ],
    ids=str,
)
def test_fingerprint__one_text_in_other_words__is_the_same(tmp_path, written) -> None:
    usual = {"input": "Go.", "expected": "[{role: assistant, content: Gold.}]"}
    first, other = (
        Repository(tmp_path / name).case(textwrap.dedent(ASKED).format(**(usual | fields)))
        for name, fields in (("a", {}), ("b", written))
    )
    assert (first.fingerprint, first.prompt_fingerprint, first.expectation_fingerprint) == (
        other.fingerprint,
        other.prompt_fingerprint,
        other.expectation_fingerprint,
    )


@pytest.mark.contract("agentv.files.fingerprint")
def test_fingerprint__two_text_parts__are_not_one_text(tmp_path) -> None:
    parts = "[{role: user, content: [{type: text, value: Go.}, {type: text, value: Now.}]}]"
    made = {
        Repository(tmp_path / name).case(textwrap.dedent(ASKED).format(input=asked, expected="null")).fingerprint
        for name, asked in (("a", parts), ("b", '"Go.\\n\\nNow."'))
    }
    assert len(made) == 2
