"""Tests of the engines: workers, private statements, the shell, snapshots."""
