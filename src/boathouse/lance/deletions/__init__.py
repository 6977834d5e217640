"""Deleted rows: the files that list them, and the Arrow files that some of these are."""
