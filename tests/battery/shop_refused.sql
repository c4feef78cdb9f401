-- refused: raw_rows
SELECT * FROM orders ORDER BY total DESC LIMIT 20

-- refused: group_by_unit
SELECT customer_id, SUM(total) AS spent FROM orders GROUP BY customer_id ORDER BY spent DESC LIMIT 10

-- refused: group_by_unit
SELECT order_id, SUM(quantity * price) FROM items GROUP BY order_id

-- refused: raw_rows
SELECT o.order_id, c.age FROM orders o JOIN customers c USING (customer_id)

-- refused: join_not_on_key
SELECT COUNT(*) FROM orders o JOIN orders p ON o.ordered = p.ordered

-- refused: join_not_on_key
SELECT COUNT(*) FROM items a JOIN items b ON a.product_id = b.product_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM customers a JOIN customers b ON a.referrer_opt = b.referrer_opt

-- refused: join_not_on_key
SELECT a.product_id, b.product_id, COUNT(*) FROM items a JOIN items b ON a.product_id < b.product_id GROUP BY 1, 2

-- refused: group_by_unit
SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 3

-- refused: raw_rows
SELECT c.customer_id, c.segment FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)

-- refused: private_row_limit
SELECT ordered, total, AVG(total) OVER (ORDER BY ordered ROWS 6 PRECEDING) FROM orders

-- refused: private_row_limit
SELECT SUM(total) FROM (SELECT total FROM orders ORDER BY total DESC LIMIT 1) t

-- refused: private_row_limit
SELECT MEDIAN(total) FROM (SELECT total FROM orders LIMIT 10) t

-- refused: volatile_function
SELECT AVG(total) FROM orders ORDER BY RANDOM()

-- refused: correlated_subquery
SELECT COUNT(*) FROM orders WHERE total > (SELECT total FROM orders WHERE order_id = 3)

-- refused: correlated_subquery
SELECT COUNT(*) FROM orders WHERE total = ANY (SELECT total FROM orders WHERE customer_id = 3)

-- refused: unsupported_function
SELECT channel, STRING_AGG(status, ',') FROM orders GROUP BY channel

-- refused: unsupported_function
SELECT GROUP_CONCAT(channel) FROM orders

-- refused: unsupported_sql
SELECT COUNT(*) FROM orders TABLESAMPLE RESERVOIR (50)

-- refused: unsupported_sql
SELECT COUNT(*) FROM orders o LEFT JOIN LATERAL (SELECT * FROM items i WHERE i.order_id = o.order_id LIMIT 1) t ON TRUE

-- refused: unsupported_sql
SELECT COUNT(*) FROM orders POSITIONAL JOIN customers

-- refused: join_not_on_key
SELECT COUNT(*) FROM customers c JOIN orders o ON c.customer_id > o.customer_id

-- refused: join_not_on_key
SELECT COUNT(*) FROM customers c JOIN orders o ON c.customer_id = o.order_id

-- refused: unsupported_type
SELECT COUNT(*) FROM products p FULL JOIN items i ON p.category = i.order_id

-- refused: raw_rows
SELECT total FROM orders UNION ALL SELECT price FROM items

-- refused: raw_rows
SELECT segment, age FROM customers QUALIFY ROW_NUMBER() OVER (PARTITION BY segment ORDER BY age) = 1

-- refused: column_without_bounds
SELECT segment, COUNT(*) FROM customers GROUP BY segment ORDER BY MAX(customer_id)

-- refused: unsupported_function
SELECT JSON_GROUP_ARRAY(total) FROM orders

-- refused: unsupported_function
SELECT LIST_SORT(LIST(total)) FROM orders

-- refused: unsupported_function
SELECT HISTOGRAM(customer_id) FROM orders

-- refused: private_row_limit
SELECT APPROX_TOP_K(customer_id, 5) FROM orders

-- refused: unsupported_function
SELECT RESERVOIR_QUANTILE(total, 0.5) FROM orders

-- refused: unsupported_function
SELECT BIT_XOR(customer_id) FROM orders

-- refused: unsupported_function
SELECT PRODUCT(total) FROM orders

-- refused: volatile_function
SELECT COUNT(*) FROM orders WHERE NEXTVAL('s') > 1

-- refused: volatile_function
SELECT CURRENT_SETTING('threads'), COUNT(*) FROM orders

-- refused: parse_error
SELECT COUNT(*) FROM orders AS OF TIMESTAMP '2024-01-01'

-- refused: unknown_table
SELECT COUNT(*) FROM ordres

-- refused: unknown_column
SELECT COUNT(*) FROM orders WHERE amount > 5

-- refused: unknown_column
SELECT o.segment, COUNT(*) FROM orders o GROUP BY o.segment

-- refused: ambiguous_column
SELECT customer_id, COUNT(*) FROM orders JOIN customers ON orders.customer_id = customers.customer_id GROUP BY segment

-- refused: unsupported_type
SELECT COUNT(*) FROM orders WHERE status = 3

-- refused: unsupported_type
SELECT COUNT(*) FROM orders WHERE ordered LIKE '2024%'

-- refused: unsupported_type
SELECT SUM(status) FROM orders

-- refused: unsupported_type
SELECT SUM(total) FROM orders GROUP BY total

-- refused: private_row_limit
SELECT COUNT(*) OVER (PARTITION BY status) FROM orders

-- refused: raw_rows
SELECT status, total, COUNT(*) FROM orders GROUP BY status

-- refused: raw_rows
SELECT * FROM customers c JOIN regions r USING (region_id)

-- refused: raw_rows
SELECT r.*, c.age FROM regions r JOIN customers c USING (region_id)

-- refused: not_a_query
SELECT COUNT(*) FROM (SUMMARIZE orders) t

-- refused: raw_rows
UNPIVOT customers ON age, region_id

-- refused: not_a_query
CREATE VIEW v AS SELECT customer_id FROM orders

-- refused: not_a_query
VACUUM orders

-- refused: not_a_query
EXPORT DATABASE 'backup'

-- refused: not_a_query
GRANT SELECT ON orders TO public

-- refused: not_a_query
MERGE INTO orders USING items ON orders.order_id = items.order_id WHEN MATCHED THEN DELETE

-- refused: unknown_table
SELECT COUNT(*) FROM sqlite_master

-- refused: unknown_table
SELECT COUNT(*) FROM pg_catalog.pg_tables

-- refused: unsupported_sql
SELECT COUNT(*) FROM glob('*')

-- refused: unsupported_sql
SELECT COUNT(*) FROM query('SELECT * FROM orders')
