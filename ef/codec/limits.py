"""Limits of the record format. All are checked before a byte is written: what we can write we can read."""

DEPTH_MAX = 64
"""Nesting of values that we encode ourselves (the array or map itself counts as 1)."""

INT_MIN, INT_MAX = -(2**63), 2**64 - 1
"""Integers outside are refused: they would need a CBOR tag."""

HEADER_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 256 * 1024 * 1024
KEY_BYTES_MAX = 256
NAME_BYTES_MAX = 256
"""Stream names, group ids, call ids, reader names."""

SOURCE_CHUNK_BYTES = 64 * 1024
SOURCE_PIECE_BYTES_MAX = 1024 * 1024
"""SourceLines: whole lines up to about the first; a longer line in pieces of at most the second."""
