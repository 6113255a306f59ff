"""`init` and warm-up: what the rounds take is said before the setting is written, and nobody gets it unasked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.test_integration_run import gate, write_suite
from tests.support.agents import Exchange, agent


async def answer(exchange: Exchange) -> None:
    exchange.answer({"response": "ok", "toolCalls": [{"name": "find"}], "costUsd": 0.01})


def setting(folder: Path) -> int | None:
    return yaml.safe_load((folder / "eval-gate.yaml").read_text()).get("warmUp")


@pytest.mark.parametrize(
    ("probe", "takes"), [((), "27 executions"), (("--probe", "Hello"), "27 executions, about $0.27")]
)
def test_init__warm_up__says_what_it_takes_before_anything_is_written(tmp_path, probe, takes) -> None:
    write_suite(tmp_path, 3)
    with agent(answer) as running:
        done = gate(tmp_path, "init", "--agent-endpoint", running.url, *probe, "--warm-up")
    assert done.returncode == 0, done.stderr
    said = f"warm-up     the first run on main makes 9 further rounds of 3 cases ({takes}), so that pull requests have"
    assert said in done.stdout
    assert done.stdout.index(said) < done.stdout.index("written")
    assert setting(tmp_path) == 10


@pytest.mark.parametrize("option", [(), ("--no-warm-up",)])
def test_init__nobody_decides_or_says_no__writes_it_as_a_comment(tmp_path, option) -> None:
    write_suite(tmp_path, 3)
    done = gate(tmp_path, "init", *option)
    assert done.returncode == 0, done.stderr
    assert "warm-up" not in done.stdout
    assert setting(tmp_path) is None
    assert "# warmUp: 10" in (tmp_path / "eval-gate.yaml").read_text()


def test_init__again__keeps_the_setting_and_the_option_takes_it_away(tmp_path) -> None:
    write_suite(tmp_path, 3)
    assert gate(tmp_path, "init", "--warm-up").returncode == 0
    assert gate(tmp_path, "init", "--agent-endpoint", "http://127.0.0.1:9/chat", "--yes").returncode == 0
    assert setting(tmp_path) == 10
    assert gate(tmp_path, "init", "--no-warm-up", "--yes").returncode == 0
    assert setting(tmp_path) is None


def test_init__configuration_of_a_person__is_kept_and_the_line_is_named(tmp_path) -> None:
    write_suite(tmp_path, 3)
    (tmp_path / "eval-gate.yaml").write_text("evals: [evals]\nagentEndpoint: http://127.0.0.1:9/chat\n")
    done = gate(tmp_path, "init", "--warm-up")
    assert "not written warmUp: your configuration is kept; add `warmUp: 10`" in done.stdout
    assert setting(tmp_path) is None
