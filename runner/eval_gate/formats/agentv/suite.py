"""An AgentV eval file read as a suite: its cases, of either version, with everything that stands beside it."""

from __future__ import annotations

from pathlib import PurePosixPath

from eval_gate.errors import GateError, Problem, nearest
from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.cases import CaseReader
from eval_gate.formats.agentv.files import EvalRepository
from eval_gate.formats.agentv.findings import AgentVFindings
from eval_gate.formats.agentv.guidelines import DEFAULTS, Guidelines, load_guidelines
from eval_gate.formats.agentv.recognising import NAMES, is_of_today, list_name
from eval_gate.formats.agentv.today.cases import TodayReader
from eval_gate.formats.agentv.today.external import gather_cases
from eval_gate.formats.base import EvalFileError, Positions, ReadOptions, Source
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite
from eval_gate.model.limits import CASES
from eval_gate.text.sources.shape import kind_of


def read(document: JsonValue, positions: Positions, source: Source, reading: ReadOptions) -> EvalSuite:
    """The suite of this document; raises EvalFileError with every problem of the file at once."""
    assert isinstance(document, dict)
    name = list_name(document) or NAMES[0]
    repository = EvalRepository(source)
    document, positions = gather_cases(document, name, positions, repository)
    today = is_of_today(document, name)
    findings = AgentVFindings(source, positions, strict=reading.strict, today=today)
    reader: CaseReader
    if today:
        reader = TodayReader(source.file, findings, repository, reading)
        defaults, title = reader.begin(document, name)
    else:
        suite = findings.read(wire.Suite, document, (), ignored=(name,)) or wire.Suite()
        reader = CaseReader(source.file, findings, repository, _guidelines(repository, findings))
        defaults, title = reader.defaults(suite), suite.dataset
    raw = document.get(name)
    if name not in NAMES:
        findings.problem(f'unknown key: did you mean "{nearest(name, NAMES)}"?', (name,))
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


def _guidelines(repository: EvalRepository, findings: AgentVFindings) -> Guidelines:
    try:
        return load_guidelines(repository)
    except GateError as error:
        findings.take(error.problems)
        return Guidelines(DEFAULTS)


def _place(problem: Problem) -> tuple[str, int]:
    return problem.file or "", problem.line or 0
