"""`eval-gate init`: writes a starter workflow, configuration and example eval."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from eval_gate.cli import options
from eval_gate.cli.terminal.console import Verbosity, print_output

if TYPE_CHECKING:
    from pathlib import Path

    from eval_gate.cli.starter.plan import StarterPlan
    from eval_gate.model.base import JsonValue


class ExampleFormat(StrEnum):
    """Formats of the example eval."""

    TOOL_FORGE = "tool-forge"
    AGENTV = "agentv"
    AGENT_EVALS = "agent-evals"


USED = ("agentEndpoint", "agentProtocol", "provider", "model", "baseUrl")
"""The configuration keys that this command has options for: the target to evaluate."""


def init(
    context: typer.Context,
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER", help="Folder of the repository.  [default: the working directory]", show_default=False
        ),
    ] = ".",
    *,
    example: Annotated[
        ExampleFormat, typer.Option("--format", help="Format of the example eval.")
    ] = ExampleFormat.TOOL_FORGE,
    agent_command: Annotated[
        str | None,
        typer.Option(
            "--agent-command",
            metavar="COMMAND",
            help="Command that is the agent and runs for each case, such as `python3 agent.py {PROMPT}`; {PROMPT_FILE} "
            "and {OUTPUT_FILE} are placeholders too.",
        ),
    ] = None,
    no_workflow: Annotated[bool, typer.Option("--no-workflow", help="Write no workflow.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the files without writing them.")] = False,
    **settings: object,
) -> None:
    """Write a starter workflow, a configuration and an example eval, without overwriting any file.

    If the repository has evals, the configuration names them and no example is written. The agent is detected in the
    sources of the repository. If none is found and you name none, the address is http://localhost:8080/chat. Runs
    nothing, and uses no network.
    """
    from pathlib import Path

    from eval_gate.cli.starter.evaluated_agent import build_command_target
    from eval_gate.cli.starter.file_writer import check_paths, write_new_files
    from eval_gate.cli.starter.plan import StarterRequest, make_plan

    given = Path(folder)
    flags = options.select_given_settings(settings)
    if agent_command is not None:
        flags = _require_no_other_target(flags) | {"targets": [build_command_target(agent_command)]}
    wishes = StarterRequest(flags, example.value, not no_workflow)
    plan = make_plan(_resolve_folder(given), wishes)
    check_paths(plan.folder, plan.files_to_write)
    if not dry_run:
        write_new_files(plan.folder, plan.files_to_write)
    _print_plan(plan, given, context.obj, dry=dry_run)


def _require_no_other_target(flags: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Check that no other option chooses a target, and return `flags`.

    Raises GateError `conflicting-targets` if `flags` choose a target as well.
    """
    from eval_gate.errors import GateError

    if flags:
        others = " and ".join(flags)
        raise GateError("conflicting-targets", f"--agent-command cannot be combined with {others}", "omit one of them")
    return flags


def _resolve_folder(given: Path) -> Path:
    """Resolve the path of the folder.

    Raises GateError `folder-not-found` if it does not exist or is not a folder.
    """
    from eval_gate.errors import GateError

    try:
        is_folder = given.is_dir()
    except OSError:  # in a folder without permission to look into it
        is_folder = False
    if not is_folder:
        what = "is not a folder" if os.path.lexists(given) else "does not exist"
        raise GateError("folder-not-found", f"{given} {what}", "create the folder, or name another one")
    return given.resolve()


def _print_plan(plan: StarterPlan, given: Path, verbosity: Verbosity, *, dry: bool) -> None:
    """Print what happened to every file, and the next steps, on standard output.

    With `dry`, prints the texts of the files instead of the next steps.
    """
    from eval_gate.cli.starter.init_wording import ALL_PRESENT, iter_file_lines, iter_next_step_lines, iter_text_lines

    for line in iter_file_lines(plan, dry=dry):
        print_output(line)
    if verbosity is Verbosity.QUIET:
        return
    if not plan.files_to_write:
        print_output(ALL_PRESENT)
    for line in iter_text_lines(plan) if dry else iter_next_step_lines(plan, given):
        print_output(line)
