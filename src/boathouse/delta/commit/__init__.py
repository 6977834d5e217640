"""From a Change to an entry of the log, and what concurrent commits mean for it."""
