"""What owners learn when objects are listed again."""
