"""The one dialect of globs: the same in every place that takes one, and quick on whatever it is given."""

import fnmatch
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from eval_gate.config.selection import Selection
from eval_gate.engine.preparation.case_filter import select_cases
from eval_gate.errors import GateError
from eval_gate.files.file_paths import format_path
from eval_gate.formats.discovery import find_eval_files
from eval_gate.gate.waivers.case_names import CaseNameIndex
from eval_gate.model.waiver import CaseStanding, WaiverStanding
from eval_gate.text import globs
from eval_gate.text.globs import matches_case
from tests.support.cases import make_case, make_suite

NAMES = ("evals/a.json", "evals/x/a.json", "evals/x/b.json", "evals/x/y/a.json", "other/evals/a.json")


@given(st.text("a1[]!*?/-", max_size=12), st.text("a1[]!*?/-", max_size=12))
@example("evals/[1].golden.json", "evals/1.golden.json")
def test_escaped__a_name__is_meant_and_no_other(name, other) -> None:
    assert globs.matches_glob(globs.escape_glob(name), name)
    assert globs.matches_glob(globs.escape_glob(name), other) is (name == other)


@pytest.fixture
def tree(tmp_path):
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[]")
    return tmp_path


def chosen(pattern: str) -> list[str]:
    suite = make_suite(*[make_case(name) for name in NAMES])
    try:
        return [case.id for one in select_cases([suite], Selection(cases=(pattern,))) for case in one.cases]
    except GateError:
        return []


def files(pattern: str, root) -> list[str]:
    try:
        return [file.path.relative_to(root).as_posix() for file in find_eval_files([pattern], root)]
    except GateError:
        return []


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("evals/**/a.json", {0, 1, 3}),
        ("**/a.json", {0, 1, 3, 4}),
        ("**/evals/a.json", {0, 4}),
        ("evals/**/**/y/**/a.json", {3}),
        ("evals/**", {0, 1, 2, 3}),
        ("**", {0, 1, 2, 3, 4}),
        ("evals/x/**/[ab].json", {1, 2, 3}),
        ("evals/x/[!a].json", {2}),
        ("evals/?/a.json", {1}),
        ("evals/x/y**/a**.json", {3}),
        ("evals/**/none.json", set()),
    ],
)
def test_glob__in_every_place_that_takes_one__means_the_same(tree, pattern, meant) -> None:
    wanted = [name for place, name in enumerate(NAMES) if place in meant]
    cases = CaseNameIndex([CaseStanding(suite=name, case_id=name, standing=WaiverStanding.FAILS) for name in NAMES])
    assert files(pattern, tree) == wanted
    assert chosen(pattern) == wanted
    assert [name for name in NAMES if matches_case(pattern, name, ())] == wanted
    assert [case.case_id for case in cases.find_cases(pattern, None)] == wanted
    assert [case.suite for name in NAMES for case in cases.find_cases(name, pattern)] == wanted


@pytest.mark.parametrize("pattern", ["evals/**", "**"])
def test_files__all_below_a_folder__are_those_that_the_folder_gives(tree, pattern) -> None:
    for name in ("evals/notes.md", "evals/.hidden/a.json", "evals/node_modules/a.json", "evals/results/r1/run.json"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("[]")
    assert files(pattern, tree) == files(pattern.partition("/")[0].replace("**", "."), tree)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(
    "path",
    [
        *(".", "./evals", "evals/", "evals//x", "evals/x/a.json", "evals/*", "*/x", "*/*.json", "evals/**", "**"),
        *("**/y", "**/y/**", "evals/?", "evals/[xz]/a*", "evals/**/a.json", "**/**/evals/a.json", "x", "evals/x/*/b"),
    ],
)
def test_leads_to__as_results_name_a_path__is_what_discovery_finds(tree, path, hidden) -> None:
    root = tree / "*" / "[a]" if hidden else tree  # signs above the working directory mean nothing
    if hidden:
        root.mkdir(parents=True)
        for name in NAMES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("[]")
    shown = format_path(root / path, root)
    assert [name for name in NAMES if globs.covers_file(shown, name)] == files(path, root)


def covers_step_by_step(path: str, file: str) -> bool:
    """What `covers_file` means, with all places at which the rest of the path may begin."""
    if path in {file, "."} or file.startswith(f"{path}/"):
        return True
    steps, places = file.split("/"), {0}
    for step in path.split("/"):
        if step == "**":
            places = set(range(min(places), len(steps) + 1)) if places else places
        else:
            places = {at + 1 for at in places if at < len(steps) and globs.matches_glob(step, steps[at])}
    return bool(places)


@given(st.text("ab/.*?[]!-", max_size=12), st.text("ab/.*[]!-\n", min_size=1, max_size=12))
@example("**/a/*b/**/[!a]?", "b/a/ab/a/b/ab")
@example("a/**", "a")
@example("a/**/", "a")
@example("[a]/b", "[a]/b/c")
def test_covers_file__any_path__is_what_its_steps_say(path, file) -> None:
    assert globs.covers_file(path, file) is covers_step_by_step(path, file)


@given(st.lists(st.sampled_from(["**", "a", "*b", "?", "b*a*"]), max_size=6), st.text("ab/", min_size=1, max_size=12))
def test_covers_file__folders_of_any_depth__are_what_their_steps_say(steps, file) -> None:
    assert globs.covers_file("/".join(steps), file) is covers_step_by_step("/".join(steps), file)


@pytest.mark.parametrize("path", ["/".join(["**", "a*"] * 40), "**/" * 40 + "b", "**/" + "*a" * 30 + "b"])
def test_covers_file__many_signs__take_no_time_that_grows_with_their_combinations(path) -> None:
    start = time.process_time()
    assert not globs.covers_file(path, "/".join(["a" * 40] * 30) + "c")
    assert time.process_time() - start < 0.1


def test_covers_file__a_hundred_thousand_files__take_part_of_a_second() -> None:
    files = [f"agents/{number % 30}/support/deep/{number}.py" for number in range(100_000)]
    start = time.process_time()
    assert sum(globs.covers_file("agents/**/*7.py", file) for file in files) == 10_000
    assert time.process_time() - start < 0.4


@given(st.text("ab/.*?[]!-", max_size=12), st.text("ab/.*[]!-", max_size=12))
@example("[*]/a", "*/a")
@example("[]a]*[!]b]", "]xa")
def test_glob__without_folders_of_any_depth__is_what_everybody_knows(pattern, name) -> None:
    assume("**/" not in pattern)
    assert globs.matches_glob(pattern, name) is fnmatch.fnmatchcase(name, pattern)


@given(st.text("ab/*?", max_size=10), st.text("ab/", max_size=10))
def test_glob__of_any_depth__takes_no_less_than_before(pattern, name) -> None:
    if fnmatch.fnmatchcase(name, pattern):
        assert globs.matches_glob(pattern, name)


@pytest.mark.parametrize("pattern", ["**/a/" * 30 + "b", "**/*" * 40 + "b", "*a" * 60 + "b", "**/" * 66 + "b"])
def test_glob__made_to_take_long__is_quick(pattern) -> None:
    begin = time.process_time()
    assert not globs.matches_glob(pattern, "a/" * 2_000)
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("text", "is_one"), [("a/b", False), ("a*", True), ("a?", True), ("a[1]", True), ("a[1", False)]
)
def test_is_glob__signs_that_mean_something__only_then(text, is_one) -> None:
    assert globs.is_glob(text) is is_one
