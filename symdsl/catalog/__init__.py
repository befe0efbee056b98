"""What the language can name, as data: argument types, data sources and transforms, activations."""
