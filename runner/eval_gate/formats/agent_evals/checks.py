"""What a valid suite may still get wrong: assertions that can only hold, or only fail, and keys that nobody reads."""

from __future__ import annotations

import os
from collections import Counter
from typing import Final

from pydantic import BaseModel

from eval_gate.formats.agent_evals import wire
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.reader import Findings, Path, keys_of
from eval_gate.model.specs.everywhere import finds_everywhere
from eval_gate.sandbox.paths import SandboxError, file_names
from eval_gate.text.dotted_path import looks_like_a_query

_FLAGS: Final = "dgimsuvy"
_HARMLESS: Final = frozenset({"$schema", "$comment"})
_CHANGES: Final = frozenset({"writeFile", "deleteFile"})
_ON_FILES: Final = (wire.FileExists, wire.FileNotExists, wire.FileContains, wire.FileJsonPath)


def check(suite: wire.Suite, findings: Findings, reading: ReadOptions) -> None:
    """Find what is odd in a suite: unknown keys, and assertions that can only hold, or only fail."""
    _unknown(suite, (), findings)
    _unknown(suite.agent, ("agent",), findings)
    _unknown(suite.defaults, ("defaults",), findings)
    for tool, times in Counter(suite.agent.tools).items():
        if times > 1:
            findings.add(f"the tool {tool} is named twice", ("agent", "tools"))
    for index, case in enumerate(suite.cases):
        path: Path = ("cases", index)
        _unknown(case, path, findings)
        if not case.assertions:
            findings.add("no assertions: the case passes whatever the agent answers", path, silent=True)
        for number, assertion in enumerate(case.assertions):
            place = (*path, "assertions", number)
            _unknown(assertion, place, findings)
            _assertion(assertion, place, findings)
            if isinstance(assertion, _ON_FILES):
                _about_files(assertion, suite.agent, place, findings, reading)


def _assertion(assertion: wire.AnyAssertion, path: Path, findings: Findings) -> None:
    match assertion:
        case wire.Contains(value=""):
            findings.add('"" is in every answer: this always holds', (*path, "value"), silent=True)
        case wire.MatchesRegex(pattern=pattern, flags=flags) if finds_everywhere(pattern, flags):
            message = f"/{pattern[:80]}/ finds something in every answer: this always holds"
            findings.add(message, (*path, "pattern"), silent=True)
        case wire.MatchesRegex(flags=flags) if not _are_flags(flags):
            message = f'"{flags[:20]}" are no flags: each of {_FLAGS} at most once, and not u with v: this always fails'
            findings.add(message, (*path, "flags"))
        case wire.JsonPath(path=dotted):
            _dotted(dotted, (*path, "path"), findings)
        case wire.FileJsonPath(json_path=dotted):
            _dotted(dotted, (*path, "jsonPath"), findings)
        case _:
            pass


def _are_flags(flags: str) -> bool:
    return set(flags) <= set(_FLAGS) and len(set(flags)) == len(flags) and not {"u", "v"} <= set(flags)


def _dotted(dotted: str, path: Path, findings: Findings) -> None:
    if looks_like_a_query(dotted):
        findings.add("wildcards, filters and `..` are plain keys here: a path is keys and indexes between dots", path)


def _about_files(
    assertion: wire.FileExists | wire.FileNotExists | wire.FileContains | wire.FileJsonPath,
    agent: wire.Agent,
    path: Path,
    findings: Findings,
    reading: ReadOptions,
) -> None:
    try:
        names = file_names(assertion.path)
    except SandboxError as error:
        findings.add(f"{error} This always fails", (*path, "path"))
        return
    if not _CHANGES.isdisjoint(agent.tools):
        return
    if reading.tmp_shared or (reading.tmp and os.path.lexists(reading.tmp.joinpath(*names))):
        return  # what lies there before the agent is asked decides
    holds = isinstance(assertion, wire.FileNotExists)
    what = "holds" if holds else "fails"
    findings.add(f"the agent has no tool that writes files: this always {what}", path, silent=holds)


def _unknown(part: BaseModel, path: Path, findings: Findings) -> None:
    """Keys nobody reads, with the nearest one that is read."""
    known = keys_of(type(part))
    for key in part.model_extra or {}:
        if key not in _HARMLESS:
            hint = findings.hint(key, known)
            findings.add(f'unknown key "{key[:80]}"{hint}: it is not read', (*path, key), silent=bool(hint))
