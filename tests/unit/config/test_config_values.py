"""Every number, text and path of the configuration is checked where it enters, whatever it is for."""

import json
import re

import pytest
import typer
from typer.main import get_command

from eval_gate.cli.program import app
from eval_gate.cli.terminal.help import CheckedCommand
from eval_gate.config.loader import load_config
from eval_gate.config.setting import LARGEST
from eval_gate.config.settings import SETTINGS
from eval_gate.config.values import has_infinite
from eval_gate.errors import GateError

LONG = "x" * 256
NUMBERS = [key for key, row in SETTINGS.items() if row.type in {int, float}]
OF_PLACES = re.compile(r"FILE|DIR|(?<!=)PATH|REF|FOLDER|LABELS|RESULT|RUN$|BASELINE|CURRENT|CONFIG")
PLACES = [key for key, row in SETTINGS.items() if OF_PLACES.search(row.metavar or row.flag)]
TEXTS = [key for key, row in SETTINGS.items() if row.type not in {int, float, bool} and key != "targets"]


def refused(folder, values) -> dict[str, str]:
    """What is said of each key of a file with these values."""
    file = folder / "eval-gate.json"
    file.write_text(json.dumps(values).replace("Infinity", "1e400"))
    with pytest.raises(GateError) as caught:
        load_config({}, {}, file, shown_as=file.name)
    assert (caught.value.code, caught.value.exit_code) == ("invalid-configuration", 2)
    return {(one.field or "").partition("[")[0]: one.message for one in caught.value.problems}


def as_kind(key: str, text: str) -> object:
    return [text] if SETTINGS[key].type == list[str] else text


@pytest.mark.parametrize("number", [10**400, -(10**400), 1e300, True, "7"])
def test_config__number_that_is_none_or_too_large__is_refused_for_every_setting(tmp_path, number) -> None:
    assert len(NUMBERS) > 15
    assert refused(tmp_path, dict.fromkeys(NUMBERS, number)).keys() == set(NUMBERS)


def test_config__largest_number__is_one_of_a_setting_without_a_limit(tmp_path) -> None:
    (tmp_path / "eval-gate.json").write_text(json.dumps({"maxErrors": LARGEST, "maxCostIncrease": LARGEST}))
    assert load_config({}, {}, tmp_path / "eval-gate.json").policy.max_errors == LARGEST


def test_config__nul__is_refused_in_every_text(tmp_path) -> None:
    said = refused(tmp_path, {key: as_kind(key, "a\0b") for key in TEXTS} | {"targets": "a\0b"})
    assert said.keys() == {*TEXTS, "targets"}
    assert {said[key] for key in PLACES if key not in {"reports", "exports"}} == {"contains a NUL character"}


def test_config__name_of_more_bytes_than_a_name_has__is_refused_in_every_path(tmp_path) -> None:
    formats = {"reports": "html=", "exports": "agentv="}
    assert len(PLACES) > 11
    for path in (LONG, f"a/{'é' * 128}/b", "a/" * 2_500):
        said = refused(tmp_path, {key: as_kind(key, formats.get(key, "") + path) for key in PLACES})
        assert said.keys() == set(PLACES)
        assert all("(limit " in words for words in said.values())


def test_config__address_with_a_long_part__is_no_path(tmp_path) -> None:
    config = load_config({"snapshotPath": f"https://a.example/?token={LONG}", "outputDir": "x" * 255}, {}, None)
    assert (len(config.snapshot_path), len(config.output_dir)) == (281, 255)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1e308, False), (float("nan"), True), ({"a": [1, {"b": float("inf")}]}, True), ({"a": [1, "inf", None]}, False)],
)
def test_has_infinite__value__is_looked_through(value, expected) -> None:
    assert has_infinite(value) is expected


def test_options__path_with_a_name_too_long__is_refused_by_every_command() -> None:
    needed = {"compare": ["a", "a"], "waive": ["b", "--reason", "r", "--until", "3d"]}
    needed |= {name: ["a"] for name in ("check", "report", "merge", "calibrate", "record", "replay")}
    tried = set()
    for name, command in get_command(app).commands.items():
        for one in command.params:
            row = SETTINGS.get(one.name)
            if not OF_PLACES.search(one.metavar or "") or (row and one.metavar in {row.metavar, row.flag}):
                continue
            given = needed.get(name, [])
            if one.param_type_name == "argument":
                words = [LONG if word == "a" else word for word in given or ["a"]]
            else:
                words = [one.opts[0], LONG, *given]
            tried.add(name)
            assert isinstance(command, CheckedCommand), name
            with pytest.raises(typer.BadParameter, match="contains a file name of 256 bytes"):
                command.make_context(name, words)
    assert tried >= {"run", "calibrate", "merge", "check", "report", "view", "init", "agent-evals", "demo"}
