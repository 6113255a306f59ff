"""Where attached files are looked for, and which are never read."""

import os

import pytest

from eval_gate.formats.agentv import case_messages as agentv_turns
from eval_gate.formats.agentv import eval_repository as agentv_files
from tests.support.agentv import Repository, suite


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path / "repository")


def attaching(*paths: str) -> str:
    parts = "".join(f"      - {{type: file, value: '{path}'}}\n" for path in paths)
    return suite(f"id: one\noutcome: x\ninput:\n  - role: user\n    content:\n{parts}")


def text_of(repository: Repository, path: str, name: str = "evals/deep/suite.yaml", **options) -> str:
    brief = repository.load(name, attaching(path), **options).cases[0].brief
    assert brief is not None
    return brief.question.split("\n", 1)[1].removesuffix("\n</file>")


@pytest.mark.contract("agentv.files.attachments")
@pytest.mark.parametrize("written", ["a.txt", "./a.txt", "/a.txt", "//a.txt", "x/../a.txt"])
@pytest.mark.parametrize("folder", ["evals/deep", "evals", "."])
def test_attachment__any_spelling__is_found_upward_to_the_root(repository, written, folder) -> None:
    repository.write(f"{folder}/a.txt", f"from {folder}")
    assert text_of(repository, written) == f"from {folder}"


@pytest.mark.contract("agentv.files.attachments")
def test_attachment__several_of_a_name__the_nearest_is_taken(repository) -> None:
    for folder in ("evals/deep", "evals", "."):
        repository.write(f"{folder}/a.txt", f"from {folder}")
    repository.write("other/a.txt", "from other")
    assert text_of(repository, "a.txt") == "from evals/deep"
    assert text_of(repository, "../a.txt") == "from evals"
    assert text_of(repository, "/other/a.txt") == "from other"


@pytest.mark.contract("agentv.files.attachments")
def test_attachment__working_directory__comes_last(repository) -> None:
    repository.write("work/a.txt", "from work")
    assert text_of(repository, "a.txt", root=repository.root / "work") == "from work"
    repository.write("a.txt", "from the root")
    assert text_of(repository, "a.txt", root=repository.root / "work") == "from the root"


@pytest.mark.contract("agentv.files.attachments")
def test_attachment__absolute_path_inside__is_tried_as_it_is_and_shown_from_the_root(repository) -> None:
    path = repository.write("evals/a.txt", "here")
    brief = repository.load("evals/suite.yaml", attaching(str(path))).cases[0].brief
    assert brief is not None
    assert brief.question == '<file path="evals/a.txt">\nhere\n</file>'


def test_root__without_git__is_the_root_of_the_run(tmp_path) -> None:
    repository = Repository(tmp_path / "plain", git=False)
    (tmp_path / "a.txt").write_text("outside")
    problem = repository.problems(attaching("../../a.txt"))[0]
    assert problem.endswith('"../../a.txt": is outside of the repository: only files inside are read')
    assert "the repository has no such file" in repository.problems(attaching("a.txt"))[0]


def test_root__eval_file_outside_the_run_and_no_git__is_its_own_folder(tmp_path) -> None:
    repository = Repository(tmp_path / "plain", git=False)
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("outside")
    repository.write("a.txt", "above")
    repository.write("evals/deep/b.txt", "beside")
    assert text_of(repository, "b.txt", root=tmp_path / "work") == "beside"
    for path in ("a.txt", "../a.txt", str(tmp_path / "work/a.txt")):
        with pytest.raises(Exception, match="1 problem"):
            text_of(repository, path, root=tmp_path / "work")


@pytest.mark.contract("agentv.files.attachments")
@pytest.mark.parametrize("written", ["../../secret.txt", "../../../../../../../../etc/passwd", "x/../../../secret.txt"])
def test_attachment__path_out_of_the_repository__is_refused(repository, tmp_path, written) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    assert repository.problems(attaching(written)) == [
        (
            f'7: evalcases[0].input[0].content[0].value: "{written}": '
            "is outside of the repository: only files inside are read"
        )
    ]


@pytest.mark.contract("agentv.files.attachments")
def test_attachment__absolute_path_outside__is_as_if_it_were_not_there(repository, tmp_path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    assert "the repository has no such file" in repository.problems(attaching(str(tmp_path / "secret.txt")))[0]


@pytest.mark.contract("agentv.files.attachments")
def test_attachment__link_out_of_the_repository__is_refused(repository, tmp_path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key.txt").write_text("secret")
    (repository.root / "evals").mkdir()
    (repository.root / "evals/file.txt").symlink_to(tmp_path / "secret/key.txt")
    (repository.root / "evals/folder").symlink_to(tmp_path / "secret")
    (repository.root / "key.txt").write_text("harmless, and not looked for")
    for written in ("file.txt", "folder/key.txt"):
        [problem] = repository.problems(attaching(written))
        assert problem.endswith(
            f'"{written}": is a link to a file outside of the repository: only files inside are read'
        )


def test_attachment__link_within_the_repository__is_followed(repository) -> None:
    repository.write("docs/a.txt", "linked")
    (repository.root / "evals/deep").mkdir(parents=True)
    (repository.root / "evals/deep/a.txt").symlink_to(repository.root / "docs/a.txt")
    assert text_of(repository, "a.txt") == "linked"


def test_attachment__repository_reached_through_a_link__is_one_place(repository, tmp_path) -> None:
    repository.write("evals/deep/a.txt", "x")
    (tmp_path / "link").symlink_to(repository.root)
    through = Repository(tmp_path / "link", git=False)
    assert text_of(through, "a.txt") == "x"


def test_attachment__git_folder__is_never_read(repository) -> None:
    (repository.root / ".git/config").write_text("token")
    (repository.root / "evals").mkdir()
    (repository.root / "evals/link.txt").symlink_to(repository.root / ".git/config")
    for written in ("/.git/config", "link.txt"):
        assert "is a file of Git: such files are not read" in repository.problems(attaching(written))[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"a\0b", "is not text: it contains zero bytes"),
        (b"x" * (agentv_files.MAX_FILE_BYTES + 1), "is larger than 1,000,000 bytes"),
    ],
    ids=["encoding", "binary", "size"],
)
def test_attachment__what_is_no_text__is_refused(repository, content, said) -> None:
    repository.write("evals/a.bin", content)
    assert repository.problems(attaching("a.bin")) == [f'7: evalcases[0].input[0].content[0].value: "a.bin": {said}']


@pytest.mark.parametrize("written", ["", " ", "a\tb", "x" * 1001, "."])
def test_attachment__what_is_no_path__is_refused(repository, written) -> None:
    [problem] = repository.problems(attaching(written))
    assert "is not the path of a file" in problem or "the repository has no such file" in problem


def test_attachment__name_that_no_file_can_have__is_refused(repository) -> None:
    text = '{"evalcases": [{"id": "a", "outcome": "x", "input": [{"role": "user", "content": [%s]}]}]}'
    for written in ("\\ud800", "a\\u0000b", "x" * 300):
        repository.problems(text % f'{{"type": "file", "value": "{written}"}}', "evals/a.json")


def test_attachment__folder__is_no_file(repository) -> None:
    repository.write("evals/sub/a.txt")
    assert "the repository has no such file" in repository.problems(attaching("sub"))[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_attachment__unreadable__is_refused(repository) -> None:
    repository.write("evals/a.txt").chmod(0)
    assert "cannot be read: Permission denied" in repository.problems(attaching("a.txt"))[0]


@pytest.mark.contract("agentv.files.line-ends")
def test_attachment__windows_line_ends_and_mark__become_plain(repository) -> None:
    repository.write("evals/deep/a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert text_of(repository, "a.txt") == "one\ntwo"


def test_attachments__more_than_a_case_may_say__are_refused_once(repository) -> None:
    names = [f"{number}.txt" for number in range(7)]
    for name in names:
        repository.write(f"evals/{name}", b"x" * 900_000)
    assert repository.problems(attaching(*names)) == [
        "11: evalcases[0].input[0].content[4]: a case may have 4,000,000 characters, including attached files"
    ]


@pytest.mark.slow
def test_attachments__more_than_a_file_may_say__are_refused_once(repository) -> None:
    repository.write("evals/a.txt", b"x" * 1_000_000)
    count = agentv_turns.MAX_SUITE_CHARACTERS // 1_000_000
    case = "id: c{}\noutcome: x\ninput: [{{role: user, content: [{{type: file, value: a.txt}}]}}]"
    cases = [case.format(number) for number in range(count + 2)]
    said = "all cases of a file together may have 64,000,000 characters, including attached files"
    assert repository.problems(suite(*cases)) == [
        f"{count * 3 + 4}: evalcases[{count}].input[0].content[0]: {said}",
    ]


def test_attachment__the_same_in_many_cases__is_read_once(repository) -> None:
    repository.write("evals/a.txt", "x")
    case = "id: c{}\noutcome: x\ninput: [{{role: user, content: [{{type: file, value: a.txt}}]}}]"
    loaded = repository.load("evals/many.yaml", suite(*(case.format(number) for number in range(300))))
    briefs = [one.brief for one in loaded.cases if one.brief]
    assert len({id(brief.input_messages[0]["content"][0]["text"]) for brief in briefs}) == 1
