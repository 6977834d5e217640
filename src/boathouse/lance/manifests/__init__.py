"""Manifests: their messages, versions and feature flags, and what each must contain (table format, "Manifest")."""
