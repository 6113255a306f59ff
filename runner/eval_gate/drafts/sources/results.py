"""Read observations from results of other tools, in every format that `eval-gate check` reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from eval_gate.config.settings import ResultsFormat
from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources.collection import ObservationCollector
from eval_gate.drafts.sources.source_file import build_source_error
from eval_gate.drafts.sources.source_messages import PromptError, parse_prompt
from eval_gate.errors import Problem
from eval_gate.external_results.format_detection import open_results
from eval_gate.external_results.result_files import ResultsFile, find_result_files
from eval_gate.external_results.result_rows import MAX_ROWS, FileFacts, ResultRow, RowPlace
from eval_gate.model.case import Location
from eval_gate.model.conversation import Response
from eval_gate.model.execution import Status

_EXCLUDED: Final = {
    Status.FAILED: "the tool says that it failed, so its response is no example",
    Status.ERROR: "the tool says that it ended with an error",
    Status.SKIPPED: "it was skipped",
}
_NO_PROMPT: Final = "the results do not have its prompt"
_NO_RESPONSE: Final = "the results do not have its response"


def read_results(
    paths: Sequence[Path | str], form: ResultsFormat = ResultsFormat.AUTO, encoding: str | None = None
) -> ObservationSet:
    """Read executions from files and folders, without the failed ones and those without a prompt or response.

    Notes count those left out: a failed response is no example of what is expected. Raises GateError: those of `check`
    for files that cannot be read, and `invalid-draft-source` if no execution is left.
    """
    collector, rows = ObservationCollector("execution"), 0
    names = [str(path) for path in paths]
    for file in find_result_files(names):
        if file.skip_reason:
            collector.add_note(f"{file.shown_as} {file.skip_reason}")
            continue
        rows += _read_file(file, form, encoding, collector)
        if rows > MAX_ROWS:
            raise RowPlace(file.shown_as).build_error(f"has more than {MAX_ROWS:,} executions")
    if collector.is_empty:
        all_names = ", ".join(names)
        problems = [Problem(reason, place or all_names) for reason, place in collector.reasons]
        hint = "use results that hold prompts and responses, and in which something passed"
        raise build_source_error(problems or [Problem("has no executions", all_names)], hint)
    return collector.build()


def _read_file(file: ResultsFile, form: ResultsFormat, encoding: str | None, collector: ObservationCollector) -> int:
    rows, facts = 0, FileFacts(needs_sent_prompts=True)
    with open_results(file.path, file.shown_as, form, encoding) as (file_format, readable):
        for row in file_format.load_reader()(readable, file.shown_as, facts):
            rows += 1
            _read_row(row, collector)
    for note in facts.notes:
        collector.add_note(note)
    return rows


def _read_row(row: ResultRow, collector: ObservationCollector) -> None:
    """Read one execution, or count it as left out."""
    place = str(row.place)
    reason = _EXCLUDED.get(row.status) if row.status is not None else None
    if reason is None and not row.prompt.strip():
        reason = _NO_PROMPT
    if reason is None and row.response is None and not row.calls:
        reason = _NO_RESPONSE
    if reason is not None:
        collector.leave_out(reason, place)
        return
    try:
        prompt = parse_prompt(row.prompt)
    except PromptError as error:
        collector.leave_out(str(error), place, error.detail)
        return
    response = Response(
        text=row.response or "",
        tool_calls=row.calls,
        tool_calls_known=True if row.calls else None,
        tool_calls_location="" if row.calls else "a list of tool calls in the results",
        duration_ms=row.duration_ms or 0.0,
    )
    line = row.place.line
    collector.add_execution(prompt, response, Location(file=row.place.file, line=line or 1))
