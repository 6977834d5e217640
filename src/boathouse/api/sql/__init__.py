"""SQL statements on tables: one module for those of a kind; `statements` finds whose a statement is."""
