"""Protocol features: each one's actions, checks and rules (PROTOCOL.md, "Table Features")."""
