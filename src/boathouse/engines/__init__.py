"""The two engines, and the sink that both write through."""
