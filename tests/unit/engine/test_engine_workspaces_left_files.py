"""What failing cases left in their folders: one file of each, within bounds, that leads nowhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.workspaces import WorkspaceArtifacts
from eval_gate.model.conversation import FileEntry
from eval_gate.model.execution import Status
from eval_gate.model.limits import WORKSPACE_CASE, WORKSPACE_FILE, WORKSPACE_RUN
from eval_gate.text.javascript.regex import PatternMatcher

pytestmark = pytest.mark.contract("agent_evals.files.left")


def failed(case_id: str = "c", trial: int = 0, file: str = "suites/s.json") -> TrialRecord:
    return TrialRecord(eval_file=file, case_id=case_id, trial=trial, fingerprint="f", status=Status.FAILED)


def kept(folder: Path, *calls: tuple[TrialRecord, list[FileEntry]], patterns: tuple[str, ...] = ()) -> list[str | None]:
    """What is said of each, in this order, by one run."""

    async def main() -> list[str | None]:
        leavings, matcher = WorkspaceArtifacts(folder, patterns), PatternMatcher()
        try:
            return [await leavings.store(record, files, matcher) for record, files in calls]
        finally:
            await matcher.aclose()

    return asyncio.run(main())


def text_file(path: str, text: str = "x", **fields) -> FileEntry:
    return FileEntry(path=path, kind="file", text=text, **fields)


def test_keep__nothing_new__writes_nothing(tmp_path: Path) -> None:
    files = [FileEntry(path="d", kind="folder"), text_file("d/a", unchanged=True)]
    assert kept(tmp_path, (failed(), files), (failed("d"), [])) == [None, None]
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["../../up", "/etc/x", "a/b", "run.json", "…", ".hidden", "x" * 200, "\ud800"])
def test_keep__whatever_the_case_is_called__is_one_file_in_the_folder(tmp_path: Path, name: str) -> None:
    kept(tmp_path, (failed(name, file=f"../{name[:100]}.json"), [text_file("a.txt")]))
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("workspace-")
    assert file.name.endswith(".md")
    assert len(file.name) < 120
    assert [*tmp_path.parent.glob("left*")] == []


def test_keep__trials_and_cases_that_look_alike__have_files_of_their_own(tmp_path: Path) -> None:
    records = [failed("a b"), failed("a-b"), failed("a b", trial=1), failed("a b", file="other/s.json")]
    kept(tmp_path, *[(record, [text_file("a.txt")]) for record in records])
    assert len([*tmp_path.iterdir()]) == 4


def test_keep__same_execution_again__replaces_its_file(tmp_path: Path) -> None:
    kept(tmp_path, (failed(), [text_file("a.txt", "first")]), (failed(), [text_file("a.txt", "second")]))
    (file,) = tmp_path.iterdir()
    assert ("second" in file.read_text(), "first" in file.read_text()) == (True, False)


def test_keep__large_files__are_cut_and_say_so(tmp_path: Path) -> None:
    many = WORKSPACE_CASE // WORKSPACE_FILE + 5
    kept(tmp_path, (failed(), [text_file(f"{number:03}.txt", "y" * (2 * WORKSPACE_FILE)) for number in range(many)]))
    text = next(tmp_path.iterdir()).read_text()
    assert text.count("y") <= WORKSPACE_CASE + 100
    assert text.count(f"Truncated: it has {2 * WORKSPACE_FILE:,} characters.") == many


def test_keep__no_more_room_in_the_run__is_said(tmp_path: Path) -> None:
    files = [text_file(f"{number}.txt", "y" * WORKSPACE_FILE) for number in range(WORKSPACE_CASE // WORKSPACE_FILE)]
    cases = WORKSPACE_RUN // WORKSPACE_CASE + 2
    said = kept(tmp_path, *[(failed(str(number)), files) for number in range(cases)])
    assert said[-1] == "workspace artifacts (10 files) are not kept: this run already has 20,000,000 characters"
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= WORKSPACE_RUN
    assert len([*tmp_path.iterdir()]) >= cases - 3


def test_keep__what_is_no_text__is_named_with_the_reason(tmp_path: Path) -> None:
    link = FileEntry(path="way", kind="other", problem="Symlink paths are not allowed.")
    kept(tmp_path, (failed(), [link, text_file("empty.txt", "")]))
    text = next(tmp_path.iterdir()).read_text()
    assert "## `way`\n\nNot kept: Symlink paths are not allowed." in text
    assert "## `empty.txt`\n\n```\n```" in text


def test_keep__names_and_texts_that_are_markdown__stay_text(tmp_path: Path) -> None:
    kept(tmp_path, (failed("`# x\n# y"), [text_file("a`](http://evil)\n# b", "`" * 5 + "\n# not a heading")]))
    text = next(tmp_path.iterdir()).read_text()
    headings = [line for line in text.splitlines() if line.startswith("#") and line != "# not a heading"]
    assert headings == ["# `?# x?# y` of `suites/s.json`", "## `a?](http://evil)?# b`"]
    assert "``````\n`````\n# not a heading\n``````\n" in text


def test_keep__patterns__mask_paths_and_texts_also_across_a_cut(tmp_path: Path) -> None:
    text = "y" * (WORKSPACE_FILE - 3) + "4711-0815"
    said = kept(tmp_path, (failed(), [text_file("of 4711-0815.txt", text)]), patterns=("\\d{4}-\\d{4}",))
    assert said[0] is not None
    assert "4711" not in next(tmp_path.iterdir()).read_text()


@pytest.mark.slow
def test_keep__patterns_that_take_too_long__keep_nothing(tmp_path: Path) -> None:
    said = kept(tmp_path, (failed(), [text_file("a.txt", "a" * 5_000 + "!")]), patterns=("^(a+)+$",))
    assert said[0] is not None
    assert said[0].startswith("workspace artifacts (1 file) are not kept, because they could not be searched: ")
    assert [*tmp_path.iterdir()] == []
