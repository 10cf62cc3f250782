"""Floor 4: provider formats and text for people. Pure."""
