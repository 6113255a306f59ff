"""What is cut off compiled modules is what nothing loads. This needs no image: such wheels are installed here too."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "image" / "smaller.py"
MODULES = ("pydantic_core", "yaml", "regress", "msgspec", "aiohttp", "tree_sitter", "zstandard", "markupsafe")


@pytest.mark.skipif(sys.platform != "linux", reason="the image is for Linux")
def test_smaller__compiled_modules__are_smaller_and_are_loaded_as_before(tmp_path) -> None:
    for name in MODULES:
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        shutil.copytree(Path(found.origin).parent, tmp_path / name)
    before = {file: file.stat().st_size for file in tmp_path.rglob("*.so")}
    subprocess.run([sys.executable, SCRIPT, tmp_path], check=True)
    assert all(file.stat().st_size <= size for file, size in before.items())
    assert sum(file.stat().st_size for file in before) < 0.8 * sum(before.values())
    lines = [f"import {name}; assert {name}.__file__.startswith({str(tmp_path)!r})" for name in MODULES]
    lines += [
        "assert yaml.load('a: [1]', yaml.CSafeLoader) == {'a': [1]}",
        "assert zstandard.decompress(zstandard.compress(b'x' * 99)) == b'x' * 99",
        "assert regress.Regex('a+').find('caat') is not None",
        "assert msgspec.json.decode(b'[1]') == [1]",
    ]
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + "\n".join(lines)
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"GROUP ( libc.so.6 )", b"\x7fELF\x01\x01" + bytes(100)])
def test_smaller__anything_else_of_that_name__stays_as_it_is(tmp_path, data) -> None:
    file = tmp_path / "odd.so"
    file.write_bytes(data)
    subprocess.run([sys.executable, SCRIPT, tmp_path], check=True)
    assert file.read_bytes() == data
