"""One Alembic chain for SQLite and PostgreSQL."""
