"""Reads an Agent Evals suite: every problem with its place, then the agent, the cases and their assertions."""

from __future__ import annotations

import math
from typing import Final

from pydantic_core import ErrorDetails

from eval_gate.errors import did_you_mean
from eval_gate.formats.agent_evals import wire
from eval_gate.formats.agent_evals.checks import check
from eval_gate.formats.base import Positions, ReadOptions, Source
from eval_gate.formats.reader import DocumentReader, Findings, Path
from eval_gate.model.agent import SUITE_MODEL, SuiteAgent
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Aggregation, EvalCase, EvalSuite, Location
from eval_gate.model.conversation import Message
from eval_gate.model.specs import agent_evals as specs
from eval_gate.text.digest import digest, fingerprint
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.sources.shape import kind_of, sentence

TARGET: Final = f"openai:{SUITE_MODEL}"
"""Who answers unless the person running chooses."""
TIMEOUT_MS: Final = 30_000
"""Limit of a case where neither it nor the suite says one."""
MAX_LABEL: Final = 200
"""Characters of an assertion's description that results have as its name."""
_ASSERTION: Final = 4
"""Steps of a path such as `cases[0].assertions[1]`."""


def read(document: JsonValue, positions: Positions, source: Source, reading: ReadOptions) -> EvalSuite:
    """The suite of this document; raises EvalFileError with every problem of the file at once.

    Where somebody chose who answers instead, the suite may name any model; else only `SUITE_MODEL` is allowed.
    """
    reader = DocumentReader(source.file, positions)
    suite = reader.shape(wire.Suite, document, written=_as_written, said=_sentence)
    reader.refuse_twins(suite.cases)
    findings = Findings()
    check(suite, findings, reading)
    if suite.agent.model != SUITE_MODEL:
        _other_model(suite.agent.model, reading, reader, findings)
    warnings = reader.warnings(findings, suite.cases, strict=reading.strict)
    agent = _agent(suite.agent)
    return EvalSuite(
        file=source.file,
        format="agent-evals",
        tool_name=well_formed(suite.name),
        version=well_formed(suite.version),
        tier=None,
        file_hash=source.file_hash,
        cases=tuple(
            _case(suite, index, agent, Location(file=source.file, line=reader.line(("cases", index))), findings)
            for index in range(len(suite.cases))
        ),
        warnings=tuple(warnings),
    )


def _other_model(named: str, reading: ReadOptions, reader: DocumentReader, findings: Findings) -> None:
    """The suite names another model than the one it is fixed to: refused, unless somebody else answers anyway."""
    place = ("agent", "model")
    if reading.answers_instead is not None:
        instead = reading.answers_instead[:80]
        findings.add(f'the suite names the model "{named[:80]}"; {instead} answers instead', place)
        return
    message = f'"{named[:80]}" is not {SUITE_MODEL}, to which suites are fixed: choose who answers with'
    reader.problems.append(reader.problem(f"{message} --model or --target", place))


def _as_written(loc: Path) -> Path:
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
        suite=location.file,
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
        # the agent is what is evaluated: a changed one is asked the same
        fingerprint=fingerprint({"prompt": case.prompt, "assertions": _asserted(case)}),
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


def _asserted(case: wire.Case) -> list[JsonValue]:
    """The assertions as they are written, but for what they are called."""
    return [
        assertion.model_dump(mode="json", include={*type(assertion).model_fields} - {"description"})
        for assertion in case.assertions
    ]
