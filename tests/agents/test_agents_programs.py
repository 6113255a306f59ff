"""Coding agents that are commands, by docs/coding-agents.md: the real programs, a stand-in for their models."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.agents.test_agents_kinds import cases, judged
from tests.support.frameworks import MODELS, ROOT
from tests.support.program import CLEAN

NOWHERE = "http://127.0.0.1:9"
"""What programs would tell their makers goes here: a test needs no network for it."""
CODEX_CONFIG = """
model = "stand-in"
model_provider = "stand-in"
[model_providers.stand-in]
name = "stand-in"
base_url = "{url}/v1"
env_key = "CODEX_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
}


@dataclass(frozen=True)
class Program:
    """One program: its section, where it finds its model, the tool it calls here, and what its answers tell."""

    name: str
    title: str
    address: str
    tool: str
    cost: bool = False
    durations: bool = False

    def __str__(self) -> str:
        return self.name


PROGRAMS = (
    Program("claude-code", "Claude Code", "ANTHROPIC_BASE_URL", "Bash", cost=True),
    Program("gemini-cli", "Gemini CLI", "GOOGLE_GEMINI_BASE_URL", "run_shell_command", durations=True),
    Program("codex", "Codex", "CODEX_BASE_URL", "command_execution"),
)


def section(program: Program) -> str:
    page = (ROOT / "docs" / "coding-agents.md").read_text()
    _, heading, rest = page.partition(f"\n## {program.title}\n")
    assert heading
    return rest.partition("\n## ")[0]


def described(folder: Path, program: Program, programs: Path, url: str) -> None:
    """The target of its section, but for a home of its own, and its model's address."""
    block = re.search(r"```yaml\n(.*?)```", section(program), re.DOTALL)
    assert block is not None
    document = yaml.safe_load(block[1])
    (target,) = document["targets"]
    home = folder / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text(CODEX_CONFIG.format(url=url))
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(GEMINI_SETTINGS))
    key = next(iter(target["env"]))
    target["env"] |= {
        key: "no-key-at-all",
        program.address: url,
        "HOME": str(home),
        "PATH": os.pathsep.join([str(programs), CLEAN["PATH"]]),
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    if program.name == "codex":
        # its sandbox asks the kernel for what containers may not have
        target["args"] = ["--sandbox", "danger-full-access"]
    (folder / "targets.yaml").write_text(json.dumps(document))


def listens(url: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(url, timeout=1)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program__by_the_target_of_its_section__passes_fails_and_crashes(program, programs, running, tmp_path) -> None:
    url = running(MODELS)
    listens(url)
    described(tmp_path, program, programs, url)
    weather = f"ask {program.name} for the weather"
    cases(
        tmp_path,
        (weather, {"toolsCalled": [program.tool], "noToolErrors": True, "responseContains": ["22 degrees"]}),
        ("hello", {"toolsNotCalled": [program.tool], "responseContains": ["nothing"]}),
        (f"{weather}, wrongly", {"responseContains": ["30 degrees"]}),
        ("crash", {"responseContains": ["out"]}),
    )
    code, found = judged(tmp_path)
    assert [(case["status"], case["errorKind"]) for case in found] == [
        ("passed", None),
        ("passed", None),
        ("failed", None),
        ("error", "agent_error"),
    ], [case["error"] for case in found]
    assert code == 1
    first, crashed = found[0], found[3]
    (call,) = first["details"]["toolCalls"]
    assert (call["name"], call["success"], "22 degrees" in json.dumps(call)) == (program.tool, True, True)
    assert (call["durationMs"] is not None) is program.durations
    assert "out of order" in str(crashed["error"])
    assert re.search(r"says that its? (turn )?failed", str(crashed["error"]))
    assert first["usage"] == {"inputTokens": 22, "outputTokens": 12}
    assert (first["costUsd"] is not None) is program.cost
