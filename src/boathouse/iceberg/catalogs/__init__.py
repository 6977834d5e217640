"""Clients of catalogs, which own the pointer to the newest metadata document of a table."""
