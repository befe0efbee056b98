"""What an editor asks about a text that is being written: it is wrong most of the time, and gets useful answers."""
