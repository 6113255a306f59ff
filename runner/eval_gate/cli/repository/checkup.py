"""What `eval-gate validate` looks at, beyond what loading the files already refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TypeVar

from eval_gate.cli.terminal.console import Verbosity, out, print_problems, say
from eval_gate.config.selection import Selection
from eval_gate.config.settings import RunConfig
from eval_gate.engine.judging import NO_JUDGE, gradable
from eval_gate.engine.preparing.assign import Assignment, assign
from eval_gate.engine.preparing.context import RunContext
from eval_gate.engine.preparing.control import control_for
from eval_gate.engine.preparing.prepare import RunInputs, read_inputs
from eval_gate.engine.preparing.snapshot import NO_SEED, texts_with_tokens
from eval_gate.errors import GateError, Problem
from eval_gate.gate.judge_comparisons import read_comparisons
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.specs import evaluator as specs
from eval_gate.model.specs.agentv import TextAssertion
from eval_gate.registry.staleness import check
from eval_gate.reports.words.numbers import count
from eval_gate.reports.words.problems import problem_lines
from eval_gate.struct import FrozenStruct
from eval_gate.targets.build import BuildContext
from eval_gate.targets.lookup import TargetBook
from eval_gate.targets.missing_parts import MissingParts
from eval_gate.text.escape import console_line
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.tokens import TokenData, find_tokens, resolve

Found = TypeVar("Found")


class Checkup(FrozenStruct):
    """Everything that was found. Problems stop a run or make a check worthless; warnings do neither.

    `notes` say what a run needs and this machine lacks, such as variables: nothing is wrong with what was checked.
    """

    suites: tuple[EvalSuite, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[Problem, ...] = ()
    hints: tuple[str, ...] = ()
    """What to do about the problems: what a run would say."""

    __repr__ = object.__repr__


async def check_everything(config: RunConfig, root: Path, environment: Mapping[str, str]) -> Checkup:
    """Files, targets, tokens, patterns, staleness: all of it, even after the first problem."""
    lacking = MissingParts()
    building = BuildContext(environment, root, lacking=lacking)
    book = TargetBook(config.target, building)
    found = _Mistakes()
    try:
        inputs = await read_inputs(config, Selection(), RunContext(root, environment), offline=True)
    except GateError as error:
        if config.target.said:
            found.look(book.target)
        found.look(lambda: control_for(config, building, None, ""), named=True)
        found.take(error)
        return Checkup(problems=tuple(found.problems), notes=lacking.noted, hints=tuple(found.hints))
    assigned = found.look(lambda: assign(inputs.suites, book, config))
    skipped = _skipped(inputs, assigned, config) if assigned else ()
    main = assigned.main if assigned else None
    found.look(lambda: control_for(config, building, main, inputs.suites[0].file), named=True)
    found.look(lambda: read_comparisons(root))  # of what is known of judges: a run would not begin
    found.problems += [problem async for problem in _pattern_problems(inputs)]
    warnings = [*inputs.warnings, *_suite_warnings(inputs), *skipped, *_unresolved_seeds(inputs), *book.remarks]
    unread = book.unread(str(Path(suite.file).parent) for suite in inputs.suites)
    warnings += [unread] if unread else []
    return Checkup(inputs.suites, tuple(found.problems), tuple(warnings), lacking.noted, tuple(found.hints))


def print_findings(findings: Checkup, verbosity: Verbosity) -> None:
    """Problems and warnings on standard error, what was checked on standard output."""
    print_problems(findings.problems)
    for hint in findings.hints:
        say(f"hint: {console_line(hint)}")
    if verbosity is not Verbosity.QUIET:
        for warning in findings.warnings:
            say(f"warning: {console_line(warning)}")
        for line in problem_lines(findings.notes, indent="note: "):
            say(line)
    cases = sum(len(suite.cases) for suite in findings.suites)
    for suite in findings.suites:
        kind = suite.tier.value if suite.tier else suite.format
        out(f"{console_line(suite.file)}: {console_line(suite.tool_name)}, {kind}, {count(len(suite.cases), 'case')}")
        if verbosity is Verbosity.VERBOSE:
            for case in suite.cases:
                out(f"  {console_line(case.id)}  {console_line(case.description)}")
    found = f"{count(len(findings.problems), 'problem')}, {count(len(findings.warnings), 'warning')}"
    found += f", {count(len(findings.notes), 'note')}" if findings.notes else ""
    out(f"{count(cases, 'case')} in {count(len(findings.suites), 'suite')}: {found}")


def _next_step(error: GateError) -> str | None:
    """What to do."""
    return None if error.code == "invalid-eval-files" else error.hint  # which names this very command


class _Mistakes:
    """What is wrong and what to do about it, look by look."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.hints: dict[str, None] = {}

    def look(self, look: Callable[[], Found], *, named: bool = False) -> Found | None:
        """What this look returns; None where it finds a mistake, which is taken.

        That no target is chosen yet is no mistake here, unless one was `named`; nor that a variable or a library is
        missing: the book notes those.
        """
        try:
            return look()
        except GateError as error:
            if error.code != "no-target" or named:
                self.take(error)
            return None

    def take(self, error: GateError) -> None:
        """Take what it says."""
        self.problems += error.problems or [Problem(error.message)]
        self.hints |= dict.fromkeys(filter(None, [_next_step(error)]))


def _skipped(inputs: RunInputs, assigned: Assignment, config: RunConfig) -> Iterator[str]:
    """Suites with cases that a run would skip, because nobody could grade them."""
    for suite in gradable(inputs.suites, config.rubric, assigned.judges):
        cases = sum(case.skip_reason == NO_JUDGE for case in suite.cases)
        if cases:
            yield f"{suite.file}: {count(cases, 'case')} would be skipped: {NO_JUDGE}"


async def _pattern_problems(inputs: RunInputs) -> AsyncIterator[Problem]:
    """Patterns that are none. Those made of tokens can only be known when the run resolves them."""
    matcher = PatternMatcher()
    try:
        for case, pattern, field in _patterns(inputs.suites):
            error = await matcher.compile_error(pattern)
            if error is not None:
                message = f"{case.id}: {error}"
                yield Problem(message, file=case.location.file, line=case.location.line, field=field)
    finally:
        await matcher.aclose()


def _patterns(suites: tuple[EvalSuite, ...]) -> Iterator[tuple[EvalCase, str, str]]:
    for suite in suites:
        for case in suite.cases:
            for spec in case.evaluators:
                if isinstance(spec, specs.ResponseMatches):
                    yield from ((case, pattern, "expect.responseMatches") for pattern in spec.patterns)
                if isinstance(spec, TextAssertion) and spec.type == "regex":
                    yield case, spec.values[0], "assertions"
                if isinstance(spec, specs.ToolParams):
                    for one in spec.checks:
                        if one.assertion == "matches" and isinstance(one.value, str) and not find_tokens(one.value):
                            yield case, one.value, "expect.toolParams"


def _suite_warnings(inputs: RunInputs) -> Iterator[str]:
    for suite in inputs.suites:
        lines = {f"{case.id}: {said}": case.location.line for case in suite.cases for said in case.warnings}
        for warning in suite.warnings:
            yield f"{suite.file}:{lines[warning]}: {warning}" if warning in lines else f"{suite.file}: {warning}"
        yield from (f"{suite.file}: {warning}" for warning in check(suite, inputs.registry).warnings)


def _unresolved_seeds(inputs: RunInputs) -> Iterator[str]:
    """Seed tokens that lead nowhere: their assertions would be skipped in every run."""
    data = TokenData(seed=inputs.seed)
    why = f"leads nowhere: {NO_SEED}" if inputs.seed is None else "leads nowhere in the seed manifest"
    for suite in inputs.suites:
        for case in suite.cases:
            for text in chain.from_iterable(map(texts_with_tokens, case.evaluators)):
                for token in resolve(text, data).unresolved:
                    if token.startswith("{{seed:"):
                        place = f"{suite.file}:{case.location.line}"
                        yield f"{place}: {case.id}: {token} {why}"
