"""Files that each kind of program reads by itself, from the folder it runs in and from the folders above."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Final, NamedTuple

_VERSION: Final = "0123456789."
"""Characters of a version at the end of the name of a program, such as `python3.12`."""


_MANAGERS: Final = ".tool-versions mise.toml .mise.toml"
"""What managers of versions read to choose a program, and to set variables for it."""


class ProgramKind(NamedTuple):
    """One kind of program: the names it has in a command, suffixes of its files, and globs of what it reads."""

    name: str
    programs: frozenset[str]
    suffixes: frozenset[str]
    files: tuple[str, ...]


def _define(name: str, programs: str, suffixes: str, files: str) -> ProgramKind:
    return ProgramKind(name, frozenset(programs.split()), frozenset(suffixes.split()), tuple(files.split()))


KINDS: Final = (
    _define(
        "Python",
        "python pypy",
        ".py .pyc .pyz",
        f"__init__.py .env .python-version pyvenv.cfg {_MANAGERS}",
    ),
    _define(
        "pytest",
        "pytest py.test tox nox",
        "",
        "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml pyproject.toml setup.cfg tox.ini noxfile.py"
        " .coveragerc",
    ),
    _define(
        "Python projects",
        "uv uvx poetry pdm hatch pipenv rye pip",
        "",
        "pyproject.toml uv.toml uv.lock poetry.toml poetry.lock pdm.lock pdm.toml hatch.toml Pipfile Pipfile.lock"
        " setup.py setup.cfg requirements*.txt .python-version .env",
    ),
    _define(
        "Node",
        "node npm npx pnpm pnpx yarn corepack tsx ts-node deno bun bunx jest vitest mocha",
        ".js .cjs .mjs .jsx .ts .cts .mts .tsx",
        "package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml yarn.lock bun.lock"
        " bun.lockb bunfig.toml deno.json deno.jsonc deno.lock .npmrc .yarnrc.yml .pnp.* tsconfig*.json jsconfig.json"
        " jest.config.* vitest.config.* vite.config.* .mocharc.* babel.config.* .babelrc* .swcrc .env .env.*"
        f" .nvmrc .node-version {_MANAGERS}",
    ),
    _define("make", "make gmake", ".mk", "GNUmakefile Makefile makefile .env"),
    _define("just and task", "just task", "", "justfile Justfile .justfile Taskfile.* .env"),
    _define(
        "Docker",
        "docker docker-compose podman podman-compose",
        "",
        "Dockerfile Containerfile .dockerignore compose*.yaml compose*.yml docker-compose*.yaml"
        " docker-compose*.yml .env",
    ),
    _define("Go", "go", ".go", "go.mod go.sum go.work go.work.sum"),
    _define("Rust", "cargo rustc", ".rs", "Cargo.toml Cargo.lock build.rs rust-toolchain rust-toolchain.toml"),
    _define("Ruby", "ruby bundle rake rspec", ".rb", f"Gemfile Gemfile.lock Rakefile .rspec .ruby-version {_MANAGERS}"),
    _define("PHP", "php composer phpunit", ".php", "composer.json composer.lock phpunit.xml* php.ini .user.ini"),
    _define(
        "Java and Kotlin",
        "java mvn mvnw gradle gradlew kotlin",
        ".java .jar .kt .kts",
        "pom.xml build.gradle* settings.gradle* gradle.properties",
    ),
    _define(
        ".NET",
        "dotnet",
        ".cs .csx .fsx",
        "*.csproj *.sln Directory.Build.* Directory.Packages.props global.json NuGet.config",
    ),
    _define("Perl", "perl prove", ".pl .t", "cpanfile .proverc .perltidyrc"),
    _define("R", "R Rscript", ".r .R", ".Rprofile .Renviron renv.lock"),
    _define("shells", "sh bash zsh dash ksh", ".sh .bash .zsh", ".envrc"),
)
"""A compiled file and any other program reads nothing by itself that is known here."""


def list_read_files(words: Iterable[str]) -> tuple[str, ...]:
    """List globs of the files that the programs among these words of a command read by themselves."""
    names, suffixes = set[str](), set[str]()
    for word in words:
        place = PurePath(word)
        names |= {place.name, place.name.rstrip(_VERSION)}
        suffixes.add(place.suffix)
    patterns = (kind.files for kind in KINDS if kind.programs & names or kind.suffixes & suffixes)
    return tuple(dict.fromkeys(file for files in patterns for file in files))
