"""The shipped test kit: conformance suites, and storages that fail on purpose. Needs pytest."""
