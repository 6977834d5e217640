"""Row deletes of a plan: positions, deletion vectors, equality deletes, and the units that each applies to."""
