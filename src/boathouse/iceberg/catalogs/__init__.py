"""Catalogs, which own the pointer to the newest metadata document, and the views beside their tables."""
