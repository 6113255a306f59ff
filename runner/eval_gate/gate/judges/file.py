"""The file in which comparisons of judges with people's labels are kept, read strictly and written by `calibrate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, Field, ValidationError

from eval_gate.errors import GateError, Problem
from eval_gate.files.reading import read_up_to
from eval_gate.model import limits
from eval_gate.model.base import Frozen
from eval_gate.model.calibration import JudgeComparison
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.shape import field_path, mistakes, sentence

PATH: Final = ".eval-gate/judges.json"
MAX_FILE_BYTES: Final = limits.JUDGES_BYTES
MAX_JUDGES: Final = limits.JUDGES
_HINT: Final = "`eval-gate calibrate LABELS --save` writes it; `eval-gate schema judges` prints its schema"


class JudgesEntry(JudgeComparison):
    """One comparison as the file has it: an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid")


class JudgesFile(Frozen):
    """How well judges agreed with people: `.eval-gate/judges.json`."""

    judges: tuple[JudgesEntry, ...] = Field((), max_length=MAX_JUDGES)


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
        return JudgesFile.model_validate(document).judges
    except ValidationError as error:
        problems = [
            Problem(sentence(one), file=shown_as, line=positions.line(one["loc"]), field=field_path(one["loc"]))
            for one in mistakes(error)
        ]
        raise _invalid(shown_as, problems) from error


def comparison(**values: object) -> JudgeComparison:
    """One comparison, of what a stored result says. Raises GateError for what the file could not hold."""
    try:
        return JudgeComparison.model_validate(values)
    except ValidationError as error:
        raise _invalid(
            PATH, [Problem(sentence(one), file=PATH, field=field_path(one["loc"])) for one in mistakes(error)]
        ) from error


def with_comparisons(known: Sequence[JudgeComparison], new: Sequence[JudgeComparison]) -> str:
    """The file's text with the new ones in it, each in place of an older one of the same judge and evaluator.

    Raises GateError where they are too many.
    """
    said = {(one.judge, one.evaluator): one for one in (*known, *new)}
    kept = [said[key] for key in sorted(said, key=lambda key: (key[0], key[1] or ""))]
    try:
        file = JudgesFile(judges=tuple(JudgesEntry(**dict(one)) for one in kept))
    except ValidationError as error:
        problems = [Problem(sentence(one), file=PATH, field=field_path(one["loc"])) for one in mistakes(error)]
        raise _invalid(PATH, problems) from error
    text = file.model_dump_json(by_alias=True, indent=2, exclude_defaults=True) + "\n"
    parse_comparisons(text.encode(), shown_as=PATH)  # what a run would not read is not written
    return text


def _invalid(shown_as: str, problems: Sequence[Problem]) -> GateError:
    return GateError("invalid-configuration", f"{shown_as} is not valid", _HINT, problems=problems)
