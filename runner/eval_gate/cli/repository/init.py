"""`eval-gate init`: writes a starter workflow, configuration and example eval."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from eval_gate.cli import options
from eval_gate.cli.terminal.console import Verbosity, print_output

if TYPE_CHECKING:
    from pathlib import Path

    from eval_gate.cli.starter.choices import Questions
    from eval_gate.cli.starter.plan import StarterPlan


class ExampleFormat(StrEnum):
    """Formats of the example eval."""

    TOOL_FORGE = "tool-forge"
    AGENTV = "agentv"
    AGENT_EVALS = "agent-evals"


USED = ("agentEndpoint", "agentProtocol", "agentFunction", "provider", "model", "baseUrl")
"""The configuration keys that this command has options for: the target to evaluate."""


def init(
    context: typer.Context,
    folder: str = typer.Argument(
        ".", metavar="FOLDER", help="Folder of the repository.  [default: the working directory]", show_default=False
    ),
    *,
    example: ExampleFormat = options.option(
        "Format of the example eval.", "--format", default=ExampleFormat.TOOL_FORGE
    ),
    agent_command: str | None = options.option(
        "Command that is the agent and runs for each case, such as `python3 agent.py {PROMPT}`; "
        "{PROMPT_FILE} and {OUTPUT_FILE} are placeholders too.",
        "--agent-command",
        metavar="COMMAND",
    ),
    probe: str | None = options.option(
        "Question to send to the agent once, to see where its response has text and tool calls: "
        "best one that makes it call a tool.",
        metavar="PROMPT",
    ),
    target_settings: list[str] | None = options.option(
        "Setting of the target, such as responsePath=data.answer or requestTemplate.user=me. Repeatable.",
        "--set",
        metavar="KEY=VALUE",
    ),
    start_command: str | None = options.option("Command with which the workflow starts the agent.", metavar="COMMAND"),
    warm_up: bool | None = typer.Option(
        None,
        "--warm-up/--no-warm-up",
        help="Write `warmUp: 10`: the first run on the default branch makes ten runs of history. Without it, a "
        "terminal asks.",
        show_default=False,
    ),
    yes: bool = options.option(
        "Rewrite files that init wrote and nobody edited, without asking.", "--yes", default=False
    ),
    no_workflow: bool = options.option("Write no workflow.", "--no-workflow", default=False),
    dry_run: bool = options.option("Show the files without writing them.", "--dry-run", default=False),
    **settings: object,
) -> None:
    """Write a starter workflow, a configuration and an example eval.

    With --agent-endpoint, it asks only that address what it says of itself: its OpenAPI description, agent card and
    models. With --probe, it sends one prompt. Where something is not clear, a terminal asks; without one, the commands
    that decide are listed.

      eval-gate init --agent-endpoint http://127.0.0.1:8000 --probe 'Where is order 4711?'

    If the repository has evals, the configuration names them and no example is written. Without an agent, the address
    is http://localhost:8080/chat. A file that exists is kept, unless init wrote it and you did not edit it: then a diff
    shows what changes, and a terminal asks, or --yes rewrites it.
    """
    from pathlib import Path

    from eval_gate.cli.starter.choices import Questions
    from eval_gate.cli.starter.described_target import StarterRequest
    from eval_gate.cli.starter.file_writer import check_paths, write_files
    from eval_gate.cli.starter.init_wording import iter_diff_lines
    from eval_gate.cli.starter.plan import make_plan

    path = Path(folder)
    wishes = StarterRequest(
        options.select_given_settings(settings),
        example.value,
        workflow=not no_workflow,
        command=agent_command,
        prompt=probe,
        settings=tuple(target_settings or ()),
        start=start_command,
        warm_up=warm_up,
    )
    questions = Questions(sys.argv[1:], is_terminal=sys.stdin.isatty() and sys.stdout.isatty())
    plan = make_plan(_resolve_folder(path), wishes, questions)
    check_paths(plan.folder, plan.texts)
    for line in iter_diff_lines(plan):
        print_output(line)
    if not dry_run:
        if plan.files_to_replace and not yes:
            for line in plan.notes:
                print_output(line)
            _require_consent(plan, questions)
        write_files(plan.folder, plan.texts, plan.files_to_replace)
    _print_plan(plan, path, context.obj, dry=dry_run)


def _require_consent(plan: StarterPlan, questions: Questions) -> None:
    from eval_gate.errors import GateError
    from eval_gate.text.escape import format_count

    what = format_count(len(plan.files_to_replace), "file")
    if not questions.confirm(f"Rewrite {what}"):
        raise GateError("not-confirmed", f"{what} would change, and nothing was written", "repeat it with --yes")


def _resolve_folder(folder: Path) -> Path:
    from eval_gate.errors import GateError

    try:
        is_folder = folder.is_dir()
    except OSError:  # in a folder without permission to look into it
        is_folder = False
    if not is_folder:
        what = "is not a folder" if os.path.lexists(folder) else "does not exist"
        raise GateError("folder-not-found", f"{folder} {what}", "create the folder, or name another one")
    return folder.resolve()


def _print_plan(plan: StarterPlan, folder: Path, verbosity: Verbosity, *, dry: bool) -> None:
    """Print what happened to every file, and the next steps; with `dry`, the texts of the files instead."""
    from eval_gate.cli.starter.init_wording import ALL_PRESENT, iter_file_lines, iter_next_step_lines, iter_text_lines

    for line in iter_file_lines(plan, dry=dry):
        print_output(line)
    if verbosity is Verbosity.QUIET:
        return
    if not plan.texts and not plan.is_undecided:
        print_output(ALL_PRESENT)
    for line in iter_text_lines(plan) if dry else iter_next_step_lines(plan, folder):
        print_output(line)
