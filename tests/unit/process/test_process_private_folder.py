"""A folder for a program's files: what is in it is data by nobody's friend."""

import os
import socket
from pathlib import Path

import pytest

from eval_gate.process.private_folder import open_private_folder
from eval_gate.process.run import ProcessError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_private_folder__file_of_the_program__is_read_and_gone_afterwards(tmp_path) -> None:
    with open_private_folder("cli-", tmp_path) as folder:
        assert folder.path.stat().st_mode & 0o777 == 0o700
        assert folder.write("in", b"given").read_bytes() == b"given"
        (folder.path / "out").write_bytes(b"answer")
        assert folder.read("out", 100).data == b"answer"
        assert folder.read("nothing", 100) is None
        path = folder.path
    assert not path.exists()


def test_private_folder__kept__is_still_there(tmp_path) -> None:
    with open_private_folder("cli-", tmp_path, keep=True) as folder:
        folder.write("in", b"given")
    assert (folder.path / "in").read_bytes() == b"given"


def test_private_folder__something_breaks__is_gone_all_the_same(tmp_path) -> None:
    seen = []

    def use() -> None:
        with open_private_folder("cli-", tmp_path) as folder:
            (folder.path / "sub").mkdir()
            seen.append(folder.path)
            raise KeyError

    with pytest.raises(KeyError):
        use()
    assert not seen[0].exists()


@pytest.mark.parametrize("size", [10, 11, 1_000_000])
def test_read__more_than_the_limit__is_head_and_tail(tmp_path, size) -> None:
    with open_private_folder("cli-", tmp_path) as folder:
        (folder.path / "out").write_bytes(b"HEAD" + bytes(size - 8) + b"TAIL")
        found = folder.read("out", 10)
    assert (found.total, found.is_truncated, len(found.data)) == (size, size > 10, 10)
    assert found.data.startswith(b"HEAD")
    assert found.data.endswith(b"TAIL")


def test_read__file_of_a_terabyte_with_nothing_in_it__costs_nothing(tmp_path) -> None:
    with open_private_folder("cli-", tmp_path) as folder:
        with (folder.path / "out").open("wb") as file:
            file.truncate(1 << 40)
        assert folder.read("out", 1000).total == 1 << 40


def test_read__link__is_not_followed(tmp_path) -> None:
    (tmp_path / "secret").write_text("secret")
    with open_private_folder("cli-", tmp_path) as folder:
        (folder.path / "out").symlink_to(tmp_path / "secret")
        with pytest.raises(ProcessError) as caught:
            folder.read("out", 100)
    assert caught.value.message == "the file out is a link"


def test_read__folder_exchanged_for_a_link__the_first_one_is_read(tmp_path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/out").write_text("secret")
    with open_private_folder("cli-", tmp_path) as folder:
        folder.path.rename(tmp_path / "moved")
        folder.path.symlink_to(tmp_path / "other")
        assert folder.read("out", 100) is None
    assert (tmp_path / "other/out").exists()


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket"])
def test_read__no_ordinary_file__is_refused_at_once(tmp_path, kind, monkeypatch) -> None:
    with open_private_folder("cli-", tmp_path) as folder:
        monkeypatch.chdir(folder.path)
        match kind:
            case "folder":
                Path("out").mkdir()
            case "pipe":
                os.mkfifo("out")
            case "socket":
                with socket.socket(socket.AF_UNIX) as server:
                    server.bind("out")
        with pytest.raises(ProcessError, match="the file out "):
            folder.read("out", 100)
        monkeypatch.chdir(tmp_path)


def test_private_folder__no_place__is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(ProcessError, match="temporary files cannot be created"), open_private_folder("cli-", tmp_path):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_private_folder__root_in_a_folder_of_somebody__is_theirs(tmp_path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 1234, 4321)
    with open_private_folder("cli-", tmp_path / "theirs") as folder:
        assert (folder.path.stat().st_uid, folder.path.stat().st_gid) == (1234, 4321)
        assert folder.write("in", b"").stat().st_uid == 1234
