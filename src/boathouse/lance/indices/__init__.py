"""Scalar indices: what B-trees, bitmaps, zone maps and bloom filters say about where rows are."""
