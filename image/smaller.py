"""Cuts off what compiled modules carry behind what is loaded of them: symbols and section names, for debuggers.

A loader goes by a file's segments (ELF, "Program Header"); its sections are for linkers and debuggers. Many wheels are
made with them: a quarter of what the image's dependencies weigh. The image has no tool for it, and needs none.

    python smaller.py FOLDER
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

MAGIC = b"\x7fELF\x02\x01"
"""ELF, of 64 bits, with the least significant byte first: all that Docker's platforms of ours have."""


def cut(file: Path) -> int:
    """How many bytes the file lost; 0 for what is no such file, or ends with what is loaded."""
    data = file.read_bytes()
    if not data.startswith(MAGIC):
        return 0
    table, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    ends = [table + size * count]
    for place in range(table, table + size * count, size):
        offset, length = struct.unpack_from("<Q", data, place + 8)[0], struct.unpack_from("<Q", data, place + 32)[0]
        ends.append(offset + length)
    end = max(ends)
    if end >= len(data):
        return 0
    kept = bytearray(data[:end])
    struct.pack_into("<Q", kept, 40, 0)  # where the table of sections is: nowhere
    struct.pack_into("<HHH", kept, 58, 0, 0, 0)  # the size of its entries, how many, and which of them has their names
    file.write_bytes(kept)
    return len(data) - end


def main(folder: Path) -> None:
    """Cut every compiled module below the folder."""
    files = [file for file in folder.rglob("*.so*") if file.is_file() and not file.is_symlink()]
    lost = sum(cut(file) for file in files)
    print(f"{len(files)} compiled modules, {lost / 1e6:.1f} MB cut off")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
