"""Templates of workspaces: what is copied, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_gate.model import limits
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import InitialFile, Sandbox
from eval_gate.sandbox.sandbox_setup import compute_template_digest, read_template, read_workspace


@pytest.fixture
def template(tmp_path: Path) -> Path:
    folder = tmp_path / "template"
    (folder / "src").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "src" / "run.sh").write_text("echo\n")
    (folder / "src" / "run.sh").chmod(0o755)
    (folder / ".env").write_text("A=1\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[core]\n")
    return folder


def test_read_template__folder__is_read_without_git_and_copied_with_executable_bits(template) -> None:
    files = read_template(template)
    assert [(one.path, one.executable) for one in files] == [
        (".env", False),
        ("empty", False),
        ("src", False),
        ("src/run.sh", True),
    ]
    with Sandbox(initial_files=files) as copy:
        assert (copy.path / "src" / "run.sh").stat().st_mode & 0o111
        assert not (copy.path / ".env").stat().st_mode & 0o111
        assert (copy.path / "empty").is_dir()
        assert read_workspace(copy.path) == files


@pytest.mark.parametrize("kind", ["link", "large", "many", "is a link"])
def test_read_template__cannot_be_copied_as_it_is__is_refused(template, kind) -> None:
    match kind:
        case "link":
            (template / "link").symlink_to("/etc/passwd")
        case "large":
            (template / "large").write_bytes(bytes(limits.SANDBOX_FILE_BYTES + 1))
        case "many":
            for number in range(limits.SANDBOX_ENTRIES + 1):
                (template / f"{number}").touch()
        case "is a link":
            template.rename(template.parent / "real")
            template.symlink_to("real")
    with pytest.raises(SandboxError):
        read_template(template)


def test_digest__other_content_or_executable_bit__is_another_one(template) -> None:
    first = compute_template_digest(read_template(template))
    (template / "src" / "run.sh").write_bytes(b"echo\r\n")
    assert compute_template_digest(read_template(template)) == first, "a checkout with other line endings"
    (template / "src" / "run.sh").chmod(0o644)
    second = compute_template_digest(read_template(template))
    (template / ".env").write_text("A=2\n")
    assert len({first, second, compute_template_digest(read_template(template))}) == 3


def test_read_workspace__link_and_generated_folders__link_is_marked_and_the_others_are_left_out(template) -> None:
    (template / "node_modules").mkdir()
    (template / "node_modules" / "x.js").touch()
    (template / "link").symlink_to("/etc/passwd")
    found = {one.path: one.data for one in read_workspace(template)}
    assert found["link"] == b"\0Symlink paths are not allowed."
    assert "node_modules" not in found


def test_digest__order_of_files__makes_no_difference() -> None:
    files = [InitialFile("a", b"1"), InitialFile("b", b"2")]
    assert compute_template_digest(files) == compute_template_digest(files[::-1])
