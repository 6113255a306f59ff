"""Flags, environment and file become one frozen RunConfig, or one list of problems.

Precedence: flag, then `EVAL_GATE_…` variable, then file, then default. Keys are camelCase; a flag is the same name
in kebab-case, a variable the same in upper case: `timeoutMs`, `--timeout-ms`, `EVAL_GATE_TIMEOUT_MS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue, ValidationError

from eval_gate.config.places import SENT, WRITTEN, wrong_places
from eval_gate.config.setting import ENVIRONMENT_PREFIX, Setting
from eval_gate.config.settings import SETTINGS, RunConfig
from eval_gate.config.wire import read_config
from eval_gate.errors import GateError, Problem, did_you_mean
from eval_gate.files import place
from eval_gate.files.reading import read_up_to
from eval_gate.model import limits
from eval_gate.model.limits import FINDINGS, SETTING_VALUES
from eval_gate.struct import FrozenStruct
from eval_gate.text.foreign.well_formed import holds_halves
from eval_gate.text.sources.shape import mistakes, sentence

CONFIG_NAMES = ("eval-gate.yaml", "eval-gate.yml", "eval-gate.json")
MAX_CONFIG_BYTES: Final = limits.CONFIG_BYTES
_NO_TEXT: Final = "holds what is no text: half of a surrogate pair, or bytes that are not UTF-8"


class _Given(FrozenStruct):
    """One value and where a person wrote it. `type` is the flag, the variable or the key, as they know it."""

    value: JsonValue
    name: str
    file: str | None = None
    line_of: Callable[[Sequence[str | int]], int] | None = None
    """The line of a path in `file`."""
    by_hand: bool = False
    """Given by the person who starts us, as a flag or a variable."""

    def problem(self, message: str, below: Sequence[int] = ()) -> Problem:
        """A problem with this value, or with the part of it at `below`: the numbers of members of lists."""
        line = self.line_of([self.name, *below]) if self.line_of else None
        return Problem(message, file=self.file, line=line, field=self.name + "".join(f"[{step}]" for step in below))


class GivenBy(FrozenStruct):
    """Who gives flags and variables: what a flag is called there, and whether they may lead `anywhere`.

    That is: name places outside of the working directory for writing. A configuration file never may.
    """

    name_of: Callable[[Setting], str] = lambda row: row.flag
    anywhere: bool = True


AT_A_TERMINAL: Final = GivenBy()


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
    hand: GivenBy = AT_A_TERMINAL,
) -> RunConfig:
    """Join the layers. `flags` maps keys to values that were given; absent ones are not in it.

    Its file is shown as the way to it from the working directory, where nothing else is said by `shown_as`.
    `defaults` stand below the file, in place of a key's own default. `hand` is whoever gave the flags.
    Raises GateError `invalid-configuration` with every problem of all layers at once.
    """
    problems: list[Problem] = []
    given = {key: _Given(value, key) for key, value in (defaults or {}).items()}
    if file is not None:
        given.update(_from_file(file, shown_as or place.shown_from(file), problems))
    given.update(_from_environment(environment, problems))
    given.update({key: _Given(value, hand.name_of(SETTINGS[key]), by_hand=True) for key, value in flags.items()})
    config = _validated(given, problems)
    if config is not None:
        for key in sorted(WRITTEN | SENT):
            one = given.get(key, _Given(None, key, by_hand=True))
            wrong = wrong_places(config, key, anywhere=hand.anywhere and one.by_hand)
            problems.extend(one.problem(what, below) for below, what in wrong)
    if config is None or problems:
        raise GateError(
            "invalid-configuration",
            "the configuration is not valid",
            "`eval-gate run --help` and `eval-gate schema config` say what is known",
            problems=problems,
        )
    return config


def _from_file(file: Path, shown_as: str, problems: list[Problem]) -> dict[str, _Given]:
    data = _read(file, shown_as)
    document, line = _parse(data, shown_as, as_json=file.suffix == ".json")
    if document is None:
        return {}
    if not isinstance(document, dict):
        problems.append(Problem("a configuration is a mapping of keys to values", file=shown_as, line=1))
        return {}
    strangers = [key for key in document if key not in SETTINGS]
    problems += [
        Problem(f"unknown key{did_you_mean(key, SETTINGS)}", file=shown_as, line=line([key]), field=key)
        for key in strangers[:FINDINGS]
    ]
    if len(strangers) > FINDINGS:
        problems.append(Problem(f"and {len(strangers) - FINDINGS:,} more unknown keys", file=shown_as))
    return {key: _Given(value, key, shown_as, line) for key, value in document.items() if key in SETTINGS}


def _parse(data: bytes, shown_as: str, *, as_json: bool) -> tuple[JsonValue, Callable[[Sequence[str | int]], int]]:
    """The document and where its keys stand."""
    if as_json:
        from eval_gate.text.sources.json import parse_json

        document, json_positions = parse_json(data, shown_as, halves=True, values=SETTING_VALUES)
        return document, json_positions.line
    from eval_gate.text.sources.yaml import parse_yaml

    document, yaml_positions = parse_yaml(data, shown_as)
    return document, yaml_positions.line


def _read(file: Path, shown_as: str) -> bytes:
    try:
        data = read_up_to(file, MAX_CONFIG_BYTES)
    except OSError as error:
        raise GateError(
            "no-configuration", f"{shown_as} cannot be read: {error.strerror}", "name an existing file with --config"
        ) from error
    if len(data) > MAX_CONFIG_BYTES:
        raise GateError("no-configuration", f"{shown_as} is larger than {MAX_CONFIG_BYTES:,} bytes")
    return data


def _from_environment(environment: Mapping[str, str], problems: list[Problem]) -> dict[str, _Given]:
    known = {row.variable: row for row in SETTINGS.values()}
    found = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        if variable not in known:
            problems.append(Problem(f"unknown variable{did_you_mean(variable, known)}", field=variable))
        elif text != "":  # an empty variable is how workflows say "not set"
            found[known[variable].key] = _Given(from_text(known[variable], text), variable, by_hand=True)
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


def _validated(given: Mapping[str, _Given], problems: list[Problem]) -> RunConfig | None:
    values = {key: one.value for key, one in given.items()}
    broken = [one.problem(_NO_TEXT) for one in given.values() if holds_halves(one.value)]
    if broken:
        problems.extend(broken)
        return None
    if "baseline" in given and "baselineRunId" in given:
        problems.append(given["baselineRunId"].problem("`baseline` is given too: name the baseline once"))
    problems.extend(_stored_and_not(given))
    try:
        return read_config(json.dumps(values))
    except ValidationError as error:
        problems.extend(_mistakes(error, given))
        return None


def _stored_and_not(given: Mapping[str, _Given]) -> Iterator[Problem]:
    """`storeResponses` is the older and coarser name: beside `store` it must not say something else."""
    store, responses = given.get("store"), given.get("storeResponses")
    if store and responses and isinstance(responses.value, bool) and (store.value == "none") is responses.value:
        other = "not kept" if responses.value else "kept"
        yield responses.problem(f'contradicts {store.name} "{store.value}", by which answers are {other}: leave it out')


def _mistakes(error: ValidationError, given: Mapping[str, _Given]) -> Iterator[Problem]:
    """What is wrong with the values, one by one, each where it was given."""
    seen = set()
    for detail in mistakes(error):
        if not detail["loc"]:  # there are too many to name each
            yield Problem(sentence(detail))
            continue
        key, *below = detail["loc"]
        # a union reports each of its members: the first one is enough for a person
        if key not in seen or SETTINGS[str(key)].type == list[str]:
            seen.add(key)
            yield given[str(key)].problem(sentence(detail), [step for step in below if isinstance(step, int)])
