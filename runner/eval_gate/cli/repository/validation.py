"""Checks of `eval-gate validate` beyond loading the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TypeVar

from eval_gate.cli.repository.new_waivers import UnknownWaiver, find_unknown_waivers
from eval_gate.cli.terminal.console import Verbosity, print_message, print_output, print_problems
from eval_gate.config.selection import Selection
from eval_gate.config.settings import ResultsChoice, RunConfig
from eval_gate.engine.judge_targets import skip_ungradable
from eval_gate.engine.preparation.assignment import Assignment, assign_targets, build_base_agent_target
from eval_gate.engine.preparation.plan_builder import RunInputs, check_cases, read_inputs
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.preparation.snapshot import NO_SEED, iter_token_texts
from eval_gate.errors import GateError, Problem
from eval_gate.formats.discovery import find_partial_selection
from eval_gate.gate.judge_agreement import read_judge_agreements
from eval_gate.gate.waivers.waiver_file import KnownWaivers, load_waivers
from eval_gate.model.case import EvalSuite, MistakeKind
from eval_gate.model.result import NO_JUDGE
from eval_gate.model.waiver import FileOrigin
from eval_gate.reports.wording.problems import render_problems
from eval_gate.staleness.staleness_checks import check_staleness
from eval_gate.struct import Struct, field
from eval_gate.targets.build_context import BuildContext, MissingRequirements
from eval_gate.targets.catalog import TargetCatalog
from eval_gate.text.escape import format_count, to_console_line
from eval_gate.text.tokens import TokenData, resolve_tokens

Value = TypeVar("Value")


class ValidationFindings(Struct):
    """Findings of a validation. Problems make a run or a check useless; warnings do not.

    `notes` list requirements of a run that this machine lacks, such as variables; they are not mistakes in the checked
    files.
    """

    suites: tuple[EvalSuite, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: tuple[Problem, ...] = ()
    hints: dict[str, None] = field(default_factory=dict)
    """Next steps: the hints of a run with these problems, and further ones."""

    __repr__ = object.__repr__

    def run_check(self, look: Callable[[], Value], *, required: bool = False) -> Value | None:
        """Run a check and return its result; collect its error and return None if it fails.

        Without `required`, a target that is not chosen yet (`missing-target`) is not an error. Missing variables and
        libraries are not errors either: building the targets records them as notes.
        """
        try:
            return look()
        except GateError as error:
            if error.code != "missing-target" or required:
                self.add_error(error)
            return None

    def add_error(self, error: GateError) -> None:
        """Collect the problems and the hint of an error."""
        self.problems += error.problems or [Problem(error.message)]
        if error.hint and error.code != "invalid-eval-files":  # whose hint names this very command
            self.hints[error.hint] = None


async def check_everything(
    config: RunConfig, root: Path, environment: Mapping[str, str], every_eval: Sequence[str]
) -> ValidationFindings:
    """Check files, targets, tokens, patterns, staleness and waivers: all of it, even after the first problem.

    `every_eval` are the eval files of the configuration; `config` may have a part of them.
    """
    lacking = MissingRequirements()
    building = BuildContext(environment, root, missing_requirements=lacking)
    catalog = TargetCatalog(config.target, building)
    findings = ValidationFindings()
    try:
        part = Selection(paths=find_partial_selection(config.evals, every_eval, root))
        inputs = await read_inputs(config, part, RunContext(root, environment), offline=True, with_drafts=True)
    except GateError as error:
        if config.target.is_chosen:
            findings.run_check(catalog.get_target)
        findings.run_check(lambda: build_base_agent_target(config, building, None, ""), required=True)
        findings.add_error(error)
        findings.notes = lacking.problems
        return findings
    assigned = findings.run_check(lambda: assign_targets(inputs.suites, catalog, config))
    if assigned:
        findings.run_check(lambda: check_cases(inputs.suites, assigned))
    skipped = _iter_skip_warnings(inputs, assigned, config) if assigned else ()
    main = assigned.main if assigned else None
    findings.run_check(lambda: build_base_agent_target(config, building, main, inputs.suites[0].file), required=True)
    findings.run_check(lambda: read_judge_agreements(root))  # without it, a run would not begin
    findings.problems += dict.fromkeys(_iter_pattern_problems(inputs.suites))
    waivers = findings.run_check(lambda: load_waivers(config, root, datetime.now(UTC).date()))
    unknown = _find_unknown_waivers(waivers, every_eval, root, config) if waivers else ()
    possible = [one for one in unknown if one.is_suite or one.may_be_external]
    findings.problems += [_build_waiver_problem(one) for one in unknown if one not in possible]
    findings.warnings += [
        *inputs.warnings,
        *_iter_suite_warnings(inputs),
        *skipped,
        *(str(_build_waiver_problem(one)) for one in possible),
        *_iter_unresolved_seeds(inputs),
        *catalog.remarks,
        *filter(None, (catalog.describe_unread_list(),)),
    ]
    unnamed = catalog.describe_unnamed_list(str(Path(suite.file).parent) for suite in inputs.suites)
    findings.hints |= dict.fromkeys(filter(None, (unnamed,)))
    findings.suites, findings.notes = inputs.suites, lacking.problems
    return findings


def print_findings(findings: ValidationFindings, verbosity: Verbosity) -> None:
    """Print problems and warnings on standard error, and the checked files on standard output."""
    print_problems(findings.problems)
    for hint in findings.hints:
        print_message(f"hint: {to_console_line(hint)}")
    if verbosity is not Verbosity.QUIET:
        for warning in findings.warnings:
            print_message(f"warning: {to_console_line(warning)}")
        for line in render_problems(findings.notes, indent="note: "):
            print_message(line)
    cases = sum(len(suite.cases) for suite in findings.suites)
    for suite in findings.suites:
        kind = suite.tier.value if suite.tier else suite.format
        print_output(
            f"{to_console_line(suite.file)}: {to_console_line(suite.tool_name)}, {kind}, "
            f"{format_count(len(suite.cases), 'case')}"
        )
        if verbosity is Verbosity.VERBOSE:
            for case in suite.cases:
                print_output(f"  {to_console_line(case.id)}  {to_console_line(case.description)}")
    totals = f"{format_count(len(findings.problems), 'problem')}, {format_count(len(findings.warnings), 'warning')}"
    totals += f", {format_count(len(findings.notes), 'note')}" if findings.notes else ""
    print_output(f"{format_count(cases, 'case')} in {format_count(len(findings.suites), 'suite')}: {totals}")


def _iter_skip_warnings(inputs: RunInputs, assigned: Assignment, config: RunConfig) -> Iterator[str]:
    """Yield a warning for each suite with cases that a run skips because no judge can grade them."""
    for suite in skip_ungradable(inputs.suites, config.rubric, assigned.judges):
        cases = sum(case.skip_reason == NO_JUDGE for case in suite.cases)
        if cases:
            yield f"{suite.file}: a run skips {format_count(cases, 'case')}: {NO_JUDGE}"


def _iter_pattern_problems(suites: Iterable[EvalSuite]) -> Iterator[Problem]:
    """Yield the patterns that cannot be compiled, which only fail their assertions in a run."""
    for case in chain.from_iterable(suite.cases for suite in suites):
        for one in case.mistakes:
            if one.kind is MistakeKind.INVALID_PATTERN:
                message = f"{case.id}: {one.message}"
                yield Problem(message, file=one.location.file, line=one.location.line, field=one.field)


def _find_unknown_waivers(
    waivers: KnownWaivers, evals: Sequence[str], root: Path, config: RunConfig
) -> tuple[UnknownWaiver, ...]:
    """Find the waivers in force that name no case, as far as the files tell that are not checked here."""
    active = [one for one in waivers.waivers if one.until >= waivers.today]
    try:
        has_external = config.results != ResultsChoice()
        return find_unknown_waivers(active, evals, root, root / config.output_dir, has_external=has_external) or ()
    except GateError:  # an eval file that this call does not check, or a stored run
        return ()


def _build_waiver_problem(unknown: UnknownWaiver) -> Problem:
    origin = unknown.waiver.origin
    assert isinstance(origin, FileOrigin)
    return Problem(unknown.message, file=origin.file, line=origin.line)


def _iter_suite_warnings(inputs: RunInputs) -> Iterator[str]:
    for suite in inputs.suites:
        lines = {f"{case.id}: {text}": case.location.line for case in suite.cases for text in case.warnings}
        for warning in suite.warnings:
            yield f"{suite.file}:{lines[warning]}: {warning}" if warning in lines else f"{suite.file}: {warning}"
        for case in suite.cases:
            if case.skip_reason is not None:
                yield f"{suite.file}:{case.location.line}: {case.id} is skipped, because {case.skip_reason}"
        yield from (f"{suite.file}: {warning}" for warning in check_staleness(suite, inputs.registry).warnings)


def _iter_unresolved_seeds(inputs: RunInputs) -> Iterator[str]:
    """Yield a warning for each seed token without a value: its assertions are skipped in every run."""
    data = TokenData(seed=inputs.seed)
    why = f"not found: {NO_SEED}" if inputs.seed is None else "not found in the seed manifest"
    for suite in inputs.suites:
        for case in suite.cases:
            for text in chain.from_iterable(map(iter_token_texts, case.all_evaluators)):
                for token in resolve_tokens(text, data).unresolved:
                    if token.startswith("{{seed:"):
                        place = f"{suite.file}:{case.location.line}"
                        yield f"{place}: {case.id}: {token} {why}"
