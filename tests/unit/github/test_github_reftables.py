"""HEAD of a checkout whose references git keeps in tables. HEAD_TABLE and FEATURE_TABLE are as dulwich writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.github.checkout import find_head_commit
from tests.support.reftables import record, table, write_tables

HEAD_TABLE = bytes.fromhex(
    "5245465401001000000000000000000c000000000000000d72000038002348454144010f726566732f68656164732f6d61696e00001c0001"
    "5245465401001000000000000000000c000000000000000d0000000000000000"
)
FEATURE_TABLE = bytes.fromhex(
    "5245465401001000000000000000000a000000000000000b7200004d008021726566732f68656164732f666561747572652f6100"
    "222222222222222222222222222222222222222200001c00015245465401001000"
)


OLD, NEW, LONG = "1" * 40, "2" * 40, "3" * 64


def test_head__tables_of_another_program__is_its_branch_s_commit(tmp_path) -> None:
    main = table(record("refs/heads/main", NEW))
    assert find_head_commit(write_tables(tmp_path, FEATURE_TABLE, main, HEAD_TABLE)) == NEW


@pytest.mark.parametrize(
    ("tables", "commit"),
    [
        ([table(record("HEAD", OLD))], OLD),
        ([table(record("HEAD", OLD)), table(record("HEAD", NEW))], NEW),
        ([table(record("HEAD", LONG), version=2)], LONG),
        ([table(record("HEAD", "ref: refs/heads/main"))], None),
        ([table(record("HEAD", "ref: HEAD"))], None),
        ([table(record("HEAD", OLD)), table(record("HEAD", None))], None),
        ([table(record("HEAD", "ref: refs/b") + record("refs/a", OLD) + record("refs/b", NEW, 5))], NEW),
        ([table(record("A", OLD), record("HEAD", NEW))], NEW),
        ([table(record("A", OLD), record("HEAD", NEW), size=0)], NEW),
        ([table(record("x" * 100, OLD) + record("HEAD", NEW))], NEW),
        ([], None),
        ([b"REFT"], None),
        ([b"no table at all, but long enough"], None),
    ],
)
def test_head__references_in_tables__is_what_the_newest_says(tmp_path, tables, commit) -> None:
    assert find_head_commit(write_tables(tmp_path, *tables)) == commit


def test_head__worktree__has_its_own_head_and_the_repository_s_branches(tmp_path) -> None:
    write_tables(tmp_path / "main", table(record("HEAD", OLD) + record("refs/heads/x", NEW)))
    own = tmp_path / "main/.git/worktrees/x"
    write_tables(tmp_path / "made", table(record("HEAD", "ref: refs/heads/x")))
    (tmp_path / "made/.git").rename(tmp_path / "own")
    own.parent.mkdir()
    (tmp_path / "own").rename(own)
    (own / "commondir").write_text("../..\n")
    (tmp_path / "made/.git").write_text(f"gitdir: {own}\n")
    assert find_head_commit(tmp_path / "made") == NEW


def test_head__list_that_leads_elsewhere__is_not_followed(tmp_path) -> None:
    folder = write_tables(tmp_path, table(record("HEAD", OLD)))
    (folder / ".git/reftable/tables.list").write_text("../reftable/0x000000000000.ref\n")
    assert find_head_commit(folder) is None


@given(data=st.binary(max_size=80), at=st.integers(0, 60))
def test_head__anything_in_a_table__is_a_commit_or_unknown(tmp_path_factory, data, at) -> None:
    whole = table(record("HEAD", "ref: refs/heads/main") + record("refs/heads/main", OLD))
    folder = write_tables(tmp_path_factory.mktemp("git"), whole[:at] + data + whole[at + len(data) :])
    found = find_head_commit(folder)
    assert found is None or len(found) == 40
