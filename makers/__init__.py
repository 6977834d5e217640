"""What tests make their data with, and stand-ins of the servers that they talk to."""
