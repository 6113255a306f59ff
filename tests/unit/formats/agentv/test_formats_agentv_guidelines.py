"""Which attached files are guidelines: patterns, where they stand, and how they match."""

import time

import pytest

from eval_gate.formats.agentv.guidelines import DEFAULT_PATTERNS, MAX_FOLDER_DEPTH, matches_glob
from tests.support.agentv import Repository, suite


@pytest.fixture
def repository(tmp_path) -> Repository:
    made = Repository(tmp_path / "repository")
    for name in ("evals/deep/rules.md", "evals/deep/data.md", "evals/deep/tone.instructions.md"):
        made.write(name, f"text of {name}")
    return made


CASE = suite(
    """\
    id: one
    outcome: x
    input:
      - role: user
        content:
          - {type: text, value: Go.}
          - {type: file, value: rules.md}
          - {type: file, value: data.md}
          - {type: file, value: tone.instructions.md}
    """
)


def guidelines(repository: Repository, name: str = "evals/deep/suite.yaml") -> list[str]:
    """The guideline files; what is none has to be in the question."""
    brief = repository.load(name, CASE).cases[0].brief
    assert brief is not None
    for path in brief.input_files:
        assert f"text of {path.removeprefix(str(repository.root) + '/')}" in brief.question
    found = [path.removeprefix(f"{repository.root}/") for path in brief.guideline_files]
    for one in found:
        assert f"text of {one}" in brief.guidelines
        assert f"text of {one}" not in brief.question
    assert len(found) + len(brief.input_files) == 3
    return found


@pytest.mark.contract("agentv.guideline-pattern-configuration.load-custom-guideline-patterns")
def test_guidelines__load_custom_guideline_patterns__matching_files_leave_the_user_segments(repository) -> None:
    repository.write("evals/deep/.agentv.yaml", "guideline_patterns: ['**/rules.md']\n")
    assert guidelines(repository) == ["evals/deep/rules.md"]


@pytest.mark.contract("agentv.guideline-pattern-configuration.use-defaults-when-config-absent")
def test_guidelines__use_defaults_when_config_absent__instructions_are_found(repository) -> None:
    assert guidelines(repository) == ["evals/deep/tone.instructions.md"]
    assert DEFAULT_PATTERNS == ("**/*.instructions.md", "**/instructions/**", "**/*.prompt.md", "**/prompts/**")


@pytest.mark.contract("agentv.guideline-pattern-configuration.match-files-with-glob-patterns", "agentv.guidelines.path")
@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**/*.instructions.md", "a.instructions.md", True),
        ("**/*.instructions.md", "x/y/a.instructions.md", True),
        ("**/instructions/**", "instructions/a.txt", True),
        ("**/instructions/**", "x/instructions/y/z.txt", True),
        ("**/instructions/**", "x/my-instructions/z.txt", False),
        ("**/prompts/**", "x/prompts.md", False),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/deep/a.md", False),
        ("docs/*.md", "x/docs/a.md", False),
        ("*.md", "x/a.md", False),
        ("docs/**/*.md", "docs/a.md", True),
        ("docs/**/*.md", "docs/x/y/a.md", True),
        ("**/*.md", ".hidden.md", False),
        ("**/*.md", ".github/a.md", False),
        ("**/.github/*.md", ".github/a.md", True),
        ("**/.*.md", "x/.hidden.md", True),
        ("**/*.{md,txt}", "x/a.txt", True),
        ("**/*.{md,txt}", "x/a.csv", False),
        ("**/a?.md", "x/ab.md", True),
        ("**/a?.md", "x/a/.md", False),
        ("**/[ab].md", "x/b.md", True),
        ("**/A.md", "x/a.md", False),
        ("evals\\deep\\a.md", "evals/deep/a.md", False),
    ],
)
def test_glob_match__match_files_with_glob_patterns__as_micromatch_does(pattern, path, matches) -> None:
    assert matches_glob(path, [pattern]) is matches


def test_glob_match__no_patterns_or_a_path_without_end__is_no_match() -> None:
    assert not matches_glob("a.md", [])
    assert not matches_glob("x/" * (MAX_FOLDER_DEPTH + 1) + "a.md", ["**"])


def test_glob_match__worst_allowed_pattern__takes_no_time() -> None:
    begun = time.monotonic()
    assert not matches_glob(
        "/".join("a" * MAX_FOLDER_DEPTH), ["**/a/**/a/**/a/b", "*a" * 60 + "b", "**/{a,a,a,a,a,a,a,a}/b"]
    )
    assert time.monotonic() - begun < 5


@pytest.mark.contract("agentv.guidelines.path")
def test_guidelines__pattern_with_folders__is_matched_from_the_root_of_the_repository(repository) -> None:
    repository.write("evals/deep/.agentv.yaml", "guideline_patterns: [evals/deep/rules.md, deep/data.md]\n")
    assert guidelines(repository) == ["evals/deep/rules.md"]


@pytest.mark.contract("agentv.guidelines.lookup")
def test_guidelines__several_configurations__the_nearest_agentv_yaml_counts(repository) -> None:
    repository.write(".agentv/config.yaml", "guideline_patterns: ['**/data.md']\n")
    assert guidelines(repository) == ["evals/deep/data.md"]
    repository.write("evals/.agentv/config.yaml", "$schema: agentv-config-v2\nguideline_patterns: ['**/rules.md']\n")
    assert guidelines(repository) == ["evals/deep/rules.md"]
    repository.write(".agentv.yaml", "guideline_patterns: ['**/tone*']\n")
    assert guidelines(repository) == ["evals/deep/tone.instructions.md"]
    repository.write("evals/.agentv.yaml", "guideline_patterns: ['**/*.md']\n")
    assert len(guidelines(repository)) == 3
    repository.write("evals/deep/.agentv.yaml", "guideline_patterns: []\n")
    assert guidelines(repository) == []


@pytest.mark.contract("agentv.guidelines.lookup")
def test_guidelines__configuration_that_says_nothing_of_them__is_passed_over(repository) -> None:
    repository.write("evals/deep/.agentv.yaml", "other: true\n")
    repository.write("evals/.agentv.yaml", "")
    repository.write(".agentv.yaml", "guideline_patterns: ['**/rules.md']\n")
    assert guidelines(repository) == ["evals/deep/rules.md"]


@pytest.mark.contract("agentv.guidelines.lookup")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("guideline_patterns:\n", "guideline_patterns: expected a list of patterns, got null; [] means no guidelines"),
        ("guideline_patterns: '**'\n", 'guideline_patterns: expected a list of patterns, got text "**"; [] means'),
        ("guideline_patterns: [5]\n", "guideline_patterns[0]: expected text, got the number 5"),
        ("guideline_patterns: ['']\n", "guideline_patterns[0]: must not be empty"),
        (f"guideline_patterns: [{'x' * 201}]\n", "guideline_patterns[0]: is longer than 200 characters"),
        ("guideline_patterns: ['**/a/**/b/**/c/**']\n", "guideline_patterns[0]: has `**` more than 3 times"),
        ("guideline_patterns: ['{1..99}']\n", "guideline_patterns[0]: has braces with ranges"),
        (f"guideline_patterns: ['{'{a,b}' * 8}']\n", "guideline_patterns[0]: has braces with ranges or with more than"),
        (f"guideline_patterns: [{', '.join('a' * 101)}]\n", "guideline_patterns: more than 100 patterns"),
        ("guideline_patterns: [", "did not find expected node content"),
    ],
    ids=str,
)
def test_guidelines__anything_but_a_list_of_patterns__is_a_problem_of_that_file(repository, text, said) -> None:
    repository.write("evals/deep/.agentv.yaml", text)
    problems = repository.problems(CASE, "evals/deep/suite.yaml")
    assert len(problems) == 1
    assert problems[0].startswith("evals/deep/.agentv.yaml:")
    assert said in problems[0]


def test_guidelines__configuration_that_is_a_link_out_of_the_repository__is_refused(repository, tmp_path) -> None:
    (tmp_path / "far.yaml").write_text("guideline_patterns: []\n")
    (repository.root / "evals/deep/.agentv.yaml").symlink_to(tmp_path / "far.yaml")
    [problem] = repository.problems(CASE, "evals/deep/suite.yaml")
    assert (
        problem == "evals/deep/.agentv.yaml: is a link to a file outside of the repository: only files inside are read"
    )
