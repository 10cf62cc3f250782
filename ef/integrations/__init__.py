"""Floor 7: ef as a part of other libraries."""
