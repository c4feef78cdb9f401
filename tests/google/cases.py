"""The cases: texts in GoogleSQL's spelling, and what each has to mean.

The behaviours are those that its documentation describes: spellings of the aggregates, clamping, groups per unit,
public groups, epsilon, delta and their limits, NULL, what options cut, and what is an error. Texts and data are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["DECIDED", "ERRORS", "MEANT", "spellings"]

_HEAD = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-7, max_groups_contributed = 4) "

_AGGREGATES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("COUNT(*)", ("ANON_COUNT(*)", "COUNT(*, contribution_bounds_per_group => (0, 12))")),
    ("COUNT(pieces)", ("ANON_COUNT(pieces)", "ANON_COUNT(pieces CLAMPED BETWEEN 0 AND 12)")),
    (
        "SUM(GREATEST(0,LEAST(9,price)))",
        (
            "ANON_SUM(price CLAMPED BETWEEN 0 AND 9)",
            "SUM(price, contribution_bounds_per_group => (0, 9))",
            "SUM(price, contribution_bounds_per_row => (0, 9))",
        ),
    ),
    (
        "SUM(GREATEST(-3,LEAST(9.5,price * 2)))",
        (
            "ANON_SUM(price * 2 CLAMPED BETWEEN -3 AND 9.5)",
            "sum(price * 2, Contribution_Bounds_Per_Group => (-3, 9.5))",
        ),
    ),
    (
        "AVG(GREATEST(0,LEAST(20,pieces)))",
        ("ANON_AVG(pieces CLAMPED BETWEEN 0 AND 20)", "AVG(pieces, contribution_bounds_per_row => (0, 20))"),
    ),
    (
        "VAR_POP(GREATEST(0,LEAST(20,price)))",
        ("ANON_VAR_POP(price CLAMPED BETWEEN 0 AND 20)", "VAR_POP(price, contribution_bounds_per_row => (0, 20))"),
    ),
    (
        "STDDEV_POP(GREATEST(0,LEAST(20,price)))",
        (
            "ANON_STDDEV_POP(price CLAMPED BETWEEN 0 AND 20)",
            "STDDEV_POP(price, contribution_bounds_per_row => (0, 20))",
        ),
    ),
    ("SUM(price)", ("ANON_SUM(price)",)),
    (
        "QUANTILE_CONT(GREATEST(-2,LEAST(12,price)), 0.25)",
        (
            "PERCENTILE_CONT(price, 0.25, contribution_bounds_per_row => (-2, 12))",
            "ANON_PERCENTILE_CONT(price, 0.25 CLAMPED BETWEEN -2 AND 12)",
        ),
    ),
)
_SHAPES: tuple[str, ...] = (
    "{} FROM sales",
    "region, {} FROM sales GROUP BY region",
    "item, {} FROM sales GROUP BY item",
    "{} FROM sales WHERE NOT gift AND price > -4",
    "s.region, {} FROM sales AS s JOIN customers USING (customer) WHERE age < 60 GROUP BY s.region ORDER BY s.region",
)


def spellings() -> Iterator[tuple[str, str]]:
    """Texts in plain SQL, and the same in GoogleSQL's spelling: the same release serves both."""
    for plain, spelled in _AGGREGATES:
        for number, shape in enumerate(_SHAPES):
            yield f"SELECT {shape.format(plain)}", _HEAD + shape.format(spelled[number % len(spelled)])


MEANT: tuple[tuple[str, str], ...] = tuple(
    (f"SELECT WITH DIFFERENTIAL_PRIVACY {google}", plain)
    for google, plain in (
        # Each aggregate, of all rows and of groups
        ("COUNT(*) FROM sales", "SELECT COUNT(*) FROM sales"),
        ("ANON_COUNT(*) FROM sales", "SELECT COUNT(*) FROM sales"),
        ("COUNT(pieces) FROM sales", "SELECT COUNT(pieces) FROM sales"),
        ("ANON_COUNT(pieces) FROM sales", "SELECT COUNT(pieces) FROM sales"),
        ("COUNT(DISTINCT customer) FROM sales", "SELECT COUNT(DISTINCT customer) FROM sales"),
        ("SUM(pieces) FROM sales", "SELECT SUM(pieces) FROM sales"),
        ("AVG(price) FROM sales", "SELECT AVG(price) FROM sales"),
        ("VAR_POP(pieces) FROM sales", "SELECT VAR_POP(pieces) FROM sales"),
        ("STDDEV_POP(pieces) FROM sales", "SELECT STDDEV_POP(pieces) FROM sales"),
        ("COUNT(*) + 1 AS n FROM sales", "SELECT COUNT(*) + 1 FROM sales"),
        # Clamping: each value of a row, on both sides; nothing where no value is beyond
        ("ANON_SUM(price CLAMPED BETWEEN -1000 AND 1000) FROM sales", "SELECT SUM(price) FROM sales"),
        ("ANON_SUM(price CLAMPED BETWEEN 0 AND 14) FROM sales", "SELECT SUM(GREATEST(0, LEAST(14, price))) FROM sales"),
        ("ANON_AVG(price CLAMPED BETWEEN 0 AND 14) FROM sales", "SELECT AVG(GREATEST(0, LEAST(14, price))) FROM sales"),
        (
            "SUM(price, contribution_bounds_per_row => (-2, 3)) FROM sales",
            "SELECT SUM(GREATEST(-2, LEAST(3, price))) FROM sales",
        ),
        (
            "AVG(price, contribution_bounds_per_row => (5, 5)) FROM sales",
            "SELECT AVG(GREATEST(5, LEAST(5, price))) FROM sales",
        ),
        ("SUM(pieces, contribution_bounds_per_row => (1, 3)) FROM sales",
         "SELECT SUM(LEAST(3, GREATEST(1, pieces))) FROM sales WHERE pieces IS NOT NULL"),
        ("VAR_POP(price, contribution_bounds_per_row => (-5, 14)) FROM sales",
         "SELECT VAR_POP(LEAST(14, price)) FROM sales"),
        ("STDDEV_POP(pieces, contribution_bounds_per_row => (0, 2)) FROM sales",
         "SELECT STDDEV_POP(LEAST(2, pieces)) FROM sales WHERE pieces IS NOT NULL"),
        ("SUM(price * 2 + pieces, contribution_bounds_per_row => (0, 25)) FROM sales",
         "SELECT SUM(LEAST(25, GREATEST(0, price * 2 + pieces))) FROM sales WHERE pieces IS NOT NULL"),
        ("SUM(CASE WHEN gift THEN 1 ELSE 0 END, contribution_bounds_per_row => (0, 1)) FROM sales",
         "SELECT COUNT(*) FILTER (WHERE gift) FROM sales"),
        ("SUM(-price, contribution_bounds_per_row => (-14, 5)) FROM sales",
         "SELECT SUM(LEAST(5, GREATEST(-14, -price))) FROM sales"),
        ("ANON_SUM(ABS(price) CLAMPED BETWEEN 2 AND 8) FROM sales",
         "SELECT SUM(LEAST(8, GREATEST(2, ABS(price)))) FROM sales"),
        # Rows of a unit in a group: what a count may add is bounded, after the unit's rows were counted
        ("COUNT(*, contribution_bounds_per_group => (0, 1)) FROM sales", "SELECT COUNT(DISTINCT customer) FROM sales"),
        ("ANON_COUNT(* CLAMPED BETWEEN 0 AND 1) FROM sales", "SELECT COUNT(DISTINCT customer) FROM sales"),
        ("region, COUNT(*, contribution_bounds_per_group => (0, 1)) FROM sales GROUP BY region",
         "SELECT r, COUNT(DISTINCT customer) FROM (VALUES ('east'), ('north'), ('south'), ('west')) v(r) LEFT JOIN "
         "sales ON region = r GROUP BY r"),
        ("COUNT(*, contribution_bounds_per_group => (0, 2)) FROM sales WHERE region = 'north'",
         "SELECT SUM(LEAST(n, 2)) FROM (SELECT COUNT(*) n FROM sales WHERE region = 'north' GROUP BY customer)"),
        ("COUNT(*, contribution_bounds_per_group => (0, 12)) FROM sales", "SELECT COUNT(*) FROM sales"),
        ("COUNT(pieces, contribution_bounds_per_group => (0, 12)) FROM sales", "SELECT COUNT(pieces) FROM sales"),
        # Public groups, also those of nobody
        ("region, COUNT(*) FROM sales GROUP BY region",
         "SELECT r, COUNT(region) FROM (VALUES ('east'), ('north'), ('south'), ('west')) v(r) LEFT JOIN sales ON "
         "region = r GROUP BY r"),
        ("region, SUM(pieces) FROM sales GROUP BY region",
         "SELECT r, COALESCE(SUM(pieces), 0) FROM (VALUES ('east'), ('north'), ('south'), ('west')) v(r) LEFT JOIN "
         "sales ON region = r GROUP BY r"),
        ("region, COUNT(DISTINCT customer) FROM sales GROUP BY region HAVING region <> 'west'",
         "SELECT region, COUNT(DISTINCT customer) FROM sales GROUP BY region"),
        ("region, COUNT(*) FROM sales WHERE region IN ('north', 'south') GROUP BY region",
         "SELECT region, COUNT(*) FROM sales WHERE region IN ('north', 'south') GROUP BY region"),
        ("gift, COUNT(*) FROM sales GROUP BY gift", "SELECT gift, COUNT(*) FROM sales GROUP BY gift"),
        ("region, gift, COUNT(*) FROM sales WHERE region = 'north' GROUP BY region, gift",
         "SELECT region, gift, COUNT(*) FROM sales WHERE region = 'north' GROUP BY ALL"),
        ("price > 5 AS dear, COUNT(*) FROM sales GROUP BY dear", "SELECT price > 5, COUNT(*) FROM sales GROUP BY 1"),
        ("1 AS one, COUNT(*) FROM sales GROUP BY one", "SELECT 1, COUNT(*) FROM sales"),
        # Other groups: those of enough units
        ("item, COUNT(*) FROM sales WHERE item <> 'gold' GROUP BY item",
         "SELECT item, COUNT(*) FROM sales WHERE item <> 'gold' GROUP BY item"),
        ("item, AVG(price) FROM sales WHERE item <> 'gold' GROUP BY item",
         "SELECT item, AVG(price) FROM sales WHERE item <> 'gold' GROUP BY item"),
        ("UPPER(item) AS i, ANON_SUM(pieces CLAMPED BETWEEN 0 AND 4) FROM sales WHERE item <> 'gold' GROUP BY i",
         "SELECT UPPER(item), SUM(pieces) FROM sales WHERE item <> 'gold' GROUP BY 1"),
        ("ABS(customer % 3) AS c, COUNT(*) FROM sales WHERE region = 'north' GROUP BY c",
         "SELECT ABS(customer % 3), COUNT(*) FROM sales WHERE region = 'north' GROUP BY 1"),
        # NULL: no value counts where there is none
        ("COUNT(pieces) FROM sales WHERE pieces IS NULL", "SELECT 0"),
        ("SUM(pieces) FROM sales WHERE pieces IS NULL", "SELECT 0"),
        ("COUNT(*) FROM sales WHERE pieces IS NULL", "SELECT COUNT(*) FROM sales WHERE pieces IS NULL"),
        ("COUNT(*) - COUNT(pieces) AS missing FROM sales", "SELECT COUNT(*) - COUNT(pieces) FROM sales"),
        ("SUM(COALESCE(pieces, 0)) FROM sales", "SELECT SUM(pieces) FROM sales"),
        ("AVG(IFNULL(pieces, 10)) FROM sales", "SELECT AVG(COALESCE(pieces, 10)) FROM sales"),
        ("COUNT(*) FROM sales WHERE FALSE", "SELECT 0"),
        # Joins on the unit, nested queries, and what stands around the private query
        ("COUNT(*) FROM sales AS s JOIN customers AS c ON s.customer = c.customer WHERE c.age > 50",
         "SELECT COUNT(*) FROM sales JOIN customers USING (customer) WHERE age > 50"),
        ("region, AVG(age) FROM sales JOIN customers USING (customer) WHERE region <> 'west' GROUP BY region",
         "SELECT region, AVG(age) FROM sales JOIN customers USING (customer) GROUP BY region"),
        ("COUNT(*) FROM (SELECT * FROM sales WHERE gift) AS t", "SELECT COUNT(*) FROM sales WHERE gift"),
        ("SUM(p, contribution_bounds_per_group => (0, 4)) FROM (SELECT customer, pieces AS p FROM sales) AS t",
         "SELECT SUM(pieces) FROM sales"),
        ("COUNT(*), AVG(n) FROM (SELECT customer, COUNT(*) AS n FROM sales GROUP BY customer) AS t",
         "SELECT COUNT(*), AVG(n) FROM (SELECT customer, COUNT(*) AS n FROM sales GROUP BY customer) AS t"),
        ("SUM(GREATEST(0, LEAST(9, total))) FROM (SELECT customer, SUM(pieces) AS total FROM sales WHERE region = "
         "'north' GROUP BY customer) AS t",
         "SELECT SUM(LEAST(9, total)) FROM (SELECT customer, SUM(pieces) AS total FROM sales WHERE pieces >= 0 AND "
         "region = 'north' GROUP BY customer) AS t"),
        ("COUNT(*) AS n FROM sales ORDER BY n LIMIT 1", "SELECT COUNT(*) FROM sales"),
        ("region, COUNT(*) AS n FROM sales GROUP BY region ORDER BY n DESC LIMIT 1",
         "SELECT region, COUNT(*) AS n FROM sales GROUP BY region ORDER BY n DESC, region LIMIT 1"),
        ("region, COUNT(*) AS n FROM sales GROUP BY region HAVING COUNT(*) > 50",
         "SELECT region, COUNT(*) AS n FROM sales GROUP BY region HAVING COUNT(*) > 50"),
        ("ROUND(AVG(price), 1) AS a FROM sales", "SELECT ROUND(AVG(price), 1) FROM sales"),
        ("COUNT(*) * 1.0 / COUNT(DISTINCT customer) AS r FROM sales",
         "SELECT COUNT(*) * 1.0 / COUNT(DISTINCT customer) FROM sales"),
    )
)  # fmt: skip
"""Texts with what they mean in DuckDB, where no bound of groups cuts anything."""

_WITH = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
_PLACES = "(VALUES ('east'), ('north'), ('south'), ('west')) v(r)"
_COUNTED = "WHERE pieces IS NOT NULL AND region IN ('north', 'south')"
DECIDED: tuple[tuple[str, str], ...] = (
    # Groups per unit: of two groups of each customer one counts, or both
    (f"SELECT SUM(n) AS s FROM ({_WITH} (kappa = 1) region, COUNT(DISTINCT customer) AS n FROM sales "
     "WHERE region <> 'east' GROUP BY region) AS t",
     "SELECT COUNT(DISTINCT customer) FROM sales WHERE region <> 'east'"),
    (f"SELECT SUM(n) AS s FROM ({_WITH} (max_groups_contributed = 1) region, COUNT(*) AS n FROM sales "
     "WHERE region <> 'east' GROUP BY region) AS t",
     "SELECT COUNT(*) FROM sales WHERE region = 'north'"),
    (f"{_WITH} (max_groups_contributed = 2) region, COUNT(*, contribution_bounds_per_group => (0, 2)) FROM sales "
     "WHERE region IN ('north', 'south') GROUP BY region",
     "SELECT region, SUM(LEAST(n, 2)) FROM (SELECT region, COUNT(*) AS n FROM sales WHERE region <> 'east' "
     "GROUP BY region, customer) GROUP BY region"),
    # Clamping after a unit's rows were added up
    (f"{_WITH} (max_rows_contributed = 1) COUNT(*), COUNT(DISTINCT customer) FROM sales",
     "SELECT COUNT(DISTINCT customer), COUNT(DISTINCT customer) FROM sales"),
    (f"{_WITH} (max_rows_contributed = 2) SUM(pieces, contribution_bounds_per_group => (0, 3)) FROM sales {_COUNTED}",
     f"SELECT SUM(LEAST(6, s)) FROM (SELECT SUM(LEAST(3, pieces)) AS s FROM sales {_COUNTED} GROUP BY customer)"),
    (f"{_WITH} (epsilon = 1) region, COUNT(*, contribution_bounds_per_group => (0, 1)), "
     f"SUM(pieces, contribution_bounds_per_group => (0, 2)) FROM sales {_COUNTED} GROUP BY region",
     "SELECT region, COUNT(*), SUM(LEAST(2, s)) FROM (SELECT region, SUM(LEAST(2, pieces)) AS s FROM sales "
     f"{_COUNTED} GROUP BY region, customer) GROUP BY region"),
    (f"{_WITH} (epsilon = 1) COUNT(*, contribution_bounds_per_group => (0, 2)), "
     "SUM(price, contribution_bounds_per_group => (-3, 2)) FROM sales WHERE region = 'north'",
     "SELECT SUM(LEAST(2, n)), SUM(GREATEST(-6, LEAST(4, s))) FROM (SELECT COUNT(*) AS n, SUM(GREATEST(-3, LEAST(2, "
     "price))) AS s FROM sales WHERE region = 'north' GROUP BY customer)"),
    (f"{_WITH} (epsilon = 1) COUNT(pieces, contribution_bounds_per_group => (0, 1)) FROM sales WHERE region = 'north'",
     "SELECT COUNT(DISTINCT customer) FROM sales WHERE region = 'north' AND pieces IS NOT NULL"),
    (f"{_WITH} (epsilon = 1) SUM(total, contribution_bounds_per_group => (2, 9)) FROM (SELECT customer, SUM(pieces) "
     f"AS total FROM sales {_COUNTED} GROUP BY customer) AS t",
     f"SELECT SUM(GREATEST(2, LEAST(9, total))) FROM (SELECT SUM(pieces) AS total FROM sales {_COUNTED} "
     "GROUP BY customer)"),
    (f"{_WITH} (epsilon = 1) AVG(n, contribution_bounds_per_row => (3, 4)) FROM (SELECT customer, COUNT(*) AS n "
     "FROM sales GROUP BY customer) AS t",
     "SELECT AVG(GREATEST(3, LEAST(4, n))) FROM (SELECT COUNT(*) AS n FROM sales GROUP BY customer)"),
    # Public groups of nobody; groups of one customer, which are not shown
    (f"{_WITH} (privacy_unit_column = customer, group_selection_strategy = PUBLIC_GROUPS) region, ANON_COUNT(pieces) "
     "FROM sales WHERE gift GROUP BY region",
     f"SELECT r, COUNT(pieces) FROM {_PLACES} LEFT JOIN (FROM sales WHERE gift) ON region = r GROUP BY r"),
    (f"{_WITH} (group_selection_strategy = PUBLIC_GROUPS) UPPER(region) AS r, AVG(pieces) FROM sales GROUP BY r",
     f"SELECT UPPER(r), AVG(pieces) FROM {_PLACES} LEFT JOIN sales ON region = r GROUP BY r"),
    (f"{_WITH} (group_selection_strategy = LAPLACE_THRESHOLD) item, COUNT(DISTINCT customer) AS n FROM sales "
     "GROUP BY item",
     "SELECT item, COUNT(DISTINCT customer) FROM sales WHERE item <> 'gold' GROUP BY item"),
    ("SELECT WITH ANONYMIZATION OPTIONS (kappa = 4) item, ANON_AVG(price CLAMPED BETWEEN -2 AND 3) FROM sales "
     "WHERE item <> 'gold' GROUP BY item",
     "SELECT item, AVG(GREATEST(-2, LEAST(3, price))) FROM sales WHERE item <> 'gold' GROUP BY item"),
)  # fmt: skip
"""Whole texts with what they mean in DuckDB, where options and bounds decide the numbers, or which groups are shown."""

ERRORS: tuple[tuple[str, str], ...] = (
    # Options
    ("unsupported_sql", f"{_WITH} (epsilon = 0) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = -2) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = NULL) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 'one') COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = inf) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1 + 1) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = price) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1, epsilon = 1) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (delta = -1) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (delta = 1.5) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (delta = 0.5) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (delta = NULL) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (max_groups_contributed = 0) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (max_groups_contributed = -1) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (max_groups_contributed = 1.5) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (max_groups_contributed = NULL) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (max_groups_contributed = 99999999999) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (max_rows_contributed = 0) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (max_rows_contributed = 'x') COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (max_rows_contributed = 3, max_groups_contributed = 2) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (kappa = 3, max_groups_contributed = 2) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (k_threshold = 20) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (min_privacy_units_per_group = 20) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (group_selection_strategy = NONE) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (group_selection_strategy = PUBLIC_GROUPS) item, COUNT(*) FROM sales GROUP BY item"),
    ("unsupported_sql", f"{_WITH} (privacy_unit_column = item) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (privacy_unit_column = customer + 1) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (unknown = 1) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} () , COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1 COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1e7) COUNT(*) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 0.0000000000001) COUNT(*) FROM sales"),
    ("unsupported_sql",
     f"{_WITH} (group_selection_strategy = PUBLIC_GROUPS) region, item, COUNT(*) FROM sales GROUP BY region, item"),
    # One query has one price
    ("unsupported_sql", f"{_WITH} (epsilon = 1) COUNT(*) FROM ({_WITH} (epsilon = 1) COUNT(*) FROM sales)"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) COUNT(*) FROM sales UNION ALL {_WITH} (epsilon = 1) 1"),
    # Arguments
    ("unsupported_sql", f"{_WITH} (epsilon = 1) SUM(price, contribution_bounds_per_group => (3, 1)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) SUM(price, contribution_bounds_per_group => (0, inf)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) SUM(price, contribution_bounds_per_group => (0, NULL)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) SUM(price, contribution_bounds_per_group => (0, age)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) SUM(price, contribution_bounds_per_group => (0)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) SUM(price, contribution_bounds_per_group => 0) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) SUM(contribution_bounds_per_group => (0, 1)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) COUNT(*, contribution_bounds_per_group => (-1, 1)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) COUNT(*, contribution_bounds_per_group => (0, 0)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) COUNT(*, contribution_bounds_per_group => (0, 2.5)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) ANON_SUM(price CLAMPED BETWEEN 1) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) ANON_SUM(price CLAMPED BETWEEN 1 AND 0) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) ANON_SUM(price CLAMPED BETWEEN 'a' AND 'b') FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) ANON_MAX(price) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) ANON_SUM(price, pieces) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) ANON_PERCENTILE_CONT(price CLAMPED BETWEEN 0 AND 1) FROM sales"),
    ("unsupported_sql",
     f"{_WITH} (epsilon = 1) SUM(ANON_SUM(price) , contribution_bounds_per_group => (0, 9)) FROM sales"),
    ("unsupported_sql",
     f"{_WITH} (epsilon = 1) COUNT(*, contribution_bounds_per_group => (0, 1)), "
     "COUNT(pieces, contribution_bounds_per_group => (0, 2)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) MIN(price, contribution_bounds_per_row => (0, 1)) FROM sales"),
    ("unsupported_sql",
     f"{_WITH} (epsilon = 1) SUM(price, contribution_bounds_per_group => (0, 1), "
     "contribution_bounds_per_row => (0, 1)) FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) COUNT(*, report_format => 'JSON') FROM sales"),
    ("unsupported_sql", f"{_WITH} (epsilon = 1) ANON_PERCENTILE_CONT(price, 1.5 CLAMPED BETWEEN 0 AND 9) FROM sales"),
    # What no clause makes lawful
    ("not_a_query", f"CREATE TABLE copy AS {_WITH} (epsilon = 1) COUNT(*) FROM sales"),
    ("private_row_limit",
     f"{_WITH} (epsilon = 1) SUM(price, contribution_bounds_per_group => (0, 9)) OVER (PARTITION BY region) "
     "FROM sales"),
    ("raw_rows", f"{_WITH} (epsilon = 1) price FROM sales"),
    ("raw_rows", f"{_WITH} (epsilon = 1) * FROM sales"),
    ("raw_rows", f"{_WITH} (epsilon = 1) price, COUNT(*) FROM sales GROUP BY region"),
    ("group_by_unit", f"{_WITH} (epsilon = 1) customer, COUNT(*) FROM sales GROUP BY customer"),
    ("group_by_unit", f"{_WITH} (epsilon = 1) region, customer, COUNT(*) FROM sales GROUP BY 1, 2"),
    ("unknown_column", f"{_WITH} (epsilon = 1) SUM(weight) FROM sales"),
    ("unknown_table", f"{_WITH} (epsilon = 1) COUNT(*) FROM orders"),
    ("unsupported_type", f"{_WITH} (epsilon = 1) SUM(item) FROM sales"),
    ("unsupported_type", f"{_WITH} (epsilon = 1) AVG(gift) FROM sales"),
    ("volatile_function", f"{_WITH} (epsilon = 1) COUNT(*) FROM sales WHERE random() < 0.5"),
    ("many_statements", f"{_WITH} (epsilon = 1) COUNT(*) FROM sales; SELECT 1"),
    ("private_row_limit", f"{_WITH} (epsilon = 1) COUNT(*) FROM (SELECT * FROM sales LIMIT 5) AS t"),
    ("unsupported_function", f"{_WITH} (epsilon = 1) ARRAY_AGG(item) FROM sales"),
    ("unsupported_function", f"{_WITH} (epsilon = 1) STRING_AGG(item, ',') FROM sales"),
)  # fmt: skip
"""Texts that are refused, with the code."""
