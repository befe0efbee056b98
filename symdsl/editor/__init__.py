"""Answers to what an editor asks about a text while it is being written, and so is wrong most of the time."""
