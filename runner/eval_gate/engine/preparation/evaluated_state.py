"""Evaluated state of a run: digests of what its suites measure, and of every part of its setup.

Everything that can change a result is in a part. What a part has too much only lets suites run.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
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
from eval_gate.struct import replace
from eval_gate.targets.base import Target
from eval_gate.targets.secret_masking import MaskedTarget
from eval_gate.targets.setup import NO_SETUP, TargetSetup, format_value_or_empty
from eval_gate.text.digest import compute_fingerprint

_GRADER_PARTS: Final = frozenset(
    {"grader", "judge_program", "judge", "judge_setup", "user", "user_setup", "preparation"}
    | {"programs", "preparing_programs"}
)
_TARGET_PARTS: Final = frozenset({"target"})
_EVAL_PARTS: Final = frozenset(CaseFingerprints.__struct_fields__) - _GRADER_PARTS - _TARGET_PARTS
_COUNTED_KEYS: Final = frozenset({"keepResponses", "trials", "passes", "reruns"})
"""Settings that count although their group does not."""
_LEFT_OUT_KEYS: Final = frozenset({"reuse", "measures"}) | POLICY_KEYS
"""Settings that do not count: the verdict is decided anew, and `measures` is a part of its own."""


_RESUMED: Final = "the run was resumed, and its first executions may be of other files"


def list_target_measures(targets: Iterable[Target]) -> tuple[SettingValue, ...]:
    """List the patterns of targets as settings of the run, so that a change of them is named."""
    by_name = {one.identity.name: patterns for one in targets if (patterns := _get_setup(one).measures)}
    return tuple(
        SettingValue(name=f"targets[{name}].measures", value=format_value_or_empty([*patterns]))
        for name, patterns in sorted(by_name.items())
    )


def add_evaluated_state(
    plan: RunPlan, config: RunConfig, context: RunContext, registry: ToolRegistry | None
) -> RunPlan:
    """Add what the run evaluates to its plan. If no suite has measures, there is nothing, and nothing is read."""
    files, how = plan.program_files, plan.evaluation_setup
    patterns = {suite.file: _list_patterns(plan, config, suite) for suite in plan.suites}
    if context.custom_target or context.custom_suites or not any(patterns.values()) or not files or not how:
        return plan
    measured = MeasuredFiles(context.root, context.environment, repository=files.repository, results=config.output_dir)
    results = os.path.relpath(files.root / config.output_dir, files.root)
    settings = {row.key: mask_value(value, plan.redactor) for row, value in iter_values(config) if _is_counted(row)}
    calls = map(as_fields, plan.model_proxy.settings if plan.model_proxy else ())
    parts: Mapping[StatePart, Iterable[JsonValue]] = {
        StatePart.EVALS: [*_iter_eval_files(plan), *_iter_cases(plan, _EVAL_PARTS)],
        StatePart.GRADERS: [*_iter_grader_setup(plan, how, files), *_iter_cases(plan, _GRADER_PARTS)],
        StatePart.TARGETS: [*map(_describe_target, plan.list_targets()), *_iter_cases(plan, _TARGET_PARTS)],
        StatePart.TOOLS: [as_fields(tool) for tool in registry.tools] if registry else [],
        StatePart.CONFIGURATION: [how.snapshot, how.snapshot_is_file, how.snapshot_program, settings, *calls],
        StatePart.MEASURES: [
            None if results.startswith("..") else results,
            {file: [*one] for file, one in patterns.items()},
            *context.measured_files,
        ],
        StatePart.PROGRAM: [__version__],
    }
    suites = tuple(
        measured.measure(suite.file, patterns[suite.file], *_find_agent_files(plan, files, suite, context))
        for suite in plan.suites
    )
    if context.resume is not None:
        suites = tuple(replace(one, digest=None, problem=_RESUMED) if one.patterns else one for one in suites)
    state = EvaluatedState(
        parts={part: compute_fingerprint([*values]) for part, values in parts.items()}, suites=suites
    )
    return replace(plan, evaluated_state=plan.redactor.mask_struct(state), measured_files=measured)


def _list_patterns(plan: RunPlan, config: RunConfig, suite: EvalSuite) -> tuple[str, ...]:
    """List the patterns of a suite, and of the targets of its cases, sorted.

    There are none if one of the targets has none, and no list is for the file: those of another target are not enough.
    """
    of_targets = [_get_setup(one).measures for one in _list_targets(plan, suite)]
    is_covered = all(of_targets) or select_patterns(config.measures, suite.file)
    return select_patterns(config.measures, suite.file, chain.from_iterable(of_targets)) if is_covered else ()


def _find_agent_files(
    plan: RunPlan, files: ProgramFiles, suite: EvalSuite, context: RunContext
) -> tuple[set[str], set[str]]:
    """Find the files that start the agents of a suite: named ones, as absolute paths, and those read unnamed.

    The latter are relative to the root.
    """
    commands = set[tuple[str, tuple[Path, ...]]]()
    for target in _list_targets(plan, suite):
        if (programs := _get_setup(target).programs) is not None:
            commands.add((programs.command, list_target_folders(programs, files.root, [suite.file])))
        # the place of a function: `module:name`
        commands |= {(one.value or "", (files.root,)) for one in target.identity.setup if one.name == "function"}
    named_files = {file for command in commands for file in files.find_named_files(*command)}
    read_files = (file for command in commands for file in files.find_read_files(*command))
    return named_files, {*context.measured_files, *read_files}


def _list_targets(plan: RunPlan, suite: EvalSuite) -> tuple[Target, ...]:
    return tuple({id(one): one for one in map(plan.get_target, suite.cases)}.values())


def _get_setup(target: Target) -> TargetSetup:
    return target.setup if isinstance(target, MaskedTarget) else NO_SETUP


def _describe_target(target: Target) -> JsonValue:
    return [as_fields(target.identity), _get_setup(target).resolved, target.timeout_ms]


def _iter_eval_files(plan: RunPlan) -> Iterator[JsonValue]:
    for suite in plan.suites:
        yield [suite.file, suite.file_hash]
        for case in suite.cases:
            workspace = case.workspace.digest if case.workspace else None
            yield [case.fingerprint, case.skip_reason, [*case.tags], workspace]


def _iter_grader_setup(plan: RunPlan, how: EvaluationSetup, files: ProgramFiles) -> Iterator[JsonValue]:
    yield from (as_fields(one) for one in (*how.judges, *how.users, *((how.programs,) if how.programs else ())))
    # a file that could not be read may be another one each time
    yield None if files.has_read_everything else plan.run_id


def _iter_cases(plan: RunPlan, names: Collection[str]) -> Iterator[JsonValue]:
    """Yield these parts of the fingerprints of every case."""
    cases: Iterable[EvalCase] = (case for suite in plan.suites for case in suite.cases)
    for case in cases:
        parts = as_fields(plan.setup_fingerprints.get(case.key, CaseFingerprints()))
        yield [case.suite, case.id, {name: parts[name] for name in names}]


def _is_counted(row: Setting) -> bool:
    """Whether a setting counts by its own value: also one that cannot change a result, as it says."""
    is_left_out = row.panel in {Panel.OUTPUT, Panel.BASELINE} or row.compared_as or row.key in _LEFT_OUT_KEYS
    return row.key in _COUNTED_KEYS or not is_left_out
