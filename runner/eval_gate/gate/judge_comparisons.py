"""How well the judges of a run are known: the file of comparisons with people's labels, and what it says of a run.

The file is read strictly, and `calibrate` writes it. What it says turns no verdict: it is said beside it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, ValidationError, convert, json, structs, to_builtins

from eval_gate.errors import GateError, Problem
from eval_gate.files.reading import read_up_to
from eval_gate.model import limits
from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.calibration import JudgeComparison, JudgeKnowledge, JudgeOfRun, JudgesOfRun
from eval_gate.model.result import RunResult, Yardstick
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.shape import field_path, misfit

PATH: Final = ".eval-gate/judges.json"
MAX_FILE_BYTES: Final = limits.JUDGES_BYTES
MAX_JUDGES: Final = limits.JUDGES
_HINT: Final = "`eval-gate calibrate LABELS --save` writes it; `eval-gate schema judges` prints its schema"


_KEYS: Final = {one.name: one.encode_name for one in structs.fields(JudgeComparison)}


class JudgesEntry(JudgeComparison, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One comparison as the file has it: an unknown key is a mistake."""


class JudgesFile(Frozen, kw_only=True, omit_defaults=True):
    """How well judges agreed with people: `.eval-gate/judges.json`."""

    judges: Annotated[tuple[JudgesEntry, ...], Meta(max_length=MAX_JUDGES)] = ()


def read_comparisons(root: Path) -> tuple[JudgeComparison, ...]:
    """What the file below `root` says; nothing where there is none. Raises GateError with every problem's line."""
    file = root / PATH
    try:
        if not file.is_file():  # a pipe or a device would be waited for
            if file.exists() or file.is_symlink():
                raise GateError("no-configuration", f"{PATH} cannot be read: it is no file", _HINT)
            return ()
        data = read_up_to(file, MAX_FILE_BYTES)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise GateError("no-configuration", f"{PATH} cannot be read: {why}", _HINT) from error
    return parse_comparisons(data, shown_as=PATH)


def parse_comparisons(data: bytes, *, shown_as: str) -> tuple[JudgeComparison, ...]:
    """What these bytes of the file say. Raises GateError `invalid-configuration` or `invalid-json`."""
    if len(data) > MAX_FILE_BYTES:
        raise _invalid(shown_as, [Problem(f"is larger than {MAX_FILE_BYTES:,} bytes", file=shown_as)])
    document, positions = parse_json(data, shown_as, values=limits.SETTING_VALUES)
    try:
        return convert(document, JudgesFile).judges
    except ValidationError as error:
        problems = [
            Problem(what, file=shown_as, line=positions.line(place), field=field_path(place))
            for place, what in [*_misfits_of_entries(document)] or [misfit(error)]
        ]
        raise _invalid(shown_as, problems) from error


def _misfits_of_entries(document: JsonValue) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Find the first mistake of each entry, with its place."""
    entries = document.get("judges") if isinstance(document, dict) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        try:
            convert(entry, JudgesEntry)
        except ValidationError as error:
            place, what = misfit(error)
            yield ("judges", index, *place), what


def comparison(**values: object) -> JudgeComparison:
    """One comparison, of what a stored result says. Raises GateError for what the file could not hold."""
    try:
        return convert({_KEYS[name]: value for name, value in values.items()}, JudgeComparison)
    except ValidationError as error:
        place, what = misfit(error)
        raise _invalid(PATH, [Problem(what, file=PATH, field=field_path(place))]) from error


def with_comparisons(known: Sequence[JudgeComparison], new: Sequence[JudgeComparison]) -> str:
    """The file's text with the new ones in it, each in place of an older one of the same judge and evaluator.

    Raises GateError where they are too many.
    """
    said = {(one.judge, one.evaluator): one for one in (*known, *new)}
    kept = [said[key] for key in sorted(said, key=lambda key: (key[0], key[1] or ""))]
    file = JudgesFile(judges=tuple(convert(to_builtins(one), JudgesEntry) for one in kept))
    text = json.format(json.encode(file), indent=2).decode() + "\n"
    parse_comparisons(text.encode(), shown_as=PATH)  # what a run would not read is not written
    return text


def _invalid(shown_as: str, problems: Sequence[Problem]) -> GateError:
    return GateError("invalid-configuration", f"{shown_as} is not valid", _HINT, problems=problems)


class Comparisons(FrozenStruct):
    """What a repository knows of its judges.

    `proposed` is what the change under test says of them: a change may have written what it likes, so that only the
    base branch's word is repeated. `trouble` is why that could not be had.
    """

    entries: Sequence[JudgeComparison] = ()
    proposed: Sequence[JudgeComparison] = ()
    trouble: str | None = None


AskComparisons = Callable[[], Comparisons]
"""Looks up what is known; asked only where a judge graded."""


def with_judges(run: RunResult, ask: AskComparisons | None) -> RunResult:
    """The run with what is known of its judges; as its record has it where nobody is asked."""
    if ask is None:
        return run
    graded = _graded(run)
    if not graded:
        return run if run.judges is None else replace(run, judges=None)
    known = ask()
    whole = run.shard is None and not run.partial
    order = sorted(graded, key=lambda name: (-len(graded[name]), name))
    judges = tuple(_judge(name, graded[name], known, whole=whole) for name in order)
    return replace(run, judges=JudgesOfRun(judges=judges, trouble=known.trouble))


def _graded(run: RunResult) -> dict[str, list[Yardstick]]:
    """What the cases were measured with that a judge has graded, by who that was."""
    found: dict[str, list[Yardstick]] = defaultdict(list)
    for _, case in run.cases():
        if case.yardstick is not None and case.yardstick.judge and case.status.judged:
            found[case.yardstick.judge].append(case.yardstick)
    return found


def _judge(name: str, graded: Sequence[Yardstick], known: Comparisons, *, whole: bool) -> JudgeOfRun:
    own = [one for one in known.entries if one.judge == name]
    fits = [one for one in own if _as_here(one, graded, whole=whole)]
    proposed = not fits and any(one.judge == name and _as_here(one, graded, whole=whole) for one in known.proposed)
    knowing, nearest = JudgeKnowledge.NEVER, None
    for candidates, what in (
        (fits, JudgeKnowledge.COMPARED),
        (own, JudgeKnowledge.OTHER_PROMPT),
        (known.entries, JudgeKnowledge.OTHER_JUDGE),
    ):
        if candidates:
            knowing, nearest = what, min(candidates, key=_weakest)
            break
    return JudgeOfRun(judge=name, cases=len(graded), knowing=knowing, compared=nearest, proposed=proposed)


def _as_here(one: JudgeComparison, graded: Sequence[Yardstick], *, whole: bool) -> bool:
    """Whether the judge was compared as it grades here: by a prompt that it has here, and by a rubric or expectation.

    A part of a run may have none of the cases that people labelled.
    """
    prompts = {yardstick.grader for yardstick in graded}
    if not (prompts & set(one.prompts) if one.prompts else None in prompts):
        return False
    rubrics = {yardstick.expectation for yardstick in graded}
    return not whole or not one.rubrics or bool(rubrics & set(one.rubrics))


def _weakest(one: JudgeComparison) -> tuple[float, int]:
    """Of several comparisons the one that speaks least for the judge is repeated."""
    return one.agreed / one.answers, -one.answers
