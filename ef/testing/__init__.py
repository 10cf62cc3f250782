"""Builders, validators and controls for tests of a store: no floor imports it, and it judges from the outside.

`pairing` reads rendered messages only; `damage` deletes what a store holds; `copies` lets a second store receive the
same history event by event; `killing` runs writers and kills them; `mutations` breaks transcript lines.
"""
