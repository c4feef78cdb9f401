"""The revisions, oldest first: one module each, `revision_NNNN_what.py`."""
