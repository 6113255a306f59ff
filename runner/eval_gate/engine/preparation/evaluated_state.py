"""Evaluated state of a run: digests of what its suites measure, and of every part of its setup.

Everything that can change a result is in a part. What a part has too much only lets suites run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from eval_gate import __version__
from eval_gate.config.measures import select_patterns
from eval_gate.config.setting import Panel, Setting, iter_values
from eval_gate.config.settings import POLICY_KEYS, RunConfig
from eval_gate.engine.preparation.measured_files import MeasuredFiles
from eval_gate.engine.preparation.program_files import ProgramFiles
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.preparation.setup_fingerprints import list_target_folders, mask_value
from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import CaseFingerprints
from eval_gate.model.reuse import EvaluatedState, StatePart
from eval_gate.model.setup import SettingValue
from eval_gate.staleness.tool_registry import ToolRegistry
from eval_gate.targets.base import Target
from eval_gate.targets.secret_masking import MaskedTarget
from eval_gate.targets.setup import NO_SETUP, TargetSetup, format_value_or_empty
from eval_gate.text.digest import compute_fingerprint

_GRADING: Final = frozenset(
    {"grader", "judge_program", "judge", "judge_setup", "user", "user_setup", "preparation"}
    | {"programs", "preparing_programs"}
)
"""Parts of a case's fingerprints that are about who grades and prepares it. `target` is of the targets, and every
other one of the evals."""
_COUNTED_KEYS: Final = frozenset({"keepResponses", "trials", "reruns"})
"""Settings that count although their group does not."""
_OTHER_KEYS: Final = frozenset({"reuse", "measures"}) | POLICY_KEYS
"""Settings that decide what is done with a result. The verdict is decided anew, and `measures` is a part of its own."""


def list_target_measures(targets: Iterable[Target]) -> tuple[SettingValue, ...]:
    """List the patterns of targets as settings of the run, so that a change of them is named."""
    by_name = {one.identity.name: patterns for one in targets if (patterns := _get_setup(one).measures)}
    return tuple(
        SettingValue(name=f"targets[{name}].measures", value=format_value_or_empty([*patterns]))
        for name, patterns in sorted(by_name.items())
    )


def build_evaluated_state(
    plan: RunPlan, config: RunConfig, context: RunContext, registry: ToolRegistry | None
) -> EvaluatedState | None:
    """Build the evaluated state of a plan; None if no suite has measures. Nothing is read then."""
    files, how = plan.program_files, plan.evaluation_setup
    if not config.measures and not any(_get_setup(one).measures for one in plan.list_targets()):
        return None
    patterns = {suite.file: _list_patterns(plan, config, suite) for suite in plan.suites}
    if context.custom_target or context.custom_suites or not any(patterns.values()) or not files or not how:
        return None
    measured = MeasuredFiles(
        context.root,
        context.environment,
        repository=files.repository,
        results=config.output_dir,
        files=context.measured_files,
    )
    programs = _AgentPrograms(plan, files)
    results = os.path.relpath(files.root / config.output_dir, files.root)
    parts: Mapping[StatePart, Iterator[JsonValue]] = {
        StatePart.EVALS: _iter_evals(plan),
        StatePart.GRADERS: _iter_graders(plan, how, files),
        StatePart.TARGETS: _iter_targets(plan),
        StatePart.TOOLS: iter([as_fields(tool) for tool in registry.tools] if registry else []),
        StatePart.CONFIGURATION: _iter_settings(plan, config, how),
        StatePart.MEASURES: iter((results, {file: [*one] for file, one in patterns.items()}, *context.measured_files)),
        StatePart.PROGRAM: iter((__version__,)),
    }
    state = EvaluatedState(
        parts={part: compute_fingerprint([*values]) for part, values in parts.items()},
        suites=tuple(
            measured.measure(suite.file, patterns[suite.file], programs.list_files(suite)) for suite in plan.suites
        ),
    )
    return plan.redactor.mask_struct(state)


def _list_patterns(plan: RunPlan, config: RunConfig, suite: EvalSuite) -> tuple[str, ...]:
    """List the patterns of a suite, and of the targets of its cases, sorted."""
    own = select_patterns(config.measures, suite.file)
    of_targets = (pattern for one in _list_targets(plan, suite) for pattern in _get_setup(one).measures)
    return tuple(sorted({*own, *of_targets}))


def _list_targets(plan: RunPlan, suite: EvalSuite) -> tuple[Target, ...]:
    return tuple({id(one): one for one in map(plan.get_target, suite.cases)}.values())


def _get_setup(target: Target) -> TargetSetup:
    return target.setup if isinstance(target, MaskedTarget) else NO_SETUP


class _AgentPrograms:
    """Files of the repository that the commands and functions of targets name."""

    def __init__(self, plan: RunPlan, files: ProgramFiles) -> None:
        self._plan, self._files = plan, files
        self._find = lru_cache(files.find_named_files)

    def list_files(self, suite: EvalSuite) -> Iterator[str]:
        """List the absolute paths of the files that the agents of a suite's cases are started with."""
        for target in _list_targets(self._plan, suite):
            setup = _get_setup(target)
            if setup.programs is not None:
                folders = list_target_folders(setup.programs, self._files.root, [suite.file])
                yield from self._find(setup.programs.command, folders)
            # the place of a function: `module:name`
            functions = (one.value for one in target.identity.setup if one.name == "function")
            yield from (file for place in functions for file in self._find(place, (self._files.root,)))


def _iter_evals(plan: RunPlan) -> Iterator[JsonValue]:
    for suite in plan.suites:
        yield [suite.file, suite.file_hash]
        for case in suite.cases:
            workspace = case.workspace.digest if case.workspace else None
            own: list[JsonValue] = [case.id, case.fingerprint, case.skip_reason, [*case.tags], workspace]
            yield [*own, _select_parts(plan, case, lambda name: name not in _GRADING | {"target"})]


def _iter_graders(plan: RunPlan, how: EvaluationSetup, files: ProgramFiles) -> Iterator[JsonValue]:
    for case in (case for suite in plan.suites for case in suite.cases):
        yield [case.suite, case.id, _select_parts(plan, case, _GRADING.__contains__)]
    yield [as_fields(one) for one in (*how.judges, *how.users)]
    yield None if how.programs is None else as_fields(how.programs)
    # nobody knows what a file holds that could not be read
    yield None if files.has_read_everything else plan.run_id


def _select_parts(plan: RunPlan, case: EvalCase, is_selected: Callable[[str], bool]) -> JsonValue:
    parts = as_fields(plan.setup_fingerprints.get(case.key, CaseFingerprints()))
    return {name: value for name, value in parts.items() if is_selected(name)}


def _iter_targets(plan: RunPlan) -> Iterator[JsonValue]:
    for target in plan.list_targets():
        yield [as_fields(target.identity), _get_setup(target).address, target.timeout_ms]
    for case in (case for suite in plan.suites for case in suite.cases):
        parts = _select_parts(plan, case, {"target"}.__contains__)
        yield [case.suite, case.id, plan.get_target(case).identity.name, parts]


def _iter_settings(plan: RunPlan, config: RunConfig, how: EvaluationSetup) -> Iterator[JsonValue]:
    yield [how.snapshot, how.snapshot_is_file, how.snapshot_program]
    yield {row.key: mask_value(value, plan.redactor) for row, value in iter_values(config) if _is_counted(row)}


def _is_counted(row: Setting) -> bool:
    """Whether a setting counts by its own value: also one that cannot change a result, as it says."""
    if row.key in _COUNTED_KEYS:
        return True
    return not (row.panel in {Panel.OUTPUT, Panel.BASELINE} or row.compared_as or row.key in _OTHER_KEYS)
