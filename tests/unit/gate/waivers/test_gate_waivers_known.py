"""Where accepted failures are looked for."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from eval_gate.config.loader import load_config
from eval_gate.gate.waivers.waiver_file import KnownWaivers, load_waivers

TODAY = date(2026, 11, 21)
ENTRY = "waivers:\n  - {case: a, reason: known, until: 2026-12-01}\n"


def test_known_waivers__file_that_nobody_named__is_read_where_it_is_and_not_missed_where_it_is_not(tmp_path) -> None:
    config = load_config({}, {}, None)
    assert load_waivers(config, tmp_path, TODAY) == KnownWaivers(TODAY)
    (tmp_path / ".eval-gate").mkdir()
    (tmp_path / ".eval-gate/waivers.yaml").write_text(ENTRY)
    assert [one.case for one in load_waivers(config, tmp_path, TODAY).waivers] == ["a"]


def test_known_waivers__file_that_is_named__is_read_there(tmp_path) -> None:
    config = load_config({"waiversPath": "ours.yaml"}, {}, None)
    assert load_waivers(config, tmp_path, TODAY) == KnownWaivers(TODAY)
    Path(tmp_path, "ours.yaml").write_text(ENTRY)
    assert [one.case for one in load_waivers(config, tmp_path, TODAY).waivers] == ["a"]
