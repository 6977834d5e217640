"""What changed in a table: between two versions, and as a stream."""
