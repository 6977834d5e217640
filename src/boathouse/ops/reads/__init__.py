"""Reads that a scan is not: rows by number or id, nearest neighbours, blobs."""
