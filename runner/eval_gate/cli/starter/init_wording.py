"""Wording of `eval-gate init`: what happened to every file, and the next steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path, PurePosixPath

from eval_gate.cli.starter.evaluated_agent import TARGETS, AgentPlace
from eval_gate.cli.starter.file_texts import IN_BACKGROUND
from eval_gate.cli.starter.plan import IGNORE, WORKFLOW, StarterPlan
from eval_gate.errors import PAGES
from eval_gate.text.escape import to_console_line, truncate_text
from eval_gate.text.safe_output import reveal_all_invisible

PROTOCOL = (
    f'It gets {{"message": "..."}} and returns {{"response": "..."}}. For another protocol, see {PAGES}/targets.md.'
)
ALL_PRESENT = "All files exist already; nothing was written."
PIECE = 2_000
"""Characters of a line of a diff that are shown."""


def iter_file_lines(plan: StarterPlan, *, dry: bool) -> Iterator[str]:
    """Yield a line for each file, the written ones first."""
    verb = "would write" if dry else "written   "
    for name in plan.files_to_write:
        yield f"{verb}  {to_console_line(name)}"
    for name in plan.files_to_replace:
        yield f"{'would write' if dry else 'rewritten':{len(verb)}}  {to_console_line(name)}"
    for name, why in plan.left_out.items():
        yield f"{'kept':{len(verb)}}  {to_console_line(name)}: {to_console_line(why)}"
    yield from plan.notes


def iter_diff_lines(plan: StarterPlan) -> Iterator[str]:
    """Yield a unified diff of each file that would change, also of those that are kept because a person edited them."""
    for name, (old_text, new_text) in plan.diffs.items():
        for line in unified_diff(old_text.splitlines(), new_text.splitlines(), name, f"{name} (init)", lineterm=""):
            yield reveal_all_invisible(truncate_text(line, PIECE))


def iter_text_lines(plan: StarterPlan) -> Iterator[str]:
    """Yield the texts of the files that would be written, each below a line with its name."""
    for name, text in plan.texts.items():
        yield f"\n=== {to_console_line(name)}"
        yield from text.splitlines()


def iter_next_step_lines(plan: StarterPlan, folder: Path) -> Iterator[str]:
    """Yield the next steps, with commands that work as printed; `folder` is as the user spelled it."""
    if plan.is_undecided and not plan.texts:
        yield "\nRun one of the commands above."
        return
    undecided = ("Run one of the commands above. Until then, the files hold a template.",)
    cd = [shlex.join(["cd", str(folder)])] if folder.resolve() != Path.cwd().resolve() else []
    keys = [f"export {name}=..." for name in plan.agent.secrets if plan.agent.entry is not None]
    steps = [
        *([undecided] if plan.is_undecided else []),
        *([("Name the target in your configuration:", *plan.target_lines)] if plan.target_lines else []),
        *_iter_start_steps(plan),
        *_iter_example_steps(plan),
        ("Try it:", *cd, *keys, "eval-gate validate", "eval-gate run"),
        *_iter_ignore_steps(plan),
        *_iter_workflow_steps(plan),
        *_iter_commit_steps(plan),
    ]
    yield "\nNext steps:"
    for number, (sentence, *commands) in enumerate(steps, 1):
        yield f"{number}. {sentence}"
        yield from (f"     {command}" for command in commands)


Step = tuple[str, ...]
"""A sentence, and the commands that belong to it."""


def _iter_start_steps(plan: StarterPlan) -> Iterator[Step]:
    agent = plan.agent
    match agent.kind:
        case AgentPlace.AGENT_HERE:
            yield (f"Start your agent at {agent.endpoint}. {_describe_protocol(plan)}",)
        case AgentPlace.AGENT_ELSEWHERE:
            yield (f"Check that your agent is at {agent.endpoint}. {_describe_protocol(plan)}",)
        case AgentPlace.MODEL | AgentPlace.SUITES if agent.secrets:
            names = (*agent.secrets, *agent.variables)
            yield "Set the key of the model:", *(f"export {name}=..." for name in names)
        case _:
            return


def _describe_protocol(plan: StarterPlan) -> str:
    if plan.agent.entry is not None:
        return f"{TARGETS} says what it takes and returns."
    if plan.agent.preset:
        return f"Its protocol is {plan.agent.preset}."
    return PROTOCOL


def _iter_example_steps(plan: StarterPlan) -> Iterator[Step]:
    for name, mark in _TO_FILL.items():
        if name in {PurePosixPath(one).name for one in plan.files_to_write}:
            file = next(one for one in plan.files_to_write if PurePosixPath(one).name == name)
            place = f"{file}, line {_find_line(plan, file, mark)}"
            draft = "" if plan.agent.kind is AgentPlace.SUITES else f" {_describe_drafts(plan, file)}"
            yield (f"In {place}, write a prompt of your users and what the response must contain.{draft}",)


def _describe_drafts(plan: StarterPlan, example: str) -> str:
    """Describe how the agent itself writes first evals, in the place of the example."""
    is_yaml = example.endswith(".yaml")
    output = f"{PurePosixPath(example).parent}/{'first.eval.yaml' if is_yaml else 'first.golden.json'}"
    words = ["eval-gate", "draft", "questions.txt", "-o", output, *(["--format", "agentv"] if is_yaml else [])]
    drafts = f"Or put prompts into questions.txt: `{shlex.join(words)}` writes first evals."
    return f"{drafts} Evals of several turns: {PAGES}/conversations.md."


_TO_FILL = {"hello.golden.json": '"input"', "hello.eval.yaml": "content:", "hello.json": '"prompt"'}
"""The example evals, and what stands in the first line that a person changes."""


def _find_line(plan: StarterPlan, name: str, mark: str) -> int:
    """Find the number (from 1) of the first line with `mark` in a file to be written."""
    return next(number for number, line in enumerate(plan.texts[name].splitlines(), 1) if mark in line)


def _iter_ignore_steps(plan: StarterPlan) -> Iterator[Step]:
    if plan.ignore_line is not None:
        yield "Keep the results out of git:", f"echo {shlex.quote(plan.ignore_line)} >> {IGNORE}"


def _iter_workflow_steps(plan: StarterPlan) -> Iterator[Step]:
    if WORKFLOW not in plan.texts:
        return
    if plan.agent.secrets or plan.agent.variables:
        kinds = {"secrets": plan.agent.secrets, "variables": plan.agent.variables}
        added = " and ".join(f"{', '.join(names)} to the {kind}" for kind, names in kinds.items() if names)
        yield (f"On GitHub, add {added} of the repository.",)
    match plan.agent.kind:
        case AgentPlace.AGENT_HERE:
            if "# TODO: install and start" in plan.texts[WORKFLOW]:
                line = _find_line(plan, WORKFLOW, IN_BACKGROUND)
                yield (f'In {WORKFLOW}, line {line}, change the step "Start the agent" so that it starts yours.',)
        case AgentPlace.MODEL | AgentPlace.SUITES if plan.agent.secrets:
            pass
        case _:
            yield (f"Check {WORKFLOW}: it must start everything that the evals need.",)


def _iter_commit_steps(plan: StarterPlan) -> Iterator[Step]:
    if plan.texts:
        begin = [] if plan.repository else [shlex.join(["git", "init", f"--initial-branch={plan.branch}"])]
        yield (
            "Commit:",
            *begin,
            shlex.join(["git", "add", *plan.texts]),
            'git commit --message "Evals on pull requests"',
        )
    if WORKFLOW in plan.texts:
        yield (f"Push to {plan.branch}. That run is the baseline, with which each pull request is compared.",)
