"""The routes of version 1, one module per resource."""
