"""AgentV results: the rows of a run's index, and the files that they name.

Version 4 writes `index.jsonl` into the folder of the run. Version 5 writes `summary.json` there, which names the index:
`.internal/index.jsonl`. Several trials (4) or samples (5) of a test are one row, with the verdict of AgentV.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.external_results.json_streaming import iter_lines, parse_value, read_document
from eval_gate.external_results.records import Fields
from eval_gate.external_results.result_rows import (
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_ending,
)
from eval_gate.external_results.statuses import Meaning, parse_tables
from eval_gate.files.reading import read_limited_result
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import EXTERNAL_TEXT
from eval_gate.text.digest import compute_fingerprint

INDEX: Final = "index.jsonl"
SUMMARY: Final = "summary.json"
INTERNAL_FOLDER: Final = ".internal"
"""Folder of the index in a run of version 5."""
_SUMMARIES: Final = ("benchmark.json", SUMMARY)
"""In the folder of a run, from its beginning: of version 4, and of version 5."""
STATUSES: Final = parse_tables("""
AgentV 4.42.4, 5.3.1: execution_status
  passed: ok; failed: quality_failure; agent error: execution_error
AgentV 4.42.4, 5.3.1: failure_stage
  no verdict: -, agent; evaluation error: evaluator, repo_setup, setup
AgentV 4.42.4: verdict of a score
  passed: pass; failed: fail; evaluation error: skip
AgentV 5.3.1: pass of a score
  passed: true; failed: false
""")
_STATUS, _STAGE, _VERDICT, _PASS = STATUSES


def read_agentv_summary(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every row of the index that the summary of a run names. Raises GateError if there is no such index."""
    facts.tool = "AgentV"
    place = RowPlace(shown_as)
    index_path = Fields(read_document(file, shown_as)).get("index_path")
    if not isinstance(index_path, str) or not index_path:
        raise place.build_error("names no `index_path`")
    folder = file.parent.resolve()
    index = (folder / index_path).resolve()
    if not index.is_relative_to(folder):
        raise place.build_error(f"names a file outside of its folder: {index_path[:100]}")
    if not index.is_file():
        raise place.build_incomplete_error(f"names {index_path[:100]}, which does not exist: AgentV wrote no result")
    yield from read_agentv(file.parent / index_path, str(Path(shown_as).parent / index_path), facts)


def find_run_folder(index: Path) -> Path:
    """Find the folder of the run that an index belongs to: its own, or that of the summary of version 5."""
    folder = index.parent.parent
    return folder if index.parent.name == INTERNAL_FOLDER and (folder / SUMMARY).is_file() else index.parent


def read_agentv(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every row of the index. Raises GateError, also for a run with fewer rows than AgentV planned."""
    facts.tool = "AgentV"
    folder = find_run_folder(file)
    row_files = _RowFiles(folder.resolve(), _find_shared_folders(file, shown_as))
    count, first_places = 0, dict[str, RowPlace]()
    for place, row in iter_lines(file, shown_as):
        first = first_places.setdefault(compute_fingerprint(row.value), place)
        if first is not place:
            facts.notes.append(f"{place} is the same row as {first}, which --rerun-failed repeats: it was read once")
            continue
        yield _build_row(row, row_files, place)
        count += 1
    planned = max((_read_planned_count(folder / name) for name in _SUMMARIES), default=0.0)
    if count < planned:  # rows are written one by one
        raise RowPlace(shown_as).build_incomplete_error(f"holds {count} of {planned:.0f} results that AgentV planned")


def _read_planned_count(summary: Path) -> float:
    """Read how many tests AgentV planned or counted: 0 without such a summary."""
    if not summary.is_file():
        return 0.0
    document = Fields(read_document(summary, str(summary)))
    return max(document.number(path) or 0.0 for path in ("metadata.planned_test_count", "counts.total_tests"))


def _find_shared_folders(file: Path, shown_as: str) -> frozenset[str]:
    """Find folders that rows of several targets name: in these, the files of the last target replace the others."""
    targets: dict[str, set[str]] = {}
    for _, row in iter_lines(file, shown_as):
        if folder := _get_row_folder(row):
            targets.setdefault(folder, set()).add(row.text("target"))
    return frozenset(folder for folder, several in targets.items() if len(several) > 1)


def _get_row_folder(row: Fields) -> str | None:
    folder = row.get("artifact_dir", "result_dir")
    return folder if isinstance(folder, str) else None


class _RowFiles(NamedTuple):
    """Files that rows name, which are in `folder`. Those in `shared` folders may be of another target."""

    folder: Path
    shared: Collection[str]

    def read_text(self, path: JsonValue, place: RowPlace) -> str | None:
        if not isinstance(path, str) or not path:
            return None
        try:
            file = (self.folder / path).resolve()
            if not file.is_relative_to(self.folder):
                raise place.build_error(f"names a file outside of its folder: {path[:100]}")
            data = read_limited_result(file, EXTERNAL_TEXT)[:EXTERNAL_TEXT] if file.is_file() else None
            return None if data is None else data.decode("utf-8", "replace")
        except (OSError, ValueError):
            return None


def _build_row(row: Fields, companion: _RowFiles, place: RowPlace) -> ResultRow:
    scores = tuple(map(_build_score, row.members("scores")))
    own = _get_row_folder(row) not in companion.shared
    timed = companion.read_text(row.get("timing_path"), place) if own else None
    timing = Fields(parse_value(timed, place) if timed else None)
    prompt = companion.read_text(row.get("input_path"), place) or ""
    content = prompt or companion.read_text(row.get("eval_path"), place)
    usage = timing.at("token_usage") or row.at("token_usage")
    suite, target = row.text("suite") or "agentv", row.text("target")[:200]
    variant, run, attempt = (
        row.at(f"projection_identity.dimensions.{key}") for key in ("variant", "run_id", "attempt")
    )
    is_trial = isinstance(attempt.value, int) and not row.has("result_dir")
    return ResultRow(
        suite=", ".join(filter(None, (suite[:300], target, variant.text()[:100]))),
        id=row.name("test_id", place=place),
        place=place,
        **_build_ending(row, scores)._asdict(),
        scores=scores,
        score=row.number("score"),
        prompt=prompt,
        response=companion.read_text(row.get("answer_path", "output_path"), place) if own else None,
        duration_ms=(timing if timing.get("duration_ms") else row).milliseconds("duration_ms"),
        usage=usage.usage("input", "output"),
        target=target or None,
        content=compute_fingerprint([content]) if content else None,
        # of version 5 two rows of one test are two prompts, which it does not tell apart: no executions of one case
        repeat=run.text() if is_trial else None,
        run=run.text() or None,
        named_by="suite, target and test_id",
    )


def _build_ending(row: Fields, scores: tuple[RowScore, ...]) -> ExecutionEnding:
    """Build the ending of a test. What broke before or after the agent's part says nothing about the agent."""
    missed = "; ".join(f"{one.name}: {one.reason or one.value}" for one in scores if one.passed is False)
    error = row.text("error.message", "error", "execution_error.message")
    stage, why = row.get("failure_stage", "execution_error.stage"), error or missed or row.text("execution_status")
    if _STAGE.find_meaning(stage) is not Meaning.NO_VERDICT:
        return _STAGE.build_ending(stage, why or "no verdict")
    return build_ending(_STATUS.build_ending(row.get("execution_status"), why or "no verdict"), scores, weighed=True)


def _build_score(one: Fields) -> RowScore:
    assertions = one.members("assertions")
    missed = [each.text("text") for each in assertions if each.get("passed") is not True]
    why = "; ".join(missed or [each.text("text") for each in assertions]) or one.text("reason")
    score = RowScore(one.text("name")[:200] or "score", one.number("score"), None, why or None)
    own = one.get("pass")
    return _VERDICT.apply_verdict(score, one.get("verdict")) if own is None else _PASS.apply_verdict(score, own)
