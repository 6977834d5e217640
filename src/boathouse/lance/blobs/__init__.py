"""Blob columns: where their values are, and their bytes read and written again."""
