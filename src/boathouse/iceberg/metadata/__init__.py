"""Table metadata: the document, the updates that a commit makes of it, and the three versions of the format."""
