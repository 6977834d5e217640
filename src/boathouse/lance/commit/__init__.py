"""From a Change to the next manifest, and what concurrent commits mean for it."""
