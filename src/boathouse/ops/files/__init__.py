"""Operations that change files and no row: compaction, z-order, vacuum."""
