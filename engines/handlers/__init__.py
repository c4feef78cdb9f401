"""What the worker processes do. Nothing in here is imported by the server: only workers load the engine."""
