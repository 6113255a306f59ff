"""Zip archives that came from elsewhere: what is taken from them, and what is refused before it is read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.results import archive
from eval_gate.results.archive import MAX_ENTRIES, ArchiveError, extract_top_entry, read_entry
from eval_gate.results.history import HISTORY_NAME
from eval_gate.results.run_history import find_history
from eval_gate.results.run_reader import read_archived_run, read_history


def test_extract__a_link_at_its_place__is_not_written_through(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("recording.jsonl", "x")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "recording.jsonl").symlink_to(tmp_path / "elsewhere")
    assert not extract_top_entry(tmp_path / "a.zip", "recording.jsonl", tmp_path / "results" / "recording.jsonl", 10)
    assert not (tmp_path / "elsewhere").exists()
    assert extract_top_entry(tmp_path / "a.zip", "recording.jsonl", tmp_path / "new" / "recording.jsonl", 10)
    assert not extract_top_entry(tmp_path / "a.zip", "other.jsonl", tmp_path / "new" / "other.jsonl", 10)


def test_read_archive__very_many_names__is_refused_before_they_are_read(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for number in range(10_001):
            packed.writestr(str(number), "")
    with pytest.raises(GateError, match="more than 10,000 entries"):
        read_archived_run(tmp_path / "a.zip", "artifact 1")


@pytest.mark.slow
def test_read_archive__as_many_names_as_may_be__is_read(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for number in range(10_000):
            packed.writestr(str(number), "")
    with pytest.raises(GateError, match=r"0 entries are named run\.json"):
        read_archived_run(tmp_path / "a.zip", "artifact 1")


def announcing(folder: Path, entries: int, *, names: int) -> Path:
    """An archive of so many names whose end announces so many."""
    with zipfile.ZipFile(folder / "a.zip", "w") as packed:
        for number in range(names):
            packed.writestr(str(number), "")
    data = (folder / "a.zip").read_bytes()
    end = data.rindex(b"PK\x05\x06")
    announced = entries.to_bytes(2, "little") * 2
    (folder / "a.zip").write_bytes(data[: end + 8] + announced + data[end + 12 :])
    return folder / "a.zip"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("announced", "names", "said"),
    [(1, 10_001, "more than 10,000 entries"), (0, 10_001, "more than 10,000 entries"), (65_535, 1, "0 entries are")],
    ids=["one-and-has-many", "none-and-has-many", "many-and-has-one"],
)
def test_read_archive__end_that_announces_another_number__is_not_believed(tmp_path, announced, names, said) -> None:
    with pytest.raises(GateError, match=said):
        read_archived_run(announcing(tmp_path, announced, names=names), "artifact 1")


def test_read_archive__no_directory__is_no_archive(tmp_path) -> None:
    (tmp_path / "a.zip").write_bytes(b"\xff" * 100)
    with pytest.raises(GateError, match="not a zip"):
        read_archived_run(tmp_path / "a.zip", "artifact 1")


@pytest.mark.parametrize("before", range(1, 5))
def test_has_more_entries__a_name_across_two_pieces__is_counted_once(tmp_path, monkeypatch, before) -> None:
    monkeypatch.setattr(archive, "_PIECE_BYTES", 4)
    (tmp_path / "a").write_bytes(b"x" * before + b"PK\x01\x02" * 3)
    assert archive.has_more_entries(tmp_path / "a", 2)
    assert not archive.has_more_entries(tmp_path / "a", 3)


def test_history__archive_of_very_many_names__is_refused_before_they_are_read(tmp_path) -> None:
    with pytest.raises(GateError, match="more than 10,000 entries") as raised:
        read_history(str(announcing(tmp_path, 1, names=10_001)))
    assert raised.value.code == "invalid-history"


def test_read_one__of_a_folder_in_the_archive__is_read_no_further_than_asked(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("kept/run.json", b"x" * 100)
    assert read_entry(tmp_path / "a.zip", "run.json", 10) == ("kept/run.json", b"x" * 11)
    assert read_entry(tmp_path / "a.zip", "history.json", 10) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("../x", HISTORY_NAME), "points outside the archive"),
        ((f"a/{HISTORY_NAME}", f"b/{HISTORY_NAME}"), "2 entries are named"),
        ((*map(str, range(MAX_ENTRIES)), HISTORY_NAME), "more than 10,000 entries"),
    ],
    ids=["leads-out", "twice", "too-many"],
)
def test_history_beside__archive_that_a_record_would_not_be_read_from__is_refused_as_well(
    tmp_path, names, said
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for name in names:
            packed.writestr(name, b"{}")
    with pytest.raises(ArchiveError, match=said):
        read_entry(tmp_path / "a.zip", HISTORY_NAME, 10)
    with pytest.raises(GateError, match=said) as caught:
        find_history(tmp_path / "a.zip")
    assert caught.value.code == "invalid-history"
