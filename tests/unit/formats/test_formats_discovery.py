"""Which files are found, and what is said when none are."""

import json

import pytest

from runner.errors import GateError
from runner.formats.discovery import discover, load_suites

SUITE = json.dumps([{"id": "gs-1", "input": {"message": "x"}, "expect": {"responseNonEmpty": True}}])


@pytest.fixture
def tree(tmp_path):
    for name in (
        *("evals/a.golden.json", "evals/deep/b.labeled.json", "evals/seed-manifest.json", "evals/.hidden/c.json"),
        *("evals/results/r1/run.json", "evals/results/r1/a.golden.json", "evals/results/latest.json"),
        *("evals/node_modules/x.json", "other/d.json", "evals/notes.md"),
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SUITE)
    return tmp_path


def names(tree, *patterns: str) -> list[str]:
    return [file.path.relative_to(tree).as_posix() for file in discover(patterns, tree)]


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["evals"], ["evals/a.golden.json", "evals/deep/b.labeled.json"]),
        (["evals/a.golden.json"], ["evals/a.golden.json"]),
        (["**/*.labeled.json"], ["evals/deep/b.labeled.json"]),
        (["evals/*.golden.json", "other"], ["evals/a.golden.json", "other/d.json"]),
        (["evals", "evals/a.golden.json"], ["evals/a.golden.json", "evals/deep/b.labeled.json"]),
    ],
    ids=str,
)
def test_discover__paths_folders_globs__each_file_once_in_order(tree, patterns, found) -> None:
    assert names(tree, *patterns) == found


def test_discover__absolute_path_and_glob__work_too(tree) -> None:
    assert names(tree, str(tree / "other")) == ["other/d.json"]
    assert names(tree, str(tree / "other/*.json")) == ["other/d.json"]


def test_discover__pattern_to_nowhere__is_an_error_even_beside_others(tree) -> None:
    with pytest.raises(GateError) as caught:
        discover(["evals", "evals/a.goldn.json", "nothing/*.json"], tree)
    assert [str(problem) for problem in caught.value.problems] == [
        'there is no "evals/a.goldn.json" (did you mean "a.golden.json"?)',
        'nothing matches "nothing/*.json"',
    ]


def test_discover__link_out_of_the_folder__is_not_followed(tree) -> None:
    (tree / "evals/link.json").symlink_to(tree / "other/d.json")
    assert "evals/link.json" not in names(tree, "evals")


def load(tree, *patterns: str):
    return load_suites(discover(patterns, tree), strict=False, tool_names=(), root=tree)


def test_load_suites__folder_with_other_json__reads_the_evals_only(tree) -> None:
    (tree / "evals/snapshot.json").write_text('{"prices": {}}')
    assert [suite.file for suite in load(tree, "evals")] == ["evals/a.golden.json", "evals/deep/b.labeled.json"]


def test_load_suites__named_file_that_is_none__is_refused(tree) -> None:
    (tree / "evals/snapshot.json").write_text('{"prices": {}}')
    with pytest.raises(GateError) as caught:
        load(tree, "evals/snapshot.json")
    assert str(caught.value.problems[0]).startswith("evals/snapshot.json:1: not an eval file")


def test_load_suites__several_bad_files__all_problems_at_once(tree) -> None:
    (tree / "evals/a.golden.json").write_text("[1,")
    (tree / "evals/deep/b.labeled.json").write_text('[{"id": "x", "input": {"message": 1}, "expect": {}}]')
    with pytest.raises(GateError) as caught:
        load(tree, "evals")
    assert [problem.file for problem in caught.value.problems] == ["evals/a.golden.json", "evals/deep/b.labeled.json"]
    assert caught.value.message == "2 problems in the eval files: nothing was run"


def test_load_suites__no_evals_at_all__says_what_one_is(tmp_path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(GateError, match="none of the files found holds evals"):
        load(tmp_path, ".")
