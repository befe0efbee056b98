"""Text to tree to text."""
