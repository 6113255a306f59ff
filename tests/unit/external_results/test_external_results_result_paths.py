"""Paths of results, as they are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_gate.external_results.result_files import ResultsPath, parse_results_path


@pytest.mark.parametrize(
    ("given", "path", "prefix"),
    [
        ("out/junit.xml", "out/junit.xml", ""),
        ("linux=out/junit.xml", "out/junit.xml", "linux"),
        ("py 3.12 = out/*.xml", "out/*.xml", "py 3.12"),
        ("linux=a=b.xml", "a=b.xml", "linux"),
        ("out/os=linux/junit.xml", "out/os=linux/junit.xml", ""),
        ("os=lin*=x.xml", "lin*=x.xml", "os"),
        ("=junit.xml", "=junit.xml", ""),
        ("linux=", "linux=", ""),
        (f"{'x' * 101}=junit.xml", f"{'x' * 101}=junit.xml", ""),
    ],
)
def test_results_path__given_text__is_split_at_the_first_equals_sign(given, path, prefix) -> None:
    assert parse_results_path(given) == ResultsPath(path, prefix)
    if prefix:
        assert parse_results_path(str(ResultsPath(path, prefix))) == ResultsPath(path, prefix)


def test_results_path__file_of_that_name__is_the_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b.xml").touch()
    assert parse_results_path("a=b.xml") == ResultsPath("a=b.xml")


@pytest.mark.parametrize(
    ("given", "root"), [("r/*/x.xml", "r"), ("*.xml", "."), ("r/x.xml", "r/x.xml"), ("/a/b?/**/x", "/a"), ("r", "r")]
)
def test_results_path__pattern__root_is_the_folder_before_it(given, root) -> None:
    assert ResultsPath(given).root == Path(root)


@pytest.mark.parametrize(
    ("given", "folder", "leg"),
    [
        ("r/*/x.xml", "r/a", "a"),
        ("r/*", "r/a", "a"),
        ("r/*", "r/a/deeper", "a"),
        ("r/*/py/3.*/x.xml", "r/a/py/3.12", "a/py/3.12"),
        ("out-*/r/*.xml", "out-a/r", "out-a"),
        ("r/*/**/x.xml", "r/a/b/c", "a"),
        ("/r/?/x.xml", "/r/a", "a"),
        ("r/*", "r", None),
        ("r/*.xml", "r", None),
        ("r/**/*.xml", "r/a", None),
        ("r/**/*/x.xml", "r/a", None),
        ("r", "r/a", None),
    ],
)
def test_results_path__folder_of_a_file__leg_is_what_the_folder_patterns_match(given, folder, leg) -> None:
    assert ResultsPath(given).find_leg(Path(folder)) == leg


def test_results_path__folder_is_given__matches_are_below_it(tmp_path) -> None:
    for name in ("b", "a"):
        (tmp_path / "r" / name).mkdir(parents=True)
        (tmp_path / "r" / name / "x.xml").touch()
    found = ResultsPath("r/**/*").list_matches(tmp_path)
    assert found == [str(tmp_path / "r" / name) for name in "ab"], "what is inside another match is left out"
    assert ResultsPath("latest").list_matches(tmp_path) == [str(tmp_path / "latest")]
