"""AgentV eval files: conversations with what a good answer achieves, judged by models, commands and trajectories.

Source: agentv evaluation spec; agentv behaviour 1, 3, 6 and 13.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from eval_gate.errors import GateError, Problem, nearest
from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.cases import CaseReader
from eval_gate.formats.agentv.files import Repository
from eval_gate.formats.agentv.findings import Findings, given
from eval_gate.formats.agentv.guidelines import DEFAULTS, Guidelines, load_guidelines
from eval_gate.formats.base import EvalFileError, Positions, Reading, Source
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite
from eval_gate.model.limits import CASES
from eval_gate.text.sources.shape import kind_of

_OWN_NAMES: Final = wire.CASES[:2]
"""Names of the list of cases that no other format has."""
_OWN_FIELDS: Final = ("input_messages", "expected_outcome")
"""Fields of a case that no other format has."""
_FIELDS: Final = ("input", "outcome", "criteria")
"""Fields of a case that another format may have too."""
_OTHERS_FIELDS: Final = ("expect", "rubric", "prompt")
"""Fields of a case that make it one of another format."""
_WORDS: Final = re.compile(rb"\b(?:evalcases|eval_cases|input_messages|expected_outcome|expected_messages|criteria)\b")


def recognises(document: JsonValue) -> bool:
    """An object with a list `evalcases` (or by a later name) of cases with `input_messages`, an outcome, or both."""
    return isinstance(document, dict) and _list_name(document) is not None


def speaks_of_cases(data: bytes) -> bool:
    """Whether a file that cannot be read was probably meant to be one of this format."""
    return _WORDS.search(data) is not None


def _list_name(document: Mapping[str, JsonValue]) -> str | None:
    """The name of the list of cases, also where it is misspelt; None where there is none of this format."""
    own = given(document, _OWN_NAMES)
    if own is not None:
        return own
    if "agent" in document:  # Agent Evals
        return None
    for name, value in document.items():
        if isinstance(value, list) and any(_is_case(one) for one in value) and nearest(name, wire.CASES):
            return name
    return None


def _is_case(value: JsonValue) -> bool:
    """Whether this is a case of this format, as far as one can see."""
    if not isinstance(value, dict):
        return False
    if any(name in value for name in _OWN_FIELDS):
        return True
    if any(name in value for name in _OTHERS_FIELDS) or isinstance(value.get("input"), dict):
        return False
    return "id" in value and any(name in value for name in _FIELDS)


def json_schema() -> dict[str, JsonValue]:
    """The JSON Schema of an eval file, by every name that its fields may have."""
    from eval_gate.formats.agentv.schema import file_schema

    return file_schema()


def load(document: JsonValue, positions: Positions, source: Source, reading: Reading) -> EvalSuite:
    """The suite of this document; raises EvalFileError with every problem of the file at once."""
    assert isinstance(document, dict)
    findings = Findings(source, positions, strict=reading.strict)
    name = _list_name(document) or wire.CASES[0]
    suite = findings.read(wire.Suite, document, (), ignored=(name,)) or wire.Suite()
    repository = Repository(source)
    reader = CaseReader(source.file, findings, repository, _guidelines(repository, findings))
    defaults = reader.defaults(suite)
    raw = document.get(name)
    if name not in wire.CASES:
        findings.problem(f'unknown key: did you mean "{nearest(name, wire.CASES)}"?', (name,))
    if not isinstance(raw, list) or not raw:
        findings.problem(f"expected a list of cases, got {kind_of(raw)}", (name,))
        raw = []
    if len(raw) > CASES:
        findings.problem(f"{len(raw):,} cases: at most {CASES:,} in one file", (name,))
        raw = []
    cases = [reader.read(case, (name, index), defaults) for index, case in enumerate(raw)]
    if findings.problems:
        raise EvalFileError(source.file, sorted(findings.problems, key=_place))
    return EvalSuite(
        file=source.file,
        format="agentv",
        tool_name=suite.dataset or PurePosixPath(source.file).stem,
        tier=None,
        file_hash=hashlib.sha256(source.data).hexdigest()[:12],
        cases=tuple(case for case in cases if case is not None),
        warnings=findings.warnings,
    )


def _guidelines(repository: Repository, findings: Findings) -> Guidelines:
    try:
        return load_guidelines(repository)
    except GateError as error:
        findings.take(error.problems)
        return Guidelines(DEFAULTS)


def _place(problem: Problem) -> tuple[str, int]:
    return problem.file or "", problem.line or 0
