"""The worked example of docs/architecture.md, a new kind of target: taken from the page, added, and run."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_integration_run import ROOT, record, write_suite
from tests.support.program import CLEAN

PAGE = ROOT / "docs" / "architecture.md"
SHOWN = re.compile(r"^`(runner/[\w/.]+)`[^`]*(?:`\w+`[^`]*)*\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = "KINDS: tuple[TargetKind, ...] = (\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """The program with the example added to it: its files, and the row at the top of its table."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "runner", root / "runner", ignore=shutil.ignore_patterns("__pycache__"))
    shown = SHOWN.findall(PAGE.read_text(encoding="utf-8"))
    assert [Path(name).name for name, _ in shown] == ["__init__.py", "settings.py", "target.py", "kinds.py"]
    *files, (table, rows) = shown
    row = rows.removeprefix(TABLE).removesuffix("    ...,\n)\n")
    assert row.count("\n") == 1
    for name, text in files:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    before = (root / table).read_text(encoding="utf-8")
    assert before.count(TABLE) == 1
    (root / table).write_text(before.replace(TABLE, TABLE + row), encoding="utf-8")
    return root / "runner"


def extended(package: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this program and not the one that is installed."""
    words = [sys.executable, "-m", "eval_gate", *arguments]
    environment = CLEAN | {"PYTHONPATH": str(package)}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_example__of_a_new_kind__is_asked_and_judged(package, tmp_path) -> None:
    write_suite(tmp_path, 1, responseContains=["ask 0 ask 0"])
    (tmp_path / "targets.yaml").write_text("targets:\n- {name: cave, provider: Echo, repetitions: 2}\n")
    done = extended(package, tmp_path, "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert record(tmp_path)["target"]["identity"] == "echo:cave"


@pytest.mark.slow
def test_example__described_wrongly__is_told_like_every_kind(package, tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "targets.yaml").write_text("targets:\n- name: cave\n  provider: echo\n  repetitons: 2\n")
    done = extended(package, tmp_path, "validate")
    assert 'targets.yaml:4: targets[cave].repetitons: unknown setting (did you mean "repetitions"?)' in done.stderr
    shown = json.loads(extended(package, tmp_path, "schema", "targets").stdout)
    kinds = {kind["title"]: kind for kind in shown["properties"]["targets"]["items"]["anyOf"]}
    assert kinds["EchoSettings"]["properties"]["provider"] == {"enum": ["echo"]}


@pytest.mark.slow
def test_example__is_written_as_we_write(package) -> None:
    folder = package / "eval_gate" / "targets" / "echo"
    settings = ["--no-cache", "--config", str(ROOT / "pyproject.toml")]
    for command in (["check", *settings], ["format", "--check", *settings]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
