"""Plan which files to write into a folder, which to leave alone, and why."""

from __future__ import annotations

import os
import shlex
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.cli.starter import file_texts
from eval_gate.cli.starter.choices import Questions
from eval_gate.cli.starter.described_target import TARGET_NAME, StarterRequest, describe_agent
from eval_gate.cli.starter.evaluated_agent import (
    TARGETS,
    AgentPlace,
    EvaluatedAgent,
    find_evaluated_agent,
)
from eval_gate.cli.starter.file_texts import NEEDED_PYTHON
from eval_gate.cli.starter.file_writer import FileState, read_state, sign_text
from eval_gate.cli.starter.folder_contents import (
    EVALS_FOLDER,
    FoundEvals,
    find_all_evals,
    find_config_file,
    find_default_branch,
    find_evals_at,
    is_ignored,
)
from eval_gate.config.loader import load_config
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.files.file_paths import find_repository
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import find_eval_files, load_suites
from eval_gate.reports.wording.numbers import format_money
from eval_gate.struct import Struct, field, replace
from eval_gate.text.escape import format_count

WORKFLOW: Final = ".github/workflows/eval-gate.yml"
CONFIG: Final = "eval-gate.yaml"
IGNORE: Final = ".gitignore"
WARM_UP_RUNS: Final = 10
"""Runs of history that `warmUp` fills up to."""
EXISTS_REASON: Final = "exists already"


class StarterPlan(Struct):
    """Texts of files to write, and names left alone with the reason; relative to `folder`."""

    folder: Path
    repository: Path | None
    branch: str
    agent: EvaluatedAgent
    target_lines: tuple[str, ...] = ()
    """Lines that an unchanged configuration lacks."""
    files_to_write: dict[str, str] = field(default_factory=dict)
    files_to_replace: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    diffs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Texts of files as they are and as they would be, for files that differ."""
    notes: list[str] = field(default_factory=list)
    is_undecided: bool = False
    """Whether the files hold the template, because the agent does not run or something is not decided."""
    ignore_line: str | None = None
    """The line that an existing .gitignore lacks."""

    @property
    def texts(self) -> dict[str, str]:
        """Texts of all files that are written, new or not."""
        return self.files_to_write | self.files_to_replace

    def add_file(self, name: str, text: str) -> None:
        """Write this file unless something else has its name already."""
        if os.path.lexists(self.folder / name):
            self.left_out[name] = EXISTS_REASON
        else:
            self.files_to_write[name] = text

    def add_signed_file(self, name: str, text: str, *, rewrites: bool) -> None:
        """Write this file; with `rewrites` also in place of one that this command wrote, if it is unedited."""
        text = sign_text(text)
        state, old_text = read_state(self.folder / name)
        if not rewrites or state in {FileState.MISSING, FileState.EXTERNAL}:
            self.add_file(name, text)
        elif old_text.splitlines() == text.splitlines():
            self.left_out[name] = "is up to date"
        else:
            self.diffs[name] = old_text, text
            if state is FileState.WRITTEN:
                self.files_to_replace[name] = text
            else:
                self.left_out[name] = "you edited it; the diff shows what `init` would write"


def make_plan(folder: Path, wishes: StarterRequest, questions: Questions) -> StarterPlan:
    """Inspect the folder (its real path), probe the named agent, and decide. Writes nothing.

    Raises GateError for an invalid configuration, for wishes that contradict it, and if the probe fails.
    """
    repository = find_repository(folder)
    config_file = find_config_file(folder)
    old_config = load_config({}, {}, config_file, shown_as=config_file.name) if config_file else None
    is_rewritable = wishes.names_target and config_file is not None and read_state(config_file)[0] is FileState.WRITTEN
    base = None if is_rewritable else config_file
    config = load_config(wishes.flags, {}, base, shown_as=base.name if base else None)
    described = describe_agent(wishes, folder, questions)
    if described is not None and described.url is not None:  # the model is a part of its description
        flags = {key: value for key, value in wishes.flags.items() if key != "model"}
        config = load_config(flags | {"agentEndpoint": described.url}, {}, base, shown_as=base.name if base else None)
    evals = find_evals_at(old_config.evals, folder) if old_config else find_all_evals(folder)
    if described is not None and described.entry is not None and wishes.command is not None:
        described.entry.setdefault("cwd", _find_way_up(evals.places or (EVALS_FOLDER,)))
    agent = find_evaluated_agent(config, evals, wishes.example, folder, repository, described)
    plan = StarterPlan(folder, repository, find_default_branch(folder), agent)
    plan.notes += [*(described.notes if described else ()), *questions.notes]
    plan.is_undecided = questions.is_open or (described is not None and described.entry is None)
    if plan.is_undecided and config_file is not None:
        plan.left_out[config_file.name] = "not everything is decided, so nothing is written"
        return plan
    rounds = _describe_rounds(evals, folder, described.cost_usd if described else None)
    warm_up = _decide_warm_up(plan, wishes, old_config, rounds, questions)
    text = file_texts.render_config(agent, evals.places or (EVALS_FOLDER,), warm_up)
    _add_config(plan, config_file, text, rewrites=wishes.names_target or wishes.warm_up is not None)
    _note_missing_warm_up(plan, old_config, warm_up)
    if wishes.names_target and old_config is not None and CONFIG not in plan.texts:
        plan.target_lines = _list_missing_lines(old_config, config, agent)
    if agent.entry is not None:
        plan.add_signed_file(TARGETS, file_texts.render_targets(agent.entry), rewrites=True)
        if plan.left_out.get(TARGETS) == EXISTS_REASON:
            message = f"{TARGETS} exists, and `init` did not write it"
            raise GateError("conflicting-targets", message, "describe the agent there, or give this file another name")
    if wishes.start is not None and agent.kind is not AgentPlace.AGENT_HERE:
        message = "--start-command is for an agent at an address of this machine, and none is named"
        raise GateError("conflicting-options", message, "add --agent-endpoint, or omit --start-command")
    if wishes.workflow:
        reason = _find_host_reason(plan, evals, config, wishes.example)
        _add_workflow(plan, wishes, config_file.name if config_file else CONFIG, reason)
    _add_evals(plan, evals, old_config, wishes.example)
    _add_gitignore(plan, config.output_dir)
    if not evals.complete:
        plan.notes.append("the folder is too large: only a part was searched for evals")
    return plan


def _find_way_up(places: tuple[str, ...]) -> str:
    """Find the way from the folders of evals, where commands run, to the folder of the configuration."""
    steps = {len(PurePosixPath(place).parts) for place in places}
    return "/".join([".."] * steps.pop()) or "." if len(steps) == 1 else ".."


def _list_missing_lines(old_config: RunConfig, config: RunConfig, agent: EvaluatedAgent) -> tuple[str, ...]:
    """List the lines that a configuration needs to lead to this target; none if it does."""
    same = old_config.target == config.target
    if agent.entry is not None:
        same = (old_config.target.targets, old_config.target.name) == (TARGETS, TARGET_NAME)
    return () if same else file_texts.list_target_lines(agent)


def _find_host_reason(plan: StarterPlan, evals: FoundEvals, config: RunConfig, example: str) -> str | None:
    """Find why the workflow has to run without the container; None if it need not.

    A command runs what is installed on the runner, and an address of this machine is not reached from a container.
    """
    agent = plan.agent
    writes_command = not evals.files and example == "agentv"
    if evals.has_commands or writes_command or config.snapshot_command is not None:
        return "the evals run commands, which need what is installed on the runner"
    if agent.kind is AgentPlace.DESCRIBED:
        return "the target may be a program, which needs what is installed on the runner"
    if agent.entry is not None and agent.kind is AgentPlace.AGENT_HERE:
        return _ADDRESS_REASON
    return None


_ADDRESS_REASON: Final = f"{TARGETS} names an address of the runner, which the container does not reach"


def _add_workflow(plan: StarterPlan, wishes: StarterRequest, config_name: str, reason: str | None) -> None:
    if plan.repository not in {None, plan.folder}:
        command = shlex.join(["eval-gate", "init", os.path.relpath(str(plan.repository))])
        plan.left_out[WORKFLOW] = f"GitHub reads workflows only at the root of the repository: run `{command}`"
        return
    has_packages = (plan.folder / NEEDED_PYTHON).is_file()
    agent = replace(plan.agent, start=wishes.start)
    text = file_texts.render_workflow(agent, plan.branch, config_name, has_packages=has_packages)
    if reason is not None:
        text = file_texts.remove_container(text, reason, None if reason == _ADDRESS_REASON else has_packages)
    plan.add_signed_file(WORKFLOW, text, rewrites=wishes.names_target or wishes.start is not None)
    if reason is not None and WORKFLOW in plan.texts:
        plan.notes.append(f"the workflow runs without the container: {reason}")


def _decide_warm_up(
    plan: StarterPlan, wishes: StarterRequest, old_config: RunConfig | None, rounds: str, questions: Questions
) -> int | None:
    """Decide on `warmUp`: by the option, `old_config`, or a person who sees the cost and names an agent."""
    what = f"the first run on {plan.branch} makes {rounds}, so that pull requests have {WARM_UP_RUNS} runs of history"
    if wishes.warm_up is None and (old_config is not None or plan.is_undecided or not wishes.names_target):
        return old_config.warm_up if old_config else None
    if wishes.warm_up is None:
        return WARM_UP_RUNS if questions.confirm(f"With `warmUp: {WARM_UP_RUNS}` {what}. Write it") else None
    if wishes.warm_up:
        questions.say(f"warm-up     {what}")
    return WARM_UP_RUNS if wishes.warm_up else None


def _note_missing_warm_up(plan: StarterPlan, old_config: RunConfig | None, warm_up: int | None) -> None:
    """Note the line that an unchanged configuration lacks."""
    if old_config is not None and old_config.warm_up != warm_up and CONFIG not in plan.texts:
        line = "omit `warmUp`" if warm_up is None else f"add `warmUp: {warm_up}`"
        plan.notes.append(f"not written warmUp: your configuration is kept; {line}")


def _describe_rounds(evals: FoundEvals, folder: Path, usd: float | None) -> str:
    """`9 further rounds of 12 cases (108 executions, about $1.08)`; `usd` is what one response cost, if known."""
    rounds = WARM_UP_RUNS - 1
    try:
        suites = load_suites(find_eval_files(evals.places, folder), folder, ReadOptions()) if evals.places else ()
    except GateError:  # `eval-gate validate`, a next step, reports the problem
        return f"{rounds} further rounds of all cases"
    cases = sum(case.skip_reason is None for suite in suites for case in suite.cases) or 1  # that of the example
    cost = "" if usd is None else f", about {format_money(usd * cases * rounds)}"
    return (
        f"{rounds} further rounds of {format_count(cases, 'case')} ({format_count(cases * rounds, 'execution')}{cost})"
    )


def _add_config(plan: StarterPlan, config_file: Path | None, text: str, *, rewrites: bool) -> None:
    if config_file is not None and config_file.name != CONFIG:
        plan.left_out[config_file.name] = EXISTS_REASON
    else:
        plan.add_signed_file(CONFIG, text, rewrites=rewrites)


def _add_evals(plan: StarterPlan, evals: FoundEvals, old_config: RunConfig | None, example: str) -> None:
    """Add an example eval if there are no evals yet and the configuration would find it."""
    if evals.places:
        plan.left_out |= dict.fromkeys(evals.places, "has evals")
        return
    places = [PurePosixPath(place) for place in (old_config.evals if old_config else (EVALS_FOLDER,))]
    home = next((one for one in places if not (one.is_absolute() or one.suffix or set(str(one)) & set("*?[."))), None)
    if home is None:
        plan.notes.append("no example eval: the configuration names no folder inside this one for it")
        return
    for name, text in file_texts.read_example(example).items():
        plan.add_file(f"{home}/{name}", text)


def _add_gitignore(plan: StarterPlan, output_dir: str) -> None:
    """Exclude results from git. An existing .gitignore is not changed; a next step names the missing line."""
    path = PurePosixPath(output_dir)
    if path.is_absolute() or ".." in path.parts:
        return
    line = f"{path.as_posix()}/"
    if not os.path.lexists(plan.folder / IGNORE):
        if not is_ignored(plan.folder, line):
            plan.files_to_write[IGNORE] = f"# Results of `eval-gate run`\n{line}\n"
        return
    plan.left_out[IGNORE] = EXISTS_REASON
    if not is_ignored(plan.folder, line):
        plan.ignore_line = line
