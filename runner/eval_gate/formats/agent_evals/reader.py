"""Reads an Agent Evals suite: every problem with its place, then the agent, the cases and their assertions."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from eval_gate.errors import Problem, did_you_mean
from eval_gate.formats.agent_evals import wire
from eval_gate.formats.agent_evals.checks import check
from eval_gate.formats.base import EvalFileError, Positions, Reading, Source
from eval_gate.formats.tool_forge.checks import Findings
from eval_gate.model import suite_assertions as specs
from eval_gate.model.agent import SUITE_MODEL, SuiteAgent
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Aggregation, EvalCase, EvalSuite, Location
from eval_gate.model.conversation import Message
from eval_gate.model.limits import FINDINGS
from eval_gate.text.digest import digest
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.sources.shape import field_path, kind_of, mistakes, sentence

TARGET: Final = f"openai:{SUITE_MODEL}"
"""Who answers unless the person running chooses."""
TIMEOUT_MS: Final = 30_000
"""Limit of a case where neither it nor the suite says one."""
MAX_LABEL: Final = 200
"""Characters of an assertion's description that results have as its name."""
_ASSERTION: Final = 4
"""Steps of a path such as `cases[0].assertions[1]`."""


def read(document: JsonValue, positions: Positions, source: Source, reading: Reading) -> EvalSuite:
    """The suite of this document; raises EvalFileError with every problem of the file at once.

    Where somebody chose who answers instead, the suite may name any model; else only `SUITE_MODEL` is allowed.
    """
    reader = _Reader(source.file, positions)
    suite = reader.suite(document)
    findings = Findings()
    check(suite, findings)
    if suite.agent.model != SUITE_MODEL:
        reader.other_model(suite.agent.model, reading.answers_instead, findings)
    if reading.strict:
        reader.problems += [reader.problem(finding.message, finding.path) for finding in findings.strict]
    if reader.problems:
        raise EvalFileError(source.file, sorted(reader.problems, key=lambda problem: problem.line or 0))
    agent = _agent(suite.agent)
    return EvalSuite(
        file=source.file,
        format="agent-evals",
        tool_name=well_formed(suite.name),
        version=well_formed(suite.version),
        tier=None,
        file_hash=hashlib.sha256(source.data).hexdigest()[:12],
        cases=tuple(
            _case(suite, index, agent, Location(file=source.file, line=reader.line(("cases", index))), findings)
            for index in range(len(suite.cases))
        ),
        warnings=tuple(
            f"{_name_of(finding.path, suite)}: {finding.message}" for finding in (*findings.all, *findings.more)
        ),
    )


class _Reader:
    """One document with its places: turns what is wrong into problems."""

    def __init__(self, file: str, positions: Positions) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._positions = positions

    def line(self, steps: Iterable[str | int]) -> int:
        return self._positions.line(tuple(steps))

    def problem(self, message: str, steps: Iterable[str | int]) -> Problem:
        steps = tuple(steps)
        return Problem(message, file=self._file, line=self.line(steps), field=field_path(steps) or None)

    def suite(self, document: JsonValue) -> wire.Suite:
        """The validated suite, with duplicate ids noted. Raises EvalFileError where the shape is wrong."""
        try:
            suite = wire.Suite.model_validate(document)
        except ValidationError as error:
            problems = [self.problem(_sentence(detail), _as_written(detail["loc"])) for detail in mistakes(error)]
            raise EvalFileError(self._file, sorted(problems, key=lambda problem: problem.line or 0)) from error
        first: dict[str, int] = {}
        for index, case in enumerate(suite.cases):
            if case.id in first and len(self.problems) < FINDINGS:
                message = f'the id "{case.id}" is taken by the case in line {self.line(("cases", first[case.id]))}'
                self.problems.append(self.problem(message, ("cases", index, "id")))
            first.setdefault(case.id, index)
        return suite

    def other_model(self, named: str, answers_instead: str | None, findings: Findings) -> None:
        """The suite names another model than the one it is fixed to: refused, unless somebody else answers anyway."""
        place = ("agent", "model")
        if answers_instead is not None:
            findings.add(f'the suite names the model "{named[:80]}"; {answers_instead[:80]} answers instead', place)
            return
        message = f'"{named[:80]}" is not {SUITE_MODEL}, to which suites are fixed: choose who answers with'
        self.problems.append(self.problem(f"{message} --model or --target", place))


def _as_written(loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The path in the file: pydantic names the kind of an assertion as a step of its own."""
    if len(loc) > _ASSERTION and loc[2] == "assertions":
        return (*loc[:_ASSERTION], *loc[_ASSERTION + 1 :])
    return loc


def _sentence(detail: ErrorDetails) -> str:
    """One problem in our words, also those of assertions whose type says nothing to us."""
    if detail["type"] not in {"union_tag_invalid", "union_tag_not_found"}:
        return sentence(detail)
    given = detail["input"]
    known = ", ".join(wire.ASSERTIONS)
    if isinstance(given, dict) and isinstance(named := given.get("type"), str):
        return f'there is no assertion "{named[:80]}"{did_you_mean(named, wire.ASSERTIONS)}; known: {known}'
    return f"expected an assertion with a `type`, got {kind_of(given)}; known: {known}"


def _name_of(steps: tuple[str | int, ...], suite: wire.Suite) -> str:
    """What people call the place: the case's id, or the field."""
    if steps[:1] == ("cases",) and len(steps) > 1 and isinstance(steps[1], int):
        return suite.cases[steps[1]].id
    return field_path(steps)


def _agent(agent: wire.Agent) -> SuiteAgent:
    return SuiteAgent(
        name=agent.name,
        model=agent.model,
        instructions=agent.instructions,
        tools=tuple(dict.fromkeys(agent.tools)),
        max_turns=agent.max_turns,
    )


def _case(suite: wire.Suite, index: int, agent: SuiteAgent, location: Location, findings: Findings) -> EvalCase:
    case = suite.cases[index]
    timeout_ms = case.timeout or suite.defaults.timeout or TIMEOUT_MS
    return EvalCase(
        id=case.id,
        description=well_formed(case.name),
        messages=(Message(role="user", content=case.prompt),),
        evaluators=tuple(_spec(assertion) for assertion in case.assertions),
        aggregation=Aggregation.ALL,
        tags=tuple(case.tags),
        max_turns=agent.max_turns,
        timeout_ms=math.ceil(timeout_ms),
        agent=agent,
        target=TARGET,
        location=location,
        fingerprint=_fingerprint(case),
        question=digest(case.prompt),
        expectation=digest(_asserted(case)),
        warnings=findings.of_case(index),
    )


_SPECS: Final[dict[type[wire.AnyAssertion], type[specs.SuiteAssertion]]] = {
    wire.Contains: specs.OutputContains,
    wire.MatchesRegex: specs.OutputMatches,
    wire.Equals: specs.OutputEquals,
    wire.JsonPath: specs.OutputJsonPath,
    wire.FileExists: specs.FileExists,
    wire.FileNotExists: specs.FileNotExists,
    wire.FileContains: specs.FileContains,
    wire.FileJsonPath: specs.FileJsonPath,
}


def _spec(assertion: wire.AnyAssertion) -> specs.SuiteAssertion:
    """The same fields as data for the evaluators."""
    fields = {name: getattr(assertion, name) for name in type(assertion).model_fields if name != "description"}
    label = well_formed((assertion.description or "")[:MAX_LABEL]) or None
    return _SPECS[type(assertion)](label=label, **fields)


def _fingerprint(case: wire.Case) -> str:
    """SHA-256 of what is asked and expected. The agent is what is evaluated: a changed one is asked the same."""
    asked = json.dumps({"prompt": case.prompt, "assertions": _asserted(case)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(asked.encode()).hexdigest()


def _asserted(case: wire.Case) -> list[JsonValue]:
    """The assertions as they are written, but for what they are called."""
    return [
        assertion.model_dump(mode="json", include={*type(assertion).model_fields} - {"description"})
        for assertion in case.assertions
    ]
