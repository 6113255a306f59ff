"""What `eval-gate validate` looks at, beyond what loading the files already refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

from eval_gate.cli.terminal.console import Verbosity, out, print_problems, say
from eval_gate.config.selection import Selection
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, RunConfig
from eval_gate.engine.preparing.assign import assign
from eval_gate.engine.preparing.context import RunContext
from eval_gate.engine.preparing.prepare import RunInputs, read_inputs
from eval_gate.errors import GateError, Problem
from eval_gate.gate.judges.file import read_comparisons
from eval_gate.model.base import JsonValue
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


class Checkup(FrozenStruct):
    """Everything that was found. Problems stop a run or make a check worthless; warnings do neither.

    `notes` say what a run needs and this machine lacks, such as variables: nothing is wrong with what was checked.
    """

    suites: tuple[EvalSuite, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[Problem, ...] = ()
    hint: str | None = None
    """What to do where nothing could be checked."""

    __repr__ = object.__repr__


async def check_everything(config: RunConfig, root: Path, environment: Mapping[str, str]) -> Checkup:
    """Files, targets, tokens, patterns, staleness: all of it, even after the first problem."""
    lacking = MissingParts()
    book = TargetBook(config.target, BuildContext(environment, root, lacking=lacking))
    try:
        inputs = await read_inputs(config, Selection(), RunContext(root, environment), offline=True)
    except GateError as error:
        chosen = _wrong(book.target) if config.target.said else []
        problems = [*chosen, *(error.problems or (Problem(error.message),))]
        return Checkup(problems=tuple(problems), notes=lacking.noted, hint=_next_step(error))
    problems = _wrong(lambda: assign(inputs.suites, book, config))
    problems += _wrong(lambda: read_comparisons(root))  # of what is known of judges: a run would not begin
    problems += [problem async for problem in _pattern_problems(inputs)]
    warnings = [*inputs.warnings, *_suite_warnings(inputs), *_unresolved_seeds(inputs), *book.remarks]
    unread = book.unread(str(Path(suite.file).parent) for suite in inputs.suites)
    warnings += [unread] if unread else []
    return Checkup(inputs.suites, tuple(problems), tuple(warnings), lacking.noted)


def print_findings(findings: Checkup, verbosity: Verbosity) -> None:
    """Problems and warnings on standard error, what was checked on standard output."""
    print_problems(findings.problems)
    if findings.hint:
        say(f"hint: {console_line(findings.hint)}")
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
    """What to do. Whoever has no evals yet does not know what to name: `init` writes the first ones."""
    if error.code == "no-eval-files":
        return f"{error.hint}, or write first ones with `eval-gate init`"
    return None if error.code == "invalid-eval-files" else error.hint  # which names this very command


def _wrong(look: Callable[[], object]) -> list[Problem]:
    """What is wrong, as far as this look finds it.

    That no target is chosen yet is no mistake here, nor that a variable or a library is missing: the book notes those.
    """
    try:
        look()
    except GateError as error:
        alone = Problem(f"{error.message} ({error.hint})" if error.hint else error.message)
        return [] if error.code == "no-target" else list(error.problems) or [alone]
    return []


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
    why = "leads nowhere in the seed manifest"
    if inputs.seed is None:
        why = f"leads nowhere: there is no seed manifest ({DEFAULT_SEED_MANIFEST}, or what seedManifestPath names)"
    for suite in inputs.suites:
        for case in suite.cases:
            for text in _expected_texts(case):
                for token in resolve(text, data).unresolved:
                    if token.startswith("{{seed:"):
                        place = f"{suite.file}:{case.location.line}"
                        yield f"{place}: {case.id}: {token} {why}"


def _expected_texts(case: EvalCase) -> Iterator[str]:
    for spec in case.evaluators:
        match spec:
            case specs.ResponseContains() | specs.ResponseNotContains():
                yield from spec.values
            case specs.ResponseContainsAny():
                yield from (member for group in spec.groups for member in group)
            case specs.ToolParams():
                yield from (text for one in spec.checks for text in _texts(one.value))


def _texts(value: JsonValue) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(member for member in values if isinstance(member, str))
