"""The two engines."""
