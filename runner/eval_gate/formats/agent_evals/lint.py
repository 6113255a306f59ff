"""Warnings about a valid Agent Evals suite: assertions that cannot fail or pass, unknown keys."""

from __future__ import annotations

import os
from collections import Counter
from typing import Final

from pydantic import BaseModel

from eval_gate.formats.agent_evals import file_model
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.document_reader import Findings, Path, get_known_keys
from eval_gate.sandbox.paths import SandboxError, split_file_path
from eval_gate.text.dotted_path import looks_like_jsonpath

_IGNORED_KEYS: Final = frozenset({"$schema", "$comment"})
_WRITING_TOOLS: Final = frozenset({"writeFile", "deleteFile"})
_FILE_ASSERTIONS: Final = (
    file_model.FileExistsAssertion,
    file_model.FileNotExistsAssertion,
    file_model.FileContainsAssertion,
    file_model.FileJsonPathAssertion,
)


def lint_suite(suite: file_model.AgentEvalsSuite, findings: Findings, reading: ReadOptions) -> None:
    """Find what is odd in a suite: unknown keys, and assertions that can only hold, or only fail."""
    _lint_unknown_keys(suite, (), findings)
    _lint_unknown_keys(suite.agent, ("agent",), findings)
    _lint_unknown_keys(suite.defaults, ("defaults",), findings)
    for tool, times in Counter(suite.agent.tools).items():
        if times > 1:
            findings.add(f"the tool {tool} is listed twice", ("agent", "tools"))
    for index, case in enumerate(suite.cases):
        path: Path = ("cases", index)
        unknown = _find_unknown_keys(case)
        if unknown and "assertions" not in case.model_fields_set:
            known = get_known_keys(type(case))
            words = (f'unknown key "{key[:80]}"{findings.suggest_word(key, known)}' for key in unknown)
            findings.skip_case(words, (*path, unknown[0]))
        else:
            _lint_unknown_keys(case, path, findings)
            if not case.assertions:
                findings.add("no assertions: the case passes with every response", path, silent=True)
        for number, assertion in enumerate(case.assertions):
            place = (*path, "assertions", number)
            _lint_unknown_keys(assertion, place, findings)
            _lint_assertion(assertion, place, findings)
            if isinstance(assertion, _FILE_ASSERTIONS):
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
    assertion: file_model.FileExistsAssertion
    | file_model.FileNotExistsAssertion
    | file_model.FileContainsAssertion
    | file_model.FileJsonPathAssertion,
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


def _lint_unknown_keys(part: BaseModel, path: Path, findings: Findings) -> None:
    """Keys nobody reads, with the nearest one that is read."""
    for key in _find_unknown_keys(part):
        hint = findings.suggest_word(key, get_known_keys(type(part)))
        findings.add(f'unknown key "{key[:80]}"{hint}: it is ignored', (*path, key), silent=bool(hint))


def _find_unknown_keys(part: BaseModel) -> list[str]:
    return [key for key in part.model_extra or {} if key not in _IGNORED_KEYS]
