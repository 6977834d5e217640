"""The next manifest: the head's with one change's edits applied, and the transaction that says so."""
