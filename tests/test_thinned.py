"""What `make check` leaves out of tables of cases."""

from __future__ import annotations

import pytest


@pytest.mark.sparse(4)
@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("row", range(4))
def test_along_each_table_one_in_so_many_is_quick(request: pytest.FixtureRequest, row: int, column: int) -> None:
    """Shows it of two tables together: whatever their order, a row that is slow with all of the other is not left."""
    assert (request.node.get_closest_marker("slow") is None) == ((row + column) % 4 == 0)
