"""Tests of a promptfoo configuration, merged with their defaults as promptfoo does it.

Source: promptfoo 0.121, src/util/testCaseReader.ts and src/evaluator.ts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice, product
from math import prod
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.errors import GateError
from eval_gate.formats.documents import JSON, parse_document
from eval_gate.importers.import_result import NotImportableError, SourcePlace
from eval_gate.importers.promptfoo.config_files import (
    YAML_SUFFIXES,
    LocatedValue,
    PromptfooFile,
    PromptfooFolder,
    iter_lines,
    read_importable_document,
    read_text_file,
)
from eval_gate.importers.promptfoo.csv_tests import iter_table_tests
from eval_gate.importers.promptfoo.templates import DATE_KEY
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import CASES
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.javascript.strings import dump_compact_json

_READ_KEYS: Final = frozenset({"description", "vars", "assert", "options", "threshold", "metadata", "id", "tags"})
_SKIP_REASONS: Final = {
    "provider": "it names its own provider",
    "providers": "it is for some providers only",
    "prompts": "it is for some prompts only",
    "providerOutput": "its response is part of the test",
    "__providerOutput": "its response is part of the test",
    "assertScoringFunction": "a function computes its score, and programs are not run to check a response",
    "$ref": "it is a reference ($ref)",
}
_OPTIONS: Final = frozenset(
    {
        *("prefix", "suffix", "provider", "disableVarExpansion", "disableDefaultAsserts", "disableConversationVar"),
        *("runSerially", "repeat", "rubricPrompt", "factuality"),
    }
)
_GRADING: Final = frozenset({"rubricPrompt", "factuality"})
_TEXT_SUFFIXES: Final = frozenset({".txt", ".md", ".json", ".csv", ".html", ".xml", ".log", ".yaml", ".yml"})
_MAX_REFERENCES: Final = 20
"""References within references."""


class PromptfooTest(FrozenStruct):
    """A test with its defaults and one value per variable. `skip_reason` says why it is skipped."""

    place: SourcePlace
    description: str
    test_case_id: str | None
    variables: Mapping[str, JsonValue]
    own_variables: frozenset[str] = frozenset()
    """The variables that tell it from other tests: its own ones, and those of several values."""
    assertions: tuple[JsonValue, ...] = ()
    threshold: JsonValue = None
    prefix: str = ""
    suffix: str = ""
    has_own_grading: bool = False
    """Whether it says itself how a model is to grade."""
    skip_reason: str | None = None


def iter_tests(config: PromptfooFile, folder: PromptfooFolder) -> Iterator[PromptfooTest]:
    """Every test of the configuration, of each combination of its variables. One that cannot be read says why not."""
    value = config.value
    assert isinstance(value, dict)
    try:
        default = _load_default_test(value.get("defaultTest"), config, folder)
        broken = None
    except NotImportableError as error:
        default, broken = {}, str(error)
    for written in _iter_all(config, folder):
        if isinstance(written, PromptfooTest):
            yield written
            continue
        try:
            _raise_if_broken(broken)
            yield from _expand_variables(_merge_default(written, default, config), folder)
        except NotImportableError as error:
            yield _build_skipped_test(written.place, str(error), written.value)


def _raise_if_broken(broken: str | None) -> None:
    """Raise CannotCarryError where the default test could not be read."""
    if broken is not None:
        raise NotImportableError(f"`defaultTest`: {broken}")


def _build_skipped_test(place: SourcePlace, why: str, value: JsonValue = None) -> PromptfooTest:
    return PromptfooTest(place, _get_description(value), _find_test_case_id(value), {}, skip_reason=why)


def _get_description(value: JsonValue) -> str:
    found = value.get("description") if isinstance(value, dict) else None
    return " ".join(found.split()) if isinstance(found, str) else ""


def _find_test_case_id(value: JsonValue) -> str | None:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    found = metadata.get("testCaseId") if isinstance(metadata, dict) else None
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) and found != "" else None


def _iter_all(config: PromptfooFile, folder: PromptfooFolder) -> Iterator[LocatedValue | PromptfooTest]:
    """Yield the tests as they are written.

    A file of tests that cannot be read yields one PromptfooTest that gives the reason.
    """
    value = config.value
    assert isinstance(value, dict)
    tests, scenarios = value.get("tests"), value.get("scenarios")
    yield from _iter_listed(LocatedValue(tests, config.locate("tests")), config, ("tests",), folder)
    if isinstance(scenarios, str):
        yield _build_skipped_test(config.locate("scenarios"), "scenarios in a file are not read")
    elif isinstance(scenarios, list):
        for index, one in enumerate(scenarios):
            yield from _iter_scenario(one, config, ("scenarios", index), folder)
    elif tests in (None, [], ""):
        # promptfoo then asks every prompt once, with the variables of `defaultTest`
        yield LocatedValue({"description": "without tests"}, config.locate("tests"))


def _iter_listed(
    written: LocatedValue, config: PromptfooFile, steps: tuple[str | int, ...], folder: PromptfooFolder
) -> Iterator[LocatedValue | PromptfooTest]:
    """Yield the tests of a list, or of the path or mapping that stands for one."""
    match written.value:
        case list():
            for index, one in enumerate(written.value):
                place = config.locate(*steps, index)
                if isinstance(one, str):
                    yield from _iter_named_files(one, place, folder)
                elif isinstance(one, dict) and "path" in one:
                    yield from _iter_listed(LocatedValue(one, place), config, (*steps, index), folder)
                else:
                    yield LocatedValue(one, place)
        case str() if written.value:
            yield from _iter_named_files(written.value, written.place, folder)
        case {"path": str() as path, **more} if not more:
            yield from _iter_named_files(path, written.place, folder)
        case None | "":
            return
        case _:
            yield _build_skipped_test(
                written.place, "tests from a program, and tests that are not a list, are not read"
            )


def _iter_named_files(name: str, place: SourcePlace, folder: PromptfooFolder) -> Iterator[LocatedValue | PromptfooTest]:
    """Yield the tests in the files that a path or glob matches."""
    if "://" in name.removeprefix("file://"):
        yield _build_skipped_test(place, "tests from a URL are not fetched")
        return
    try:
        for path, shown in folder.find_files(name.removeprefix("file://")):
            yield from _iter_file(path, shown)
    except NotImportableError as error:
        yield _build_skipped_test(place, str(error))


def _iter_file(path: Path, shown: str) -> Iterator[LocatedValue | PromptfooTest]:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        yield from iter_table_tests(path, shown)
    elif suffix == ".jsonl":
        yield from _iter_jsonl(path, shown)
    elif suffix in {".json", *YAML_SUFFIXES}:
        document = read_importable_document(path, shown)
        if isinstance(document.value, list):
            yield from (LocatedValue(one, document.locate(index)) for index, one in enumerate(document.value))
        else:
            yield LocatedValue(document.value, document.locate())
    else:
        raise NotImportableError(f"{shown} is a program or a table that is not read")


def _iter_jsonl(path: Path, shown: str) -> Iterator[LocatedValue]:
    for number, line in iter_lines(read_text_file(path, shown)):
        yield LocatedValue(_parse_line(line, path, SourcePlace(shown, number)), SourcePlace(shown, number))


def _parse_line(line: str, path: Path, place: SourcePlace) -> JsonValue:
    try:
        return parse_document(JSON[".json"], line.encode(), path, place.file).value
    except GateError as error:
        raise NotImportableError(f"{place} is not JSON") from error


def _iter_scenario(
    one: JsonValue, config: PromptfooFile, steps: tuple[str | int, ...], folder: PromptfooFolder
) -> Iterator[LocatedValue | PromptfooTest]:
    """Each test of a scenario with each of its data."""
    place = config.locate(*steps)
    if not isinstance(one, dict) or not isinstance(one.get("config"), list):
        yield _build_skipped_test(place, "a scenario without a list `config` is not read")
        return
    data = one["config"]
    assert isinstance(data, list)
    tests = list(
        _iter_listed(LocatedValue(one.get("tests"), config.locate(*steps, "tests")), config, (*steps, "tests"), folder)
    )
    tests = tests or [LocatedValue({}, place)]
    if len(data) * len(tests) > CASES:
        yield _build_skipped_test(place, f"it makes more than {CASES:,} tests")
        return
    for index, (each, test) in enumerate((each, test) for each in data for test in tests):
        if isinstance(test, PromptfooTest):
            yield test
        elif not isinstance(each, dict) or not isinstance(test.value, dict):
            yield _build_skipped_test(
                config.locate(*steps, "config", index // len(tests)), "a part of the scenario is not a mapping"
            )
        else:
            try:
                yield LocatedValue(_merge_scenario_data(each, test.value), test.place)
            except NotImportableError as error:
                yield _build_skipped_test(test.place, str(error), test.value)


def _merge_scenario_data(data: Mapping[str, JsonValue], test: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        **data,
        **test,
        **{key: {**_get_mapping(data, key), **_get_mapping(test, key)} for key in ("vars", "options", "metadata")},
        "assert": [*_get_list(data, "assert"), *_get_list(test, "assert")],
    }


def _get_mapping(test: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    found = test.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        why = "are in a separate file" if key == "vars" and isinstance(found, str | list) else "is not a mapping"
        raise NotImportableError(f"its `{key}` {why}")
    return found


def _get_list(test: Mapping[str, JsonValue], key: str) -> list[JsonValue]:
    found = test.get(key)
    if found is not None and not isinstance(found, list):
        raise NotImportableError(f"its `{key}` is not a list")
    return found or []


def _load_default_test(value: JsonValue, config: PromptfooFile, folder: PromptfooFolder) -> Mapping[str, JsonValue]:
    """Load the settings that apply to all tests.

    Raises NotImportableError.
    """
    if isinstance(value, str):
        value = folder.read_document(value.removeprefix("file://")).value
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotImportableError("it is not a mapping")
    _refuse_keys(value)
    default = {**value, "assert": [_resolve_reference(one, config.value) for one in _get_list(value, "assert")]}
    for key in ("vars", "options", "metadata"):
        _get_mapping(default, key)
    return default


def _refuse_keys(test: Mapping[str, JsonValue]) -> None:
    for key, found in test.items():
        if key not in _READ_KEYS and found not in (None, [], {}, ""):
            raise NotImportableError(_SKIP_REASONS.get(key, f"`{key[:60]}` of a test is not read"))


def _merge_default(written: LocatedValue, default: Mapping[str, JsonValue], config: PromptfooFile) -> PromptfooTest:
    """Merge a test with the default test.

    The variables are not expanded yet. Raises NotImportableError.
    """
    value = written.value
    if not isinstance(value, dict):
        raise NotImportableError("it is not a mapping")
    _refuse_keys(value)
    own = _get_mapping(value, "options")
    options = {**_get_mapping(default, "options"), **{key: option for key, option in own.items() if option != ""}}
    for key, option in options.items():
        if key not in _OPTIONS and option not in (None, False, "", [], {}):
            raise NotImportableError(f"`options.{key[:60]}` changes the request or the checks")
    held = [] if own.get("disableDefaultAsserts") is True else _get_list(default, "assert")
    threshold = value.get("threshold")
    variables = {**_get_mapping(default, "vars"), **_get_mapping(value, "vars")}
    if options.get("disableVarExpansion"):
        variables = {key: [one] if isinstance(one, list) else one for key, one in variables.items()}
    return PromptfooTest(
        place=written.place,
        description=_get_description(value),
        test_case_id=_find_test_case_id(
            {"metadata": {**_get_mapping(default, "metadata"), **_get_mapping(value, "metadata")}}
        ),
        variables=variables,
        own_variables=frozenset(_get_mapping(value, "vars")),
        assertions=(*held, *(_resolve_reference(one, config.value) for one in _get_list(value, "assert"))),
        threshold=default.get("threshold") if threshold is None else threshold,
        prefix=_require_text(options.get("prefix")),
        suffix=_require_text(options.get("suffix")),
        has_own_grading=any(options.get(key) for key in _GRADING),
    )


def _require_text(value: JsonValue) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NotImportableError("a prefix or suffix is not text")
    return value


def _resolve_reference(one: JsonValue, config: JsonValue) -> JsonValue:
    """Return an assertion, following references such as `$ref: '#/…'` into the configuration.

    Raises NotImportableError if a reference cannot be resolved.
    """
    for _ in range(_MAX_REFERENCES):
        if not isinstance(one, dict) or "$ref" not in one:
            return one
        path = one["$ref"]
        if len(one) > 1 or not isinstance(path, str) or not path.startswith("#/"):
            raise NotImportableError("an assertion is a reference ($ref) to elsewhere")
        one = config
        for step in path.removeprefix("#/").split("/"):
            one = one.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(one, dict) else None
        if one is None:
            raise NotImportableError(f"its reference {path[:80]} does not exist")
    raise NotImportableError("an assertion is a reference ($ref) that does not end")


def _expand_variables(test: PromptfooTest, folder: PromptfooFolder) -> Iterator[PromptfooTest]:
    """Yield the test once for each combination of its variables' values.

    Raises NotImportableError if there are too many combinations.
    """
    values = {name: _list_values(value) for name, value in test.variables.items()}
    count = prod(map(len, values.values()))
    test = replace(
        test, own_variables=test.own_variables | {name for name, several in values.items() if len(several) > 1}
    )
    if count > CASES:
        raise NotImportableError(f"its variables have more than {CASES:,} combinations")
    for one in product(*values.values()):
        variables = dict(zip(values, one, strict=True))
        try:
            read = {name: _read_variable(value, folder) for name, value in variables.items()}
            yield replace(test, variables=read)
        except NotImportableError as error:
            yield replace(test, variables=variables, skip_reason=str(error))


def _list_values(value: JsonValue) -> list[JsonValue]:
    """Return the members of a list of texts, or the value itself as the only member."""
    return [*value] if isinstance(value, list) and value and isinstance(value[0], str) else [value]


def _read_variable(value: JsonValue, folder: PromptfooFolder) -> JsonValue:
    """Return the value of a variable, or the text of the file that it names.

    A line feed at the end is removed. Raises NotImportableError for a value that a program makes, or a file that is
    not a text.
    """
    if not isinstance(value, str):
        return value
    if value.startswith("package:"):
        raise NotImportableError("a variable comes from a program, and programs are not run")
    if not value.startswith("file://"):
        return value.removesuffix("\n")
    name = value.removeprefix("file://")
    suffix = PurePosixPath(name).suffix
    if suffix not in _TEXT_SUFFIXES:
        raise NotImportableError(f"a variable comes from {name[:100]}, which is not text")
    if suffix in YAML_SUFFIXES:
        return dump_compact_json(folder.read_document(name).value)
    return folder.read_text(name).strip()


def format_variables(test: PromptfooTest) -> str:
    """Format the variables that distinguish this test from others in one line.

    A single text is returned as it is.
    """
    names = test.own_variables or test.variables.keys()
    shown = {name: _unwrap_date(value) for name, value in test.variables.items() if name in names}
    values = list(shown.values())
    if len(values) == 1 and isinstance(values[0], str) and values[0].strip():
        return values[0]
    return json.dumps(dict(islice(shown.items(), 20)), ensure_ascii=False) if shown else ""


def _unwrap_date(value: JsonValue) -> JsonValue:
    return value[DATE_KEY] if isinstance(value, dict) and DATE_KEY in value else value
