"""Keys over columns whose values may lie outside their declared keys: such values are gathered in `other`.

    GROUP BY age          with keys 0 to 110 and other -1
    key                   CASE WHEN age IS NULL OR age BETWEEN 0 AND 110 THEN age ELSE -1 END

Only the reads that a key is made of are gathered, and only where the key's values could not be known otherwise: of
`age > 50` both truth values are public whatever the column holds. WHERE and aggregates see the stored value.
"""

from __future__ import annotations

from sql_rewrite.evaluate import map_domain
from sql_rewrite.expressions import Call, ColumnRef, Expression, columns_of
from sql_rewrite.functions import build
from sql_rewrite.functions.gathering import gather_arguments

__all__ = ["gathered"]


def gathered(key: Expression, limit: int) -> Expression:
    """The key with its open columns gathered; the key itself where there is nothing to gather.

    Errors: TypeRefused (too_large).
    Ensures: where the result has a domain, every stored row has a value in it.
    """
    if not any(column.other is not None for column in columns_of(key)) or map_domain(key, limit) is not None:
        return key
    return _replaced(key)


def _replaced(node: Expression) -> Expression:
    if isinstance(node, ColumnRef):
        if node.other is None or node.domain is None:
            return node
        keys = tuple(value for value in node.domain if value is not None and value != node.other.value)
        operator, arguments = gather_arguments(node, node.other.value, keys)
        return build(operator, arguments)
    if isinstance(node, Call):
        return build(node.operator, tuple(_replaced(argument) for argument in node.arguments))
    return node
