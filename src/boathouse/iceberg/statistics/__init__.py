"""What is counted of a version: statistics files, partition statistics files, and sketches of distinct values."""
