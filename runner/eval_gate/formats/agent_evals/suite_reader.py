"""Reader for Agent Evals suites: problems and warnings with locations, agent, cases, assertions."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Final

from pydantic_core import ErrorDetails

from eval_gate.errors import format_suggestion
from eval_gate.formats.agent_evals import file_model
from eval_gate.formats.base import EvalSource, Positions, ReadOptions
from eval_gate.formats.document_reader import (
    DocumentReader,
    Findings,
    Path,
    find_skip_reason,
    get_known_keys,
    list_unknown_keys,
)
from eval_gate.model.agent import SUITE_MODEL, SuiteAgent
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Aggregation, EvalCase, EvalSuite, Location
from eval_gate.model.conversation import Message
from eval_gate.model.specs import agent_evals as specs
from eval_gate.sandbox.paths import SandboxError, split_file_path
from eval_gate.text.digest import compute_digest, compute_fingerprint
from eval_gate.text.dotted_path import looks_like_jsonpath
from eval_gate.text.sources.validation_errors import describe_error, describe_value
from eval_gate.text.untrusted.surrogates import to_well_formed

DEFAULT_TARGET: Final = f"openai:{SUITE_MODEL}"
"""Default target of all suites."""
DEFAULT_TIMEOUT_MS: Final = 30_000
"""Default time limit of a case."""
MAX_LABEL: Final = 200
"""Maximum characters of an assertion's description as its name in results."""
_ASSERTION_DEPTH: Final = 4
"""Steps of a path such as `cases[0].assertions[1]`."""
_WRITING_TOOLS: Final = frozenset({"writeFile", "deleteFile"})


def read_suite(document: JsonValue, positions: Positions, source: EvalSource, reading: ReadOptions) -> EvalSuite:
    """Read the suite from this document. Raises EvalFileError with all problems of the file at once.

    If the user chose another target, the suite may name any model; else only `SUITE_MODEL` is allowed.
    """
    reader = DocumentReader(source.file, positions)
    suite = reader.validate_document(
        file_model.AgentEvalsSuite, document, convert_path=_strip_type_step, describe=_describe_validation_error
    )
    ids = [case.id for case in suite.cases]
    reader.check_duplicate_ids(ids)
    _check_trials(suite, reader)
    findings = Findings()
    _lint_suite(suite, findings, reading)
    if suite.agent.model != SUITE_MODEL:
        _check_model(suite.agent.model, reading, reader, findings)
    warnings = reader.collect_warnings(findings, ids, strict=reading.strict)
    agent = SuiteAgent(
        name=suite.agent.name,
        model=suite.agent.model,
        instructions=suite.agent.instructions,
        tools=tuple(dict.fromkeys(suite.agent.tools)),
        max_turns=suite.agent.max_turns,
    )
    return EvalSuite(
        file=source.file,
        format="agent-evals",
        tool_name=to_well_formed(suite.name),
        version=to_well_formed(suite.version),
        tier=None,
        file_hash=source.file_hash,
        cases=tuple(_build_case(suite, index, agent, reader, findings) for index in range(len(suite.cases))),
        warnings=tuple(warnings),
    )


def _check_trials(suite: file_model.AgentEvalsSuite, reader: DocumentReader) -> None:
    """Report impossible numbers of passes, and trials of single cases where all share the files of the agent."""
    reader.check_passes(suite.defaults, ("defaults",), suite.defaults)
    for index, case in enumerate(suite.cases):
        reader.check_passes(case, ("cases", index), suite.defaults)
        if case.trials is not None and not _WRITING_TOOLS.isdisjoint(suite.agent.tools):
            message = "set it in `defaults`: all cases of an agent that changes files run together, equally often"
            reader.problems.append(reader.build_problem(message, ("cases", index, "trials")))


def _check_model(model: str, reading: ReadOptions, reader: DocumentReader, findings: Findings) -> None:
    """Report a model other than that of all suites, only as a warning if the user chose another target."""
    place = ("agent", "model")
    if reading.target_override is not None:
        instead = reading.target_override[:80]
        findings.add(f'the suite names the model "{model[:80]}"; {instead} is used instead', place)
        return
    message = f'"{model[:80]}" is not {SUITE_MODEL}, the model of all suites: choose another one with'
    reader.problems.append(reader.build_problem(f"{message} --model or --target", place))


def _strip_type_step(loc: Path) -> Path:
    """Return the path in the file, without the step that pydantic adds for the type of an assertion."""
    if len(loc) > _ASSERTION_DEPTH and loc[2] == "assertions":
        return (*loc[:_ASSERTION_DEPTH], *loc[_ASSERTION_DEPTH + 1 :])
    return loc


def _describe_validation_error(detail: ErrorDetails) -> str:
    """Describe one problem, also of an assertion with an unknown type."""
    if detail["type"] not in {"union_tag_invalid", "union_tag_not_found"}:
        return describe_error(detail)
    value = detail["input"]
    known_types = ", ".join(file_model.ASSERTIONS)
    if isinstance(value, dict) and isinstance(kind := value.get("type"), str):
        return f'unknown assertion "{kind[:80]}"{format_suggestion(kind, file_model.ASSERTIONS)}; known: {known_types}'
    return f"expected an assertion with a `type`, got {describe_value(value)}; known: {known_types}"


def _build_case(
    suite: file_model.AgentEvalsSuite, index: int, agent: SuiteAgent, reader: DocumentReader, findings: Findings
) -> EvalCase:
    case, mistakes = suite.cases[index].inherit_trials(suite.defaults), reader.build_mistakes(findings, index)
    timeout_ms = case.timeout or suite.defaults.timeout or DEFAULT_TIMEOUT_MS
    return EvalCase(
        id=case.id,
        suite=reader.file,
        description=to_well_formed(case.name),
        messages=(Message(role="user", content=case.prompt),),
        evaluators=tuple(_build_spec(assertion) for assertion in case.assertions),
        aggregation=Aggregation.ALL,
        tags=tuple(case.tags),
        draft=case.draft,
        max_turns=agent.max_turns,
        timeout_ms=math.ceil(timeout_ms),
        agent=agent,
        target=DEFAULT_TARGET,
        skip_reason=find_skip_reason(mistakes),
        location=Location(file=reader.file, line=reader.find_line(("cases", index))),
        mistakes=mistakes,
        # the agent is what is evaluated: a changed one is asked the same
        fingerprint=compute_fingerprint({"prompt": case.prompt, "assertions": _dump_assertions(case)}),
        prompt_fingerprint=compute_digest(case.prompt),
        expectation_fingerprint=compute_digest(_dump_assertions(case)),
        warnings=reader.build_warnings(findings, index),
        trials=case.trials,
        passes=case.passes,
    )


_SPEC_CLASSES: Final[dict[type[file_model.AnyAssertion], type[specs.SuiteAssertion]]] = {
    file_model.ContainsAssertion: specs.OutputContains,
    file_model.MatchesRegexAssertion: specs.OutputMatches,
    file_model.EqualsAssertion: specs.OutputEquals,
    file_model.JsonPathAssertion: specs.OutputJsonPath,
    file_model.FileExistsAssertion: specs.FileExists,
    file_model.FileNotExistsAssertion: specs.FileNotExists,
    file_model.FileContainsAssertion: specs.FileContains,
    file_model.FileJsonPathAssertion: specs.FileJsonPath,
}


def _build_spec(assertion: file_model.AnyAssertion) -> specs.SuiteAssertion:
    """Build the evaluator specification from the fields of an assertion."""
    fields = {name: getattr(assertion, name) for name in type(assertion).model_fields if name != "description"}
    label = to_well_formed((assertion.description or "")[:MAX_LABEL]) or None
    return _SPEC_CLASSES[type(assertion)](label=label, **fields)


def _dump_assertions(case: file_model.AgentEvalsCase) -> list[JsonValue]:
    """Return the case's assertions as JSON, as they are in the file but without their descriptions."""
    return [
        assertion.model_dump(mode="json", include={*type(assertion).model_fields} - {"description"})
        for assertion in case.assertions
    ]


def _lint_suite(suite: file_model.AgentEvalsSuite, findings: Findings, reading: ReadOptions) -> None:
    """Find unknown keys in a suite, and assertions that always hold or always fail."""
    findings.lint_unknown_keys(suite, ())
    findings.lint_unknown_keys(suite.agent, ("agent",))
    findings.lint_unknown_keys(suite.defaults, ("defaults",))
    for tool, times in Counter(suite.agent.tools).items():
        if times > 1:
            findings.add(f"the tool {tool} is listed twice", ("agent", "tools"))
    for index, case in enumerate(suite.cases):
        path: Path = ("cases", index)
        unknown = list_unknown_keys(case)
        if unknown and "assertions" not in case.model_fields_set:
            known_keys = get_known_keys(type(case))
            words = (f'unknown key "{key[:80]}"{findings.suggest_word(key, known_keys)}' for key in unknown)
            findings.skip_case(words, (*path, unknown[0]))
        else:
            findings.lint_unknown_keys(case, path)
            if not case.assertions:
                findings.add("no assertions: the case passes with every response", path, silent=True)
        for number, assertion in enumerate(case.assertions):
            place = (*path, "assertions", number)
            findings.lint_unknown_keys(assertion, place)
            _lint_assertion(assertion, place, findings)
            if isinstance(assertion, file_model.FileAssertion):
                _lint_file_assertion(assertion, suite.agent, place, findings, reading)


def _lint_assertion(assertion: file_model.AnyAssertion, path: Path, findings: Findings) -> None:
    match assertion:
        case file_model.ContainsAssertion(value=""):
            findings.add('"" is in every response: this always passes', (*path, "value"), silent=True)
        case file_model.MatchesRegexAssertion(pattern=pattern, flags=flags):
            findings.lint_pattern(pattern, flags, (*path, "pattern"))
        case file_model.JsonPathAssertion(path=dotted):
            _lint_dotted_path(dotted, (*path, "path"), findings)
        case file_model.FileJsonPathAssertion(json_path=dotted):
            _lint_dotted_path(dotted, (*path, "jsonPath"), findings)
        case _:
            pass


def _lint_dotted_path(dotted: str, path: Path, findings: Findings) -> None:
    if looks_like_jsonpath(dotted):
        findings.add(
            "wildcards, filters and `..` are read as plain keys: a path consists of keys and indexes between dots", path
        )


def _lint_file_assertion(
    assertion: file_model.FileAssertion,
    agent: file_model.AgentEvalsAgent,
    path: Path,
    findings: Findings,
    reading: ReadOptions,
) -> None:
    try:
        names = split_file_path(assertion.path)
    except SandboxError as error:
        findings.add(f"{error} This always fails", (*path, "path"))
        return
    if not _WRITING_TOOLS.isdisjoint(agent.tools):
        return
    if reading.tmp_shared or (reading.tmp and os.path.lexists(reading.tmp.joinpath(*names))):
        return  # what lies there before the agent is asked decides
    holds = isinstance(assertion, file_model.FileNotExistsAssertion)
    what = "holds" if holds else "fails"
    findings.add(f"the agent has no tool that writes files: this always {what}", path, silent=holds)
