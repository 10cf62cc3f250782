"""Floor 2: canonical bytes, digests, limits and the closed table of kinds."""
