"""What is to be written into a folder, what is left alone, and why."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import JsonValue

from eval_gate.cli.starter import texts
from eval_gate.cli.starter.agents import find_agent
from eval_gate.cli.starter.evaluated_agent import EvaluatedAgent, find_evaluated_agent
from eval_gate.cli.starter.folder import (
    EVALS,
    FoundEvals,
    FoundTools,
    config_in,
    default_branch,
    evals_anywhere,
    evals_at,
    is_ignored,
    tools_in,
)
from eval_gate.cli.starter.programs import ProgramUse, calls_of_targets, missing_in_image
from eval_gate.cli.starter.texts import NEEDED_NODE, NEEDED_PYTHON, sentence
from eval_gate.config.load import load_config
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, RunConfig
from eval_gate.errors import PAGES, GateError
from eval_gate.files.place import repository_of
from eval_gate.reports.words.numbers import count
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.targets.listing import read_targets
from eval_gate.text.escape import console_line

WORKFLOW: Final = ".github/workflows/eval-gate.yml"
CONFIG: Final = "eval-gate.yaml"
IGNORE: Final = ".gitignore"
SEED_NAME: Final = PurePosixPath(DEFAULT_SEED_MANIFEST).name
WAS_THERE: Final = "was there"
_PROMPTFOO: Final = ("promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json")


class StarterWishes(FrozenStruct):
    """What was asked for. `flags` are configuration keys that say who is evaluated; `example` is a format."""

    flags: Mapping[str, JsonValue]
    example: str
    workflow: bool


class StarterPlan(Struct):
    """The texts of the files to write, and what is left alone with the reason. Both are names in `folder`."""

    folder: Path
    repository: Path | None
    branch: str
    agent: EvaluatedAgent
    run_flags: tuple[str, ...]
    """What `eval-gate run` has to be told here beside the configuration."""
    write: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    not_in_image: tuple[str, ...] = ()
    """What the evals' commands need that the action's container does not have; then the workflow does without it."""
    to_ignore: str | None = None
    """The line that an existing .gitignore lacks."""

    def add(self, name: str, text: str) -> None:
        """Write this file unless there is something of its name already."""
        if os.path.lexists(self.folder / name):
            self.left_out[name] = WAS_THERE
        else:
            self.write[name] = text


def make_plan(folder: Path, wishes: StarterWishes) -> StarterPlan:
    """Look at the folder (its real path), and decide. Writes nothing.

    Raises GateError for a configuration that is there and not valid, and for wishes that contradict it.
    """
    repository = repository_of(folder)
    kept = config_in(folder)
    before = load_config({}, {}, kept, shown_as=kept.name) if kept else None
    config = load_config(wishes.flags, {}, kept, shown_as=kept.name if kept else None)
    evals = evals_at(before.evals, folder) if before else evals_anywhere(folder)
    agent = find_agent(folder)
    try:
        asked = find_evaluated_agent(config, evals, wishes.example, folder, repository, agent)
    except GateError as error:
        if error.code != "two-targets" or kept is None:
            raise
        raise GateError(error.code, f"{error.message}; what {kept.name} says counts too", error.hint) from error
    if asked.command is not None and kept is not None and before is not None and before.target.targets is None:
        raise GateError(
            "two-targets",
            f"{kept.name} is there and stays as it is, so that --agent-command cannot be written into it",
            f"describe the command there under `targets` ({PAGES}/targets.md#a-command)",
        )
    says = before is None or _says(before, asked)
    plan = StarterPlan(folder, repository, default_branch(folder), asked, () if says else asked.flags)
    if wishes.workflow:
        _choose_place(plan, evals, config)
        _add_workflow(plan, kept.name if kept else CONFIG, config_says=says)
    if asked.found:
        plan.notes += _found_lines(asked)
    _add_config(plan, kept, evals, tools_in(folder))
    _add_evals(plan, evals, before, wishes.example)
    _add_ignored(plan, config.output_dir)
    plan.notes += [] if evals.places else _promptfoo_lines(folder)
    if not evals.complete:
        plan.notes.append("not the whole folder was searched for evals: it is too large")
    return plan


def _says(config: RunConfig, asked: EvaluatedAgent) -> bool:
    """Whether this configuration alone leads to the same target."""
    said = config.target
    asked_so = (asked.endpoint, asked.preset, asked.provider, asked.model, asked.base_url)
    return (said.endpoint, said.preset, said.provider, said.model, said.base_url) == asked_so


def _found_lines(asked: EvaluatedAgent) -> Iterator[str]:
    """What was found of the agent."""
    agent = asked.found
    if agent is None:
        return
    speaks = f", preset {asked.preset}" if asked.preset else ""
    yield f"found       an agent of {agent.framework}, by {console_line(agent.source)}: {asked.endpoint}{speaks}"


def _promptfoo_lines(folder: Path) -> Iterator[str]:
    """What can be done with promptfoo's evals, which are no eval files of ours."""
    for name in _PROMPTFOO:
        if (folder / name).is_file():
            yield (
                f"found       promptfoo's evals in {name}: `eval-gate judge RESULTS.json` judges what promptfoo found, "
                f"`eval-gate import promptfoo {name}` makes eval files of them"
            )


def _choose_place(plan: StarterPlan, evals: FoundEvals, config: RunConfig) -> None:
    """Whether the workflow uses the container, and a line that says why where there are commands at all."""
    repository = plan.repository or plan.folder
    folders = tuple(dict.fromkeys((*((plan.folder / file).parent for file in evals.files), plan.folder, repository)))
    calls = [*evals.calls, *_calls_of_targets(plan, config, folders)]
    if config.snapshot_command is not None:
        calls.append(ProgramUse(config.snapshot_command, "snapshotCommand", (plan.folder,)))
    plan.not_in_image = missing_in_image(calls, repository)
    if WORKFLOW in plan.left_out or os.path.lexists(plan.folder / WORKFLOW):
        return
    if plan.not_in_image:
        said = sentence(plan.not_in_image)
        plan.notes.append(f"the workflow runs without the container, whose image does not have what is needed: {said}")
    elif calls:
        plan.notes.append("the workflow runs in the container: as far as can be seen it has all that the commands need")


def _calls_of_targets(plan: StarterPlan, config: RunConfig, folders: tuple[Path, ...]) -> Iterator[ProgramUse]:
    inline, named = config.target.targets, plan.agent.targets
    try:
        if named is not None:
            yield from calls_of_targets(read_targets(named, plan.folder).entries, named, folders)
        elif isinstance(inline, tuple):
            yield from calls_of_targets(read_targets(inline, plan.folder).entries, "a target", folders)
    except GateError:  # `validate` says what is wrong with them
        return


def _add_workflow(plan: StarterPlan, config_name: str, *, config_says: bool) -> None:
    if plan.repository not in {None, plan.folder}:
        command = shlex.join(["eval-gate", "init", os.path.relpath(str(plan.repository))])
        plan.left_out[WORKFLOW] = f"GitHub looks for workflows only at the root of the repository: `{command}`"
        return
    there = [name for name in (NEEDED_PYTHON, NEEDED_NODE) if (plan.folder / name).is_file()]
    text = texts.workflow(plan.agent, plan.branch, config_name, config_says=config_says)
    plan.add(WORKFLOW, texts.without_container(text, plan.not_in_image, there) if plan.not_in_image else text)


def _add_config(plan: StarterPlan, kept: Path | None, evals: FoundEvals, tools: FoundTools) -> None:
    if kept is not None:
        plan.left_out[kept.name] = WAS_THERE
    else:
        places, seed = evals.places or (EVALS,), _seed(plan.folder, evals.places)
        plan.add(CONFIG, texts.config(plan.agent, places, seed, tools, strict=not evals.unchecked))
        if evals.unchecked:
            first, more = evals.unchecked[0], len(evals.unchecked) - 1
            among = f"{first} and {count(more, 'more file')} say" if more else f"{first} says"
            plan.notes.append(
                f"{among} something that nothing checks, such as a misspelt key: `eval-gate validate --strict` says "
                f"what. With that mended, take the # away before `strict: true` in {CONFIG}"
            )


def _seed(folder: Path, places: tuple[str, ...]) -> str | None:
    """The one seed manifest beside these evals, where it is not the one that is taken anyway."""
    found = {f"{place}/{SEED_NAME}" for place in places if (folder / place / SEED_NAME).is_file()}
    return found.pop() if len(found) == 1 and DEFAULT_SEED_MANIFEST not in found else None


def _add_evals(plan: StarterPlan, evals: FoundEvals, before: RunConfig | None, example: str) -> None:
    """An example, where there are no evals yet and the configuration would find it."""
    if evals.places:
        plan.left_out |= dict.fromkeys(evals.places, "evals are there")
        return
    home = next(_homes(before.evals if before else (EVALS,)), None)
    if home is None:
        plan.notes.append("no example eval: the configuration says that evals are elsewhere, and there are none yet")
        return
    for name, text in texts.example(example).items():
        plan.add(f"{home}/{name}", text)


def _homes(places: tuple[str, ...]) -> Iterator[str]:
    """Those of these places that can only be folders inside the one we write to."""
    for place in places:
        path = PurePosixPath(place)
        parts = path.parts
        if parts and not path.is_absolute() and ".." not in parts and not path.suffix and not set(place) & set("*?["):
            yield path.as_posix()


def _add_ignored(plan: StarterPlan, output_dir: str) -> None:
    """Results are no source. A .gitignore that is there is not changed: it is only said what it lacks."""
    path = PurePosixPath(output_dir)
    if path.is_absolute() or ".." in path.parts:
        return
    line = f"{path.as_posix()}/"
    if not os.path.lexists(plan.folder / IGNORE):
        if not is_ignored(plan.folder, line):
            plan.write[IGNORE] = texts.ignored(line)
        return
    plan.left_out[IGNORE] = WAS_THERE
    if not is_ignored(plan.folder, line):
        plan.to_ignore = line
