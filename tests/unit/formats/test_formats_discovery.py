"""Which files are found, and what is said when none are."""

import json
import subprocess
import sys

import pytest

from eval_gate.errors import GateError
from eval_gate.formats import documents
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import find_eval_files, load_suites

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
    (tmp_path / "evals/results/r1/run.json").write_text('{"schemaVersion": 1, "runId": "r1"}')
    (tmp_path / "evals/results/latest.json").write_text('{"runId": "r1", "timestamp": "", "path": "r1/run.json"}')
    return tmp_path


def test_load__a_tier_in_the_name_and_every_key_misspelt__is_refused_and_not_left_out(tmp_path) -> None:
    (tmp_path / "a.golden.json").write_text(SUITE)
    (tmp_path / "b.labeled.json").write_text('[{"id": "ls-1", "inputs": {"message": "x"}, "expected": {}}]')
    (tmp_path / "users.json").write_text('[{"id": "u-1"}]')
    (tmp_path / "answers.golden.json").write_text('{"paris": 1}')
    with pytest.raises(GateError) as caught:
        load_suites(find_eval_files([str(tmp_path)], tmp_path), tmp_path, ReadOptions())
    said = "its cases need `input`, `turns` or `user`, and `expect` or `rubric`; the first one has id, inputs, expected"
    assert [str(one) for one in caught.value.problems] == [f"b.labeled.json:1: {said}"]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"turn": [{"message": "hi", "expect": {}}]}, "1: its cases need `input`, `turns` or `user`, and `expect` or "),
        ({"turns": {"message": "hi", "expect": {}}}, "1: [0].turns: expected a list, got a mapping"),
        ({"turns": [{"content": "hi"}]}, '1: [0].turns[0].message: is missing in the case "gs-1"; "content" is not '),
    ],
)
def test_load__conversation_with_another_shape__is_told_what_is_wrong(tmp_path, case, said) -> None:
    (tmp_path / "a.golden.json").write_text(json.dumps([{"id": "gs-1", **case}]))
    with pytest.raises(GateError) as caught:
        load_suites(find_eval_files([str(tmp_path)], tmp_path), tmp_path, ReadOptions())
    assert str(caught.value.problems[0]).startswith(f"a.golden.json:{said}")


def test_discover__file_that_is_called_like_the_pointer_to_the_newest_run__is_found(tree) -> None:
    (tree / "evals/deep/latest.json").write_text(SUITE)
    assert names(tree, "evals/deep") == ["evals/deep/b.labeled.json", "evals/deep/latest.json"]


def names(tree, *patterns: str) -> list[str]:
    return [file.path.relative_to(tree).as_posix() for file in find_eval_files(patterns, tree)]


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["evals"], ["evals/a.golden.json", "evals/deep/b.labeled.json"]),
        (["evals/a.golden.json"], ["evals/a.golden.json"]),
        (["**/*.labeled.json"], ["evals/deep/b.labeled.json"]),
        (["evals/*.golden.json", "other"], ["evals/a.golden.json", "other/d.json"]),
        (["evals/deep", "evals/deep/b.labeled.json"], ["evals/deep/b.labeled.json"]),
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
        find_eval_files(["evals", "evals/a.goldn.json", "nothing/*.json"], tree)
    assert [str(problem) for problem in caught.value.problems] == [
        'there is no "evals/a.goldn.json" (did you mean "a.golden.json"?)',
        'nothing matches "nothing/*.json"',
    ]


def test_discover__link_out_of_the_folder__is_not_followed(tree) -> None:
    (tree / "evals/link.json").symlink_to(tree / "other/d.json")
    assert "evals/link.json" not in names(tree, "evals")


def load(tree, *patterns: str):
    return load_suites(find_eval_files(patterns, tree), tree, ReadOptions())


def test_load_suites__folder_with_other_json__reads_the_evals_only(tree) -> None:
    (tree / "evals/snapshot.json").write_text('{"prices": {}}')
    (tree / "evals/orders.json").write_text("[]")
    assert [suite.file for suite in load(tree, "evals")] == ["evals/a.golden.json", "evals/deep/b.labeled.json"]


def test_load_suites__named_file_that_is_none__is_refused(tree) -> None:
    (tree / "evals/snapshot.json").write_text('{"prices": {}}')
    with pytest.raises(GateError) as caught:
        load(tree, "evals/snapshot.json")
    assert str(caught.value.problems[0]).startswith("evals/snapshot.json:1: not an eval file")


def test_load_suites__no_cases_in_a_file_that_is_named_or_has_a_tier__is_a_problem(tree) -> None:
    (tree / "evals/c.golden.json").write_text("[]")
    (tree / "evals/orders.json").write_text("[]")
    for named, file in (("evals", "c.golden.json"), ("evals/orders.json", "orders.json")):
        with pytest.raises(GateError) as caught:
            load(tree, named)
        assert str(caught.value.problems[0]) == f"evals/{file}:1: needs at least 1, got an empty list"


def test_load_suites__several_bad_files__all_problems_at_once(tree) -> None:
    (tree / "evals/a.golden.json").write_text("[1,")
    (tree / "evals/deep/b.labeled.json").write_text('[{"id": "x", "input": {"message": 1}, "expect": {}}]')
    with pytest.raises(GateError) as caught:
        load(tree, "evals")
    assert [problem.file for problem in caught.value.problems] == ["evals/a.golden.json", "evals/deep/b.labeled.json"]
    assert caught.value.message == "2 problems in the eval files"


def test_load_suites__no_evals_at_all__says_what_one_is(tmp_path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(GateError, match="none of the files contains evals"):
        load(tmp_path, ".")


AGENTV = "evalcases:\n- {id: a, expected_outcome: x, input_messages: [{role: user, content: y}]}\n"
NO_EVALS = {
    "targets.yaml": "targets: [\n",
    "config.yaml": "port: 80\n",
    "several.yaml": "a: 1\n---\nb: 2\n",
    "workflow.yml": "on: push\njobs: {}\n",
    "twice.yaml": "a: 1\na: 2\n",
    "cloud.yaml": "bucket: !Ref name\n",
    "list.yaml": "- a\n- b\n",
    "empty.yaml": "",
    "results.yaml": "eval_id: a\nscore: 1\n---\neval_id: b\n",
    "results.jsonl": '{"eval_id": "a", "score": 1}\n',
    "broken.jsonl": "no JSON\n",
    "package.json": "{",
}


def test_load_suites__folder_of_both_formats__reads_both_and_passes_over_everything_else(tree) -> None:
    for name, text in NO_EVALS.items():
        (tree / "evals" / name).write_text(text)
    for name in ("harbour.yaml", "deep/pilots.yml"):
        (tree / "evals" / name).write_text(AGENTV)
    (tree / "evals/.agentv.yaml").write_text("guideline_patterns: []\n")
    assert [(suite.file, suite.format) for suite in load(tree, "evals")] == [
        ("evals/a.golden.json", "tool-forge"),
        ("evals/deep/b.labeled.json", "tool-forge"),
        ("evals/deep/pilots.yml", "agentv"),
        ("evals/harbour.yaml", "agentv"),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("harbour.yaml", AGENTV + "  broken"),
        ("typo.yaml", "anything: [\n"),
        ("harbour.yaml", AGENTV + "evalcases: []\n"),
        ("several.yaml", AGENTV + "---\n" + AGENTV),
        ("tagged.yaml", AGENTV.replace("id: a", "id: !name a")),
    ],
)
def test_load_suites__yaml_that_may_be_evals_and_cannot_be_read__is_a_problem(tree, name, text) -> None:
    (tree / "evals" / name).write_text(text)
    with pytest.raises(GateError) as caught:
        load(tree, "evals")
    assert {problem.file for problem in caught.value.problems} == {f"evals/{name}"}


@pytest.mark.parametrize("name", [name for name in NO_EVALS if name != "package.json"])
def test_load_suites__named_file_that_holds_no_evals__is_refused(tree, name) -> None:
    (tree / "evals" / name).write_text(NO_EVALS[name])
    with pytest.raises(GateError) as caught:
        load(tree, f"evals/{name}")
    assert {problem.file for problem in caught.value.problems} == {f"evals/{name}"}


def test_load_suites__another_notation_than_its_format_has__is_said(tree) -> None:
    suite = {"name": "s", "agent": {"name": "a"}, "cases": [{"id": "a", "prompt": "p", "assertions": []}]}
    (tree / "evals/x.yaml").write_text(json.dumps(suite))
    with pytest.raises(GateError) as caught:
        load(tree, "evals/x.yaml")
    assert "has the shape of agent-evals, which is written in .json only" in str(caught.value.problems[0])


@pytest.mark.slow
def test_load_suites__yaml__costs_nothing_where_there_is_none(tree) -> None:
    code = (
        "import sys; from pathlib import Path; from eval_gate.formats.base import ReadOptions; "
        "from eval_gate.formats.discovery import find_eval_files, load_suites; "
        "root = Path(sys.argv[1]); load_suites(find_eval_files(['evals'], root), root, ReadOptions()); "
        "sys.exit('yaml' in sys.modules or 'wcmatch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tree)], check=False).returncode == 0


def test_load_suites__file_that_is_too_large__is_refused_only_when_it_may_be_evals(tree, monkeypatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 300)
    (tree / "evals/log.jsonl").write_text('{"line": 1}\n' * 100)
    (tree / "evals/other.yaml").write_text("a: 1\n" * 100)
    assert len(load(tree, "evals")) == 2
    (tree / "evals/harbour.yaml").write_text(AGENTV + "# " + "x" * 300)
    with pytest.raises(GateError) as caught:
        load(tree, "evals")
    assert [str(problem) for problem in caught.value.problems] == ["evals/harbour.yaml: larger than 300 bytes"]
