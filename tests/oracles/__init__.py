"""Independent oracles: they share no code with the package, only its records and its parameters."""
