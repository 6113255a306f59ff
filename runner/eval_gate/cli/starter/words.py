"""What `eval-gate init` says: what became of every file, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from eval_gate.cli.starter.evaluated_agent import AgentPlace
from eval_gate.cli.starter.plan import CONFIG, IGNORE, WORKFLOW, StarterPlan
from eval_gate.cli.starter.texts import IN_BACKGROUND
from eval_gate.text.escape import console_line

PROTOCOL = 'It answers {"message": "..."} with {"response": "..."}.'
ALL_THERE = "Everything is there already: nothing was written."


def file_lines(plan: StarterPlan, *, dry: bool) -> Iterator[str]:
    """One line for each file, those that are written first."""
    verb = "would write" if dry else "written   "
    for name in plan.write:
        yield f"{verb}  {console_line(name)}"
    for name, why in plan.left_out.items():
        yield f"{'left alone':{len(verb)}}  {console_line(name)}: {console_line(why)}"
    yield from plan.notes


def text_lines(plan: StarterPlan) -> Iterator[str]:
    """The texts of the files that would be written."""
    for name, text in plan.write.items():
        yield f"\n=== {console_line(name)}"
        yield from text.splitlines()


def next_lines(plan: StarterPlan, given: Path) -> Iterator[str]:
    """What to do next, with commands that work as they stand. `given` is the folder as the person called it."""
    steps = [*_start(plan), *_example(plan), _try_it(plan, given), *_ignore(plan), *_workflow(plan), *_commit(plan)]
    yield "\nNext:"
    for number, (sentence, *commands) in enumerate(steps, 1):
        yield f"{number}. {sentence}"
        yield from (f"     {command}" for command in commands)


Step = tuple[str, ...]
"""A sentence, and the commands that belong to it."""


def _start(plan: StarterPlan) -> Iterator[Step]:
    asked = plan.agent
    match asked.kind:
        case AgentPlace.AGENT_HERE:
            start = asked.found.start if asked.found else None
            yield f"Start your agent at {asked.endpoint}. {_protocol(plan)}", *([start] if start else [])
        case AgentPlace.AGENT_ELSEWHERE:
            yield (f"See that your agent is at {asked.endpoint}. {_protocol(plan)}",)
        case AgentPlace.MODEL | AgentPlace.SUITES if asked.secrets:
            names = (*asked.secrets, *asked.variables)
            yield "Set the key of the model:", *(f"export {name}=..." for name in names)
        case _:
            return


def _protocol(plan: StarterPlan) -> str:
    """How the agent has to speak, and where it is said if it speaks otherwise."""
    if plan.agent.preset:
        return f"It is asked as {plan.agent.preset} agents are."
    line = _line(plan, CONFIG, "agentEndpoint:") if CONFIG in plan.write else None
    more = f" One that speaks otherwise: {CONFIG}, line {line}." if line is not None else ""
    return PROTOCOL + more


def _example(plan: StarterPlan) -> Iterator[Step]:
    for name, mark in _TO_FILL.items():
        if name in {PurePosixPath(one).name for one in plan.write}:
            file = next(one for one in plan.write if PurePosixPath(one).name == name)
            yield (
                f"In {file}, line {_line(plan, file, mark)}, say what your users ask and what the answer must hold.",
            )


_TO_FILL = {"hello.golden.json": '"input"', "hello.eval.yaml": "content:", "hello.json": '"prompt"'}
"""The example evals, and what stands in the first line that a person changes."""


def _line(plan: StarterPlan, name: str, mark: str) -> int:
    """The first line of a file to be written that holds this."""
    return next(number for number, line in enumerate(plan.write[name].splitlines(), 1) if mark in line)


def _try_it(plan: StarterPlan, given: Path) -> Step:
    folder = [shlex.join(["cd", str(given)])] if given.resolve() != Path.cwd().resolve() else []
    return "Try it:", *folder, "eval-gate validate", shlex.join(["eval-gate", "run", *plan.run_flags])


def _ignore(plan: StarterPlan) -> Iterator[Step]:
    if plan.to_ignore is not None:
        yield "Keep the results out of git:", f"echo {shlex.quote(plan.to_ignore)} >> {IGNORE}"


def _workflow(plan: StarterPlan) -> Iterator[Step]:
    if WORKFLOW not in plan.write:
        return
    match plan.agent.kind:
        case AgentPlace.AGENT_HERE:
            found, line = plan.agent.found, _line(plan, WORKFLOW, IN_BACKGROUND)
            if found and found.start:
                yield (f"Look at {WORKFLOW}, line {line}: it has to start your agent, listening on 0.0.0.0.",)
            else:
                yield (f'In {WORKFLOW}, line {line}, change the step "Start the agent": it has to start yours.',)
        case AgentPlace.MODEL | AgentPlace.SUITES if plan.agent.secrets:
            kinds = {"secrets": plan.agent.secrets, "variables": plan.agent.variables}
            added = " and ".join(f"{', '.join(names)} to the {kind}" for kind, names in kinds.items() if names)
            yield (f"On GitHub add {added} of the repository.",)
        case _:
            yield (f"Look at {WORKFLOW}: what has to run beside the evals is started there.",)


def _commit(plan: StarterPlan) -> Iterator[Step]:
    if plan.write:
        begin = [] if plan.repository else [shlex.join(["git", "init", f"--initial-branch={plan.branch}"])]
        yield (
            "Commit:",
            *begin,
            shlex.join(["git", "add", *plan.write]),
            'git commit --message "Evals on pull requests"',
        )
    if WORKFLOW in plan.write:
        yield (
            f"Push it to {plan.branch}: that run is the baseline. From then on each pull request is compared with it.",
        )
