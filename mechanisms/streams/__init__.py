"""Streams of range queries: a synopsis answers them, and a sparse vector session says where it is not good enough."""
