"""promptfoo itself says of every assertion and answer what our table says it does: the import is held against that."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from tests.support.program import CLEAN
from tests.support.promptfoo import CONFIG, TRIED, VERDICTS, said
from tests.support.tools import NotInstallableError, Tool, install

QUIET = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}


def test_promptfoo__each_assertion_on_each_answer__says_what_is_recorded(tmp_path, request) -> None:
    if not {"all", "promptfoo"} & set(os.environ.get("EVAL_GATE_TOOLS", "").split(",")):
        pytest.skip("promptfoo is not asked for: run `make tools`")
    try:
        place = install(Tool("promptfoo", ""))
    except NotInstallableError as error:
        if os.environ.get("EVAL_GATE_REQUIRE_TOOLS") == "1":
            raise
        pytest.skip(f"*** NOT TESTED with promptfoo, which cannot be installed here: {error} ***")
    folder = shutil.copytree(TRIED, tmp_path / "tried")
    done = subprocess.run(
        [place / "node_modules" / ".bin" / "promptfoo", "eval", "-c", CONFIG.name, "--no-cache", "-o", "out.json"],
        cwd=folder,
        env=CLEAN | QUIET | {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "kept")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 100, done.stdout + done.stderr
    found = said(json.loads((folder / "out.json").read_text()))
    if request.config.getoption("--update-golden"):
        VERDICTS.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    assert found["verdicts"] == json.loads(VERDICTS.read_text())["verdicts"]
