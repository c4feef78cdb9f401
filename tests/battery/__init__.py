"""What analysts ask: questions over several schemas, each compared with DuckDB's own answer, or not answered yet."""
