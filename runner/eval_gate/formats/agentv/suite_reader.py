"""Reader for AgentV eval files of both versions."""

from __future__ import annotations

from pathlib import PurePosixPath

from eval_gate.errors import GateError, find_nearest
from eval_gate.formats.agentv import file_model
from eval_gate.formats.agentv.case_reader import CaseReader
from eval_gate.formats.agentv.detection import CASE_LIST_NAMES, find_list_name, is_version_4
from eval_gate.formats.agentv.eval_repository import EvalRepository
from eval_gate.formats.agentv.findings import AgentVFindings
from eval_gate.formats.agentv.guidelines import DEFAULT_PATTERNS, Guidelines, load_guidelines
from eval_gate.formats.agentv.v4.case_files import load_external_cases
from eval_gate.formats.agentv.v4.case_reader import AgentV4CaseReader
from eval_gate.formats.base import EvalFileError, EvalSource, Positions, ReadOptions
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite
from eval_gate.model.limits import CASES
from eval_gate.text.sources.validation_errors import describe_value


def read_suite(document: JsonValue, positions: Positions, source: EvalSource, reading: ReadOptions) -> EvalSuite:
    """Read the suite from this document. Raises EvalFileError with all problems of the file at once."""
    assert isinstance(document, dict)
    name = find_list_name(document) or CASE_LIST_NAMES[0]
    repository = EvalRepository(source)
    document, positions = load_external_cases(document, name, positions, repository)
    today = is_version_4(document, name)
    findings = AgentVFindings(source, positions, strict=reading.strict, today=today)
    reader: CaseReader
    targets: tuple[str, ...] = ()
    if today:
        reader = v4_reader = AgentV4CaseReader(source.file, findings, repository, reading)
        defaults, title = v4_reader.read_header(document, name)
        targets = v4_reader.targets
    else:
        suite = findings.read_part(file_model.AgentVSuite, document, (), ignored=(name,)) or file_model.AgentVSuite()
        reader = CaseReader(source.file, findings, repository, _load_guidelines_or_default(repository, findings))
        defaults, title = reader.read_defaults(suite), suite.dataset
    raw = document.get(name)
    if name not in CASE_LIST_NAMES:
        findings.add_problem(f'unknown key: did you mean "{find_nearest(name, CASE_LIST_NAMES)}"?', (name,))
    if not isinstance(raw, list) or not raw:
        findings.add_problem(f"expected a list of cases, got {describe_value(raw)}", (name,))
        raw = []
    if len(raw) > CASES:
        findings.add_problem(f"{len(raw):,} cases: at most {CASES:,} in one file", (name,))
        raw = []
    cases = [reader.read(case, (name, index), defaults) for index, case in enumerate(raw)]
    if findings.problems:
        raise EvalFileError(
            source.file, sorted(findings.problems, key=lambda problem: (problem.file or "", problem.line or 0))
        )
    return EvalSuite(
        file=source.file,
        format="agentv",
        tool_name=title or PurePosixPath(source.file).stem,
        tier=None,
        file_hash=source.file_hash,
        cases=tuple(case for case in cases if case is not None),
        targets=targets if len(targets) > 1 else (),
        warnings=findings.warnings,
    )


def _load_guidelines_or_default(repository: EvalRepository, findings: AgentVFindings) -> Guidelines:
    try:
        return load_guidelines(repository)
    except GateError as error:
        findings.add_problems(error.problems)
        return Guidelines(DEFAULT_PATTERNS)
