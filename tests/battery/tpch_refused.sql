-- refused: raw_rows
SELECT c_name, c_acctbal FROM customer ORDER BY c_acctbal DESC LIMIT 10

-- refused: group_by_unit
SELECT c_custkey, COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey GROUP BY c_custkey

-- refused: group_by_unit
SELECT o_orderkey, SUM(l_quantity) FROM orders JOIN lineitem ON l_orderkey = o_orderkey GROUP BY o_orderkey

-- refused: group_by_unit
SELECT o_custkey, SUM(o_totalprice) FROM orders GROUP BY o_custkey

-- refused: raw_rows
SELECT c_phone FROM customer WHERE c_nationkey = 3

-- refused: join_not_on_key
SELECT COUNT(*) FROM orders o1 JOIN orders o2 ON o1.o_orderdate = o2.o_orderdate

-- refused: join_not_on_key
SELECT COUNT(*) FROM lineitem l1, lineitem l2 WHERE l1.l_partkey = l2.l_partkey

-- refused: join_not_on_key
SELECT COUNT(*) FROM customer c1 JOIN customer c2 ON c1.c_nationkey = c2.c_nationkey

-- refused: group_by_unit
SELECT MAX(o_totalprice), o_orderkey FROM orders GROUP BY o_orderkey

-- refused: group_by_unit
SELECT c_mktsegment, c_name FROM customer GROUP BY c_mktsegment, c_name, c_custkey

-- refused: private_row_limit
SELECT SUM(l_extendedprice) FROM (SELECT l_extendedprice FROM lineitem ORDER BY l_shipdate LIMIT 1000) t

-- refused: correlated_subquery
SELECT COUNT(*) FROM customer WHERE c_acctbal > (SELECT c_acctbal FROM customer WHERE c_custkey = 1)

-- refused: private_row_limit
SELECT SUM(o_totalprice) OVER (ORDER BY o_orderdate) FROM orders

-- refused: unsupported_sql
SELECT COUNT(*) FROM orders WHERE o_totalprice >= ALL (SELECT o_totalprice FROM orders)

-- refused: unsupported_type
SELECT SUM(c_name) FROM customer

-- refused: group_by_unit
SELECT c_comment, c_custkey, COUNT(*) FROM customer GROUP BY ALL

-- refused: unsupported_sql
SELECT COUNT(*) FROM orders TABLESAMPLE SYSTEM (10)

-- refused: unsupported_function
SELECT LIST(c_phone) FROM customer

-- refused: unknown_table
SELECT COUNT(*) FROM customers

-- refused: unknown_column
SELECT COUNT(*) FROM customer WHERE c_balance > 0

-- refused: join_not_on_key
SELECT COUNT(*) FROM orders, lineitem

-- refused: join_not_on_key
SELECT SUM(a.l_extendedprice) FROM lineitem a JOIN partsupp ON a.l_suppkey = ps_suppkey AND a.l_partkey = ps_partkey JOIN lineitem b ON b.l_suppkey > ps_suppkey

-- refused: join_not_on_key
SELECT SUM(l_quantity) FROM lineitem l JOIN lineitem m ON l.l_shipdate < m.l_shipdate

-- refused: raw_rows
SELECT * FROM lineitem FETCH FIRST 5 ROWS ONLY

-- refused: unknown_column
SELECT o_clerk, COUNT(*) FROM orders GROUP BY o_clerk

-- refused: volatile_function
SELECT nextval('orders'), COUNT(*) FROM orders

-- refused: column_without_bounds
SELECT AVG(o_orderdate) FROM orders

-- refused: unsupported_type
SELECT o_totalprice, COUNT(*) FROM orders GROUP BY o_totalprice

-- refused: parse_error
SELECT COUNT(*) FROM (DELETE FROM orders RETURNING *) t
