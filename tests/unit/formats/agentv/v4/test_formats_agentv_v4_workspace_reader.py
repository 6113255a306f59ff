"""Workspaces of AgentV 4 files: which cases have one, which share it, and what is refused."""

from __future__ import annotations

import pytest

from eval_gate.formats.agentv.v4.unsupported_features import (
    NO_AFTER_ALL,
    OTHER_HOOK,
    OTHER_WORKSPACE,
    RESET,
    UNSUPPORTED_WORKSPACE_KEYS,
)
from eval_gate.model.case import CaseWorkspace, WorkspaceHook
from eval_gate.model.specs.evaluator import LlmJudge
from tests.support.agentv import Repository


@pytest.fixture
def repository(tmp_path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.write("desk/list.txt", "one\n")
    made.write("bench/tool.txt", "two\n")
    return made


def file(*cases: str, head: str = "") -> str:
    """A file of these cases, from line 2 on when nothing stands above it."""
    written = [f"- {{id: c{index}, input: x, criteria: y{case}}}\n" for index, case in enumerate(cases or ("",))]
    return f"{head}tests:\n{''.join(written)}"


def workspaces(repository: Repository, text: str) -> list[tuple[str, bool] | None]:
    """The template of each case, and whether it is shared."""
    return [
        one.workspace and (str(one.workspace.template).rpartition("/")[2], one.workspace.shared)
        for one in repository.load("evals/a.eval.yaml", text).cases
    ]


DESK, BENCH = ", workspace: {template: ../desk}", ", workspace: {template: ../bench}"
APART = "workspace: {template: ../desk, isolation: per_test}\n"


@pytest.mark.contract("agentv.today.workspace")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (file("", "", head="workspace: {template: ../desk}\n"), [("desk", True)] * 2),
        (file("", BENCH, head=APART), [("desk", False), ("bench", False)]),
        (file("", BENCH), [None, ("bench", False)]),
        (file("", "", head="workspace: {isolation: per_test, mode: temp}\n"), [None, None]),
        (file("", head="workspace: ../spaces/desk.yaml\n"), [("desk", True)]),
    ],
    ids=["shared", "of their own", "of a later case alone", "without a folder", "in a file"],
)
def test_read__workspaces__are_those_that_agentv_makes(repository, text, wanted) -> None:
    repository.write("spaces/desk.yaml", "template: ../desk\n")
    assert workspaces(repository, text) == wanted


@pytest.mark.contract("agentv.today.workspace")
@pytest.mark.parametrize(("first", "second"), [(DESK, ""), (DESK, BENCH)])
def test_read__case_with_another_workspace_than_the_shared_one__is_refused(repository, first, second) -> None:
    [problem] = repository.problems(file(first, second))
    assert OTHER_WORKSPACE in problem
    assert problem.startswith("3: tests[1]")


SCRIPT = "before_each: {command: [sh, x.sh], timeout_ms: 5000, cwd: ../desk}"


@pytest.mark.contract("agentv.today.hooks")
def test_hooks__of_file_and_case__are_merged_part_by_part(repository) -> None:
    own = ", workspace: {hooks: {before_each: {script: 'sh  other.sh {{test_id}}'}, after_each: {command: [b]}}}"
    head = f"workspace: {{isolation: per_test, hooks: {{before_all: {{command: a}}, {SCRIPT}}}}}\n"
    workspace = repository.case(file(own, head=head)).workspace
    assert workspace is not None
    assert (workspace.template, workspace.shared) == (None, False), "hooks alone make an empty folder"
    evals, desk = str(repository.root / "evals"), str(repository.root / "desk")
    assert dict(workspace.hooks.list_hooks()) == {
        "before_all": WorkspaceHook(command=("a",), cwd=evals),
        "before_each": WorkspaceHook(command=("sh", "other.sh", "{{test_id}}"), cwd=desk, timeout_ms=5000),
        "after_each": WorkspaceHook(command=("b",), cwd=evals),
    }


@pytest.mark.contract("agentv.today.hooks")
def test_hooks__disabled_in_a_case_that_shares_a_workspace__leave_those_for_all_cases(repository) -> None:
    hooks = "{before_all: {command: [a]}, before_each: {command: [b]}}"
    repository.write("spaces/desk.yaml", f"template: ../desk\nhooks: {hooks}\n")
    off = ", workspace: {hooks: {enabled: false}}"
    suite = repository.load("evals/a.eval.yaml", file("", off, head="workspace: ../spaces/desk.yaml\n"))
    names = [[name for name, _ in one.workspace.hooks.list_hooks()] for one in suite.cases if one.workspace]
    assert names == [["before_all", "before_each"], ["before_all"]]
    [first, _] = suite.cases
    assert first.workspace is not None
    assert first.workspace.hooks.before_all == (WorkspaceHook(command=("a",), cwd=str(repository.root / "spaces")),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            file(head="workspace: {hooks: {before_each: {reset: fast}}}\n"),
            f"1: workspace.hooks.before_each.reset: {RESET}",
        ),
        (file(head="workspace: {hooks: {before_each: {command: []}}}\n"), "before_each.command: must not be empty"),
        (
            file(head="workspace: {hooks: {before_each: {command: [x], cwd: ../../..}}}\n"),
            "is outside of the repository",
        ),
        (file(head="workspace: {hooks: {before_any: {command: [x]}}}\n"), 'unknown key (did you mean "before_all"?)'),
        (
            file("", ", workspace: {hooks: {before_all: {command: [b]}}}", head="workspace: {template: ../desk}\n"),
            f"4: tests[1].workspace: hooks.before_all {OTHER_HOOK}",
        ),
    ],
)
def test_hooks__that_cannot_be_run__are_refused_with_their_place(repository, text, said) -> None:
    problems = repository.problems(text)
    assert any(said in problem for problem in problems), problems


def test_hooks__after_all_of_workspaces_that_are_not_shared__is_a_warning_once(repository) -> None:
    head = "workspace: {isolation: per_test, hooks: {after_all: {command: [x]}}}\n"
    warnings = repository.load("evals/a.eval.yaml", file("", "", head=head)).warnings
    assert [one for one in warnings if NO_AFTER_ALL in one] == [f"c0: hooks.after_all {NO_AFTER_ALL}"] or len(
        warnings
    ) == 1


def test_fingerprint__other_hook__is_another_one(repository) -> None:
    def fingerprint(hooks: str) -> str:
        return repository.case(file(head=f"workspace: {{template: ../desk, hooks: {{{hooks}}}}}\n")).fingerprint

    written = ["", "before_all: {command: [x]}", "before_each: {command: [x]}", "before_all: {command: [y]}"]
    assert len({fingerprint(one) for one in written}) == len(written)


@pytest.mark.parametrize("key", sorted(UNSUPPORTED_WORKSPACE_KEYS))
def test_read__part_that_is_not_supported__is_refused_by_name(repository, key) -> None:
    [problem] = repository.problems(file(head=f"workspace: {{template: ../desk, {key}: x}}\n"))
    assert problem == f"1: workspace.{key}: `{key}` is not supported: {UNSUPPORTED_WORKSPACE_KEYS[key]}"


@pytest.mark.parametrize(
    ("workspace", "said"),
    [
        ("{template: ../../outside}", "is outside of the repository"),
        ("{template: ../desl}", 'the repository has no such folder (did you mean "desk"?)'),
        ("{template: ../.git}", "is a file of Git"),
        ("{template: ../linked}", "linked cannot be copied: away: Symlink paths are not allowed."),
        ("../none.yaml", '"../none.yaml": the repository has no such file'),
        ("../list.yaml", "list.yaml: expected a workspace, got a list"),
        ("../secret.yaml", "`${{ TOKEN }}` is not supported: eval files do not use environment variables"),
        ("5", "expected a mapping, got the number 5"),
    ],
)
def test_read__template_or_file_that_cannot_be_used__says_why(repository, workspace, said) -> None:
    (repository.root / "linked").mkdir()
    (repository.root / "linked" / "away").symlink_to("/etc/passwd")
    repository.write("list.yaml", "- a\n")
    repository.write("secret.yaml", "template: '${{ TOKEN }}'\n")
    problems = repository.problems(file(head=f"workspace: {workspace}\n"))
    assert any(said in problem and problem.startswith("1: workspace") for problem in problems), problems


@pytest.mark.contract("agentv.today.workspace")
def test_fingerprint__content_of_the_template_and_sharing__are_part_of_it(repository) -> None:
    def fingerprints(head: str) -> tuple[str, str | None]:
        case = repository.case(file(head=head))
        return case.fingerprint, case.prompt_fingerprint

    shared, apart = fingerprints("workspace: {template: ../desk}\n"), fingerprints(APART)
    repository.write("desk/list.txt", "other\n")
    found = [shared, apart, fingerprints(APART), fingerprints("")]
    assert len({one for one, _ in found}) == len({two for _, two in found}) == 4


def test_prompt__file_changes__are_shown_in_a_case_with_a_workspace_only(repository) -> None:
    judged = (
        ", assertions: [{type: llm-grader, prompt: '{{ output }} {{ file_changes }}'}, {type: llm-grader, prompt: Ok?}]"
    )
    case = repository.case(file(judged + DESK))
    assert isinstance(case.workspace, CaseWorkspace)
    own, criterion = case.evaluators
    assert isinstance(own, LlmJudge)
    assert isinstance(criterion, LlmJudge)
    assert own.prompt == "{{ candidate_answer }} {{ agentv_file_changes }}"
    assert (criterion.prompt or "").endswith("[[ ## file_changes ## ]]\n{{ agentv_file_changes }}")
    [problem] = repository.problems(file(judged))
    assert "`{{ file_changes }}` is not supported here: the case has no workspace" in problem
