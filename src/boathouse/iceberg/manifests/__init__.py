"""Manifest lists and manifests: read by columns, pruned, written, merged (spec, "Manifests")."""
