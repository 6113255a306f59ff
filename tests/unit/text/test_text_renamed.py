"""The table of replaced names: what it names exists, and what it replaces does not."""

from __future__ import annotations

from collections.abc import Set

import pytest
import typer

from eval_gate.action.inputs import INPUTS
from eval_gate.cli.program import app
from eval_gate.config.settings import KEYS, SETTINGS
from eval_gate.external_results.jsonl import ResultLine
from eval_gate.gate.waivers import waive_command, waiver_file
from eval_gate.github.waiver_comments import DEFAULT_LABEL
from eval_gate.model.waiver import WaiverKind
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.settings import list_names_at
from eval_gate.text.renamed import RENAMED, NameKind, find_new_name, find_old_name, suggest_name


def list_options() -> Set[str]:
    """All options, and those of one command as `power --reruns`."""
    known = set()
    for command, one in typer.main.get_command(app).commands.items():
        names = {name for parameter in one.params for name in (*parameter.opts, *parameter.secondary_opts)}
        known |= names | {f"{command} {name}" for name in names}
    return known


KNOWN = {
    NameKind.COMMAND: {*typer.main.get_command(app).commands},
    NameKind.OPTION: list_options(),
    NameKind.SETTING: {*KEYS},
    NameKind.INPUT: {one.name for one in INPUTS},
    NameKind.TARGET_SETTING: {
        *list_names_at(HttpSettings, ()),
        *list_names_at(CliSettings, ()),
        *list_names_at(HttpSettings, ("events",)),
    },
    NameKind.WAIVER_KEY: {*(kind.list_key for kind in WaiverKind), *waiver_file._FIELDS},
    NameKind.COMMENT_VERB: {*waive_command._VERBS},
    NameKind.RESULT_KEY: {*ResultLine.model_fields},
    NameKind.LABEL: {DEFAULT_LABEL},
    NameKind.FILE: {waiver_file.DEFAULT_PATH},
}


@pytest.mark.parametrize("kind", NameKind)
def test_table__of_each_kind__has_new_names_that_exist_and_old_ones_that_do_not(kind) -> None:
    names = RENAMED[kind]
    assert names
    assert {*names.values()} <= KNOWN[kind]
    assert not KNOWN[kind] & names.keys()
    assert not names.keys() & {*names.values()}


def test_new_names__of_settings__are_found_in_every_spelling() -> None:
    spellings = ("errorRate", "error_rate", "error-rate", "--error-rate", "EVAL_GATE_ERROR_RATE")
    assert {find_new_name(NameKind.SETTING, one) for one in spellings} == {"falseAlarmRate"}
    assert find_new_name(NameKind.SETTING, "trials") is None


def test_old_names__are_found_by_the_new_one() -> None:
    assert find_old_name(NameKind.LABEL, "eval-gate:waive") == "eval-gate:accept"
    assert find_old_name(NameKind.LABEL, "of-our-own") is None


def test_suggestions__name_what_replaced_a_word_or_else_what_is_near() -> None:
    assert suggest_name(NameKind.SETTING, "confirm", SETTINGS) == ' (now called "reruns")'
    assert suggest_name(NameKind.SETTING, "trails", SETTINGS) == ' (did you mean "trials"?)'
    assert suggest_name(NameKind.SETTING, "blame", SETTINGS) == ""
    assert suggest_name(NameKind.WAIVER_KEY, "by", ["waivers", "quarantine"]) == "", "it has another place"
