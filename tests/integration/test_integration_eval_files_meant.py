"""A file of evals in a folder is read or is an error, and what is plainly something else is left out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.program import gate

CASE = {"id": "gs-1", "input": {"message": "hi"}, "expect": {"responseContains": ["x"]}}
FINE = json.dumps([CASE])
FORGE = "- id: gs-2\n  input: {message: hi}\n  expect: {responseContains: [x]}\n"
AGENTV_4 = "tests:\n- id: a\n  input: hi\n  assertions: [{type: contains, value: x}]\n"
LINE = '{"id": "a", "input": "hi", "assertions": [{"type": "contains", "value": "x"}]}\n'
BREAKS = {
    "duplicate key": lambda text: text.replace("id: ", "id: z\n  id: ", 1),
    "second document": lambda text: f"{text}---\n{text}",
    "tag": lambda text: text.replace("hi", "!x hi", 1),
    "broken line": lambda text: f"{text}  - [\n",
    "duplicate list": lambda text: f"{text}tests: []\n" if text.startswith("tests") else f"{text}- a: 1\n  a: 2\n",
}
MEANT = (
    {f"tool-forge, {how}": ("b.yaml", change(FORGE)) for how, change in BREAKS.items()}
    | {f"AgentV 4, {how}": ("b.yml", change(AGENTV_4)) for how, change in BREAKS.items()}
    | {
        "JSON lines, duplicate key": ("b.jsonl", LINE + LINE.replace('"id"', '"id": "z", "id"')),
        "JSON lines, broken line": ("b.jsonl", LINE + '{"id": \n'),
        "JSON lines, the only line breaks off": ("b.jsonl", LINE[:60]),
        "JSON lines in capitals": ("b.JSONL", LINE + "x\n"),
        "tool-forge as lines": ("b.jsonl", json.dumps(CASE)),
        "too many values": ("b.yaml", FORGE + "".join(FORGE.replace("gs-2", f"gs-{n}") for n in range(3, 8_600))),
        "too many values before its cases": ("b.yaml", "notes:\n" + "- x\n" * 50_000 + "cases:\n" + FORGE),
        "too many values to look at": ("b.yaml", "- x\n" * 400_000),
        "UTF-16": ("b.json", FINE.encode("utf-16")),
        "UTF-16 lines": ("b.jsonl", LINE.encode("utf-16")),
        "case for cases": ("z.golden.json", json.dumps({"case": [CASE]})),
        "cases is an object": ("z.golden.json", json.dumps({"cases": {"gs-1": CASE}})),
        "cases is null": ("z.golden.json", '{"metadata": {"tier": "golden"}, "cases": null}'),
        "cases is null, without a tier": ("z.json", json.dumps({"cases": {"gs-1": CASE}})),
        "nothing in it": ("z.golden.json", "{}"),
        "null": ("z.labeled.yaml", ""),
        "a broken file with a tier": ("z.regression.jsonl", "no JSON\n"),
        "tests without input": ("z.eval.yaml", "tests:\n- id: a\n  question: hi\n"),
        "a list of AgentV's cases that no suite names": ("z.yaml", "- {id: a, input: hi, criteria: Greets.}\n"),
        "another notation than the format has": (
            "z.yaml",
            "name: s\nagent: {name: a, model: m, instructions: i}\ncases: [{id: a, prompt: p, assertions: []}]\n",
        ),
        "JSON5 with a tier": ("z.golden.json5", "{cases: [] /* later */}"),
        "JSON5": ("z.json5", "// ours\n{cases: [{id: 'gs-1', input: {message: 'hi'}, expect: {},}]}"),
        "TOML with a tier": ("z.golden.toml", "[[cases]]\n"),
    }
)


def write(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.mark.parametrize(("name", "text"), MEANT.values(), ids=MEANT)
def test_validate__a_file_of_evals_in_a_folder_that_cannot_be_read__is_an_error(tmp_path, name, text) -> None:
    write(tmp_path, "evals/a.golden.json", FINE)
    write(tmp_path, f"evals/{name}", text)
    done = gate(tmp_path, "validate")
    assert done.returncode == 2, done.stdout
    assert f"evals/{name}" in done.stdout + done.stderr


@pytest.mark.parametrize("ending", ["JSON", "Json", "YAML", "Yml"])
def test_validate__an_ending_in_capitals__is_read(tmp_path, ending) -> None:
    write(tmp_path, "evals/a.golden.json", FINE)
    write(tmp_path, f"evals/b.golden.{ending}", FINE if ending.lower() == "json" else FORGE)
    done = gate(tmp_path, "validate")
    assert "2 cases in 2 suites" in done.stdout, done.stderr


@pytest.mark.parametrize("keys", [{"prompts": [], "tests": []}, {"evalId": "x", "results": []}])
def test_validate__keys_of_another_tool_beside_cases__do_not_hide_them(tmp_path, keys) -> None:
    write(tmp_path, "evals/a.golden.json", FINE)
    write(tmp_path, "evals/b.json", json.dumps({"cases": [CASE], **keys}))
    assert "2 cases in 2 suites" in gate(tmp_path, "validate").stdout


@pytest.mark.parametrize("name", ["run.json", "latest.json"])
def test_validate__a_file_that_is_called_like_results__does_not_hide_its_folder(tmp_path, name) -> None:
    write(tmp_path, "evals/a.golden.json", FINE)
    write(tmp_path, f"evals/desk/{name}", '{"speed": 3}')
    write(tmp_path, "evals/desk/b.golden.json", FINE)
    assert "2 cases in 2 suites" in gate(tmp_path, "validate").stdout
    write(tmp_path, f"evals/desk/{name}", FINE)
    assert "3 cases in 3 suites" in gate(tmp_path, "validate").stdout


@pytest.fixture
def compared(tmp_path) -> Path:
    """Three runs of two eval files, and a configuration whose target says what they expect."""
    write(tmp_path, "eval-gate.json", '{"targets": [{"name": "default", "provider": "mock", "response": "x"}]}')
    write(tmp_path, "evals/a.golden.json", FINE)
    write(tmp_path, "evals/desk/b.json", FINE)
    for _ in range(3):
        assert gate(tmp_path, "run").returncode == 0
    return tmp_path


def test_run__results_of_earlier_runs_wherever_they_lie__are_no_evals(compared) -> None:
    [run] = [one for one in (compared / "evals/results").iterdir() if one.is_dir()][:1]
    shutil.copytree(run, compared / "evals/kept")
    for file in run.iterdir():
        shutil.copy(file, compared / "evals" / f"kept-{file.name}")
    shutil.copy(compared / "evals/results/latest.json", compared / "evals/latest.json")
    done = gate(compared, "run", "--baseline", "latest")
    assert "2 of 2 pass" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("text", ["{}", "[]", '{"prices": {}}', '[{"id": "gs-1"}]'])
def test_run__a_file_whose_cases_the_baseline_has__was_meant(compared, text) -> None:
    write(compared, "evals/desk/b.json", text)
    done = gate(compared, "run", "--baseline", "latest")
    assert done.returncode == 2
    said = "evals/desk/b.json: not an eval file, but the baseline has 1 case of it: correct, rename or remove the file"
    assert said in done.stderr


def test_run__a_file_whose_cases_the_baseline_has_in_a_folder_of_results__was_meant(compared) -> None:
    write(compared, "evals/desk/run.json", '{"schemaVersion": 1, "runId": "desk"}')
    done = gate(compared, "run", "--baseline", "latest")
    assert done.returncode == 2
    assert "evals/desk/b.json: not an eval file" in done.stderr


def test_run__an_eval_file_that_was_removed_or_not_chosen__is_no_error(compared) -> None:
    assert gate(compared, "run", "evals/a.golden.json", "--baseline", "latest").returncode == 0
    (compared / "evals/desk/b.json").unlink()
    assert gate(compared, "run", "--baseline", "latest").returncode == 0


def test_validate__a_list_of_agentv_cases_that_a_suite_names__is_part_of_it(tmp_path) -> None:
    write(tmp_path, "evals/a.eval.yaml", "tests: ./more.yaml\n")
    write(
        tmp_path,
        "evals/more.yaml",
        "- {id: a, input: hi, criteria: Greets., assertions: [{type: contains, value: x}]}\n",
    )
    assert "1 case in 1 suite" in gate(tmp_path, "validate").stdout
