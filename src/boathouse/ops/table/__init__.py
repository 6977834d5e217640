"""Operations on whole tables: create, convert, clone, replace, restore, properties."""
