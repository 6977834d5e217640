"""Stable row ids: what each row of a fragment is called, and the versions in which it came and was last changed."""
