"""A key where a setting wants something else: of every setting, no part of it is shown or stored, in any case."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from eval_gate.config.setting import Setting
from eval_gate.config.settings import SETTINGS
from eval_gate.errors import GateError
from eval_gate.targets.kinds import find_kind
from eval_gate.targets.settings import DescribedSettings
from eval_gate.targets.target_list import parse_targets
from tests.support.agents import unused_port, vanishing_agent
from tests.support.canaries import KEY, files_below, shown_in
from tests.support.program import gate

NAMES = {
    "waiversPath": "a file's name, which the record keeps",
    "mustPass": "patterns of ids, which the record keeps",
    "outputDir": "the folder of the results, whose name it becomes",
    "snapshotCommand": "a command: the shell itself says what it did not find",
}
"""Settings to which any text is what they want, and what is done with it. Of all others nothing is shown or stored."""
WHOM = {"agentEndpoint", "model", "provider", "target", "targets"}
ADDRESS = "http://127.0.0.1:1/"


def prepared(folder: Path, config: object = None) -> Path:
    folder.mkdir()
    (folder / "evals").mkdir()
    case = {"id": "c1", "input": {"message": "hi"}, "expect": {"responseContains": ["x"]}}
    (folder / "evals/a.golden.json").write_text(json.dumps([case]))
    if config is not None:
        (folder / "eval-gate.json").write_text(json.dumps(config))
    return folder


def left(folder: Path, done) -> list[str]:
    texts = [("stdout", done.stdout), ("stderr", done.stderr)]
    texts += [one for one in files_below(folder) if one[0] != "eval-gate.json"]
    texts += [(name, name) for name, _ in files_below(folder)]
    assert "Traceback" not in done.stderr
    return shown_in(texts)


def ways_of(row: Setting) -> Iterator[tuple[str, list[str], dict[str, str], dict[str, object]]]:
    """How a key can be given to a setting: options, variables, and the configuration file."""
    if row.option and row.flag.startswith("--"):
        yield "option", [row.flag, KEY], {}, {}
    yield "variable", [], {row.variable: KEY}, {}
    for value in (KEY, [KEY], {"a": KEY}, [[KEY]], [{KEY: KEY}]):
        yield f"file: {json.dumps(value).replace(KEY, 'KEY')}", [], {}, {row.key: value}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "validate"])
def test_each_setting__is_given_a_key__shows_none_of_it(tmp_path, command) -> None:
    found = {}
    for row in SETTINGS.values():
        for way, options, variables, config in ways_of(row):
            folder = prepared(tmp_path / "p", {**({} if row.key in WHOM else {"agentEndpoint": ADDRESS}), **config})
            done = gate(folder, command, "--max-retries", "0", *options, **variables)
            if names := left(folder, done):
                found[row.key, way] = names
            shutil.rmtree(folder)
    assert {key for key, _ in found} <= NAMES.keys(), found


@pytest.mark.parametrize("command", ["run", "validate"])
def test_all_settings__are_given_a_key__they_are_named_and_none_of_it_is_shown(tmp_path, command) -> None:
    folder = prepared(tmp_path / "p", {key: {"a": KEY} for key in SETTINGS})
    done = gate(folder, command)
    assert done.returncode == 2
    assert sum(f" {key}: " in done.stderr for key in SETTINGS) > 40
    assert left(folder, done) == []


@pytest.mark.parametrize("command", ["run", "validate"])
def test_all_headers_of_a_target__are_one_secret__none_of_it_is_shown(tmp_path, command) -> None:
    target = {"name": "a", "url": ADDRESS, "headers": "${{ AGENT_HEADERS }}", "method": "${{ AGENT_HEADERS }}"}
    folder = prepared(tmp_path / "p", {"targets": [target]})
    done = gate(folder, command, AGENT_HEADERS=KEY)
    assert done.returncode == 2
    assert "headers: expected a mapping, got the value of ${{ AGENT_HEADERS }}" in done.stderr
    assert "method: expected" in done.stderr
    assert left(folder, done) == []


DESCRIBED = {
    "azure": {"model": "m", "api_key": "${{ OTHER }}", "endpoint": ADDRESS},
    "cli": {"command_template": "echo {PROMPT}"},
    "codex": {},
    "http": {"url": ADDRESS},
    "mock": {},
    "openai": {"model": "m", "api_key": "${{ OTHER }}"},
    "vscode": {},
}
WRONG = (
    *("${{ KEY }}", "x ${{ KEY }}", ["${{ KEY }}"], [["${{ KEY }}"]]),
    *({"a": "${{ KEY }}"}, {"a": {"b": "${{ KEY }}"}}, {"${{ KEY }}": 1}),
)


def settings_below(shape: type, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every setting of a description, and of those within it."""
    for name, info in shape.model_fields.items():
        yield (*above, name)
        waiting = [info.annotation]
        while waiting:
            one = waiting.pop()
            if isinstance(one, type) and issubclass(one, DescribedSettings):
                yield from settings_below(one, (*above, name))
                break
            waiting += get_args(one)


def described(provider: str, path: tuple[str, ...], value: object) -> dict[str, object]:
    target = {"name": "a", "provider": provider, **DESCRIBED[provider]}
    place = target
    for step in path[:-1]:
        place[step] = {}
        place = place[step]
    place[path[-1]] = value
    return target


@pytest.mark.parametrize("provider", DESCRIBED)
def test_each_setting_of_a_target__refers_to_a_key__no_error_shows_any_of_it(provider) -> None:
    paths = [path for path in settings_below(find_kind(provider).settings) if path[0] != "provider"]
    assert len(paths) > 5
    refused = 0
    for path in paths:
        for value in WRONG[:2] if path == ("agentProtocol",) else WRONG:
            listed = parse_targets("targets.yaml", json.dumps([described(provider, path, value)]).encode())
            try:
                listed.resolve_target(None, {"KEY": KEY, "OTHER": "another"})
            except GateError as error:
                refused += 1
                said = " ".join(map(str, (error, error.hint, *error.problems)))
                assert shown_in([(f"{provider} {path}", said)]) == []
    assert refused > 5


def test_run__address_with_user_and_query__they_are_nowhere(tmp_path) -> None:
    folder = prepared(tmp_path / "p")
    reports = [f"--report={one}" for one in ("md", "html", "junit", "json", "console")]
    options = ("--snapshot-command", "echo $SECRET_KEY; echo {}", *reports, "--max-retries", "0")
    with vanishing_agent() as url:
        for one in (f"http://127.0.0.1:{unused_port()}/chat", url):
            address = f"{one.replace('//', f'//bot:{KEY}@')}?key={KEY}"
            done = gate(folder, "run", "evals", "--agent-endpoint", address, *options, SECRET_KEY=KEY)
            assert done.returncode == 3
            assert left(folder, done) == []
    shown = f"{url.replace('//', '//***@')}?***"
    assert f"--agent-endpoint '{shown}'" in done.stdout


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        (["--target", "open sesame, please"], {}),
        (["--agent-endpoint", ADDRESS, "--snapshot", "open sesame, please"], {}),
        ([], {"EVAL_GATE_KEEP_RESPONSES": "open sesame, please"}),
    ],
)
def test_run__key_that_looks_like_words__is_known_by_the_name_of_its_variable(tmp_path, options, environment) -> None:
    folder = prepared(tmp_path / "p")
    done = gate(folder, "run", *options, **environment, BOT_PASSWORD="open sesame, please")
    assert done.returncode in {2, 3}
    assert "sesame" not in done.stdout + done.stderr
    assert "***" in done.stderr
