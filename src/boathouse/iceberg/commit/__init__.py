"""From a Change to a new version: the updates and files of a commit, and what concurrent commits mean for it."""
