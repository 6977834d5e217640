"""Operations on columns and constraints, and the schema changes of other operations."""
