"""Compressed bytes, unpacked piece by piece."""

import zlib

import pytest

from eval_gate.text.untrusted.http_response import PIECE_BYTES, DecompressionError, Decompressor


def bare(data: bytes) -> bytes:
    """Deflate without zlib's head and sum."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def unpacked(kind: str, *chunks: bytes) -> bytes:
    unpacker = Decompressor([kind])
    return b"".join(piece for chunk in chunks for piece in unpacker.iter_pieces(chunk))


@pytest.mark.parametrize("pack", [zlib.compress, bare])
@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_unpacker__deflate__is_read_with_zlibs_head_and_without(pack, size) -> None:
    data = bytes(at % 251 for at in range(size))
    packed = pack(data)
    assert unpacked("deflate", packed) == data
    assert unpacked("deflate", packed[:4], packed[4:]) == data


def test_unpacker__damaged_in_the_middle__is_refused_and_not_begun_anew() -> None:
    """What follows would be a stream of its own, and its text the answer."""
    with pytest.raises(DecompressionError, match="does not match its content encoding"):
        unpacked("deflate", zlib.compress(b"an answer")[:-4], bare(b" and another"))
