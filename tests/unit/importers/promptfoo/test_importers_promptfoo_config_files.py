"""YAML as promptfoo reads it, tables of tests, and files that are only looked for beside the configuration."""

from __future__ import annotations

import pytest

from eval_gate.importers.import_result import NotImportableError
from eval_gate.importers.promptfoo.config_files import PromptfooFolder, read_document
from eval_gate.importers.promptfoo.csv_tests import iter_table_tests, parse_assertion_cell


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0b11", -3),
        ("12:30", "12:30"),
        ("1_000", 1000),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.50", 1.5),
        ('"1.50"', "1.50"),
        ("'yes'", "yes"),
        ("2026-11-21", {"$date": "2026-11-21"}),
        ("'2026-11-21'", "2026-11-21"),
        (".inf", ".inf"),
        ("0x", "0x"),
        ("1_", "1_"),
    ],
)
def test_yaml__a_scalar__is_what_javascript_reads(tmp_path, written, value) -> None:
    (tmp_path / "c.yaml").write_text(f"a: [{written}]\n")
    found = read_document(tmp_path / "c.yaml", "c.yaml").value["a"][0]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("cell", "assertion"),
    [
        ("Paris", {"type": "equals", "value": "Paris"}),
        ("refund: done", {"type": "equals", "value": "refund: done"}),
        ("equals: Paris", {"type": "equals", "value": "Paris"}),
        ("not-icontains:Sorry", {"type": "not-icontains", "value": "Sorry"}),
        ("contains-any: a, b", {"type": "contains-any", "value": ["a", "b"]}),
        ("latency(500)", {"type": "latency", "value": None, "threshold": 500.0}),
        ("cost", {"type": "cost", "value": None, "threshold": 0.75}),
        ("similar(0.9): hello", {"type": "similar", "value": "hello", "threshold": 0.9}),
        ("grade: polite", {"type": "llm-rubric", "value": " polite"}),
        ("llm-rubric: polite", {"type": "llm-rubric", "value": " polite"}),
        ("is-json", {"type": "is-json", "value": None}),
        ("javascript: output > 1", {"type": "javascript"}),
        ("fn: output", {"type": "javascript"}),
        ("python: output", {"type": "python"}),
        ("file://check.js", {"type": "javascript"}),
        ("file://check.py:get", {"type": "javascript"}),
        ("file://answer.txt", {"type": "equals", "value": "file://answer.txt"}),
    ],
)
def test_cell__of_the_column_expected__asserts_what_promptfoo_makes_of_it(cell, assertion) -> None:
    assert parse_assertion_cell(cell) == assertion


def test_table__a_row_over_several_lines__has_its_first_line_and_its_columns(tmp_path) -> None:
    (tmp_path / "t.csv").write_text(
        "\ufeffquestion,__expected1,__expected2,__description,__metadata:testCaseId,__threshold,__prefix\n"
        '"two\nlines",contains: a,,one,id-1,1,> \n'
        "\n"
        "three,b,,,,,\n"
    )
    first, second = iter_table_tests(tmp_path / "t.csv", "t.csv")
    assert (str(first.place), str(second.place)) == ("t.csv:2", "t.csv:5")
    assert first.value == {
        "vars": {"question": "two\nlines"},
        "assert": [{"type": "contains", "value": "a"}],
        "options": {"prefix": "> "},
        "metadata": {"testCaseId": "id-1"},
        "threshold": 1.0,
        "description": "one",
    }
    assert second.value["assert"] == [{"type": "equals", "value": "b"}]


@pytest.mark.parametrize("text", ["a,a\n1,2\n", "a,b\n1\n", 'a\n"x"y\n', 'a\n"open\n', "\udcff"])
def test_table__that_is_none__is_refused(tmp_path, text) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(NotImportableError):
        list(iter_table_tests(tmp_path / "t.csv", "t.csv"))


def test_folder__names__lead_to_files_in_it_and_nowhere_else(tmp_path) -> None:
    inside = tmp_path / "in"
    (inside / "sub").mkdir(parents=True)
    for name in ("in/a.txt", "in/sub/b.txt", "out.txt"):
        (tmp_path / name).write_text(name)
    (inside / "link.txt").symlink_to(tmp_path / "out.txt")
    folder = PromptfooFolder(inside, inside.relative_to(tmp_path))
    assert folder.read_text("a.txt") == "in/a.txt"
    assert [shown for _, shown in folder.find_files("**/[ab].txt")] == ["in/a.txt", "in/sub/b.txt"]
    for name in (
        "../out.txt",
        "link.txt",
        str(tmp_path / "out.txt"),
        "../*.txt",
        "*.txt",
        "nobody.txt",
        "nobody*",
        "\0",
    ):
        with pytest.raises(NotImportableError):
            folder.find_files(name)
    assert not folder.has_file("../out.txt")
