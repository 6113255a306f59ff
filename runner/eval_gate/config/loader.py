"""Load a configuration: merge flags, variables and file into a frozen RunConfig, or list all problems.

Precedence: flag, then `EVAL_GATE_…` variable, then file, then default. Keys are camelCase; a flag is the same name
in kebab-case, a variable the same in upper case: `timeoutMs`, `--timeout-ms`, `EVAL_GATE_TIMEOUT_MS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from eval_gate.config.setting import ENVIRONMENT_PREFIX, Setting
from eval_gate.config.setting_sources import SettingSource, SettingSources
from eval_gate.config.settings import KEYS, RECORDED_RULES, SETTINGS, RunConfig
from eval_gate.config.wire import parse_config
from eval_gate.errors import GateError, Problem, find_nearest, format_suggestion
from eval_gate.files import file_paths
from eval_gate.files.file_paths import find_folder_problem, find_read_problem, find_write_problem
from eval_gate.files.reading import read_limited
from eval_gate.model import limits
from eval_gate.model.case import describe_impossible_passes
from eval_gate.model.limits import FINDINGS, SETTING_VALUES
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.quoting import describe_name, quote_name, quote_value
from eval_gate.text.secret import Secret
from eval_gate.text.sources.validation_errors import (
    describe_error,
    describe_union_errors,
    format_field_path,
    list_errors,
)
from eval_gate.text.untrusted.surrogates import has_surrogates

if TYPE_CHECKING:
    from eval_gate.text.sources.json import JsonPositions
    from eval_gate.text.sources.yaml import YamlPositions


CONFIG_NAMES = ("eval-gate.yaml", "eval-gate.yml", "eval-gate.json")
MAX_CONFIG_BYTES: Final = limits.CONFIG_BYTES
_INVALID_TEXT: Final = "contains bytes that are not UTF-8, or half of a surrogate pair"
OUTPUT_KEYS = frozenset({"outputDir", "reports", "exports"})
"""The keys whose values are places that a run writes to."""


SENT_FILE_KEYS = frozenset({"systemPromptPath"})
"""Those whose values are files that a run reads and sends to a target."""
_TARGET_CHOICES: Final = (
    ("agentEndpoint", "agentProtocol"),
    ("agentFunction",),
    ("target",),
    ("model", "provider", "baseUrl"),
)
"""The ways to choose the target to evaluate, each with its keys."""
_CHOOSING_KEYS: Final = frozenset({"agentEndpoint", "agentFunction", "target", "model", "provider"})
"""Those of these keys that choose a target on their own."""


class FlagSource(FrozenStruct):
    """Origin of flags and variables: how it spells a flag, and whether it may name any output path.

    Any output path means writing outside the working directory, which a configuration file never may.
    `typed_by_person`: a person typed the flags, so that no pull request could change them.
    """

    format_name: Callable[[Setting], str] = lambda row: row.flag
    allows_any_path: bool = True
    typed_by_person: bool = False


BY_A_PROGRAM: Final = FlagSource()
BY_A_PERSON: Final = FlagSource(typed_by_person=True)


def find_config(start: Path) -> Path | None:
    """Return the first configuration file in `start` or a folder above it, or None."""
    for folder in (start, *start.parents):
        for name in CONFIG_NAMES:
            if (folder / name).is_file():
                return folder / name
    return None


def describe_unread_configs(config: RunConfig, root: Path) -> tuple[str, ...]:
    """Name the configuration files in the folder of the one that is read, which are not read themselves."""
    read = {root / one.file for one in config.target.sources.values.values() if one.file}
    siblings = [(file, file.with_name(name)) for file in read if file.name in CONFIG_NAMES for name in CONFIG_NAMES]
    return tuple(
        f"{other.name} is not read, because {file.name} is beside it: keep one of them"
        for file, other in siblings
        if other != file and other.is_file()
    )


def load_config(
    flags: Mapping[str, JsonValue],
    environment: Mapping[str, str],
    file: Path | None,
    *,
    shown_as: str | None = None,
    defaults: Mapping[str, JsonValue] | None = None,
    flag_source: FlagSource = BY_A_PROGRAM,
) -> RunConfig:
    """Join the layers: `defaults` in place of a key's own default, then file, environment and `flags`.

    Problems name the file by `shown_as`, by default its path from the working directory; `flag_source` is where `flags`
    come from. Raises GateError `invalid-configuration` with every problem of all layers at once.
    """
    problems: list[Problem] = []
    sources = {key: SettingSource(Secret(value), key) for key, value in (defaults or {}).items()}
    if file is not None:
        sources.update(_load_file(file, shown_as or file_paths.format_relative_path(file), problems, SETTINGS))
    _add_layer(sources, _load_environment(environment, problems, SETTINGS))
    return _build_config(sources, flags, flag_source, problems)


def load_partial_config(
    keys: Collection[str], flags: Mapping[str, JsonValue], environment: Mapping[str, str], file: Path | None
) -> tuple[RunConfig, Sequence[Problem]]:
    """Load only these keys of the configuration, and return the problems of the keys that are left out.

    Without any problem, the configuration holds all keys. Raises GateError as `load_config` does if one of `keys`
    or a flag is wrong, if an unknown key resembles one of `keys`, or if the file cannot be read.
    """
    try:
        return load_config(flags, environment, file), ()
    except GateError as error:
        if error.code != "invalid-configuration":
            raise
        problems: list[Problem] = []
        sources = _load_file(file, file_paths.format_relative_path(file), problems, keys) if file else {}
        _add_layer(sources, _load_environment(environment, problems, keys))
        return _build_config(sources, flags, BY_A_PROGRAM, problems), error.problems


def load_eval_paths(environment: Mapping[str, str], file: Path | None) -> tuple[str, ...]:
    """Return the configured eval paths or the default, for a call that names no paths. Raises GateError."""
    return load_partial_config(("evals",), {}, environment, file)[0].evals


def _build_config(
    sources: dict[str, SettingSource], flags: Mapping[str, JsonValue], flag_source: FlagSource, problems: list[Problem]
) -> RunConfig:
    """Build the configuration from the lower layers and the flags. Raises GateError if anything is wrong."""
    _add_layer(
        sources,
        {
            key: SettingSource(Secret(value), flag_source.format_name(SETTINGS[key]), is_from_user=True)
            for key, value in flags.items()
        },
    )
    config = _validate_values(sources, problems)
    if config is not None:
        for key in sorted(OUTPUT_KEYS | SENT_FILE_KEYS):
            one = sources.get(key, SettingSource(Secret(None), key, is_from_user=True))
            wrong = iter_path_problems(config, key, anywhere=flag_source.allows_any_path and one.is_from_user)
            problems.extend(one.build_problem(what, indexes) for indexes, what in wrong)
        if what := describe_impossible_passes(config.limits.passes, config.limits.trials):
            problems.append(sources["passes"].build_problem(what))
    if config is None or problems:
        raise GateError(
            "invalid-configuration",
            "the configuration is not valid",
            "correct each place; `eval-gate schema config` lists all settings and their values",
            problems=problems,
        )
    where = SettingSources(sources, lambda other, key: _suggest_name(other, SETTINGS[key], flag_source))
    fail_on = sources.get("failOn")
    policy = replace(
        config.policy,
        fail_on_default=fail_on is None or not (fail_on.is_from_user or fail_on.file),
        typed_settings=_typed_rules(sources) if flag_source.typed_by_person else None,
    )
    return replace(config, target=replace(config.target, sources=where), policy=policy)


def _add_layer(sources: dict[str, SettingSource], layer: Mapping[str, SettingSource]) -> None:
    """Add the next higher layer; if it chooses the target, every other choice of lower layers is dropped."""
    if not _CHOOSING_KEYS.isdisjoint(layer):
        for keys in _TARGET_CHOICES:
            if layer.keys().isdisjoint(keys):
                for key in keys:
                    sources.pop(key, None)
    sources.update(layer)


def _typed_rules(sources: Mapping[str, SettingSource]) -> tuple[str, ...]:
    """Return the policy rules that a flag or a variable gave, by their names in the run result."""
    typed_settings = (key for key, one in sources.items() if one.is_from_user)
    return tuple(sorted({RECORDED_RULES[key] for key in typed_settings if key in RECORDED_RULES}))


def _suggest_name(other: SettingSource, row: Setting, flag_source: FlagSource) -> str:
    """Return the key, variable or flag of this setting, by the origin of the other one."""
    if not other.is_from_user:
        return row.key
    return row.variable if other.name.startswith(ENVIRONMENT_PREFIX) else flag_source.format_name(row)


def _load_file(file: Path, shown_as: str, problems: list[Problem], only: Collection[str]) -> dict[str, SettingSource]:
    data = _read_file(file, shown_as)
    document, positions = _parse_document(data, shown_as, as_json=file.suffix == ".json")
    if document is None:
        return {}
    if not isinstance(document, dict):
        problems.append(Problem("expected a mapping of keys to values", file=shown_as, line=1))
        return {}
    strangers = [key for key in document if key not in KEYS and _is_possible_key(key, only)]
    problems += [
        Problem(
            f"unknown key{format_suggestion(key, KEYS)}",
            file=shown_as,
            line=positions.find_line([key]),
            field=format_field_path([key]),
        )
        for key in strangers[:FINDINGS]
    ]
    if len(strangers) > FINDINGS:
        problems.append(Problem(f"and {len(strangers) - FINDINGS:,} more unknown keys", file=shown_as))
    sources = [SettingSource(Secret(value), key, shown_as, positions) for key, value in document.items()]
    return _sort_by_setting(((KEYS[one.name], one) for one in sources if KEYS.get(one.name) in only), problems)


def _sort_by_setting(sources: Iterable[tuple[str, SettingSource]], problems: list[Problem]) -> dict[str, SettingSource]:
    """Sort a layer's sources by setting: two names of it must have the same value, or one of them null."""
    by_key: dict[str, SettingSource] = {}
    for key, one in sources:
        other = by_key.get(key)
        if other is None or other.value.open() is None:
            by_key[key] = one
        elif one.value.open() is not None and json.dumps(one.value.open()) != json.dumps(other.value.open()):
            line = other.find_line()
            where = f"{other.name} in line {line}" if line else other.name
            problems.append(one.build_problem(f"differs from {where}; both name the same setting: remove one"))
    return by_key


def _is_possible_key(word: str, only: Collection[str]) -> bool:
    """Whether an unknown word may have been meant for one of the keys that are read."""
    return len(only) == len(SETTINGS) or find_nearest(word, only) is not None


def _parse_document(data: bytes, shown_as: str, *, as_json: bool) -> tuple[JsonValue, JsonPositions | YamlPositions]:
    """Parse the configuration file, and return the document with the positions of its keys."""
    if as_json:
        from eval_gate.text.sources.json import parse_json

        return parse_json(data, shown_as, halves=True, values=SETTING_VALUES)
    from eval_gate.text.sources.yaml import parse_yaml

    return parse_yaml(data, shown_as)


def _read_file(file: Path, shown_as: str) -> bytes:
    if why := file_paths.find_path_problem(str(file)):
        raise GateError("configuration-unreadable", f'"{shown_as[:200]}" {why}', "name an existing file with --config")
    try:
        data = read_limited(file, MAX_CONFIG_BYTES)
    except OSError as error:
        what = f"{describe_name(shown_as)} cannot be read: {error.strerror}"
        raise GateError("configuration-unreadable", what, "name an existing file with --config") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise GateError("configuration-unreadable", f"{shown_as} is larger than {MAX_CONFIG_BYTES:,} bytes")
    return data


def _load_environment(
    environment: Mapping[str, str], problems: list[Problem], only: Collection[str]
) -> dict[str, SettingSource]:
    by_variable = {variable: row for row in SETTINGS.values() for variable in row.variables}
    sources = []
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        if variable not in by_variable:
            if _is_possible_key(variable.removeprefix(ENVIRONMENT_PREFIX).replace("_", ""), only):
                problems.append(Problem(f"unknown variable{format_suggestion(variable, by_variable)}", field=variable))
        elif text != "" and by_variable[variable].key in only:  # an empty variable is how workflows say "not set"
            value = Secret(parse_setting_text(by_variable[variable], text))
            sources.append((by_variable[variable].key, SettingSource(value, variable, is_from_user=True)))
    return _sort_by_setting(sources, problems)


def parse_setting_text(row: Setting, text: str) -> JsonValue:
    """Parse a text as a value of this setting's type.

    Numbers and flags are JSON. A list is separated by commas or lines, or is JSON where the setting takes a list
    and the text begins with `[`, or with `{` where it takes lists by file. A text that is not JSON is returned
    unchanged: the validation reports what it expected.
    """
    if not (row.takes_list and text.lstrip().startswith(("[", "{") if row.takes_lists_by_file else "[")):
        if row.type == list[str]:
            return [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]
        if row.type is str:
            return text
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text  # the validation below says what was expected
    return value


def _validate_values(sources: Mapping[str, SettingSource], problems: list[Problem]) -> RunConfig | None:
    values = {key: one.value.open() for key, one in sources.items()}
    broken = [one.build_problem(_INVALID_TEXT) for one in sources.values() if has_surrogates(one.value.open())]
    if broken:
        problems.extend(broken)
        return None
    try:
        return parse_config(json.dumps(values))
    except ValidationError as error:
        problems.extend(_iter_problems(error, sources))
        return None


def _iter_problems(error: ValidationError, sources: Mapping[str, SettingSource]) -> Iterator[Problem]:
    """Yield one problem for each wrong value, with the place where the value was given."""
    by_key = dict[str, list[ErrorDetails]]()
    for detail in list_errors(error):
        if not detail["loc"]:  # there are too many to name each
            yield Problem(describe_error(detail))
            continue
        by_key.setdefault(str(detail["loc"][0]), []).append(detail)
    for key, details in by_key.items():
        one = sources[key]
        places = [(detail, _find_place(detail, one.value.open())) for detail in details]
        members = [(detail, steps) for detail, steps in places if steps]
        if not members:  # a union reports each of its members
            value = details[0]["input"]
            message = describe_union_errors(details) + _describe_lone_member(key, details)
            yield one.build_problem(message + one.format_yaml_hint(value, ()))
        for detail, steps in members:  # the list as a whole is then as wrong as they are
            yield one.build_problem(describe_error(detail) + one.format_yaml_hint(detail["input"], steps), steps)


def _describe_lone_member(key: str, details: Sequence[ErrorDetails]) -> str:
    """Describe a text in the place of a list: how to write it, or why the list must not have it either."""
    value = details[0]["input"]
    if not isinstance(value, str) or any(detail["type"] != "tuple_type" for detail in details):
        return ""
    try:
        parse_config(json.dumps({key: [value]}))
    except ValidationError as error:
        return f"; {describe_error(list_errors(error)[0])}"
    return f": write [{quote_value(value)}]"


def _find_place(detail: ErrorDetails, value: Any) -> tuple[str | int, ...]:
    """Find the place of a validation error in the value of a setting: list indexes, and keys of mappings."""
    steps: list[str | int] = []
    for step in detail["loc"][1:]:  # names of the kinds that a value may be of stand between them
        if isinstance(value, list) if isinstance(step, int) else isinstance(value, dict) and step in value:
            value = value[step]
            steps.append(step)
    return tuple(steps)


def iter_path_problems(config: RunConfig, key: str, *, anywhere: bool) -> Iterator[tuple[Sequence[int], str]]:
    """For each place of this key that may not be used: which of its values it is, and why not."""
    prompt = config.target.system_prompt
    if key == "systemPromptPath" and prompt and not anywhere and (why := find_read_problem(prompt)):
        yield (), _format_path_problem(prompt, why)
    if key == "outputDir" and (why := find_folder_problem(config.output_dir, anywhere=anywhere)):
        yield (), _format_path_problem(config.output_dir, why)
    for index, one in enumerate({"reports": config.reports, "exports": config.exports}.get(key, ())):
        if one.file and (why := find_file_problem(one.file, anywhere=anywhere)):
            yield (index,), why


def find_file_problem(path: str | Path, *, anywhere: bool) -> str | None:
    """Return a sentence saying why this file may not be written, or None if it may."""
    why = find_write_problem(path, anywhere=anywhere)
    return _format_path_problem(path, why) if why else None


def _format_path_problem(path: str | Path, why: str) -> str:
    return f"{quote_name(str(path))} {why}"
