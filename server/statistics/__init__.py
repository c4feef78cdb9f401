"""Statistics that an owner registered, asked by name and tested before anything is released."""
