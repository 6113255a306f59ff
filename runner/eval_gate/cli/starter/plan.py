"""Plans which files to write into a folder, which to leave alone, and why."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import JsonValue

from eval_gate.cli.starter import file_texts
from eval_gate.cli.starter.agent_detection import find_agent
from eval_gate.cli.starter.evaluated_agent import COMMAND_NAME, EvaluatedAgent, find_evaluated_agent, find_target_list
from eval_gate.cli.starter.file_texts import NEEDED_NODE, NEEDED_PYTHON, join_reasons
from eval_gate.cli.starter.folder_contents import (
    EVALS_FOLDER,
    FoundEvals,
    FoundTools,
    find_all_evals,
    find_config_file,
    find_default_branch,
    find_evals_at,
    find_tools,
    is_ignored,
)
from eval_gate.cli.starter.programs import ProgramUse, find_missing_in_image, iter_target_commands
from eval_gate.config.loader import load_config
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, RunConfig
from eval_gate.errors import PAGES, GateError
from eval_gate.files.file_paths import find_repository
from eval_gate.reports.wording.numbers import format_count
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.targets.target_list import read_targets
from eval_gate.text.escape import to_console_line

WORKFLOW: Final = ".github/workflows/eval-gate.yml"
CONFIG: Final = "eval-gate.yaml"
TARGETS: Final = "targets.yaml"
IGNORE: Final = ".gitignore"
SEED_NAME: Final = PurePosixPath(DEFAULT_SEED_MANIFEST).name
EXISTS_REASON: Final = "exists already"
_PROMPTFOO: Final = ("promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json")


class StarterRequest(FrozenStruct):
    """Request to `init`. `flags` are configuration keys for the agent; `example` is a format."""

    flags: Mapping[str, JsonValue]
    example: str
    workflow: bool


class StarterPlan(Struct):
    """Texts of files to write, and names left alone with the reason; relative to `folder`."""

    folder: Path
    repository: Path | None
    branch: str
    agent: EvaluatedAgent
    run_flags: tuple[str, ...]
    """What `eval-gate run` has to be told here beside the configuration."""
    files_to_write: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    not_in_image: tuple[str, ...] = ()
    """What the evals' commands need that the action's container does not have; then the workflow does without it."""
    ignore_line: str | None = None
    """The line that an existing .gitignore lacks."""

    @property
    def target_flags(self) -> tuple[str, ...]:
        """Flags that a run needs for the target of the list that is written, or else what `run_flags` are."""
        written = TARGETS in self.files_to_write
        return ("--targets", TARGETS, "--target", COMMAND_NAME) if written else self.run_flags

    def add_file(self, name: str, text: str) -> None:
        """Write this file unless there is something of its name already."""
        if os.path.lexists(self.folder / name):
            self.left_out[name] = EXISTS_REASON
        else:
            self.files_to_write[name] = text


def make_plan(folder: Path, wishes: StarterRequest) -> StarterPlan:
    """Look at the folder (its real path), and decide. Writes nothing.

    Raises GateError for a configuration that is there and not valid, and for wishes that contradict it.
    """
    repository = find_repository(folder)
    kept = find_config_file(folder)
    before = load_config({}, {}, kept, shown_as=kept.name) if kept else None
    config = load_config(wishes.flags, {}, kept, shown_as=kept.name if kept else None)
    evals = find_evals_at(before.evals, folder) if before else find_all_evals(folder)
    agent = find_agent(folder)
    asked = find_evaluated_agent(config, evals, wishes.example, folder, repository, agent)
    if asked.command is not None and kept is not None and before is not None and before.target.targets is None:
        raise GateError(
            "conflicting-targets",
            f"--agent-command cannot be added to {kept.name}, because existing files are kept",
            f"describe the command under `targets` in that file ({PAGES}/targets.md#a-command)",
        )
    says = before is None or _is_same_target(before, asked)
    plan = StarterPlan(folder, repository, find_default_branch(folder), asked, () if says else asked.flags)
    if wishes.workflow:
        _choose_container(plan, evals, config)
        _add_workflow(plan, kept.name if kept else CONFIG, config_says=says)
    if asked.found_agent:
        plan.notes += _iter_agent_notes(asked)
    _add_config(plan, kept, evals, find_tools(folder))
    _add_targets(plan, evals)
    _add_evals(plan, evals, before, wishes.example)
    _add_gitignore(plan, config.output_dir)
    plan.notes += [] if evals.places else _iter_promptfoo_notes(folder)
    if not evals.complete:
        plan.notes.append("the folder is too large: only a part was searched for evals")
    return plan


def _is_same_target(config: RunConfig, agent: EvaluatedAgent) -> bool:
    """Whether this configuration alone leads to the same target."""
    said = config.target
    asked_so = (agent.endpoint, agent.preset, agent.provider, agent.model, agent.base_url)
    return (said.endpoint, said.protocol, said.provider, said.model, said.base_url) == asked_so


def _iter_agent_notes(asked: EvaluatedAgent) -> Iterator[str]:
    """Yield a note about the detected agent, if there is one."""
    agent = asked.found_agent
    if agent is None:
        return
    protocol = f", protocol {asked.preset}" if asked.preset else ""
    yield f"found       {agent.framework} agent in {to_console_line(agent.source)}: {asked.endpoint}{protocol}"


def _iter_promptfoo_notes(folder: Path) -> Iterator[str]:
    """Yield notes on how to use promptfoo's evals, which are not eval files of this program."""
    for name in _PROMPTFOO:
        if (folder / name).is_file():
            yield (f"found       promptfoo evals in {name}: `eval-gate check RESULTS.json` uses promptfoo's results")


def _choose_container(plan: StarterPlan, evals: FoundEvals, config: RunConfig) -> None:
    """Whether the workflow uses the container, and a line that says why where there are commands at all."""
    repository = plan.repository or plan.folder
    folders = tuple(dict.fromkeys((*((plan.folder / file).parent for file in evals.files), plan.folder, repository)))
    calls = [*evals.commands, *_iter_target_commands(plan, config, folders)]
    if config.snapshot_command is not None:
        calls.append(ProgramUse(config.snapshot_command, "snapshotCommand", (plan.folder,)))
    plan.not_in_image = find_missing_in_image(calls, repository)
    if WORKFLOW in plan.left_out or os.path.lexists(plan.folder / WORKFLOW):
        return
    if plan.not_in_image:
        said = join_reasons(plan.not_in_image)
        plan.notes.append(f"the workflow runs without the container, because its image lacks programs: {said}")
    elif calls:
        plan.notes.append("the workflow runs in the container, which seems to have all programs of the commands")


def _iter_target_commands(plan: StarterPlan, config: RunConfig, folders: tuple[Path, ...]) -> Iterator[ProgramUse]:
    inline, named = config.target.targets, plan.agent.targets
    try:
        if named is not None:
            yield from iter_target_commands(read_targets(named, plan.folder).entries, named, folders)
        elif isinstance(inline, tuple):
            yield from iter_target_commands(read_targets(inline, plan.folder).entries, "a target", folders)
    except GateError:  # `validate` says what is wrong with them
        return


def _add_workflow(plan: StarterPlan, config_name: str, *, config_says: bool) -> None:
    if plan.repository not in {None, plan.folder}:
        command = shlex.join(["eval-gate", "init", os.path.relpath(str(plan.repository))])
        plan.left_out[WORKFLOW] = f"GitHub reads workflows only at the root of the repository: run `{command}`"
        return
    there = [name for name in (NEEDED_PYTHON, NEEDED_NODE) if (plan.folder / name).is_file()]
    text = file_texts.render_workflow(plan.agent, plan.branch, config_name, config_says=config_says)
    plan.add_file(WORKFLOW, file_texts.remove_container(text, plan.not_in_image, there) if plan.not_in_image else text)


def _add_config(plan: StarterPlan, kept: Path | None, evals: FoundEvals, tools: FoundTools) -> None:
    if kept is not None:
        plan.left_out[kept.name] = EXISTS_REASON
    else:
        places, seed = evals.places or (EVALS_FOLDER,), _find_seed_manifest(plan.folder, evals.places)
        plan.add_file(
            CONFIG, file_texts.render_config(plan.agent, places, seed, tools, strict=not evals.unchecked_files)
        )
        if evals.unchecked_files:
            first, more = evals.unchecked_files[0], len(evals.unchecked_files) - 1
            among = f"{first} and {format_count(more, 'more file')} have" if more else f"{first} has"
            plan.notes.append(
                f"{among} content that nothing checks, such as a misspelled key: `eval-gate validate --strict` lists "
                f"it. After you fix it, uncomment `strict: true` in {CONFIG}"
            )


def _add_targets(plan: StarterPlan, evals: FoundEvals) -> None:
    """Describe an agent that does not speak our own protocol, as far as its source says how it speaks.

    The configuration stays the same, and names the agent. So this list must not come before another one.
    """
    contract = plan.agent.contract
    if contract is None or plan.run_flags:
        return
    if find_target_list(evals.files, plan.folder, plan.repository or plan.folder) in {None, TARGETS}:
        plan.add_file(TARGETS, file_texts.render_targets(plan.agent, contract))


def _find_seed_manifest(folder: Path, places: tuple[str, ...]) -> str | None:
    """Find the single seed manifest in the folders of these evals.

    Return None if there is not exactly one, or if it is the default one, which is used anyway.
    """
    found = {f"{place}/{SEED_NAME}" for place in places if (folder / place / SEED_NAME).is_file()}
    return found.pop() if len(found) == 1 and DEFAULT_SEED_MANIFEST not in found else None


def _add_evals(plan: StarterPlan, evals: FoundEvals, before: RunConfig | None, example: str) -> None:
    """Add an example eval if there are no evals yet and the configuration would find it."""
    if evals.places:
        plan.left_out |= dict.fromkeys(evals.places, "has evals")
        return
    home = next(_iter_eval_folders(before.evals if before else (EVALS_FOLDER,)), None)
    if home is None:
        plan.notes.append("no example eval: the configuration names no folder inside this one for it")
        return
    for name, text in file_texts.read_example(example).items():
        plan.add_file(f"{home}/{name}", text)


def _iter_eval_folders(places: tuple[str, ...]) -> Iterator[str]:
    """Those of these places that can only be folders inside the one we write to."""
    for place in places:
        path = PurePosixPath(place)
        parts = path.parts
        if parts and not path.is_absolute() and ".." not in parts and not path.suffix and not set(place) & set("*?["):
            yield path.as_posix()


def _add_gitignore(plan: StarterPlan, output_dir: str) -> None:
    """Exclude results from git. An existing .gitignore is not changed; a next step names the missing line."""
    path = PurePosixPath(output_dir)
    if path.is_absolute() or ".." in path.parts:
        return
    line = f"{path.as_posix()}/"
    if not os.path.lexists(plan.folder / IGNORE):
        if not is_ignored(plan.folder, line):
            plan.files_to_write[IGNORE] = file_texts.render_gitignore(line)
        return
    plan.left_out[IGNORE] = EXISTS_REASON
    if not is_ignored(plan.folder, line):
        plan.ignore_line = line
