"""Local differential privacy: encoders that randomise one value at its owner's, and what many reports say together."""
