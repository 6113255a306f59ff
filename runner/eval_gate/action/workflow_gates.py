"""Workflow files, and the gates that run in parallel with this one.

A result of such a gate is not this gate's under an earlier name. A gate runs in parallel if its check run is on this
commit, or if this run's workflow has a step for it, in a job and a step without a condition. A job that needs one with
a condition has that condition too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, product
from pathlib import PurePosixPath
from typing import Any, Final

from eval_gate.action.inputs import DEFAULT_ARTIFACT
from eval_gate.action.publishing.check_run import parse_publication
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.github.check_runs import list_commit_checks
from eval_gate.github.commits import fetch_file
from eval_gate.github.failure import GitHubError
from eval_gate.struct import replace
from eval_gate.text.escape import to_comment_key

MAX_LEGS: Final = 256
"""Legs of one job: as many as GitHub runs of a matrix."""
_MATRIX_VALUE: Final = re.compile(r"\$\{\{\s*matrix\.([\w-]+)\s*\}\}")


def find_parallel_gates(step: Step, gates: Iterable[tuple[str, str]], log: StepLog) -> frozenset[str]:
    """Find those of the gates, each with its workflow file, that run in parallel with this one."""
    own = step.environment.workflow_path
    try:
        checks = list_commit_checks(step.client, step.plan.head_sha)
        judging = {result.maker.gate for one in checks if (result := parse_publication(one)) is not None}
        written_gates = _list_written_gates(step)
    except GitHubError as error:
        log.record(f"cannot check which gates run beside this one: {error}")
        return frozenset()

    def runs_here(gate: str, workflow: str) -> bool:
        signed = to_comment_key(f"{PurePosixPath(workflow).name}.{gate}")  # where a `comment-key` names the gate
        return bool(judging & {gate, signed}) or (workflow == own and gate in written_gates)

    return frozenset(gate for gate, workflow in gates if runs_here(gate, workflow))


def _list_written_gates(step: Step) -> frozenset[str]:
    """List the keys of the other gates in this run's workflow at the evaluated commit. Raises GitHubError."""
    path = step.environment.workflow_path
    data = fetch_file(step.client, path, step.plan.head_sha) if path and step.plan.relayed_run is None else None
    gates = [*_iter_gates(step, data)] if data is not None else []
    actions = {action for action, key, _ in gates if key == step.key}
    return frozenset(key for action, key, is_certain in gates if action in actions and is_certain) - {step.key}


def _iter_gates(step: Step, data: bytes) -> Iterator[tuple[str, str, bool]]:
    """Yield the action of each step, the key that it would have as a gate, and whether it runs without a condition."""
    workflow = parse_workflow(data)
    for name, job, one in iter_steps(workflow):
        is_certain = "if" not in one and _is_certain(get_mapping(workflow, "jobs"), name)
        for values in _iter_legs(get_mapping(get_mapping(job, "strategy"), "matrix")):
            inputs = {key: _fill_in(str(text), values) for key, text in get_mapping(one, "with").items()}
            action = str(one.get("uses")).partition("@")[0]
            yield action, _build_key(step, name, inputs), is_certain


def _is_certain(jobs: Mapping[str, Any], name: str) -> bool:
    """Whether a job runs all its steps unless a job fails: it and those that it needs have no condition."""
    reached, waiting = set[str](), [name]
    while waiting:
        job = get_mapping(jobs, one := waiting.pop())
        if "if" in job or "continue-on-error" in job:
            return False
        reached.add(one)
        needs = job.get("needs")
        waiting += [
            need
            for need in (needs if isinstance(needs, list) else [needs])
            if isinstance(need, str) and need not in reached
        ]
    return True


def _iter_legs(matrix: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the values of each leg, as far as they are written out; none are known where some legs are left out."""
    if "exclude" in matrix:
        yield {}
        return
    lists = {name: values for name, values in matrix.items() if isinstance(values, list) and name != "include"}
    legs = (dict(zip(lists, leg, strict=True)) for leg in product(*lists.values()))
    listed = matrix.get("include")
    further = (leg for leg in (listed if isinstance(listed, list) else ()) if isinstance(leg, dict))
    yield from islice(chain(legs, further), MAX_LEGS)


def _fill_in(text: str, values: Mapping[str, Any]) -> str:
    return _MATRIX_VALUE.sub(lambda match: str(values.get(match[1], match[0])), text)


def _build_key(step: Step, job: str, inputs: Mapping[str, str]) -> str:
    """Build the key of the gate that a step of this job with these inputs would be."""
    settings = replace(
        step.settings,
        comment_key=inputs.get("comment-key") or None,
        config=inputs.get("config") or None,
        artifact_name=inputs.get("artifact-name") or DEFAULT_ARTIFACT,
    )
    other = replace(step, settings=settings, environment=replace(step.environment, job=job))
    return other.build_key(step.environment.workflow_path)


def parse_workflow(data: bytes) -> Any:
    """Parse a workflow file into mappings, lists and text: `on` stays a word. None for a file that is no YAML."""
    import yaml  # 10 ms that most runs need nothing of

    try:
        return yaml.load(data, Loader=yaml.BaseLoader)  # noqa: S506 (it makes nothing else)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, TypeError, RecursionError):
        return None


def get_mapping(node: Any, key: str) -> dict[str, Any]:
    """Return the mapping under a key, or an empty one."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def map_triggers(workflow: Any) -> dict[str, Any]:
    """Map the triggers of a workflow to what is written about them."""
    triggers = workflow.get("on") if isinstance(workflow, dict) else None
    if isinstance(triggers, dict):
        return triggers
    words = triggers if isinstance(triggers, list) else [triggers]
    return {word: None for word in words if isinstance(word, str)}


def iter_steps(workflow: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield every step of a workflow with the id of its job and the job."""
    for name, job in get_mapping(workflow, "jobs").items():
        steps = job.get("steps") if isinstance(job, dict) else None
        yield from ((name, job, one) for one in (steps if isinstance(steps, list) else ()) if isinstance(one, dict))
