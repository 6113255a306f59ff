"""What a program can load: its folder, what its kind reads above, and in the root what it names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from eval_gate.engine.preparation.program_files import ProgramFiles
from eval_gate.engine.preparation.program_kinds import KINDS
from eval_gate.model import limits

FILES = (
    "Makefile package.json pyproject.toml conftest.py tsconfig.json lib/rules.py src/agent.py uv.lock"
    " evals/Makefile evals/conftest.py evals/desk.eval.yaml evals/top.txt evals/graders/g.py evals/graders/g.mjs"
    " evals/graders/g.sh evals/graders/test_g.py evals/graders/data/deep/truth evals/graders/.hidden"
    " evals/graders/__pycache__/g.pyc"
)
EVALS_ONLY = "evals/Makefile", "evals/conftest.py", "evals/desk.eval.yaml", "evals/top.txt"
GRADERS = tuple(
    f"evals/graders/{name}" for name in (".hidden", "data/deep/truth", "g.mjs", "g.py", "g.sh", "test_g.py")
)


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def find(root: Path, command: str, folder: str = "evals", named: Sequence[str] = ()) -> list[str]:
    files = ProgramFiles(root, named)
    key = files.measure(command, root / folder)
    return sorted(files.build_record().get_files([key]))


COMMANDS = {
    "python3 graders/g.py": GRADERS,
    "python3.12 -u graders/g.py --strict": GRADERS,
    "python3 -m graders.g": GRADERS,
    "sh -c 'python3 graders/g.py'": GRADERS,
    "cd graders && python3 g.py": GRADERS,
    "PYTHONPATH=graders python3 -m g": GRADERS,
    "cat x|python3 'graders/g.py';true": GRADERS,
    'python3 "$GITHUB_WORKSPACE/evals/graders/g.py"': GRADERS,
    "python3 ${PWD}/graders/g.py {{workspace_path}} {PROMPT}": GRADERS,
    "tool --config=graders/g.sh": GRADERS,
    "graders/g.sh": GRADERS,
    "docker run -v $PWD/graders:/g img /g/g.sh": GRADERS,
    "python3 -m pytest -q graders/test_g.py": ("conftest.py", "evals/conftest.py", *GRADERS, "pyproject.toml"),
    "pytest graders": ("conftest.py", "evals/conftest.py", *GRADERS, "pyproject.toml"),
    "uv run graders/g.py": (*GRADERS, "pyproject.toml", "uv.lock"),
    "node graders/g.mjs": (*GRADERS, "package.json", "tsconfig.json"),
    "make -C graders": ("Makefile", "evals/Makefile", *GRADERS),
    "make grade": ("Makefile", *EVALS_ONLY),
    "npm run grade": (*EVALS_ONLY, "package.json", "tsconfig.json"),
    "true": EVALS_ONLY,
    "python3 ../lib/rules.py": ("lib/rules.py",),
    "cd ../lib && python3 -m rules": ("lib/rules.py",),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_program_files__command__is_compared_by_these_files(tmp_path, command) -> None:
    write(tmp_path, dict.fromkeys(FILES.split(), "1"))
    assert find(tmp_path, command) == sorted(COMMANDS[command])


IN_ROOT = {
    "a module": ("from rules import (\n    STRICT,\n)\n", ["g.py", "rules.py"]),
    "a module of a module": ("from lib.deep import x\n", ["data.txt", "g.py", "lib/deep.py"]),
    "a module of a package": ("from lib import deep\n", ["data.txt", "g.py", "lib/deep.py"]),
    "a package": ("import pack\n", ["g.py", "pack/__init__.py"]),
    "a name in a call": ("importlib.import_module('rules')\n", ["g.py", "rules.py"]),
    "a file": ("open('data.txt')\n", ["data.txt", "g.py"]),
    "a file of a folder": ("open(HERE / 'lib/deep.py')\n", ["data.txt", "g.py", "lib/deep.py"]),
    "nothing": ("print(1)\n", ["g.py"]),
}


@pytest.mark.parametrize("what", IN_ROOT)
def test_program_files__program_in_the_root__is_compared_by_what_it_names(tmp_path, what) -> None:
    text, expected = IN_ROOT[what]
    others = {"rules.py": "", "lib/deep.py": "open('data.txt')", "pack/__init__.py": "", "data.txt": "", "agent.py": ""}
    write(tmp_path, {"g.py": text, "pack/other.py": "", **others})
    assert find(tmp_path, "python3 g.py", ".") == expected


def test_program_files__in_the_root__says_once_what_is_not_compared(tmp_path) -> None:
    write(tmp_path, {"g.py": "1", "h.py": "1", "words/a.txt": "1"})
    files = ProgramFiles(tmp_path, ["words"])
    for command in ("python3 g.py", "python3 h.py", "python3 g.py"):
        files.measure(command, tmp_path)
    (said,) = files.notices
    assert said.startswith("the root of the repository is not compared as a whole: for `python3 g.py`, `python3 h.py`,")
    assert "graderFiles" in said
    assert find(tmp_path, "python3 g.py", ".", ["words"]) == ["g.py", "words/a.txt"]


def test_program_files__no_file_is_named__says_once_what_is_compared(tmp_path) -> None:
    files = ProgramFiles(tmp_path)
    files.measure("make grade", tmp_path)
    (said,) = files.notices
    assert said.startswith("only the files at the top of the root are compared for `make grade`")


def test_program_files__what_is_compared_elsewhere__is_left_out_unless_the_command_names_it(tmp_path) -> None:
    write(
        tmp_path, dict.fromkeys(("evals/g.py", "evals/targets.yaml", "evals/out/a", "evals/agent.py", "evals/b"), "1")
    )
    files = ProgramFiles(tmp_path)
    files.leave_out(["evals/targets.yaml", "evals/out"])
    files.leave_out_agent("python3 agent.py b {PROMPT}", [tmp_path / "evals"])
    key = files.measure("python3 g.py b", tmp_path / "evals")
    assert sorted(files.build_record().get_files([key])) == ["evals/b", "evals/g.py"]


def test_program_files__links__count_by_what_is_behind_them_in_the_repository(tmp_path) -> None:
    root, outside = tmp_path / "root", tmp_path / "secret"
    write(root, {"evals/graders/g.py": "1", "shared/a.py": "1", "other/real.py": "1", "other/helper.py": "1"})
    (root / ".git").mkdir()
    outside.write_text("1")
    for name, place in {
        "lib": "../../shared",
        "loop": ".",
        "away": str(outside),
        "h.py": "../../other/real.py",
    }.items():
        (root / "evals/graders" / name).symlink_to(place)
    found = find(root, "python3 graders/g.py")
    assert found == [f"evals/graders/{name}" for name in ("away", "g.py", "h.py", "lib", "lib/a.py", "loop")]
    assert "other/helper.py" in find(root, "python3 graders/h.py")
    files = ProgramFiles(root)
    files.measure("python3 graders/g.py", root / "evals")
    assert files.notices == ("evals/graders/away is not compared: it leads out of the repository",)


def test_program_files__file_outside_of_the_repository__is_not_read(tmp_path) -> None:
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    (tmp_path / "secret.py").write_text("1")
    assert find(root, "python3 ../secret.py", ".") == []


def test_program_files__more_than_may_be_compared__says_so_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "PROGRAM_FILES", 2)
    write(tmp_path, {f"evals/{name}.py": "1" for name in "abcd"})
    files = ProgramFiles(tmp_path)
    files.measure("python3 a.py", tmp_path / "evals")
    (said,) = files.notices
    assert said.startswith("not all files of graders and hooks are compared")


def test_program_files__more_than_a_result_lists__are_joined_by_folder_and_still_differ(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "PROGRAM_ENTRIES", 5)
    write(tmp_path, {f"evals/data/{number}/{name}": "1" for number in range(3) for name in "abc"} | {"evals/g.py": "1"})
    found = []
    for text in ("1", "2"):
        (tmp_path / "evals/data/1/b").write_text(text)
        files = ProgramFiles(tmp_path)
        key = files.measure("python3 g.py", tmp_path / "evals")
        found.append(files.build_record().get_files([key]))
    assert sorted(found[0]) == [*(f"evals/data/{number}/…" for number in range(3)), "evals/g.py"]
    assert {name for name, digest in found[0].items() if found[1][name] != digest} == {"evals/data/1/…"}


def test_find_change__nothing_happens__finds_none_also_in_folders_and_caches(tmp_path) -> None:
    write(tmp_path, {"evals/g.py": "1", "evals/data/a": "1"})
    files = ProgramFiles(tmp_path)
    key = files.measure("python3 g.py", tmp_path / "evals")
    caches = ("__pycache__/g.pyc", ".hypothesis/.gitignore", ".cache/a", ".coverage")  # which a grader's tools write
    write(tmp_path, {"other/a": "1", **{f"evals/{name}": "1" for name in caches}})
    (tmp_path / "evals/data/a").read_text()
    assert files.find_change([key]) is None


def test_find_change__file_of_a_folder_above__is_found_also_where_it_is_new(tmp_path) -> None:
    write(tmp_path, {"evals/graders/test_g.py": "1"})
    files = ProgramFiles(tmp_path)
    key = files.measure("pytest graders/test_g.py", tmp_path / "evals")
    write(tmp_path, {"conftest.py": "1"})
    assert files.find_change([key]) == "conftest.py"
    (tmp_path / "conftest.py").unlink()
    assert files.find_change([key]) is None
    os.utime(tmp_path / "evals/graders/test_g.py", ns=(1, 1))
    assert files.find_change([key]) == "evals/graders/test_g.py"


@pytest.mark.parametrize("hiding", [".gitignore", "run.json", "pyvenv.cfg"])
def test_find_change__file_that_another_new_file_hides__is_found(tmp_path, hiding) -> None:
    write(tmp_path, {"evals/graders/g.py": "1"})
    files = ProgramFiles(tmp_path)
    key = files.measure("python3 graders/g.py", tmp_path / "evals")
    write(tmp_path, {"evals/graders/json/__init__.py": "1", f"evals/graders/json/{hiding}": "*"})
    assert files.find_change([key]) == f"evals/graders/json/{min(hiding, '__init__.py')}"


@pytest.mark.parametrize(
    "command",
    [
        ["python3", "../my graders (v2)/g.py"],
        ["sh", "-c", "python3 '../my graders (v2)/g.py'"],
        "python3 ../my\\ graders\\ \\(v2\\)/g.py",
        'python3 "../my graders (v2)"/g.py',
        'python3 "../my gra"*/g*.py',
        ["sh", "-c", "cat y | python3 '../my graders (v2)/g.py'; echo \"it's done"],
    ],
)
def test_program_files__name_with_blanks_and_signs__is_a_name_in_each_way_to_write_it(tmp_path, command) -> None:
    write(tmp_path, {"evals/x": "", "my graders (v2)/g.py": "1", "my graders (v2)/helper.py": "1"})
    files = ProgramFiles(tmp_path)
    key = files.measure(command, tmp_path / "evals")
    assert sorted(files.build_record().get_files([key])) == ["my graders (v2)/g.py", "my graders (v2)/helper.py"]


def test_program_files__program_in_the_root_names_a_result__is_not_compared_by_it(tmp_path) -> None:
    write(tmp_path, {"g.py": "open('results/latest.json'); import rules", "rules.py": "1", "results/latest.json": "1"})
    files = ProgramFiles(tmp_path)
    files.leave_out(["results"])
    key = files.measure("python3 g.py", tmp_path)
    assert sorted(files.build_record().get_files([key])) == ["g.py", "rules.py"]


def test_program_files__health_check_with_the_command_of_a_grader__makes_the_grader_no_smaller(tmp_path) -> None:
    write(tmp_path, {"evals/graders/g.py": "1", "evals/graders/rules.txt": "1"})
    files = ProgramFiles(tmp_path)
    by_name = files.measure("python3 graders/g.py", tmp_path / "evals", by_name=True)
    key = files.measure("python3 graders/g.py", tmp_path / "evals")
    record = files.build_record()
    assert [*record.get_files([by_name])] == ["evals/graders/g.py"]
    assert [*record.get_files([key])] == ["evals/graders/g.py", "evals/graders/rules.txt"]


def test_kinds__each_program__is_of_one_kind_and_reads_something() -> None:
    programs = [program for kind in KINDS for program in kind.programs]
    assert len(programs) == len(set(programs))
    assert all(kind.files for kind in KINDS)
