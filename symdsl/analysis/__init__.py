"""Tree to facts, one pass a file."""
