"""Outputs and the summary as the runner reads them, and files handed back to whom the workspace belongs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.github.runner_files import MAX_SUMMARY_BYTES, append_summary, give_to_workspace_owner, write_outputs

NAME = st.from_regex(r"[a-z][a-z-]{0,20}", fullmatch=True)
VALUE = st.lists(
    st.sampled_from(["\n", "\r", "\r\n", "name=value", "name<<EOF", "EOF", "end_", "<<", "=", "\u2028", "\x0b", "\x85"])
    | st.text(max_size=10),
    max_size=10,
).map("".join)


def as_the_runner_reads(data: bytes) -> dict[str, str]:
    """FileCommandManager.cs on Linux: lines end with a line feed alone; the first of `=` and `<<` decides."""
    assert not data.startswith(b"\xef\xbb\xbf")
    text, found = data.decode("utf-8"), {}
    lines = iter(text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"))
    for line in lines:
        if not line:
            continue
        equals, arrow = line.find("="), line.find("<<")
        if equals >= 0 and (arrow < 0 or equals < arrow):
            found[line[:equals]] = line[equals + 1 :]
            continue
        assert arrow > 0, f"Invalid format {line!r}"
        name, delimiter, value = line[:arrow], line[arrow + 2 :], []
        assert delimiter, f"Invalid format {line!r}"
        for part in lines:
            if part == delimiter:
                break
            value.append(part)
        else:
            raise AssertionError(f"Matching delimiter not found {delimiter!r}")
        found[name] = "\n".join(value)
    return found


@pytest.mark.slow
@given(outputs=st.dictionaries(NAME, VALUE, max_size=5), more=st.dictionaries(NAME, VALUE, max_size=2))
def test_outputs__any_values__are_read_back_as_they_were(tmp_path_factory, outputs, more) -> None:
    file = tmp_path_factory.mktemp("out") / "output"
    write_outputs(file, outputs)
    write_outputs(file, more)
    assert as_the_runner_reads(file.read_bytes()) == {**outputs, **more}


def test_outputs__earlier_ones__stay(tmp_path) -> None:
    file = tmp_path / "output"
    file.write_bytes(b"before=1\nlong<<X\na\nb\nX\n")
    write_outputs(file, {"verdict": "pass"})
    assert as_the_runner_reads(file.read_bytes()) == {"before": "1", "long": "a\nb", "verdict": "pass"}


def test_outputs__each__has_a_delimiter_of_its_own_that_nobody_can_guess(tmp_path) -> None:
    file = tmp_path / "output"
    write_outputs(file, {"a": "1", "b": "1"})
    write_outputs(file, {"a": "1"})
    delimiters = [line.partition("<<")[2] for line in file.read_text().splitlines() if "<<" in line]
    assert len(set(delimiters)) == 3
    assert all(len(one) >= 32 for one in delimiters)


@pytest.mark.parametrize("before", [0, 100, MAX_SUMMARY_BYTES // 2])
@pytest.mark.parametrize("sign", ["x", "界"])
def test_summary__at_the_limit__is_written_and_one_byte_more_is_not(tmp_path, before, sign) -> None:
    file = tmp_path / "summary"
    file.write_bytes(b"b" * before)
    room = MAX_SUMMARY_BYTES - before - 1  # the line break
    width = len(sign.encode())
    fits = sign * (room // width) + "y" * (room % width)
    assert append_summary(file, fits + "y") is False
    assert file.stat().st_size == before
    assert append_summary(file, fits) is True
    assert file.stat().st_size == MAX_SUMMARY_BYTES
    assert append_summary(file, "") is False


def test_summary__no_file_yet__is_made_and_ends_with_one_line_break(tmp_path) -> None:
    file = tmp_path / "summary"
    assert append_summary(file, "# one\n")
    assert append_summary(file, "# two")
    assert file.read_bytes() == b"# one\n# two\n"


def test_summary__half_a_character__is_written_as_an_escape(tmp_path) -> None:
    assert append_summary(tmp_path / "summary", "a\ud800b")
    assert (tmp_path / "summary").read_text() == "a\\ud800b\n"


root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
THEM = 1001


@pytest.fixture
def workspace(tmp_path) -> Path:
    """A checkout that belongs to the runner's user."""
    made = tmp_path / "workspace"
    made.mkdir()
    os.chown(made, THEM, THEM)
    return made


def owners(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    return folder


@root
def test_hand_back__folder_we_made__belongs_to_the_workspace_s_owner_with_everything_in_it(workspace) -> None:
    made = fill(workspace / "results", "latest.json", "a/run.json", "a/b/c.json")
    other = fill(workspace / "other", "x")
    give_to_workspace_owner([made, workspace / "missing"], workspace)
    assert set(owners(made).values()) == {THEM}
    assert set(owners(other).values()) == {0}
    assert (made / "a").stat().st_gid == THEM


@root
def test_hand_back__a_file__is_given_alone(workspace) -> None:
    fill(workspace, "one", "two")
    give_to_workspace_owner([workspace / "one"], workspace)
    assert ((workspace / "one").stat().st_uid, (workspace / "two").stat().st_uid) == (THEM, 0)


@root
def test_hand_back__links_inside__are_given_and_what_they_lead_to_is_not(workspace, tmp_path) -> None:
    foreign = fill(tmp_path / "foreign", "secret", "folder/deep")
    made = fill(workspace / "results", "run.json")
    (made / "file").symlink_to(foreign / "secret")
    (made / "folder").symlink_to(foreign)
    (made / "gone").symlink_to(tmp_path / "nowhere")
    give_to_workspace_owner([made], workspace)
    assert set(owners(foreign).values()) == {0}
    assert {name: uid for name, uid in owners(made).items() if uid != THEM} == {}


@root
def test_hand_back__folder_is_swapped_for_a_link_meanwhile__gives_nothing_of_where_it_leads(
    workspace, tmp_path, monkeypatch
) -> None:
    """A program that the pull request left running may do so: above all it would like the socket of Docker."""
    foreign = fill(tmp_path / "foreign", "a", "b")
    made = fill(workspace / "results", "run/a", "run/b")
    give, given = os.chown, []

    def swapping(path, *whom, **how) -> None:
        give(path, *whom, **how)
        given.append(Path(f"/proc/self/fd/{path}").resolve().name if isinstance(path, int) else path)
        if set(given[-1:]) & {"a", "b"} and not (made / "run").is_symlink():
            (made / "run").rename(made / "before")
            (made / "run").symlink_to(foreign)

    monkeypatch.setattr(os, "chown", swapping)
    give_to_workspace_owner([made], workspace)
    assert (made / "run").is_symlink()
    assert set(owners(foreign).values()) == {0}


@pytest.mark.slow
@root
def test_hand_back__more_folders_in_each_other_than_anybody_makes__ends(workspace) -> None:
    inner = workspace / "results"
    inner.mkdir()
    here = os.open(inner, os.O_RDONLY)
    for _ in range(2_000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    give_to_workspace_owner([inner], workspace)
    assert (inner / "d" / "d").stat().st_uid == THEM
    subprocess.run(["rm", "-r", inner], check=True)  # Python's own way ends at a thousand


@root
@pytest.mark.parametrize(
    "write", [lambda file: append_summary(file, "# x"), lambda file: write_outputs(file, {"a": "1"})]
)
def test_file_commands__another_users_link_in_their_place__is_not_followed(tmp_path, write) -> None:
    """The runner's folder is its user's, and so are programs of the pull request in our container."""
    foreign = fill(tmp_path, "foreign") / "foreign"
    commands = tmp_path / "file_commands"
    commands.mkdir()
    (commands / "of_root").symlink_to(foreign)
    write(commands / "of_root")  # such as /dev/stdout
    assert foreign.read_text() != "x"
    foreign.write_text("x")
    os.chown(commands, THEM, THEM)
    (commands / "link").symlink_to(foreign)
    os.mkfifo(commands / "pipe")
    os.link(foreign, commands / "same")
    for name in ("link", "pipe", "same"):
        with pytest.raises(OSError, match=r"."):
            write(commands / name)
    assert foreign.read_text() == "x"
    write(commands / "file")
    assert (commands / "file").stat().st_size > 0


@root
@pytest.mark.parametrize("whose", [0, THEM + 1])
@pytest.mark.parametrize(
    "write", [lambda file: append_summary(file, "# x"), lambda file: write_outputs(file, {"a": "1"})]
)
def test_file_commands__a_hard_link_that_is_gone_again__is_not_written_to(tmp_path, write, whose) -> None:
    """It is taken away between opening and looking, after which the file has one name again: its owner tells."""
    commands = tmp_path / "file_commands"
    fill(commands, "alone")
    os.chown(commands, THEM, THEM)
    os.chown(commands / "alone", whose, -1)
    with pytest.raises(OSError, match="no longer a regular file"):
        write(commands / "alone")
    assert (commands / "alone").read_text() == "x"


@root
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_file_commands__in_a_folder_of_root_s_that_is_everybodys__no_link_is_followed(tmp_path, mode) -> None:
    foreign = fill(tmp_path, "foreign") / "foreign"
    commands = tmp_path / "file_commands"
    commands.mkdir()
    commands.chmod(mode)
    (commands / "link").symlink_to(foreign)
    with pytest.raises(OSError, match=r"."):
        write_outputs(commands / "link", {"a": "1"})
    write_outputs(commands / "file", {"a": "1"})
    assert (foreign.read_text(), (commands / "file").stat().st_size > 0) == ("x", True)


@root
def test_file_commands__one_that_is_made__is_whose_the_folder_is_and_can_be_added_to(tmp_path) -> None:
    commands = tmp_path / "file_commands"
    commands.mkdir()
    os.chown(commands, THEM, THEM)
    for _ in range(2):
        write_outputs(commands / "file", {"a": "1"})
    assert (commands / "file").stat().st_uid == THEM
    assert (commands / "file").read_text().count("a<<") == 2


@root
def test_hand_back__the_folder_itself_is_a_link__is_not_followed(workspace, tmp_path) -> None:
    foreign = fill(tmp_path / "foreign", "secret")
    (workspace / "results").symlink_to(foreign)
    give_to_workspace_owner([workspace / "results"], workspace)
    assert set(owners(foreign).values()) == {0}


@root
def test_hand_back__a_hard_link_to_a_file_of_root_s__is_not_given(workspace) -> None:
    """Such as what an earlier step of root has left in the workspace for nobody else to read."""
    foreign = fill(workspace / "of_root", "secret")
    made = fill(workspace / "results", "run.json")
    os.link(foreign / "secret", made / "same")
    give_to_workspace_owner([made], workspace)
    assert ((foreign / "secret").stat().st_uid, (made / "run.json").stat().st_uid) == (0, THEM)


@root
def test_hand_back__a_folder_above_is_a_link__is_not_followed(workspace, tmp_path) -> None:
    """The default is `evals/results`, and a pull request may make `evals` a link."""
    foreign = fill(tmp_path / "foreign", "results/secret")
    (workspace / "evals").symlink_to(foreign)
    give_to_workspace_owner([workspace / "evals" / "results"], workspace)
    assert set(owners(foreign).values()) == {0}


@root
@pytest.mark.parametrize("where", ["../foreign", "results/../../foreign"])
def test_hand_back__a_folder_outside_of_the_workspace__stays_whose_it_is(workspace, tmp_path, where) -> None:
    """`output-dir` comes from a file that a pull request may change."""
    foreign = fill(tmp_path / "foreign", "secret")
    fill(workspace / "results", "run.json")
    give_to_workspace_owner([workspace / where], workspace)
    assert set(owners(foreign).values()) == {0}
    assert (tmp_path.stat().st_uid, workspace.stat().st_uid) == (0, THEM)


@root
def test_hand_back__folders_above_that_were_made_with_it__are_given_too(workspace) -> None:
    """Who may not write to a folder cannot delete what is in it: the next checkout would fail."""
    made = fill(workspace / "out" / "deep" / "results", "run.json")
    give_to_workspace_owner([made], workspace)
    assert set(owners(workspace / "out").values()) == {THEM}


@root
def test_hand_back__one_was_never_made__the_others_are_given(workspace) -> None:
    made = fill(workspace / "made", "x")
    give_to_workspace_owner([workspace / "never" / "deep" / "results", made], workspace)
    assert set(owners(made).values()) == {THEM}


@root
def test_hand_back__workspace_of_root__changes_nothing(tmp_path) -> None:
    made = fill(tmp_path / "results", "run.json")
    os.chown(made, THEM, THEM)
    give_to_workspace_owner([made], tmp_path)
    assert owners(made) == {".": THEM, "run.json": 0}


def test_hand_back__no_workspace__is_no_error(tmp_path) -> None:
    give_to_workspace_owner([tmp_path / "x"], tmp_path / "missing")
