"""Operations that change rows: append, overwrite, delete, update, merge."""
