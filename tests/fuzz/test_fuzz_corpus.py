"""The small form of the fuzzer: every kept input, and changes of it, through every surface. Long form: `run.py`."""

import random
from pathlib import Path

import pytest

from tests.fuzz import surfaces
from tests.support.bounds import within_cpu

CORPUS = Path(__file__).with_name("corpus")
CHANGES = 25
ODD = (
    b"\x00",
    b"\xff",
    b"\\ud800",
    b"\xed\xa0\x80",
    b"1e999",
    b"-",
    b"[[",
    b'"',
    b"\n",
    b"{{",
    b"null",
    b"\xe2\x80\xae",
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    surfaces.in_folder(tmp_path)


def changed(data: bytes, chance: random.Random) -> bytes:
    """The input with a few bytes left out, doubled, or replaced by something odd."""
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randrange(len(data) + 1), chance.choice((1, 1, 4, 40))
        put = chance.choice((b"", data[at : at + length] * 2, chance.choice(ODD)))
        data = data[:at] + put + data[at + length :]
    return data


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", surfaces.SURFACES)
def test_surface__of_what_was_kept_and_its_changes__says_a_sentence(name) -> None:
    kept = sorted((CORPUS / name).iterdir())
    assert kept
    for file in kept:
        data = file.read_bytes()
        chance = random.Random(f"{name} {file.name}")
        with within_cpu(30, f"{name} {file.name}"):
            surfaces.SURFACES[name](data)
            for _ in range(CHANGES):
                surfaces.SURFACES[name](changed(data, chance))


def test_corpus__has_a_folder_for_every_surface_and_no_other() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == set(surfaces.SURFACES)
