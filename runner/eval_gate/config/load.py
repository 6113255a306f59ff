"""Flags, environment and file become one frozen RunConfig, or one list of problems.

Precedence: flag, then `EVAL_GATE_…` variable, then file, then default. Keys are camelCase; a flag is the same name
in kebab-case, a variable the same in upper case: `timeoutMs`, `--timeout-ms`, `EVAL_GATE_TIMEOUT_MS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from eval_gate.config.given import GivenSettings, GivenValue
from eval_gate.config.setting import ENVIRONMENT_PREFIX, Setting
from eval_gate.config.settings import RECORDED_RULES, SETTINGS, RunConfig
from eval_gate.config.wire import read_config
from eval_gate.errors import GateError, Problem, did_you_mean, nearest
from eval_gate.files import place
from eval_gate.files.place import why_no_file, why_no_folder, why_not_read
from eval_gate.files.reading import read_up_to
from eval_gate.model import limits
from eval_gate.model.limits import FINDINGS, SETTING_VALUES
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.foreign.well_formed import holds_halves
from eval_gate.text.quoting import quoted_name, shown_name
from eval_gate.text.secret import Secret
from eval_gate.text.sources.shape import either, field_path, mistakes, sentence

if TYPE_CHECKING:
    from eval_gate.text.sources.json import JsonPositions
    from eval_gate.text.sources.yaml import YamlPositions


CONFIG_NAMES = ("eval-gate.yaml", "eval-gate.yml", "eval-gate.json")
MAX_CONFIG_BYTES: Final = limits.CONFIG_BYTES
_NO_TEXT: Final = "holds what is no text: half of a surrogate pair, or bytes that are not UTF-8"
WRITTEN = frozenset({"outputDir", "reports", "exports"})
"""The keys whose values are places that a run writes to."""


SENT = frozenset({"systemPromptPath"})
"""Those whose values are files that a run reads and sends to a target."""


class GivenBy(FrozenStruct):
    """Who gives flags and variables: what a flag is called there, and whether they may lead `anywhere`.

    That is: name places outside of the working directory for writing. A configuration file never may. `types`: a person
    types them, so that they stand in no file that a pull request could change.
    """

    name_of: Callable[[Setting], str] = lambda row: row.flag
    anywhere: bool = True
    types: bool = False


BY_A_PROGRAM: Final = GivenBy()
BY_A_PERSON: Final = GivenBy(types=True)


def find_config(start: Path) -> Path | None:
    """The first configuration file from `start` upward, or None."""
    for folder in (start, *start.parents):
        for name in CONFIG_NAMES:
            if (folder / name).is_file():
                return folder / name
    return None


def load_config(
    flags: Mapping[str, JsonValue],
    environment: Mapping[str, str],
    file: Path | None,
    *,
    shown_as: str | None = None,
    defaults: Mapping[str, JsonValue] | None = None,
    hand: GivenBy = BY_A_PROGRAM,
) -> RunConfig:
    """Join the layers. `flags` maps keys to values that were given; absent ones are not in it.

    Its file is shown as the way to it from the working directory, where nothing else is said by `shown_as`.
    `defaults` stand below the file, in place of a key's own default. `hand` is whoever gave the flags.
    Raises GateError `invalid-configuration` with every problem of all layers at once.
    """
    problems: list[Problem] = []
    given = {key: GivenValue(Secret(value), key) for key, value in (defaults or {}).items()}
    if file is not None:
        given.update(_from_file(file, shown_as or place.shown_from(file), problems, SETTINGS))
    given.update(_from_environment(environment, problems, SETTINGS))
    return _made(given, flags, hand, problems)


def load_part(
    keys: Collection[str], flags: Mapping[str, JsonValue], environment: Mapping[str, str], file: Path | None
) -> tuple[RunConfig, Sequence[Problem]]:
    """The configuration for who needs only these keys of it, and what is wrong with the others, which are left out.

    Raises GateError as above where one of these is wrong, or an unknown key is near to one, or the file cannot be read.
    """
    try:
        return load_config(flags, environment, file), ()
    except GateError as error:
        if error.code != "invalid-configuration":
            raise
        problems: list[Problem] = []
        given = _from_file(file, place.shown_from(file), problems, keys) if file else {}
        given.update(_from_environment(environment, problems, keys))
        return _made(given, flags, BY_A_PROGRAM, problems), error.problems


def usual_evals(environment: Mapping[str, str], file: Path | None) -> tuple[str, ...]:
    """The eval files that are configured, else the default: what a call without paths takes. Raises GateError."""
    return load_part(("evals",), {}, environment, file)[0].evals


def _made(
    given: dict[str, GivenValue], flags: Mapping[str, JsonValue], hand: GivenBy, problems: list[Problem]
) -> RunConfig:
    """The configuration of what the layers below and the flags give. Raises GateError where anything is wrong."""
    given.update(
        {key: GivenValue(Secret(value), hand.name_of(SETTINGS[key]), by_hand=True) for key, value in flags.items()}
    )
    config = _validated(given, problems)
    if config is not None:
        for key in sorted(WRITTEN | SENT):
            one = given.get(key, GivenValue(Secret(None), key, by_hand=True))
            wrong = wrong_places(config, key, anywhere=hand.anywhere and one.by_hand)
            problems.extend(one.problem(what, below) for below, what in wrong)
    if config is None or problems:
        raise GateError(
            "invalid-configuration",
            "the configuration is not valid",
            "`eval-gate run --help` and `eval-gate schema config` say what is known",
            problems=problems,
        )
    where = GivenSettings(given, lambda other, key: _named_like(other, SETTINGS[key], hand))
    said = given.get("failOn")
    policy = replace(
        config.policy,
        fail_on_default=said is None or not (said.by_hand or said.file),
        typed=_typed_rules(given) if hand.types else None,
    )
    return replace(config, target=replace(config.target, given=where), policy=policy)


def _typed_rules(given: Mapping[str, GivenValue]) -> tuple[str, ...]:
    """The rules that an option or a variable gives, as a record calls them."""
    typed = (key for key, one in given.items() if one.by_hand)
    return tuple(sorted({RECORDED_RULES[key] for key in typed if key in RECORDED_RULES}))


def _named_like(other: GivenValue, row: Setting, hand: GivenBy) -> str:
    """What this setting would be called where the other one was given."""
    if not other.by_hand:
        return row.key
    return row.variable if other.name.startswith(ENVIRONMENT_PREFIX) else hand.name_of(row)


def _from_file(file: Path, shown_as: str, problems: list[Problem], only: Collection[str]) -> dict[str, GivenValue]:
    data = _read(file, shown_as)
    document, positions = _parse(data, shown_as, as_json=file.suffix == ".json")
    if document is None:
        return {}
    if not isinstance(document, dict):
        problems.append(Problem("a configuration is a mapping of keys to values", file=shown_as, line=1))
        return {}
    strangers = [key for key in document if key not in SETTINGS and _may_mean(key, only)]
    problems += [
        Problem(
            f"unknown key{did_you_mean(key, SETTINGS)}",
            file=shown_as,
            line=positions.line([key]),
            field=field_path([key]),
        )
        for key in strangers[:FINDINGS]
    ]
    if len(strangers) > FINDINGS:
        problems.append(Problem(f"and {len(strangers) - FINDINGS:,} more unknown keys", file=shown_as))
    return {key: GivenValue(Secret(value), key, shown_as, positions) for key, value in document.items() if key in only}


def _may_mean(word: str, only: Collection[str]) -> bool:
    """Whether an unknown word may have been meant for one of the keys that are read."""
    return len(only) == len(SETTINGS) or nearest(word, only) is not None


def _parse(data: bytes, shown_as: str, *, as_json: bool) -> tuple[JsonValue, JsonPositions | YamlPositions]:
    """The document and where its keys stand."""
    if as_json:
        from eval_gate.text.sources.json import parse_json

        return parse_json(data, shown_as, halves=True, values=SETTING_VALUES)
    from eval_gate.text.sources.yaml import parse_yaml

    return parse_yaml(data, shown_as)


def _read(file: Path, shown_as: str) -> bytes:
    if why := place.why_no_path(str(file)):
        raise GateError("no-configuration", f'"{shown_as[:200]}" {why}', "name an existing file with --config")
    try:
        data = read_up_to(file, MAX_CONFIG_BYTES)
    except OSError as error:
        what = f"{shown_name(shown_as)} cannot be read: {error.strerror}"
        raise GateError("no-configuration", what, "name an existing file with --config") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise GateError("no-configuration", f"{shown_as} is larger than {MAX_CONFIG_BYTES:,} bytes")
    return data


def _from_environment(
    environment: Mapping[str, str], problems: list[Problem], only: Collection[str]
) -> dict[str, GivenValue]:
    known = {row.variable: row for row in SETTINGS.values()}
    found = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        if variable not in known:
            if _may_mean(variable.removeprefix(ENVIRONMENT_PREFIX).replace("_", ""), only):
                problems.append(Problem(f"unknown variable{did_you_mean(variable, known)}", field=variable))
        elif text != "" and known[variable].key in only:  # an empty variable is how workflows say "not set"
            found[known[variable].key] = GivenValue(Secret(from_text(known[variable], text)), variable, by_hand=True)
    return found


def from_text(row: Setting, text: str) -> JsonValue:
    """A text as this setting's kind of value: JSON for numbers and flags, lists by comma or line."""
    if not (row.takes_list and text.lstrip().startswith("[")):
        if row.type == list[str]:
            return [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]
        if row.type is str:
            return text
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text  # the validation below says what was expected
    return value


def _validated(given: Mapping[str, GivenValue], problems: list[Problem]) -> RunConfig | None:
    values = {key: one.value.open() for key, one in given.items()}
    broken = [one.problem(_NO_TEXT) for one in given.values() if holds_halves(one.value.open())]
    if broken:
        problems.extend(broken)
        return None
    try:
        return read_config(json.dumps(values))
    except ValidationError as error:
        problems.extend(_mistakes(error, given))
        return None


def _mistakes(error: ValidationError, given: Mapping[str, GivenValue]) -> Iterator[Problem]:
    """What is wrong with the values, one by one, each where it was given."""
    by_key = dict[str, list[ErrorDetails]]()
    for detail in mistakes(error):
        if not detail["loc"]:  # there are too many to name each
            yield Problem(sentence(detail))
            continue
        by_key.setdefault(str(detail["loc"][0]), []).append(detail)
    for key, details in by_key.items():
        one = given[key]
        members = [detail for detail in details if _steps(detail)]
        if not members:  # a union reports each of its members
            value = details[0]["input"]
            yield one.problem(either(details) + one.taken_for(value, ()))
        for detail in members:  # the list as a whole is then as wrong as they are
            below = _steps(detail)
            yield one.problem(sentence(detail) + one.taken_for(detail["input"], below), below)


def _steps(detail: ErrorDetails) -> list[int]:
    """The numbers of members of lists, below a setting."""
    return [step for step in detail["loc"] if isinstance(step, int)]


def wrong_places(config: RunConfig, key: str, *, anywhere: bool) -> Iterator[tuple[Sequence[int], str]]:
    """For each place of this key that may not be used: which of its values it is, and why not."""
    prompt = config.target.system_prompt
    if key == "systemPromptPath" and prompt and not anywhere and (why := why_not_read(prompt)):
        yield (), _sentence(prompt, why)
    if key == "outputDir" and (why := why_no_folder(config.output_dir, anywhere=anywhere)):
        yield (), _sentence(config.output_dir, why)
    for index, one in enumerate({"reports": config.reports, "exports": config.exports}.get(key, ())):
        if one.file and (why := wrong_file(one.file, anywhere=anywhere)):
            yield (index,), why


def wrong_file(path: str | Path, *, anywhere: bool) -> str | None:
    """The same for one file, as a sentence; None where nothing speaks against it."""
    why = why_no_file(path, anywhere=anywhere)
    return _sentence(path, why) if why else None


def _sentence(path: str | Path, why: str) -> str:
    return f"{quoted_name(str(path))} {why}"
