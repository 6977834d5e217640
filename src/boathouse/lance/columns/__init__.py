"""Columns whose values are elsewhere than in the field of one data file, or are stored as another type."""
