"""Lance data files: the container, the page encodings of 2.0 to 2.2, reading and writing."""
