"""AgentV eval files: conversations with what a good answer achieves, judged by models, commands and trajectories.

Source: agentv evaluation spec; agentv behaviour 1, 3, 6 and 13.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from eval_gate.errors import GateError, Problem, nearest
from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.cases import CaseReader
from eval_gate.formats.agentv.files import Repository
from eval_gate.formats.agentv.findings import Findings
from eval_gate.formats.agentv.guidelines import DEFAULTS, Guidelines, load_guidelines
from eval_gate.formats.agentv.lines import LINES, accompanies
from eval_gate.formats.agentv.recognising import is_of_today, list_name, recognises, speaks_of_cases
from eval_gate.formats.agentv.today.cases import TodayReader
from eval_gate.formats.agentv.today.external import gathered
from eval_gate.formats.base import Dialect, EvalFileError, Positions, Reading, Source
from eval_gate.formats.documents import JSON, YAML
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite
from eval_gate.model.limits import CASES
from eval_gate.text.sources.shape import kind_of


def json_schema() -> dict[str, JsonValue]:
    """The JSON Schema of an eval file, by every name that its fields may have."""
    from eval_gate.formats.agentv.schema import file_schema

    return file_schema()


def load(document: JsonValue, positions: Positions, source: Source, reading: Reading) -> EvalSuite:
    """The suite of this document; raises EvalFileError with every problem of the file at once."""
    assert isinstance(document, dict)
    name = list_name(document) or wire.CASES[0]
    repository = Repository(source)
    document, positions = gathered(document, name, positions, repository)
    today = is_of_today(document, name)
    findings = Findings(source, positions, strict=reading.strict, today=today)
    reader: CaseReader
    if today:
        reader = TodayReader(source.file, findings, repository, reading)
        defaults, title = reader.begin(document, name)
    else:
        suite = findings.read(wire.Suite, document, (), ignored=(name,)) or wire.Suite()
        reader = CaseReader(source.file, findings, repository, _guidelines(repository, findings))
        defaults, title = reader.defaults(suite), suite.dataset
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
        tool_name=title or PurePosixPath(source.file).stem,
        tier=None,
        file_hash=source.file_hash,
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


DIALECT: Final = Dialect(JSON | YAML | LINES, recognises, load, json_schema, speaks_of_cases, accompanies)
