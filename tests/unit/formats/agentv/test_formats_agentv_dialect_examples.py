"""The examples that people copy load as they stand: AgentV's own shapes, block by block."""

import re
from pathlib import Path

import pytest

from eval_gate.model.conversation import Message
from eval_gate.model.specs.evaluator import CodeJudge, LlmJudge, ToolTrajectory
from tests.support.agentv import Repository


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path)


def test_example__smallest__one_question_and_the_default_judge(repository) -> None:
    case = repository.case(
        """\
        execution: { target: desk }
        evalcases:
          - id: ferry-time
            expected_outcome: Gives the 18:40 ferry and says it runs on weekdays only.   # the judge's yardstick
            input_messages:
              - role: user
                content: When does the last ferry to Grey Island leave?
        """
    )
    assert (case.id, case.target, case.evaluators) == ("ferry-time", "desk", (LlmJudge(),))
    assert case.messages == (Message(role="user", content="When does the last ferry to Grey Island leave?"),)
    assert case.brief is not None
    assert case.brief.question == "When does the last ferry to Grey Island leave?"
    assert case.brief.expected_outcome == "Gives the 18:40 ferry and says it runs on weekdays only."


@pytest.mark.contract("agentv.prompt.files", "agentv.prompt.guidelines", "agentv.prompt.reference")
def test_example__attachments_and_guidelines__each_go_their_way(repository) -> None:
    guideline = repository.write("evals/stow.instructions.md", "Heavy boxes below.\n")
    manifest = repository.write("evals/manifest.csv", "box,plug\n1,yes\n")
    repository.write("evals/gold/plan.md", "Box 1 at plug 1.\n")
    case = repository.case(
        """\
        evalcases:
          - id: cargo-plan
            expected_outcome: Puts the refrigerated boxes nearest the plug row.
            input_messages:
              - role: user
                content:
                  - { type: text, value: "Plan the stow for tonight." }
                  - { type: file, value: ./stow.instructions.md }   # matches a default pattern
                  - { type: file, value: ./manifest.csv }           # ordinary attachment
            expected_messages:
              - role: assistant
                content: [{ type: file, value: ./gold/plan.md }]    # the reference answer
        """
    )
    question = 'Plan the stow for tonight.\n\n<file path="./manifest.csv">\nbox,plug\n1,yes\n</file>'
    assert case.messages == (
        Message(role="system", content="Heavy boxes below."),
        Message(role="user", content=question),
    )
    brief = case.brief
    assert brief is not None
    assert brief.question == question
    assert brief.linked_question == 'Plan the stow for tonight.\n\n<file: path="./manifest.csv">'
    assert brief.guidelines == "Heavy boxes below."
    assert brief.guideline_files == (str(guideline),)
    assert brief.input_files == (str(manifest),)
    assert brief.reference_answer == "Box 1 at plug 1."
    assert brief.expected_messages == [
        {
            "role": "assistant",
            "content": [{"type": "file", "path": "./gold/plan.md", "text": "Box 1 at plug 1.\n"}],
        }
    ]


def test_example__trajectories__order_and_counts(repository) -> None:
    case = repository.case(
        """\
        evalcases:
          - id: quote-then-book
            expected_outcome: Quotes before it books.
            input_messages: [{ role: user, content: Book the tug for Friday. }]
            execution:
              evaluators:
                - { name: order, type: tool_trajectory, mode: in_order,
                    expected: [{ tool: getQuote }, { tool: bookTug }] }
                - { name: looked-up, type: tool_trajectory, mode: any_order, minimums: { tideTable: 1 }, weight: 0.5 }
        """
    )
    assert case.evaluators == (
        ToolTrajectory(label="order", mode="in_order", expected=("getQuote", "bookTug")),
        ToolTrajectory(label="looked-up", mode="any_order", minimums={"tideTable": 1}, weight=0.5),
    )


@pytest.mark.contract("agentv.evaluators.prompt", "agentv.evaluators.weight")
def test_example__weights_over_mixed_evaluators__prompt_files_and_folders_are_found(repository) -> None:
    repository.write("evals/judges/facts.md", "Facts of {{candidate_answer}}?\n")
    checks = repository.write("evals/checks/check.py").parent
    case = repository.case(
        """\
        evalcases:
          - id: mixed
            expected_outcome: x
            input_messages: [{ role: user, content: y }]
            execution:
              evaluators:
                - { name: facts,  type: llm_judge, prompt: ./judges/facts.md, weight: 3 }
                - { name: schema, type: code_judge, script: "python3 check.py", cwd: ./checks, weight: 1 }
                - { name: shadow, type: llm_judge, prompt: "Tone of {{candidate_answer}}?", weight: 0 }
        """
    )
    assert case.evaluators == (
        LlmJudge(label="facts", prompt="Facts of {{candidate_answer}}?\n", weight=3),
        CodeJudge(label="schema", command="python3 check.py", cwd=str(checks), weight=1),
        LlmJudge(label="shadow", prompt="Tone of {{candidate_answer}}?", weight=0),
    )
    assert case.warnings == ()


@pytest.mark.contract("agentv.prompt.question", "agentv.prompt.chat")
def test_example__several_turns__text_with_markers_and_a_list_of_messages(repository) -> None:
    case = repository.case(
        """\
        evalcases:
          - id: fog-follow-up
            conversation_id: pilot-chat-3
            expected_outcome: Keeps the answer to wind only.
            input_messages:
              - { role: system, content: You are the harbour pilot. }
              - { role: user, content: Any fog? }
              - { role: assistant, content: None. }
              - { role: user, content: And the wind? }
        """
    )
    assert case.conversation_id == "pilot-chat-3"
    assert case.brief is not None
    assert case.brief.question == (
        "@[System]:\nYou are the harbour pilot.\n\n@[User]:\nAny fog?\n\n"
        "@[Assistant]:\nNone.\n\n@[User]:\nAnd the wind?"
    )
    assert case.messages == (
        Message(role="system", content="You are the harbour pilot."),
        Message(role="user", content="Any fog?"),
        Message(role="assistant", content="None."),
        Message(role="user", content="And the wind?"),
    )


def test_example__batch__its_suite_and_its_target_are_two_files(repository) -> None:
    repository.write("evals/targets.yaml", "targets:\n- {name: screening, provider: cli, command_template: true}\n")
    cases = "".join(
        f"  - {{id: s-{number}, expected_outcome: HOLD, input_messages: [{{role: user, content: '{number}'}}]}}\n"
        for number in (1, 2, 3)
    )
    loaded = repository.load("evals/screening.yaml", f"execution: {{target: screening}}\nevalcases:\n{cases}")
    assert [(case.id, case.target) for case in loaded.cases] == [(f"s-{n}", "screening") for n in (1, 2, 3)]


SPEC_EVALUATORS = (
    "{type: tool_trajectory, mode: any_order, minimums: {semanticSearch: 3}}",
    "{type: tool_trajectory, mode: any_order, minimums: {toolA: 2, toolB: 2}}",
    "{type: tool_trajectory, mode: in_order, expected: [{tool: A}, {tool: B}, {tool: C}]}",
    "{type: tool_trajectory, mode: exact, expected: [{tool: A}, {tool: B}]}",
    "{name: safety, type: llm_judge, weight: 3}",
    "{name: style, type: llm_judge, weight: 1}",
    "{name: strict, type: llm_judge, weight: 2}",
)


@pytest.mark.contract("agentv.evaluators.choice", "agentv.evaluators.weight")
def test_specification__every_evaluator_it_shows__loads(repository) -> None:
    listed = "".join(f"    - {one}\n" for one in SPEC_EVALUATORS)
    case = repository.case(
        f"evalcases:\n- id: all\n  expected_outcome: x\n  input_messages: [{{role: user, content: y}}]\n"
        f"  execution:\n    evaluators:\n{listed}"
    )
    assert [spec.weight for spec in case.evaluators] == [1, 1, 1, 1, 3, 1, 2]
    assert [spec.name for spec in case.evaluators[3:]] == ["tool_trajectory", "safety", "style", "strict"]
    assert case.warnings == ()


PAGE = Path(__file__).parents[4] / "docs" / "agentv.md"
BLOCKS: list[str] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", [block for block in BLOCKS if re.search("^(evalcases|tests):", block, re.MULTILINE)])
def test_page__every_suite_it_shows__loads_without_a_warning(repository, block) -> None:
    repository.write("evals/more/one.yaml", "- {id: other, input: Q, criteria: C}\n")
    for name in ("groups.csv", "tours.csv", "house.instructions.md", "gold/saturday.md", "checks/check.py"):
        repository.write(f"evals/{name}", f"text of {name}\n")
    repository.write("evals/judges/facts.md", "Facts of {{candidate_answer}}?\n")
    assert repository.load("evals/suite.yaml", block).warnings == ()


def test_page__patterns_it_shows__are_taken(repository) -> None:
    [block] = [block for block in BLOCKS if "guideline_patterns:" in block]
    repository.write(".agentv.yaml", block)
    repository.write("docs/house-rules/a/b.txt", "Whisper.")
    content = "[{type: text, value: x}, {type: file, value: docs/house-rules/a/b.txt}]"
    case = repository.case(
        f"evalcases: [{{id: one, outcome: x, input: [{{role: user, content: {content}}}]}}]\n", "suite.yaml"
    )
    assert case.messages[0] == Message(role="system", content="Whisper.")
