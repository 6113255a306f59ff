"""The last step of a release, run against a repository that answers like GitHub's API: it cannot be tried out there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
IMAGE = "ghcr.io/octo-org/octo-repo@sha256:" + "5" * 64
HTTP_IMAGE = "ghcr.io/octo-org/octo-repo@sha256:" + "7" * 64
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "git", "jq"))), reason="the step is a bash script that needs git and jq"
)


class Release:
    """A repository with tags, and the step that releases one of them."""

    def __init__(self, folder: Path, action: str = ACTION) -> None:
        self.folder = folder
        self.repository = folder / "repository"
        self.git("init", "--quiet", "--initial-branch=main", str(self.repository), at=folder)
        (self.repository / "action.yml").write_text(action, encoding="utf-8")
        (self.repository / "README.md").write_text("read me\n", encoding="utf-8")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "All of it")
        gh = folder / "gh"
        gh.write_text(f"#!{sys.executable}\n{_GH}", encoding="utf-8")
        gh.chmod(0o755)

    def git(self, *args: str, at: Path | None = None) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        command = ["git", *who, *args]
        done = subprocess.run(command, cwd=at or self.repository, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def step(self, tag: str, image: str = IMAGE, http: str = HTTP_IMAGE) -> subprocess.CompletedProcess[str]:
        """Run the step as the runner runs it for a tag on the newest commit."""
        self.git("tag", "--force", tag)
        at = self.folder / "step"
        at.mkdir(exist_ok=True)
        (self.folder / "summary").write_text("", encoding="utf-8")
        env = {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "GH_REPOSITORY": str(self.repository),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "REPOSITORY": "octo-org/octo-repo",
            "TAG": tag,
            "SHA": self.git("rev-parse", "main"),
            "IMAGE": image,
            "HTTP_IMAGE": http,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", _step()["run"]]
        return subprocess.run(command, cwd=at, env=env, capture_output=True, text=True, check=False, timeout=60)

    def ref(self, name: str) -> str | None:
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "--quiet", f"refs/tags/{name}^{{commit}}"],
            cwd=self.repository, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.strip() or None

    def pages(self) -> list[dict[str, Any]]:
        """The releases that people see, the oldest first."""
        kept = self.repository / ".git" / "releases.json"
        return json.loads(kept.read_text()) if kept.is_file() else []


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


def test_release__is_one_commit_on_top_of_the_tag_with_one_other_line(release) -> None:
    done = release.step("v1.2.3")
    assert done.returncode == 0, done.stdout + done.stderr
    released = release.ref("v1")
    assert released == release.ref("released/v1.2.3")
    assert release.git("rev-parse", f"{released}^@") == release.git("rev-parse", "main")
    assert release.git("diff", "--name-only", "main", "v1") == "action.yml"
    expected = ACTION.replace("image: Dockerfile", f"image: docker://{IMAGE}")
    assert release.git("show", "v1:action.yml") + "\n" == expected
    smaller = release.ref("v1-http")
    assert smaller == release.ref("released/v1.2.3-http") != released
    assert release.git("diff", "--name-only", "main", "v1-http") == "action.yml"
    assert f"image: docker://{HTTP_IMAGE}\n" in release.git("show", "v1-http:action.yml") + "\n"
    (page,) = release.pages()
    assert (page["tag_name"], page["name"], page["make_latest"]) == ("v1.2.3", "v1.2.3", "legacy")
    assert f"octo-org/octo-repo@{released}" in page["body"]
    assert f"octo-org/octo-repo@{smaller}" in page["body"]
    assert IMAGE in page["body"]
    assert HTTP_IMAGE in page["body"]
    assert f"octo-org/octo-repo@{released}" in (release.folder / "summary").read_text(encoding="utf-8")


@pytest.mark.slow
def test_release__run_again_changes_nothing(release) -> None:
    release.step("v1.2.3")
    before, smaller = release.ref("v1"), release.ref("v1-http")
    done = release.step("v1.2.3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (release.ref("v1"), release.ref("released/v1.2.3")) == (before, before)
    assert (release.ref("v1-http"), release.ref("released/v1.2.3-http")) == (smaller, smaller)
    assert [page["tag_name"] for page in release.pages()] == ["v1.2.3"]


@pytest.mark.slow
def test_release__of_another_image_under_the_same_version_is_refused(release) -> None:
    release.step("v1.2.3")
    before = release.ref("v1")
    done = release.step("v1.2.3", IMAGE.replace("5" * 64, "6" * 64))
    assert done.returncode == 1
    assert "::error::v1.2.3 was released before, with another image" in done.stdout
    assert len(release.pages()) == 1
    assert release.ref("v1") == before
    smaller = release.ref("v1-http")
    done = release.step("v1.2.3", http=HTTP_IMAGE.replace("7" * 64, "6" * 64))
    assert done.returncode == 1
    assert "::error::v1.2.3 was released before, with another image" in done.stdout
    assert release.ref("v1-http") == smaller


@pytest.mark.slow
def test_release__that_cannot_have_both_images__moves_nothing_and_can_be_gone_on_with(release) -> None:
    release.git("tag", "released/v1.2.3-http", "main")
    done = release.step("v1.2.3")
    assert done.returncode == 1
    assert (
        "as long as v1-http does not lead to released/v1.2.3-http, delete that tag and re-run the failed" in done.stdout
    )
    assert (release.ref("v1"), release.ref("v1-http"), release.pages()) == (None, None, [])
    kept = release.ref("released/v1.2.3")
    release.git("tag", "--delete", "released/v1.2.3-http")
    done = release.step("v1.2.3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (release.ref("v1"), release.ref("v1-http")) == (kept, release.ref("released/v1.2.3-http"))
    assert len(release.pages()) == 1


@pytest.mark.slow
def test_major_tag__follows_the_newest_version_and_never_goes_back(release) -> None:
    release.step("v1.9.0")
    release.step("v1.10.0")
    newest, smaller = release.ref("v1"), release.ref("v1-http")
    assert newest == release.ref("released/v1.10.0")
    assert smaller == release.ref("released/v1.10.0-http")
    done = release.step("v1.9.1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "::notice::v1 stays where it is: v1.10.0 is newer than v1.9.1" in done.stdout
    assert (release.ref("v1"), release.ref("v1-http")) == (newest, smaller)
    assert [page["tag_name"] for page in release.pages()] == ["v1.9.0", "v1.10.0", "v1.9.1"]
    release.step("v2.0.0")
    assert (release.ref("v1"), release.ref("v2")) == (newest, release.ref("released/v2.0.0"))


@pytest.mark.parametrize(
    ("tag", "image", "http"),
    [
        ("v1.2.3-rc1", IMAGE, HTTP_IMAGE),
        ("v1", IMAGE, HTTP_IMAGE),
        ("v1.2.3", "ghcr.io/a/b:latest", HTTP_IMAGE),
        ("v1.2.3", "ghcr.io/a/$(id)@sha256:1", HTTP_IMAGE),
        ("v1.2.3", IMAGE, "ghcr.io/octo-org/octo-repo@"),
    ],
)
def test_anything_else__is_refused(release, tag, image, http) -> None:
    done = release.step(tag, image, http)
    assert done.returncode == 1
    assert done.stdout.startswith("::error::not a")
    assert release.ref(f"released/{tag}") is None


def test_release__of_one_image_as_both_is_refused(release) -> None:
    done = release.step("v1.2.3", http=IMAGE)
    assert done.returncode == 1
    assert f"::error::both images are {IMAGE}" in done.stdout
    assert release.ref("v1") is None


@pytest.mark.parametrize("line", ["  image: docker://elsewhere\n", "  image: Dockerfile\n  image: Dockerfile\n"])
def test_action_file__that_does_not_name_the_dockerfile_once_is_refused(tmp_path, line) -> None:
    release = Release(tmp_path, ACTION.replace("  image: Dockerfile\n", line))
    done = release.step("v1.2.3")
    assert done.returncode == 1
    assert "lines that say image: Dockerfile" in done.stdout
    assert release.ref("released/v1.2.3") is None


def _step() -> dict[str, Any]:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    (step,) = workflow["jobs"]["action"]["steps"]
    return step


# `gh api` as far as the step uses it, on a local repository.
_GH = r"""
import json, os, re, subprocess, sys

def git(*args, text=None):
    command = ["git", "-C", os.environ["GH_REPOSITORY"], *args]
    who = {f"GIT_{role}_{what}": "b@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who}
    done = subprocess.run(command, input=text, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit("gh: Not Found (HTTP 404)")
    return done.stdout.removesuffix("\n") if args[0] != "show" else done.stdout

assert sys.argv.pop(1) == "api"
method, query, silent, fields, path = None, None, False, {}, None
words = iter(sys.argv[1:])
for word in words:
    if word in ("-f", "-F"):
        key, value = next(words).split("=", 1)
        fields[key] = value
    elif word == "--input":
        assert next(words) == "-"
        fields = json.load(sys.stdin)
    elif word == "--method":
        method = next(words)
    elif word == "--jq":
        query = next(words)
    elif word == "--silent":
        silent = True
    elif word == "-H":
        assert next(words) == "Accept: application/vnd.github.raw+json"
    elif word != "--paginate":
        path = word.removeprefix("repos/octo-org/octo-repo/")
method = method or ("POST" if fields else "GET")

if found := re.fullmatch(r"contents/action\.yml\?ref=(\w+)", path):
    sys.stdout.write(git("show", found[1] + ":action.yml"))
    sys.exit()
if found := re.fullmatch(r"git/ref/tags/(.+)", path):
    answer = {"object": {"sha": git("rev-parse", "--verify", "refs/tags/" + found[1])}}
elif found := re.fullmatch(r"git/matching-refs/tags/(.+)", path):
    refs = git("for-each-ref", "--format=%(refname)", "refs/tags").split("\n")
    answer = [{"ref": ref} for ref in refs if ref.startswith("refs/tags/" + found[1])]
elif method == "GET" and (found := re.fullmatch(r"git/commits/(\w+)", path)):
    answer = {"tree": {"sha": git("rev-parse", found[1] + "^{tree}")}}
elif (method, path) == ("POST", "git/trees"):
    (entry,) = fields["tree"]
    old = git("ls-tree", fields["base_tree"]).split("\n")
    lines = [line for line in old if not line.endswith("\t" + entry["path"])]
    blob = git("hash-object", "-w", "--stdin", text=entry["content"])
    lines.append(f"{entry['mode']} {entry['type']} {blob}\t{entry['path']}")
    answer = {"sha": git("mktree", text="\n".join(lines) + "\n")}
elif (method, path) == ("POST", "git/commits"):
    (parent,) = fields["parents"]
    answer = {"sha": git("commit-tree", fields["tree"], "-p", parent, "-m", fields["message"])}
elif (method, path) == ("POST", "git/refs"):
    answer = {"ref": git("update-ref", fields["ref"], fields["sha"], "0" * 40)}
elif method == "PATCH" and (found := re.fullmatch(r"git/refs/(tags/.+)", path)):
    assert fields["force"] == "true"
    answer = {"ref": git("update-ref", "refs/" + found[1], fields["sha"])}
elif found := re.fullmatch(r"releases(/tags/(.+))?", path):
    kept = os.path.join(os.environ["GH_REPOSITORY"], ".git", "releases.json")
    releases = json.load(open(kept)) if os.path.exists(kept) else []
    same = [one for one in releases if one["tag_name"] == (found[2] or fields.get("tag_name"))]
    if method == "GET" and not same:
        sys.exit("gh: Not Found (HTTP 404)")
    if method == "POST":
        assert not same and fields["generate_release_notes"] == "true" and git("rev-parse", fields["tag_name"])
        json.dump([*releases, fields], open(kept, "w"))
    answer = {}
else:
    sys.exit(f"no such call: {method} {path}")

if query:
    subprocess.run(["jq", "-r", query], input=json.dumps(answer), text=True, check=True)
elif not silent:
    print(json.dumps(answer))
"""
