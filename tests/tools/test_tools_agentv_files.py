"""Every eval file in AgentV's own repository is read with its meaning, or refused in words that name a feature.

`EVAL_GATE_AGENTV_SOURCE` names a checkout of AgentV at the version of tests/tools/agentv; else it is cloned.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import EvalFile, load_suites
from tests.support.program import CLEAN
from tests.support.tools import TOOLS, Tool
from tests.tools.conftest import installed_or_skip

SOURCE = "https://github.com/EntityProcess/agentv"
PAGE = (Path(__file__).parents[2] / "docs" / "agentv.md").read_text()
NAMED = re.compile(
    r"(is|are) not supported|is none of the evaluators that are known|a key that is not text"
    r"|sets no limit|none of these fields is in the expected output|unknown key"
)
"""What is said of a feature that is not there, of a key that AgentV does not know either, or of what judges nothing."""


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """AgentV's repository, in a folder where nothing else is."""
    given = os.environ.get("EVAL_GATE_AGENTV_SOURCE")
    if given:
        return Path(given)
    version = json.loads((TOOLS / "agentv" / "package.json").read_text())["dependencies"]["agentv"]
    folder = tmp_path_factory.mktemp("agentv") / "source"
    words = ["git", "clone", "--quiet", "--depth=1", f"--branch=v{version}", SOURCE, str(folder)]
    done = subprocess.run(words, env=CLEAN, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"*** NOT TESTED: AgentV's repository cannot be had here: {done.stderr[:300]} ***")
    return folder


def test_files__of_agentv_itself__load_or_are_refused_by_name(source: Path) -> None:
    program = installed_or_skip(Tool("agentv", "agentv.yml")) / "node_modules" / "agentv" / "dist" / "cli.js"
    files = [file for file in sorted(source.glob("e*/**/*.yaml")) if re.search(r"(?m)^tests:", file.read_text())]
    words = ["node", str(program), "validate", *map(str, files)]
    told = subprocess.run(words, cwd=source, env=CLEAN, capture_output=True, text=True, timeout=300, check=False)
    invalid = re.findall(r"(?m)^✗ (.+)$", told.stdout)
    valid = [file for file in files if str(file) not in invalid]
    loaded, unnamed = 0, []
    for file in valid:
        try:
            [suite] = load_suites([EvalFile(file, explicit=True)], source, ReadOptions())
        except GateError as error:
            unnamed += [str(problem) for problem in error.problems if not NAMED.search(problem.message)]
        else:
            assert suite.warnings == (), file
            loaded += 1
    assert unnamed == []
    claim = f"It loads {loaded} of the {len(valid)} files in AgentV's own repository that AgentV's `validate` accepts"
    assert claim in " ".join(PAGE.split())
