"""A folder that nothing leaves: traversal by text and by links, kinds of files, limits, its beginning and its end."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.sandbox.paths import SandboxError, split_file_path, split_path
from eval_gate.sandbox.sandbox import FolderLimits, InitialFile, ListedEntry, Sandbox
from eval_gate.sandbox.sandbox_setup import ExistingFolder, ReservedNames

SECRET = "the secret of the machine"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the sandbox, with a file that nobody may see or change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.fixture(params=["own", "somebody's"])
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A folder with one file in it, made for the agent or there before."""
    parent = tmp_path / "runs"
    parent.mkdir()
    with Sandbox(parent) if request.param == "own" else ExistingFolder(parent) as made:
        made.write("notes/kept.txt", "kept")
        yield made


OWN = pytest.mark.parametrize("sandbox", ["own"], indirect=True)


def everything(folder: Path) -> dict[str, object]:
    """What lies below a folder, to the byte: to see that nothing changed."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        plain = stat.S_ISREG(facts.st_mode)
        found[str(path)] = (facts.st_mode, facts.st_nlink, path.read_bytes() if plain else None)
    return found


OPERATIONS: dict[str, Callable[[Sandbox, str], object]] = {
    "read": lambda sandbox, path: sandbox.read(path),
    "write": lambda sandbox, path: sandbox.write(path, "overwritten"),
    "list": lambda sandbox, path: sandbox.list_entries(path),
    "delete": lambda sandbox, path: sandbox.delete(path),
}

TRAVERSALS = {
    "up": ("../outside/secret.txt", "traversal"),
    "up at once": ("..", "traversal"),
    "up from a folder": ("notes/../../outside/secret.txt", "traversal"),
    "up and in again": ("notes/../notes/kept.txt", "traversal"),
    "up at the end": ("notes/..", "traversal"),
    "up after nothing": ("./../outside/secret.txt", "traversal"),
    "up doubled slashes": ("notes//..//..//outside/secret.txt", "traversal"),
    "up with blanks around": ("  ../outside/secret.txt  ", "traversal"),
    "up by backslashes": ("..\\outside\\secret.txt", "traversal"),
    "up by both slashes": ("notes/..\\../outside/secret.txt", "traversal"),
    "up encoded": ("%2e%2e/outside/secret.txt", "traversal"),
    "up encoded twice": ("%252e%252e%252foutside", "traversal"),
    "up by full-width dots": ("\uff0e\uff0e/outside/secret.txt", "traversal"),
    "up by a two-dot leader": ("\u2025/outside/secret.txt", "traversal"),
    "up by an ellipsis": ("\u2026/outside", "traversal"),
    "dots and blanks": (". ./outside/secret.txt", "traversal"),
    "three dots": ("notes/.../secret.txt", "traversal"),
    "dots that end": ("notes./kept.txt", "end with a dot"),
    "blank that ends": ("notes /kept.txt", "end with a dot or a blank"),
    "zero width between dots": (".\u200b./outside/secret.txt", "cannot be seen"),
    "absolute": ("/etc/passwd", "within the repo tmp"),
    "absolute with blanks": ("  /etc/passwd", "within the repo tmp"),
    "two slashes": ("//etc/passwd", "within the repo tmp"),
    "processes": ("/proc/self/environ", "within the repo tmp"),
    "own folder through processes": ("/proc/self/cwd/pyproject.toml", "within the repo tmp"),
    "device": ("/dev/stdin", "within the repo tmp"),
    "home": ("~/.ssh/id_rsa", "within the repo tmp"),
    "home of another": ("~root/.bashrc", "within the repo tmp"),
    "address": ("file:///etc/passwd", "within the repo tmp"),
    "drive": ("C:\\Windows\\win.ini", "within the repo tmp"),
    "drive with slashes": ("C:/Windows/win.ini", "within the repo tmp"),
    "drive without any": ("c:secret.txt", "within the repo tmp"),
    "share": ("\\\\server\\share\\secret.txt", "within the repo tmp"),
    "long form of a share": ("\\\\?\\C:\\secret.txt", "within the repo tmp"),
    "backslash": ("notes\\kept.txt", "backslash"),
    "stream": ("notes/kept.txt::$DATA", "colon"),
    "nul": ("notes/kept.txt\0.png", "control characters"),
    "nul before up": ("\0../outside/secret.txt", "control characters"),
    "line break": ("notes\n/../../outside", "control characters"),
    "full-width slash": ("notes\uff0fkept.txt", "look like a slash"),
    "division slash": ("..\u2215outside\u2215secret.txt", "look like a slash"),
    "fraction slash": ("..\u2044outside", "look like a slash"),
    "full-width backslash": ("..\uff3coutside", "look like a slash"),
    "set minus": ("..\u2216outside", "look like a slash"),
    "turned round": ("\u202etxt.terces", "cannot be seen"),
    "half a character": ("notes/\ud800.txt", "cannot be seen"),
    "windows device": ("NUL", "device"),
    "windows device with an ending": ("notes/con.txt", "device"),
    "windows port": ("Com1", "device"),
    "long name": ("a" * 256, "longer than 255"),
    "long name in bytes": ("é" * 128, "longer than 255"),
    "deep": ("/".join("a" * 33), "too deep"),
    "nothing": ("", "empty"),
    "blanks": ("   ", "empty"),
}


@pytest.mark.contract("agent_evals.files.traversal")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("path", "reason"), TRAVERSALS.values(), ids=TRAVERSALS)
def test_path__leads_elsewhere__is_refused_and_nothing_is_touched(
    sandbox: Sandbox, outside: Path, tmp_path: Path, path: str, reason: str, operation: str
) -> None:
    before = everything(tmp_path)
    with pytest.raises(SandboxError) as refusal:
        OPERATIONS[operation](sandbox, path)
    assert reason in str(refusal.value)
    assert "outside" not in str(refusal.value)
    assert everything(tmp_path) == before


def links_to_a_file(sandbox: Sandbox, outside: Path) -> str:
    (sandbox.path / "link.txt").symlink_to(outside / "secret.txt")
    return "link.txt"


def links_to_a_folder(sandbox: Sandbox, outside: Path) -> str:
    (sandbox.path / "link").symlink_to(outside)
    return "link/secret.txt"


def links_in_a_chain(sandbox: Sandbox, outside: Path) -> str:
    (sandbox.path / "second").symlink_to(outside)
    (sandbox.path / "notes" / "first").symlink_to("../second")
    return "notes/first/secret.txt"


def links_relatively(sandbox: Sandbox, outside: Path) -> str:
    (sandbox.path / "up").symlink_to("..")
    return f"up/{outside.name}/secret.txt"


def links_inside(sandbox: Sandbox, outside: Path) -> str:
    del outside
    (sandbox.path / "same").symlink_to("notes")
    return "same/kept.txt"


def links_to_what_is_not_there(sandbox: Sandbox, outside: Path) -> str:
    (sandbox.path / "new.txt").symlink_to(outside / "new.txt")
    return "new.txt"


def links_to_processes(sandbox: Sandbox, outside: Path) -> str:
    del outside
    (sandbox.path / "self").symlink_to("/proc/self/root")
    return "self/etc/passwd"


def links_to_itself(sandbox: Sandbox, outside: Path) -> str:
    del outside
    (sandbox.path / "loop").symlink_to("loop")
    return "loop/x"


def has_a_second_name(sandbox: Sandbox, outside: Path) -> str:
    os.link(outside / "secret.txt", sandbox.path / "twin.txt")
    return "twin.txt"


def is_a_pipe(sandbox: Sandbox, outside: Path) -> str:
    del outside
    os.mkfifo(sandbox.path / "pipe")
    return "pipe"


def is_a_socket(sandbox: Sandbox, outside: Path) -> str:
    del outside
    with contextlib.chdir(sandbox.path), socket.socket(socket.AF_UNIX) as made:  # such names are short
        made.bind("socket")
    return "socket"


def is_a_folder(sandbox: Sandbox, outside: Path) -> str:
    del sandbox, outside
    return "notes"


def has_a_file_above(sandbox: Sandbox, outside: Path) -> str:
    del sandbox, outside
    return "notes/kept.txt/below.txt"


SET_UPS = {
    links_to_a_file: "Symlink",
    links_to_a_folder: "Symlink",
    links_in_a_chain: "Symlink",
    links_relatively: "Symlink",
    links_inside: "Symlink",
    links_to_what_is_not_there: "Symlink",
    links_to_processes: "Symlink",
    links_to_itself: "Symlink",
    has_a_second_name: "second name",
    is_a_pipe: "must point to a file",
    is_a_socket: "must point to a file",
    is_a_folder: "must point to a file",
    has_a_file_above: "must point to a directory",
}


@pytest.mark.contract("agent_evals.files.traversal", "agent_evals.files.regular")
@pytest.mark.parametrize("operation", ["read", "write", "delete"])
@pytest.mark.parametrize("set_up", SET_UPS, ids=lambda set_up: set_up.__name__)
def test_entry__is_no_plain_file__is_refused_and_nothing_is_touched(
    sandbox: Sandbox, outside: Path, tmp_path: Path, set_up: Callable[[Sandbox, Path], str], operation: str
) -> None:
    path = set_up(sandbox, outside)
    before = everything(tmp_path)
    with pytest.raises(SandboxError) as refusal:
        OPERATIONS[operation](sandbox, path)
    assert SET_UPS[set_up] in str(refusal.value)
    assert everything(tmp_path) == before


@pytest.mark.contract("agent_evals.files.traversal")
def test_list__through_a_link__is_refused(sandbox: Sandbox, outside: Path) -> None:
    (sandbox.path / "link").symlink_to(outside)
    with pytest.raises(SandboxError, match="Symlink"):
        sandbox.list_entries("link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator makes devices")
@pytest.mark.contract("agent_evals.files.regular")
def test_entry__is_a_device__is_refused(sandbox: Sandbox) -> None:
    try:
        os.mknod(sandbox.path / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no devices may be made here")
    for operation in ("read", "write", "delete"):
        with pytest.raises(SandboxError, match="must point to a file"):
            OPERATIONS[operation](sandbox, "zero")


@pytest.mark.slow
@pytest.mark.contract("agent_evals.files.traversal")
def test_race__folder_swapped_for_a_link_all_the_time__nothing_of_outside_is_ever_seen(
    sandbox: Sandbox, outside: Path
) -> None:
    """Somebody swaps a folder and a link to outside while files are read and written through that name."""
    (outside / "kept.txt").write_text(SECRET)
    here, spare = sandbox.path / "notes", sandbox.path / "spare"
    spare.symlink_to(outside)
    done = threading.Event()

    def put(source: Path, target: Path) -> None:
        """Rename, over whatever was made there meanwhile."""
        while True:
            try:
                source.rename(target)
            except OSError:
                shutil.rmtree(target, ignore_errors=True)
            else:
                return

    def swap() -> None:
        aside = sandbox.path / "aside"
        while not done.is_set():
            here.rename(aside)
            put(spare, here)
            here.rename(spare)
            put(aside, here)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[str] = set()
    try:
        for _ in range(2_000):  # enough to meet every moment of the swap many times
            with contextlib.suppress(SandboxError):
                seen.add(sandbox.read("notes/kept.txt"))
            with contextlib.suppress(SandboxError):
                sandbox.write("notes/kept.txt", "kept")
    finally:
        done.set()
        swapping.join()
    assert seen <= {"kept"}
    assert (outside / "kept.txt").read_text() == SECRET


@pytest.mark.contract("agent_evals.files.traversal")
def test_folder__replaced_by_another__is_not_worked_in(tmp_path: Path, outside: Path) -> None:
    sandbox = Sandbox(tmp_path)
    moved = sandbox.path.rename(tmp_path / "moved")
    sandbox.path.symlink_to(outside)
    with pytest.raises(OSError, match=r"."):
        sandbox.read("secret.txt")
    sandbox.path.unlink()
    outside.rename(sandbox.path)
    with pytest.raises(OSError, match="replaced"):
        sandbox.read("secret.txt")
    sandbox.close()
    assert (sandbox.path / "secret.txt").read_text() == SECRET
    assert moved.is_dir()


@pytest.mark.contract("agent_evals.files.traversal")
@given(path=st.text(alphabet=st.sampled_from([*"./\\~:%2eEfFcC ", "\0", "\uff0f", "\u2024", "a"]), max_size=24))
def test_names__whatever_the_path__never_lead_up_or_away(path: str) -> None:
    try:
        names = split_file_path(path)
    except SandboxError:
        return
    assert names
    for name in names:
        assert name not in {"", ".", ".."}
        assert not set(name) & set("/\\\0:")
    assert split_path("/".join(names)) == names


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a.txt", ("a.txt",)),
        ("agent-evals/tool-test-output.txt", ("agent-evals", "tool-test-output.txt")),
        (" ./a//b/ ", ("a", "b")),
        ("..name/.hidden", ("..name", ".hidden")),
        ("tmp/x.txt", ("tmp", "x.txt")),
        ("50%/größe 日本.txt", ("50%", "größe 日本.txt")),
        ("console/nullable.txt", ("console", "nullable.txt")),
    ],
)
@pytest.mark.contract("agent_evals.files.relative")
def test_names__of_an_ordinary_path__are_its_parts(path: str, names: tuple[str, ...]) -> None:
    assert split_file_path(path) == names


def test_names__the_folder_itself__is_no_file_but_can_be_listed(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="file within tmp"):
        sandbox.read(".")
    assert sandbox.list_entries(".") == (ListedEntry("notes", "folder"),)


@pytest.mark.contract("agent_evals.files.relative")
def test_write__then_read__is_the_text_to_the_byte(sandbox: Sandbox) -> None:
    text = "Grüße\r\n日本 😀\n"
    assert sandbox.write("deep/er/file.txt", text) == len(text.encode())
    assert (sandbox.path / "deep" / "er" / "file.txt").read_bytes() == text.encode()
    assert sandbox.read("deep/er/file.txt") == text


def test_write__existing_file__is_replaced_as_a_whole(sandbox: Sandbox) -> None:
    sandbox.write("notes/kept.txt", "k")
    assert sandbox.read("notes/kept.txt") == "k"


def test_delete__file__is_gone_and_its_folder_stays(sandbox: Sandbox) -> None:
    sandbox.delete("notes/kept.txt")
    assert sandbox.list_entries("notes") == ()
    with pytest.raises(SandboxError, match="does not exist"):
        sandbox.delete("notes/kept.txt")


@pytest.mark.parametrize("operation", ["read", "list", "delete"])
def test_path__is_not_there__says_so(sandbox: Sandbox, operation: str) -> None:
    with pytest.raises(SandboxError, match="does not exist"):
        OPERATIONS[operation](sandbox, "nowhere/at/all")


def test_list__names_kinds_in_order(sandbox: Sandbox) -> None:
    sandbox.write("b.txt", "")
    (sandbox.path / "a").symlink_to("/")
    assert sandbox.list_entries() == (
        ListedEntry("a", "other"),
        ListedEntry("b.txt", "file"),
        ListedEntry("notes", "folder"),
    )
    with pytest.raises(SandboxError, match="must point to a directory"):
        sandbox.list_entries("b.txt")


SMALL = FolderLimits(file_bytes=10, total_bytes=25, entries=5)


@pytest.mark.contract("agent_evals.files.bounded")
def test_write__too_large_a_file__is_refused(tmp_path: Path) -> None:
    with Sandbox(tmp_path, SMALL) as sandbox:
        sandbox.write("a.txt", "é" * 5)
        with pytest.raises(SandboxError, match="larger than 10 bytes"):
            sandbox.write("b/b.txt", "é" * 5 + "x")
        assert sandbox.list_entries() == (ListedEntry("a.txt", "file"),)


@pytest.mark.contract("agent_evals.files.bounded")
def test_write__too_much_in_all__is_refused_and_replacing_counts_once(tmp_path: Path) -> None:
    with Sandbox(tmp_path, SMALL) as sandbox:
        for name in ("a", "b"):
            sandbox.write(name, "x" * 10)
        with pytest.raises(SandboxError, match="25 bytes in all"):
            sandbox.write("c", "x" * 6)
        sandbox.write("c", "x" * 5)
        sandbox.write("a", "y" * 10)
        assert sandbox.read("a") == "y" * 10


@pytest.mark.contract("agent_evals.files.bounded")
def test_write__too_many_entries__is_refused_and_folders_count(tmp_path: Path) -> None:
    with Sandbox(tmp_path, SMALL) as sandbox:
        sandbox.write("a/b/c", "")
        with pytest.raises(SandboxError, match="more than 5"):
            sandbox.write("d/e/f", "")
        assert sandbox.list_entries() == (ListedEntry("a", "folder"),)
        sandbox.write("a/b/d", "")
        sandbox.write("e", "")
        with pytest.raises(SandboxError, match="more than 5"):
            sandbox.write("g", "")


@pytest.mark.contract("agent_evals.files.bounded")
def test_read__what_somebody_else_made_too_large_or_no_text__is_refused(tmp_path: Path) -> None:
    with Sandbox(tmp_path, SMALL) as sandbox:
        (sandbox.path / "large").write_bytes(b"x" * 11)
        (sandbox.path / "latin").write_bytes(b"gr\xfc\xdfe")
        with pytest.raises(SandboxError, match="larger than 10 bytes"):
            sandbox.read("large")
        with pytest.raises(SandboxError, match="not UTF-8"):
            sandbox.read("latin")


@pytest.mark.contract("agent_evals.files.bounded")
def test_write__half_a_character__is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="Unicode"):
        sandbox.write("a.txt", "\ud83d")


@OWN
def test_snapshot__holds_files_and_folders_by_path(sandbox: Sandbox) -> None:
    sandbox.write("a.txt", "é")
    found = [(entry.path, entry.kind, entry.text, entry.problem) for entry in sandbox.collect_entries(())]
    assert found == [
        ("a.txt", "file", "é", None),
        ("notes", "folder", None, "Path must point to a file."),
        ("notes/kept.txt", "file", "kept", None),
    ]


@pytest.mark.contract("agent_evals.files.regular")
def test_snapshot__what_is_no_plain_file__is_named_and_never_looked_into(sandbox: Sandbox, outside: Path) -> None:
    for set_up in (links_to_a_folder, has_a_second_name, is_a_pipe):
        set_up(sandbox, outside)
    (sandbox.path / "latin").write_bytes(b"\xff")
    paths = ("link", "link/secret.txt", "twin.txt", "pipe", "latin")
    found = {entry.path: (entry.kind, entry.text, entry.problem) for entry in sandbox.collect_entries(paths)}
    assert found["link"] == ("other", None, "Symlink paths are not allowed.")
    assert found["twin.txt"][0] == "other"
    assert found["pipe"] == ("other", None, "Path must point to a file.")
    assert found["latin"] == ("file", None, "File is not UTF-8 text.")
    assert "link/secret.txt" not in found
    assert SECRET not in str(found)


@OWN
def test_snapshot__names_no_path_can_name__are_left_out(sandbox: Sandbox) -> None:
    (sandbox.path / "ends with a dot.").touch()
    (sandbox.path / os.fsdecode(b"\xff")).touch()
    assert [entry.path for entry in sandbox.collect_entries(())] == ["notes", "notes/kept.txt"]


@pytest.mark.contract("agent_evals.files.bounded")
@pytest.mark.parametrize("what", ["bytes", "entries", "depth"])
def test_snapshot__more_than_the_limits_allow__is_no_snapshot(tmp_path: Path, what: str) -> None:
    with Sandbox(tmp_path, SMALL if what != "depth" else FolderLimits()) as sandbox:
        if what == "bytes":
            (sandbox.path / "large").write_bytes(b"x" * 26)
        elif what == "entries":
            for number in range(6):
                (sandbox.path / str(number)).touch()
        else:
            sandbox.path.joinpath(*("d" * 34)).mkdir(parents=True)
        with pytest.raises(SandboxError, match=r"more than|deeper than"):
            sandbox.collect_entries(())


@pytest.mark.contract("agent_evals.files.folder")
def test_sandbox__each__has_an_empty_folder_of_its_own_and_removes_it(tmp_path: Path, outside: Path) -> None:
    with Sandbox(tmp_path) as one, Sandbox(tmp_path) as other:
        one.write("a/b.txt", "text")
        (one.path / "link").symlink_to(outside)
        assert other.collect_entries(()) == ()
        assert stat.S_IMODE(one.path.stat().st_mode) == 0o700
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "secret.txt").read_text() == SECRET
    one.close()


def test_sandbox__no_handle__is_left_open(sandbox: Sandbox, outside: Path) -> None:
    links_to_a_folder(sandbox, outside)
    before = len([*Path("/dev/fd").iterdir()])
    for operation in OPERATIONS.values():
        for path in ("notes/kept.txt", "link/secret.txt", "nowhere/x", "notes", "notes/kept.txt/x"):
            with contextlib.suppress(SandboxError):
                operation(sandbox, path)
    sandbox.collect_entries(("notes/kept.txt", "link/secret.txt", "nowhere/x", "notes/kept.txt/x"))
    assert len([*Path("/dev/fd").iterdir()]) == before


@pytest.mark.contract("agent_evals.files.tmp")
def test_initial_files__is_there_at_first_and_known_as_unchanged_until_it_is_changed(tmp_path: Path) -> None:
    given = (
        InitialFile("data", None),
        InitialFile("data/a.txt", b"1"),
        InitialFile("b.bin", b"\xff"),
        InitialFile("c.txt", b"3"),
    )
    with Sandbox(tmp_path, initial_files=given) as sandbox:
        sandbox.write("c.txt", "changed")
        sandbox.write("new.txt", "1")
        found = {entry.path: (entry.text, entry.unchanged) for entry in sandbox.collect_entries(())}
    assert found == {
        "data": (None, False),
        "data/a.txt": ("1", True),
        "b.bin": (None, True),
        "c.txt": ("changed", False),
        "new.txt": ("1", False),
    }


@pytest.mark.contract("agent_evals.files.tmp")
def test_somebodys_folder__only_what_is_asked_for__is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/x.txt", "other.txt"):
        (tmp_path / name).write_text(name)
    with ExistingFolder(tmp_path) as sandbox:
        found = [entry.path for entry in sandbox.collect_entries(("a/x.txt", "a/none", "../up", "none/at/all"))]
    assert found == ["a", "a/x.txt"]
    assert (tmp_path / "a" / "x.txt").exists()


@pytest.mark.contract("agent_evals.files.bounded")
def test_somebodys_folder__what_lies_there__does_not_count_and_what_is_written_does(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("x" * 50)
    with ExistingFolder(tmp_path, FolderLimits(file_bytes=50, total_bytes=60, entries=2, listed_entries=30)) as sandbox:
        assert len(sandbox.list_entries()) == 20
        sandbox.write("0.txt", "y" * 40)
        with pytest.raises(SandboxError, match="no room for more than 60 bytes"):
            sandbox.write("1.txt", "y" * 40)
        sandbox.delete("0.txt")
        sandbox.write("1.txt", "y" * 40)
        sandbox.write("2.txt", "")
        with pytest.raises(SandboxError, match="no room for more than 2 files"):
            sandbox.write("3.txt", "")


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.parametrize("path", ["out/kept", "out/kept/x", "OUT/KEPT", "./out//kept", "\uff4fut/kept"])
@pytest.mark.parametrize("operation", ["write", "delete"])
def test_somebodys_folder__reserved_name__is_read_and_never_changed(tmp_path: Path, path: str, operation: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("1")
    with ExistingFolder(tmp_path, reserved=ReservedNames(("out",), {"kept"}.__contains__)) as sandbox:
        with pytest.raises(SandboxError, match="belongs to the results"):
            OPERATIONS[operation](sandbox, path)
        assert sandbox.read("out/kept") == "1"
        sandbox.write("out/other", "2")
        sandbox.write("kept", "3")
