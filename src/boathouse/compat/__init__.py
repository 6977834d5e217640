"""Interfaces of other libraries over this one, so that a job moves by changing an import."""
