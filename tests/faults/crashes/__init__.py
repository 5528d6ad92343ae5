"""Operations that are killed before and after each of their writes, and under each fault."""
