"""How well the LLM judges of a run agree with people: reads `.eval-gate/judges.json`.

The file is read strictly, and `calibrate` writes it. It turns no verdict: reports show it with the verdict.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, ValidationError, convert, json, structs, to_builtins

from eval_gate.errors import GateError, Problem
from eval_gate.files.reading import read_optional
from eval_gate.model import limits
from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.calibration import CalibrationStatus, JudgeAgreementRecord, RunJudge, RunJudges
from eval_gate.model.result import CaseFingerprints, RunResult
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.validation_errors import describe_mismatch, format_field_path

JUDGES_PATH: Final = ".eval-gate/judges.json"
MAX_FILE_BYTES: Final = limits.JUDGES_BYTES
MAX_JUDGES: Final = limits.JUDGES
_HINT: Final = "`eval-gate calibrate LABELS --save` writes it; `eval-gate schema judges` prints its schema"


_KEYS: Final = {one.name: one.encode_name for one in structs.fields(JudgeAgreementRecord)}


class JudgesEntry(JudgeAgreementRecord, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of the judges file; an unknown key is an error."""


class JudgesFile(Frozen, kw_only=True, omit_defaults=True):
    """Agreement of judges with people's labels: `.eval-gate/judges.json`."""

    judges: Annotated[tuple[JudgesEntry, ...], Meta(max_length=MAX_JUDGES)] = ()


def read_judge_agreements(root: Path) -> tuple[JudgeAgreementRecord, ...]:
    """Read the judge comparisons from the file below `root`; return none if there is no file.

    Raises GateError, with every problem and its line for a file that is not valid.
    """
    data = read_optional(root / JUDGES_PATH, MAX_FILE_BYTES, shown_as=JUDGES_PATH, hint=_HINT)
    return () if data is None else parse_comparisons(data, shown_as=JUDGES_PATH)


def parse_comparisons(data: bytes, *, shown_as: str) -> tuple[JudgeAgreementRecord, ...]:
    """Parse the bytes of the file. Raises GateError `invalid-configuration` or `invalid-json`."""
    if len(data) > MAX_FILE_BYTES:
        raise _build_error(shown_as, [Problem(f"is larger than {MAX_FILE_BYTES:,} bytes", file=shown_as)])
    document, positions = parse_json(data, shown_as, values=limits.SETTING_VALUES)
    try:
        return convert(document, JudgesFile).judges
    except ValidationError as error:
        problems = [
            Problem(what, file=shown_as, line=positions.find_line(place), field=format_field_path(place))
            for place, what in [*_iter_entry_problems(document)] or [describe_mismatch(error)]
        ]
        raise _build_error(shown_as, problems) from error


def _iter_entry_problems(document: JsonValue) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Find the first mistake of each entry, with its place."""
    entries = document.get("judges") if isinstance(document, dict) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        try:
            convert(entry, JudgesEntry)
        except ValidationError as error:
            place, what = describe_mismatch(error)
            yield ("judges", index, *place), what


def build_comparison(**values: object) -> JudgeAgreementRecord:
    """One comparison, of what a stored result says. Raises GateError for what the file could not hold."""
    try:
        return convert({_KEYS[name]: value for name, value in values.items()}, JudgeAgreementRecord)
    except ValidationError as error:
        place, what = describe_mismatch(error)
        raise _build_error(JUDGES_PATH, [Problem(what, file=JUDGES_PATH, field=format_field_path(place))]) from error


def merge_comparisons(old: Sequence[JudgeAgreementRecord], new: Sequence[JudgeAgreementRecord]) -> str:
    """Merge new comparisons into the old by judge and evaluator, as the file's text. Raises GateError for too many."""
    by_key = {(one.judge, one.evaluator): one for one in (*old, *new)}
    comparisons = [by_key[key] for key in sorted(by_key, key=lambda key: (key[0], key[1] or ""))]
    file = JudgesFile(judges=tuple(convert(to_builtins(one), JudgesEntry) for one in comparisons))
    text = json.format(json.encode(file), indent=2).decode() + "\n"
    parse_comparisons(text.encode(), shown_as=JUDGES_PATH)  # what a run would not read is not written
    return text


def _build_error(shown_as: str, problems: Sequence[Problem]) -> GateError:
    return GateError("invalid-configuration", f"{shown_as} is not valid", _HINT, problems=problems)


class JudgeComparisons(FrozenStruct):
    """Agreement of a repository's judges with people, in the base branch and in the change.

    `proposed_entries` are those of the change under test. Its author could have written anything, so only the entries
    of the base branch are used. `trouble` is why the latter could not be read.
    """

    entries: Sequence[JudgeAgreementRecord] = ()
    proposed_entries: Sequence[JudgeAgreementRecord] = ()
    trouble: str | None = None


JudgeLookup = Callable[[], JudgeComparisons]
"""Looks up earlier comparisons; called only if a judge graded."""


def add_judges(run: RunResult, ask: JudgeLookup | None) -> RunResult:
    """Add to a run what is known of its LLM judges; without a lookup in `ask`, its result stays as it is."""
    if ask is None:
        return run
    graded: dict[str, list[CaseFingerprints]] = defaultdict(list)
    for _, case in run.iter_cases():
        if case.fingerprints is not None and case.fingerprints.judge and case.status.is_scored:
            graded[case.fingerprints.judge].append(case.fingerprints)
    if not graded:
        return run if run.judges is None else replace(run, judges=None)
    comparisons = ask()
    whole = run.shard is None and not run.partial
    order = sorted(graded, key=lambda name: (-len(graded[name]), name))
    judges = tuple(_build_judge(name, graded[name], comparisons, whole=whole) for name in order)
    return replace(run, judges=RunJudges(judges=judges, problem=comparisons.trouble))


def _build_judge(
    name: str, graded: Sequence[CaseFingerprints], comparisons: JudgeComparisons, *, whole: bool
) -> RunJudge:
    own = [one for one in comparisons.entries if one.judge == name]
    fits = [one for one in own if _is_applicable(one, graded, whole=whole)]
    proposed = not fits and any(
        one.judge == name and _is_applicable(one, graded, whole=whole) for one in comparisons.proposed_entries
    )
    calibration, nearest = CalibrationStatus.NOT_COMPARED, None
    for candidates, what in (
        (fits, CalibrationStatus.COMPARED),
        (own, CalibrationStatus.OTHER_PROMPT),
        (comparisons.entries, CalibrationStatus.OTHER_JUDGE),
    ):
        if candidates:
            calibration, nearest = what, min(candidates, key=_rank_agreement)
            break
    return RunJudge(judge=name, cases=len(graded), calibration=calibration, agreement=nearest, proposed=proposed)


def _is_applicable(one: JudgeAgreementRecord, graded: Sequence[CaseFingerprints], *, whole: bool) -> bool:
    """Whether the judge was compared as it grades here; a part of a run may have none of the labelled cases."""
    prompts = {fingerprints.grader for fingerprints in graded}
    if not (prompts & set(one.prompts) if one.prompts else None in prompts):
        return False
    rubrics = {fingerprints.expectation for fingerprints in graded}
    return not whole or not one.rubrics or bool(rubrics & set(one.rubrics))


def _rank_agreement(one: JudgeAgreementRecord) -> tuple[float, int]:
    """Of several comparisons the one that speaks least for the judge is repeated."""
    return one.agreed / one.responses, -one.responses
