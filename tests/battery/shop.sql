-- answered
SELECT COUNT(*) FROM customers

-- answered
SELECT COUNT(*) AS orders, SUM(total) AS revenue, AVG(total) AS basket FROM orders

-- answered
SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment ORDER BY n DESC

-- answered
SELECT segment, newsletter, COUNT(*) FROM customers GROUP BY segment, newsletter

-- answered
SELECT r.region, COUNT(*) AS n FROM customers c JOIN regions r ON c.region_id = r.region_id GROUP BY r.region

-- answered
SELECT region, COUNT(*) AS n FROM customers JOIN regions USING (region_id) GROUP BY region

-- answered
SELECT region, COUNT(*) AS n FROM customers NATURAL JOIN regions GROUP BY region

-- answered
SELECT r.region, COUNT(c.customer_id) AS n FROM regions r LEFT JOIN customers c ON c.region_id = r.region_id
GROUP BY r.region

-- answered
SELECT r.region, SUM(o.total) FROM orders o, customers c, regions r WHERE o.customer_id = c.customer_id AND
c.region_id = r.region_id GROUP BY r.region

-- answered
SELECT date_trunc('month', ordered) AS month, SUM(total) AS revenue FROM orders WHERE ordered >= DATE
'2023-01-01' AND ordered < DATE '2025-01-01' GROUP BY month ORDER BY month

-- answered
SELECT YEAR(ordered) AS y, MONTH(ordered) AS m, COUNT(*) AS n FROM orders WHERE ordered BETWEEN DATE
'2023-01-01' AND DATE '2024-12-31' GROUP BY y, m ORDER BY y, m

-- answered
SELECT status, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS share FROM orders GROUP BY
status

-- answered
SELECT status, AVG(total), STDDEV(total) FROM orders GROUP BY status

-- answered
SELECT COUNT(DISTINCT customer_id) FROM orders

-- answered
SELECT COUNT(DISTINCT customer_id) FROM orders WHERE status = 'paid'

-- answered
SELECT COUNT(*) * 1.0 / COUNT(DISTINCT customer_id) AS orders_per_customer FROM orders

-- answered
SELECT COUNT(DISTINCT product_id) FROM items

-- answered
SELECT COUNT(DISTINCT channel) FROM orders

-- answered
SELECT segment, COUNT(DISTINCT region_id) FROM customers GROUP BY segment

-- answered
SELECT SUM(quantity * price) AS revenue FROM items

-- answered
SELECT p.category, SUM(i.quantity * i.price) AS revenue FROM items i JOIN products p ON i.product_id =
p.product_id GROUP BY p.category ORDER BY revenue DESC LIMIT 3

-- answered
SELECT p.category, COUNT(*) AS n FROM items i JOIN products p USING (product_id) JOIN orders o USING
(order_id) WHERE o.status = 'paid' GROUP BY p.category

-- answered
SELECT p.category, c.segment, SUM(i.quantity) FROM items i JOIN products p ON i.product_id = p.product_id JOIN
orders o ON i.order_id = o.order_id JOIN customers c ON o.customer_id = c.customer_id GROUP BY p.category,
c.segment

-- answered
SELECT AVG(CASE WHEN returned THEN 1.0 ELSE 0.0 END) AS return_rate FROM items

-- answered
SELECT p.category, AVG(CASE WHEN i.returned THEN 1 ELSE 0 END) AS return_rate FROM items i JOIN products p ON
i.product_id = p.product_id GROUP BY p.category

-- answered
SELECT COUNT(*) FILTER (WHERE returned) * 100.0 / COUNT(*) AS pct FROM items

-- answered
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM customers GROUP BY decade ORDER BY decade

-- answered
SELECT age // 10 AS decade, COUNT(*) FROM customers WHERE age BETWEEN 18 AND 90 GROUP BY 1

-- answered
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS band, COUNT(*) FROM
customers GROUP BY band

-- answered
SELECT WIDTH_BUCKET(age, 18, 90, 6) AS bucket, COUNT(*) FROM customers GROUP BY bucket

-- answered
SELECT MEDIAN(age) FROM customers

-- answered
SELECT segment, MEDIAN(age) FROM customers GROUP BY segment

-- other: values inside a place, one of 4,096, are not distinguished
SELECT QUANTILE_CONT(total, 0.9) FROM orders

-- answered
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY total) FROM orders

-- answered
SELECT QUANTILE_CONT(age, 0.25) AS q1, QUANTILE_CONT(age, 0.75) AS q3 FROM customers

-- answered
SELECT MIN(age), MAX(age) FROM customers

-- answered
SELECT MAX(total) FROM orders

-- answered
SELECT MODE(segment) FROM customers

-- answered
SELECT segment FROM customers GROUP BY segment ORDER BY COUNT(*) DESC LIMIT 1

-- answered
WITH n AS (SELECT segment, COUNT(*) AS n FROM customers GROUP BY 1) SELECT MAX_BY(segment, n) AS best FROM n

-- answered
SELECT UNNEST(APPROX_TOP_K(segment, 1)) AS best FROM customers

-- answered
SELECT CORR(age, region_id) FROM customers

-- answered
SELECT REGR_SLOPE(price, quantity) FROM items

-- answered
SELECT COVAR_POP(quantity, price) FROM items

-- answered
SELECT SKEWNESS(age), KURTOSIS(age) FROM customers

-- answered
SELECT VAR_SAMP(total) FROM orders

-- answered
SELECT SUM(DISTINCT region_id) FROM customers

-- answered
SELECT DISTINCT segment FROM customers

-- answered
SELECT segment FROM customers GROUP BY segment

-- answered
SELECT BOOL_OR(newsletter) FROM customers

-- answered
SELECT segment, SUM(total) FROM orders JOIN customers USING (customer_id) GROUP BY ROLLUP (segment)

-- answered
SELECT segment, newsletter, COUNT(*) FROM customers GROUP BY CUBE (segment, newsletter)

-- answered
SELECT segment, newsletter, COUNT(*) FROM customers GROUP BY GROUPING SETS ((segment), (newsletter), ())

-- answered
SELECT region, COUNT(*) FROM (SELECT c.customer_id, r.region FROM customers c JOIN regions r USING
(region_id)) t GROUP BY region

-- answered
WITH paid AS (SELECT * FROM orders WHERE status = 'paid') SELECT COUNT(*), SUM(total) FROM paid

-- answered
WITH big AS (SELECT customer_id, total FROM orders WHERE total > 1000), c AS (SELECT customer_id, segment FROM
customers WHERE age > 30) SELECT segment, COUNT(*) FROM big JOIN c USING (customer_id) GROUP BY segment

-- answered
SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t

-- answered
SELECT n, COUNT(*) AS customers FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t
GROUP BY n ORDER BY n

-- answered
SELECT COUNT(*) FROM (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 3) t

-- answered
SELECT AVG(spent) FROM (SELECT customer_id, SUM(total) AS spent FROM orders WHERE status = 'paid' GROUP BY
customer_id) t

-- answered
WITH per AS (SELECT customer_id, SUM(total) AS spent, MAX(ordered) AS latest FROM orders GROUP BY customer_id)
SELECT COUNT(*) FROM per WHERE latest < DATE '2024-01-01'

-- answered
SELECT c.segment, AVG(t.n) FROM customers c JOIN (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY
customer_id) t ON c.customer_id = t.customer_id GROUP BY c.segment

-- answered
SELECT COUNT(*) FROM customers WHERE customer_id IN (SELECT customer_id FROM orders WHERE total > 1500)

-- answered
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND
o.status = 'cancelled')

-- answered
SELECT COUNT(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)

-- answered
SELECT COUNT(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders)

-- answered
SELECT COUNT(*) FROM items WHERE product_id IN (SELECT product_id FROM products WHERE category = 'toys')

-- answered
SELECT COUNT(*) FROM orders a JOIN orders b ON a.customer_id = b.customer_id WHERE a.ordered < b.ordered

-- answered
SELECT COUNT(DISTINCT a.customer_id) FROM orders a JOIN orders b ON a.customer_id = b.customer_id AND
a.order_id < b.order_id

-- answered
SELECT COUNT(*) FROM orders WHERE total > (SELECT AVG(total) FROM orders)

-- answered
SELECT status, COUNT(*) FROM orders GROUP BY status HAVING COUNT(*) > 10

-- answered
SELECT status, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM orders GROUP BY status

-- answered
SELECT 'paid' AS what, COUNT(*) FROM orders WHERE status = 'paid' UNION ALL SELECT 'open', COUNT(*) FROM
orders WHERE status = 'open'

-- answered
SELECT COUNT(*) FROM (SELECT customer_id FROM orders UNION ALL SELECT customer_id FROM customers) t

-- answered
SELECT COUNT(*) FROM (SELECT DISTINCT customer_id, status FROM orders) t

-- answered
SELECT category, COUNT(*) FROM products GROUP BY category

-- answered
SELECT * FROM regions ORDER BY region

-- answered
SELECT region, n, n * 100.0 / SUM(n) OVER () AS pct FROM (SELECT region, COUNT(*) AS n FROM customers JOIN
regions USING (region_id) GROUP BY region) t

-- answered
SELECT t.region_id, r.region, t.n FROM (SELECT region_id, COUNT(*) AS n FROM customers GROUP BY region_id) t
JOIN regions r ON t.region_id = r.region_id

-- answered
SELECT referrer_opt, COUNT(*) FROM customers GROUP BY referrer_opt

-- answered
SELECT COALESCE(referrer_opt, 'none') AS referrer, COUNT(*) FROM customers GROUP BY referrer

-- answered
SELECT COUNT(*) - COUNT(referrer_opt) AS missing FROM customers

-- answered
SELECT AVG(discount_opt), COUNT(discount_opt) FROM orders

-- answered
SELECT SUM(total * (1 - COALESCE(discount_opt, 0))) FROM orders

-- answered
SELECT DAYNAME(ordered) AS day, COUNT(*) FROM orders GROUP BY day

-- answered
SELECT EXTRACT(DOW FROM ordered) AS d, COUNT(*) FROM orders GROUP BY d ORDER BY d

-- answered
SELECT STRFTIME(ordered, '%Y-%m') AS month, COUNT(*) FROM orders WHERE ordered BETWEEN DATE '2023-01-01' AND
DATE '2024-12-31' GROUP BY month

-- answered
SELECT QUARTER(ordered) AS q, SUM(total) FROM orders GROUP BY q

-- answered
SELECT COUNT(*) FROM orders WHERE ordered >= DATE '2024-06-30' - INTERVAL 90 DAY

-- answered
SELECT COUNT(*) FROM customers WHERE joined + INTERVAL '1' YEAR < DATE '2024-06-01'

-- answered
SELECT AVG(date_diff('day', c.joined, o.ordered)) FROM orders o JOIN customers c ON o.customer_id =
c.customer_id WHERE date_diff('day', c.joined, o.ordered) BETWEEN 0 AND 800

-- answered
SELECT COUNT(*) FROM orders WHERE ordered > CURRENT_DATE

-- answered
SELECT SUM(CASE WHEN status = 'paid' THEN total ELSE 0 END) AS paid, SUM(CASE WHEN status = 'open' THEN total
ELSE 0 END) AS open FROM orders

-- answered
SELECT segment, SUM(CASE WHEN newsletter THEN 1 ELSE 0 END) AS readers, COUNT(*) AS n FROM customers GROUP BY
segment

-- answered
SELECT COUNT(*) FROM orders WHERE channel LIKE '%apple%'

-- answered
SELECT COUNT(*) FROM orders WHERE REGEXP_MATCHES(channel, '^B.*#[0-9]+')

-- answered
SELECT SPLIT_PART(channel, ' ', 1) AS first, COUNT(*) FROM orders WHERE SPLIT_PART(channel, ' ', 1) = 'green'
GROUP BY ALL

-- answered
SELECT UPPER(segment) AS s, COUNT(*) FROM customers GROUP BY UPPER(segment)

-- answered
SELECT ROUND(AVG(total), 2) AS a, CAST(COUNT(*) AS INTEGER) AS n FROM orders

-- answered
SELECT LOG10(SUM(total)) FROM orders

-- answered
SELECT GREATEST(COUNT(*), 0) FROM orders

-- answered
SELECT segment, COUNT(*) FROM customers WHERE segment IN ('home', 'school') GROUP BY segment

-- answered
SELECT COUNT(*) FROM (VALUES ('home'), ('school')) v(segment) JOIN customers USING (segment)

-- answered
SELECT v.segment, COUNT(c.customer_id) FROM (VALUES ('home'), ('school')) v(segment) LEFT JOIN customers c ON
c.segment = v.segment GROUP BY v.segment

-- answered
SELECT s.segment, COUNT(*) FROM customers c JOIN (SELECT unnest(['home', 'school']) AS segment) s ON c.segment
= s.segment GROUP BY s.segment

-- answered
SELECT AVG(gap) FROM (SELECT customer_id, date_diff('day', LAG(ordered) OVER (PARTITION BY customer_id ORDER
BY ordered), ordered) AS gap FROM orders) t WHERE gap BETWEEN 0 AND 800

-- answered
SELECT COUNT(*) FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered) AS r
FROM orders) t WHERE r = 1

-- answered
WITH first AS (SELECT customer_id, MIN(ordered) AS first_order FROM orders GROUP BY customer_id) SELECT
date_trunc('year', first_order) AS cohort, COUNT(*) FROM first GROUP BY cohort

-- answered
SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment ORDER BY COUNT(*) DESC LIMIT 1

-- answered
SELECT a.segment, a.n, b.revenue FROM (SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment) a JOIN
(SELECT segment, SUM(total) AS revenue FROM orders JOIN customers USING (customer_id) GROUP BY segment) b
USING (segment)

-- answered
SELECT (SELECT COUNT(*) FROM orders WHERE status = 'paid') * 1.0 / (SELECT COUNT(*) FROM orders) AS paid_share

-- answered
SELECT AVG(total) FROM orders WHERE total BETWEEN 100 AND 900

-- answered
SELECT SUM(price) FROM items WHERE NOT returned AND quantity > 1

-- answered
SELECT COUNT(*) FROM customers WHERE age > 40 AND (segment = 'home' OR newsletter)

-- answered
SELECT COUNT(*) FROM customers WHERE age BETWEEN 20 AND 29 OR age BETWEEN 60 AND 69

-- answered
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age) FROM customers

-- other: the engine's own quantile is approximate
SELECT APPROX_QUANTILE(age, 0.5) FROM customers

-- answered
SELECT ARG_MAX(segment, n) FROM (SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment) t

-- answered
SELECT STRING_AGG(segment, ', ' ORDER BY n DESC) FROM (SELECT segment, COUNT(*) AS n FROM customers GROUP BY
segment) t

-- other: DuckDB's map as one text of JSON
SELECT HISTOGRAM(region_id) FROM customers

-- answered
SELECT SUM(total) FROM orders WHERE YEAR(ordered) = 2023

-- answered
SELECT SUM(total) FILTER (WHERE YEAR(ordered) = 2024) / SUM(total) FILTER (WHERE YEAR(ordered) = 2023) AS
growth FROM orders

-- answered
SELECT CORR(x, y) FROM (SELECT quantity AS x, price AS y FROM items) t

-- answered
SELECT AVG(DISTINCT age) FROM customers

-- answered
SELECT newsletter, AVG(age), COUNT(*) FROM customers GROUP BY newsletter HAVING AVG(age) > 20

-- answered
SELECT TRUNC(AVG(total)) FROM orders

-- refused: unsupported_sql
SELECT COUNT(*) FROM customers TABLESAMPLE 10%

-- answered
SELECT EXP(AVG(LN(total + 1))) FROM orders

-- answered
SELECT GEOMEAN(total + 1) FROM orders

-- answered
SELECT date_trunc('week', ordered) AS week, COUNT(DISTINCT customer_id) AS active FROM orders WHERE ordered >= '2024-01-01' AND ordered < '2024-04-01' GROUP BY week ORDER BY week

-- answered
WITH m AS (SELECT date_trunc('month', ordered) AS month, SUM(total) AS revenue FROM orders WHERE status = 'paid' AND ordered BETWEEN '2023-01-01' AND '2024-12-31' GROUP BY month) SELECT month, revenue, revenue / LAG(revenue, 12) OVER (ORDER BY month) - 1 AS yoy FROM m ORDER BY month

-- answered
SELECT COUNT(DISTINCT customer_id) FILTER (WHERE status = 'paid') * 100.0 / COUNT(DISTINCT customer_id) AS conversion FROM orders

-- answered
SELECT (SELECT COUNT(*) FROM customers) AS signed_up, (SELECT COUNT(DISTINCT customer_id) FROM orders) AS ordered, (SELECT COUNT(DISTINCT customer_id) FROM orders WHERE status = 'paid') AS paid

-- answered
SELECT 'signed up' AS step, COUNT(*) AS n FROM customers UNION ALL SELECT 'ordered', COUNT(DISTINCT customer_id) FROM orders UNION ALL SELECT 'paid', COUNT(DISTINCT customer_id) FROM orders WHERE status = 'paid'

-- answered
WITH steps AS (SELECT 1 AS s, COUNT(*) AS n FROM customers UNION ALL SELECT 2, COUNT(DISTINCT customer_id) FROM orders UNION ALL SELECT 3, COUNT(DISTINCT customer_id) FROM orders WHERE status = 'paid') SELECT s, n, n / FIRST_VALUE(n) OVER (ORDER BY s) AS of_all, n / LAG(n) OVER (ORDER BY s) AS of_last FROM steps ORDER BY s

-- answered
SELECT AVG(n) AS repeat_rate FROM (SELECT CASE WHEN COUNT(*) > 1 THEN 1.0 ELSE 0.0 END AS n FROM orders GROUP BY customer_id) t

-- answered
SELECT COUNT(*) FILTER (WHERE n > 1) * 1.0 / COUNT(*) AS repeat_rate FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t

-- not yet: private_row_limit
SELECT NTILE(4) OVER (ORDER BY spent) AS quartile, COUNT(*) FROM (SELECT customer_id, SUM(total) AS spent FROM orders GROUP BY customer_id) t GROUP BY quartile

-- answered
WITH rfm AS (SELECT customer_id, date_diff('day', MAX(ordered), DATE '2025-01-01') AS recency, COUNT(*) AS frequency, SUM(total) AS monetary FROM orders GROUP BY customer_id) SELECT CASE WHEN recency < 90 THEN 'new' ELSE 'old' END AS r, LEAST(frequency, 4) AS f, COUNT(*) AS n, AVG(monetary) AS m FROM rfm GROUP BY r, f ORDER BY r, f

-- answered
WITH f AS (SELECT customer_id, date_trunc('quarter', MIN(ordered)) AS cohort FROM orders GROUP BY customer_id) SELECT f.cohort, date_trunc('quarter', o.ordered) AS quarter, COUNT(DISTINCT o.customer_id) AS active FROM f JOIN orders o USING (customer_id) WHERE o.ordered >= '2023-01-01' AND o.ordered < '2025-01-01' GROUP BY f.cohort, quarter

-- answered
SELECT COUNT(*) FROM (SELECT customer_id FROM orders WHERE YEAR(ordered) = 2023 INTERSECT SELECT customer_id FROM orders WHERE YEAR(ordered) = 2024) t

-- answered
SELECT COUNT(DISTINCT a.customer_id) AS retained FROM orders a JOIN orders b USING (customer_id) WHERE YEAR(a.ordered) = 2023 AND YEAR(b.ordered) = 2024

-- answered
SELECT COUNT(*) AS retained FROM customers WHERE customer_id IN (SELECT customer_id FROM orders WHERE YEAR(ordered) = 2023) AND customer_id IN (SELECT customer_id FROM orders WHERE YEAR(ordered) = 2024)

-- answered
SELECT COUNT(*) AS churned FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.ordered < '2024-01-01') AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.ordered >= '2024-01-01')

-- answered
SELECT segment, SUM(quantity * price) AS revenue, SUM(quantity * price) / COUNT(DISTINCT c.customer_id) AS per_customer FROM items i JOIN orders o ON i.order_id = o.order_id JOIN customers c ON c.customer_id = o.customer_id GROUP BY segment

-- answered
SELECT category, RANK() OVER (ORDER BY SUM(quantity) DESC) AS place, SUM(quantity) AS sold FROM items JOIN products USING (product_id) GROUP BY category

-- answered
SELECT segment, category, SUM(quantity) AS q FROM items JOIN products USING (product_id) JOIN orders USING (order_id) JOIN customers USING (customer_id) GROUP BY segment, category QUALIFY ROW_NUMBER() OVER (PARTITION BY segment ORDER BY SUM(quantity) DESC) = 1

-- answered
SELECT r.region, SUM(i.price * i.quantity) AS revenue FROM items i, orders o, customers c, regions r WHERE i.order_id = o.order_id AND o.customer_id = c.customer_id AND c.region_id = r.region_id GROUP BY r.region ORDER BY 2 DESC

-- answered
SELECT COUNT(*) FROM (SELECT order_id FROM items GROUP BY order_id HAVING COUNT(*) >= 3) t

-- answered
SELECT AVG(lines), AVG(pieces) FROM (SELECT order_id, COUNT(*) AS lines, SUM(quantity) AS pieces FROM items GROUP BY order_id) t

-- answered
SELECT AVG(basket) FROM (SELECT o.order_id, o.customer_id, SUM(i.quantity * i.price) AS basket FROM orders o JOIN items i USING (order_id) GROUP BY o.order_id, o.customer_id) t

-- answered
SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.order_id AND i.returned)

-- answered
SELECT COUNT(*) FROM orders WHERE order_id IN (SELECT order_id FROM items WHERE quantity > 5)

-- answered
SELECT COUNT(DISTINCT a.order_id) FROM items a JOIN items b ON a.order_id = b.order_id JOIN products p ON p.product_id = a.product_id JOIN products q ON q.product_id = b.product_id WHERE p.category = 'books' AND q.category = 'toys'

-- answered
SELECT COUNT(DISTINCT order_id) FROM items WHERE returned

-- answered
SELECT p.category, COUNT(DISTINCT o.customer_id) AS buyers FROM products p JOIN items i ON i.product_id = p.product_id JOIN orders o ON o.order_id = i.order_id GROUP BY p.category ORDER BY buyers DESC

-- answered
SELECT p.product_id, SUM(i.quantity) AS sold FROM items i JOIN products p USING (product_id) GROUP BY p.product_id ORDER BY sold DESC, p.product_id LIMIT 5

-- answered
SELECT SUM(i.quantity * p.weight) / 1000 AS tonnes FROM items i JOIN products p USING (product_id)

-- answered
SELECT segment, joined_year, COUNT(*) AS n FROM (SELECT segment, YEAR(joined) AS joined_year FROM customers) t WHERE joined_year IN (2023, 2024) GROUP BY segment, joined_year

-- answered
SELECT status, COUNT(*) AS n FROM orders WHERE ordered >= DATE '2024-12-31' - INTERVAL '30 days' GROUP BY status

-- answered
SELECT ROUND(SUM(total * discount_opt) / SUM(total), 4) AS mean_discount FROM orders WHERE discount_opt IS NOT NULL

-- answered
SELECT CASE WHEN discount_opt IS NULL THEN 'none' WHEN discount_opt < 0.25 THEN 'small' ELSE 'large' END AS discount, AVG(total) FROM orders GROUP BY 1

-- answered
SELECT channel, SUM(total) AS revenue FROM orders GROUP BY channel ORDER BY revenue DESC, channel LIMIT 3

-- answered
SELECT SPLIT_PART(channel, ' ', 1) AS source, COUNT(*) AS n FROM orders GROUP BY source HAVING COUNT(*) > 30 ORDER BY n DESC, source

-- answered
SELECT REPLACE(UPPER(channel), ' ', '_') AS channel, COUNT(*) FROM orders GROUP BY ALL

-- other: values inside a place, one of 4,096, are not distinguished
SELECT status, QUANTILE_CONT(total, 0.5), QUANTILE_CONT(total, 0.95) FROM orders GROUP BY status

-- answered
SELECT segment, MAX(total) FROM orders JOIN customers USING (customer_id) GROUP BY segment

-- answered
SELECT EXTRACT(DOW FROM ordered) AS d, EXTRACT(MONTH FROM ordered) AS m, COUNT(*) FROM orders GROUP BY d, m

-- answered
SELECT date_part('dow', ordered) AS d, COUNT(*) AS n, n / 104.3 AS per_day FROM orders GROUP BY d ORDER BY d

-- answered
SELECT a.status, a.n AS y2023, b.n AS y2024, b.n - a.n AS change FROM (SELECT status, COUNT(*) AS n FROM orders WHERE YEAR(ordered) = 2023 GROUP BY status) a LEFT JOIN (SELECT status, COUNT(*) AS n FROM orders WHERE YEAR(ordered) = 2024 GROUP BY status) b ON a.status = b.status

-- answered
SELECT status, COUNT(*) AS n FROM orders WHERE customer_id IN (SELECT customer_id FROM customers WHERE newsletter) GROUP BY status

-- answered
SELECT newsletter, AVG(spent) FROM (SELECT c.customer_id, c.newsletter, COALESCE(SUM(o.total), 0) AS spent FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.customer_id, c.newsletter) t GROUP BY newsletter

-- answered
SELECT SUM(total) AS last_orders FROM (SELECT customer_id, ARG_MAX(total, ordered) AS total FROM orders GROUP BY customer_id) t

-- answered
SELECT SUM(total) FROM (SELECT customer_id, total, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered DESC, order_id DESC) AS r FROM orders) t WHERE r <= 3

-- answered
SELECT AVG(CASE WHEN total > 1.2 * mean THEN 1.0 ELSE 0.0 END) FROM (SELECT total, AVG(total) OVER (PARTITION BY customer_id) AS mean FROM orders) t

-- answered
SELECT COUNT(*) FROM orders o JOIN (SELECT customer_id, AVG(total) AS mean FROM orders GROUP BY customer_id) m ON m.customer_id = o.customer_id WHERE o.total > 2 * m.mean

-- answered
SELECT x.status, x.n, x.n * 100 / y.n AS pct FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) x CROSS JOIN (SELECT COUNT(*) AS n FROM orders) y

-- answered
SELECT STATUS, Count(*) AS N FROM Orders GROUP BY Status ORDER BY N DESC

-- answered
SELECT kind, COUNT(*) AS n FROM (SELECT customer_id, 'order' AS kind, ordered AS day FROM orders UNION ALL SELECT
customer_id, 'joined', joined FROM customers) t GROUP BY kind

-- answered
SELECT YEAR(day) AS y, COUNT(*) FROM (SELECT ordered AS day FROM orders WHERE status = 'paid' UNION ALL SELECT joined
FROM customers) t WHERE day >= DATE '2023-01-01' AND day < DATE '2025-01-01' GROUP BY y

-- answered
WITH touched AS (SELECT customer_id, total AS amount, 'order' AS kind FROM orders UNION ALL BY NAME SELECT 'item' AS
kind, price AS amount FROM items) SELECT kind, COUNT(*), SUM(amount) FROM touched GROUP BY kind

-- answered
SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM (SELECT customer_id FROM orders UNION ALL SELECT customer_id
FROM customers) a GROUP BY customer_id) b

-- answered
SELECT c.segment, COUNT(*), SUM(t.amount) FROM (SELECT customer_id, total AS amount FROM orders WHERE status = 'paid' UNION
ALL SELECT customer_id, 0 FROM customers) t JOIN customers c ON c.customer_id = t.customer_id GROUP BY c.segment

-- answered
SELECT COUNT(*) FROM (SELECT customer_id FROM customers WHERE newsletter UNION SELECT customer_id FROM orders WHERE status
= 'open') t

-- answered
SELECT COUNT(*) FROM (SELECT customer_id, status FROM orders WHERE total > 500 INTERSECT SELECT customer_id, status FROM
orders WHERE total < 400) t

-- answered
SELECT COUNT(*) FROM (SELECT customer_id FROM customers EXCEPT SELECT customer_id FROM orders WHERE status = 'paid') t

-- answered
SELECT segment, COUNT(*) FROM customers WHERE customer_id IN (SELECT customer_id FROM orders WHERE status = 'open' UNION
SELECT customer_id FROM orders WHERE total > 1500) GROUP BY segment

-- answered
SELECT r.region, COUNT(*) FROM (SELECT region_id FROM customers WHERE newsletter UNION ALL SELECT c.region_id FROM orders o
JOIN customers c USING (customer_id)) t JOIN regions r ON r.region_id = t.region_id GROUP BY r.region

-- answered
SELECT p.category, COUNT(*) FROM items i, products p WHERE i.quantity = p.product_id GROUP BY p.category

-- refused: correlated_subquery
SELECT COUNT(*) FROM (SELECT status FROM orders UNION SELECT segment FROM customers) t

-- refused: unsupported_sql
SELECT COUNT(*) FROM (SELECT region FROM regions UNION ALL SELECT segment FROM customers) t

-- answered
SELECT QUANTILE_CONT(age, [0.25, 0.75])[2] - QUANTILE_CONT(age, [0.25, 0.75])[1] AS iqr FROM customers

-- answered
SELECT APPROX_QUANTILE(age, [0.1, 0.9])[1] FROM customers

-- answered
SELECT MEDIAN(total) FILTER (WHERE total <> 100), COUNT(DISTINCT ordered) FROM orders

-- answered
SELECT b.name, COUNT(*), AVG(c.age) FROM customers c JOIN (VALUES ('young', 0, 35), ('middle', 35, 60), ('old', 60, 200))
AS b(name, low, high) ON c.age >= b.low AND c.age < b.high GROUP BY b.name

-- answered
WITH bands(name, low, high) AS (VALUES ('small', 0, 100), ('medium', 100, 1000), ('large', 1000, 100000)) SELECT b.name,
COUNT(*) AS n, SUM(o.total) FROM orders o, bands b WHERE o.total >= b.low AND o.total < b.high GROUP BY b.name

-- answered
SELECT g.d, COUNT(*) FROM customers c JOIN generate_series(DATE '2023-01-01', DATE '2023-03-01', INTERVAL 7 DAY) AS g(d) ON
c.joined <= g.d GROUP BY g.d

-- answered
SELECT x.n, COUNT(*), SUM(o.total) FROM orders o CROSS JOIN (VALUES (1), (2)) x(n) GROUP BY x.n

-- answered
SELECT t.word, COUNT(*) FROM orders JOIN UNNEST(['open', 'paid']) AS t(word) ON status = t.word GROUP BY t.word

-- answered
SELECT i.least, COUNT(*) FROM customers c, range(20, 90, 10) AS i(least) WHERE c.age >= i.least AND c.age < i.least + 10
GROUP BY i.least

-- answered
SELECT w.label, SUM(o.total * w.factor) FROM orders o JOIN (SELECT 'paid' AS status, 1.0 AS factor, 'sure' AS label UNION
ALL SELECT 'open', 0.5, 'likely') w USING (status) GROUP BY w.label

-- answered
SELECT b.name, COUNT(*) FROM (SELECT customer_id, SUM(total) AS spent FROM orders GROUP BY customer_id) t JOIN (VALUES
('some', 0, 2000), ('much', 2000, 1000000)) b(name, low, high) ON t.spent >= b.low AND t.spent < b.high GROUP BY b.name

-- answered
SELECT COUNT(*), COUNT(v.age) FROM customers c LEFT JOIN (VALUES (18), (19), (20)) v(age) ON c.age = v.age

-- answered
SELECT b.name, COUNT(*), AVG(c.age) FROM customers c LEFT JOIN (VALUES ('young', 0, 30), ('middle', 40, 60)) AS b(name, low,
high) ON c.age >= b.low AND c.age < b.high GROUP BY b.name

-- answered
SELECT COALESCE(w.label, 'none') AS label, SUM(o.total) FROM orders o LEFT JOIN (VALUES ('paid', 'sure'), ('paid', 'good'))
AS w(status, label) USING (status) GROUP BY label

-- answered
SELECT COUNT(*) FROM customers c LEFT JOIN (VALUES (18), (19), (20)) v(age) ON c.age = v.age WHERE v.age IS NULL

-- answered
WITH m AS (SELECT AVG(total) AS mean, STDDEV(total) AS spread FROM orders)
SELECT COUNT(*) FROM orders, m WHERE total > m.mean + m.spread

-- answered
SELECT SUM(CASE WHEN total > (SELECT AVG(total) FROM orders) THEN 1 ELSE 0 END) AS above, COUNT(*) FROM orders

-- answered
SELECT total > (SELECT AVG(total) FROM orders) AS above, COUNT(*) FROM orders GROUP BY 1

-- answered
SELECT COUNT(*) FROM orders CROSS JOIN (SELECT AVG(total) AS mean FROM orders) AS m WHERE total BETWEEN mean / 2 AND mean * 2

-- answered
SELECT AVG(gap) FROM (SELECT date_diff('day', LAG(ordered) OVER (PARTITION BY customer_id ORDER BY ordered, order_id), ordered) AS gap
FROM orders) t WHERE gap BETWEEN 0 AND 3000

-- answered
SELECT status, COUNT(*) FROM (SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered DESC, order_id) = 1) t
GROUP BY status

-- answered
WITH ranked AS (SELECT o.*, ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.ordered, o.order_id) AS rn FROM orders o)
SELECT date_trunc('month', ordered) AS month, COUNT(*) AS first_orders, AVG(total) FROM ranked WHERE rn = 1 GROUP BY month

-- answered
SELECT status, AVG(total) FROM (SELECT DISTINCT ON (customer_id) customer_id, status, total FROM orders
ORDER BY customer_id, ordered DESC, order_id) t GROUP BY status

-- answered
WITH c AS (SELECT customer_id, ordered, MIN(ordered) OVER (PARTITION BY customer_id) AS first_order FROM orders)
SELECT YEAR(first_order) AS cohort, date_diff('year', first_order, ordered) AS age, COUNT(DISTINCT customer_id) AS customers FROM c
GROUP BY cohort, age

-- answered
SELECT rn, COUNT(*), SUM(total) FROM (SELECT total, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered, order_id) AS rn
FROM orders QUALIFY rn <= 3) t GROUP BY rn

-- answered
SELECT AVG(total - before) FROM (SELECT total, LAG(total, 1, 0) OVER w AS before FROM orders
WINDOW w AS (PARTITION BY customer_id ORDER BY ordered, order_id)) t

-- answered
SELECT COUNT(*) FROM (SELECT customer_id, SUM(total) OVER (PARTITION BY customer_id ORDER BY ordered, order_id
ROWS UNBOUNDED PRECEDING) AS running FROM orders) t WHERE running > 1000

-- answered
SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY customer_id ORDER BY status) AS r,
DENSE_RANK() OVER (PARTITION BY customer_id ORDER BY status DESC) AS d FROM orders) t WHERE r > d

-- answered
SELECT channel, COUNT(*) FROM (SELECT customer_id, channel, COUNT(*) AS n FROM orders GROUP BY customer_id, channel
QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY n DESC, channel) = 1) t GROUP BY channel

-- answered
SELECT first_channel, COUNT(*) FROM (SELECT DISTINCT customer_id, FIRST_VALUE(channel) OVER (PARTITION BY customer_id
ORDER BY ordered, order_id) AS first_channel FROM orders) t GROUP BY first_channel

-- answered
SELECT AVG(GREATEST(0, LEAST(share, 1))) FROM (SELECT total / SUM(total) OVER (PARTITION BY customer_id) AS share FROM orders) t

-- answered
SELECT segment, AVG(total) FROM customers c LEFT JOIN (SELECT customer_id, total, ROW_NUMBER() OVER (PARTITION BY customer_id
ORDER BY total DESC, order_id) AS rn FROM orders QUALIFY rn = 1) o USING (customer_id) GROUP BY segment

-- answered
SELECT COUNT(*) FROM (SELECT quantity, MAX(quantity) OVER (PARTITION BY o.customer_id, product_id) AS most FROM items i
JOIN orders o ON i.order_id = o.order_id) t WHERE quantity = most

-- answered
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY price DESC, product_id, quantity, returned) AS place FROM items) t
WHERE place <= 2

-- answered
SELECT COUNT(*) FROM (SELECT total, AVG(total) OVER (PARTITION BY customer_id ORDER BY ordered, order_id
ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS usual FROM orders) t WHERE total > 2 * usual

-- answered
SELECT SUM(spent - before) FROM (SELECT customer_id, YEAR(ordered) AS y, SUM(total) AS spent,
LAG(SUM(total), 1, 0) OVER (PARTITION BY customer_id ORDER BY YEAR(ordered)) AS before FROM orders GROUP BY customer_id, y) t

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY channel ORDER BY total DESC) AS place FROM orders) t WHERE place = 1

-- refused: private_row_limit
SELECT COUNT(*) FROM (SELECT * FROM orders ORDER BY total DESC LIMIT 10) t

-- answered
WITH m AS (SELECT status, AVG(total) AS mean FROM orders GROUP BY status)
SELECT o.status, COUNT(*) AS above FROM orders o JOIN m ON o.status = m.status WHERE o.total > m.mean GROUP BY o.status

-- answered
SELECT status, COUNT(*) FROM orders WHERE status IN (SELECT status FROM orders GROUP BY status ORDER BY SUM(total) DESC LIMIT 2) GROUP BY status ORDER BY status

-- answered
SELECT segment, COUNT(*), AVG(total) FROM customers c FULL JOIN orders o ON c.customer_id = o.customer_id GROUP BY segment

-- answered
SELECT COUNT(DISTINCT COALESCE(a.customer_id, b.customer_id)) AS people, COUNT(a.n) AS paid, COUNT(b.n) AS open, SUM(COALESCE(a.n, 0) - COALESCE(b.n, 0))
FROM (SELECT customer_id, COUNT(*) AS n FROM orders WHERE status = 'paid' GROUP BY customer_id) a
FULL OUTER JOIN (SELECT customer_id, COUNT(*) AS n FROM orders WHERE status = 'open' GROUP BY customer_id) b ON a.customer_id = b.customer_id

-- answered
SELECT a.n IS NULL AS without, COUNT(*) FROM (SELECT customer_id, COUNT(*) AS n FROM orders WHERE total > 500 GROUP BY customer_id) a
FULL JOIN customers c USING (customer_id) GROUP BY without

-- answered
SELECT region_id, AVG(spent) FROM (SELECT customer_id, region_id, SUM(total) AS spent FROM customers FULL JOIN orders USING (customer_id)
GROUP BY customer_id, region_id) t GROUP BY region_id

-- refused: unsupported_sql
SELECT COUNT(*) FROM orders o FULL JOIN products p ON o.order_id = p.product_id

-- answered
SELECT SUM(CASE WHEN total > 500 THEN 500 WHEN total < 20 THEN 20 ELSE total END) FROM orders

-- answered
SELECT AVG(total), SUM(total) FROM orders WHERE NOT (total < 100 OR total > 500)

-- answered
SELECT AVG(n), SUM(s) FROM (SELECT customer_id, COUNT(*) AS n, SUM(total) AS s FROM orders WHERE total <= 400 GROUP BY customer_id HAVING COUNT(*) <= 3) AS t

-- answered
SELECT QUARTER(ordered) AS q, COUNT(*) AS n FROM orders WHERE ordered >= DATE '2024-01-01' AND ordered < DATE '2024-07-01' GROUP BY q

-- answered
SELECT status, COUNT(*) FROM (SELECT customer_id, FIRST(status ORDER BY order_id) AS status FROM orders GROUP BY customer_id) t GROUP BY status

-- answered
SELECT AVG(first), COUNT(last) FROM (SELECT customer_id, ARG_MIN(total, order_id) AS first, MAX_BY(discount_opt, order_id) AS last FROM orders GROUP BY customer_id) t

-- answered
SELECT AVG(n) FROM (SELECT customer_id, COUNT(DISTINCT (status, channel)) AS n FROM orders GROUP BY customer_id) t

-- answered
SELECT t.m, COUNT(*) AS n, SUM(o.total) AS s FROM generate_series(DATE '2024-01-01', DATE '2024-04-01', INTERVAL 1 MONTH) AS t(m) JOIN orders o ON date_trunc('month', o.ordered) = t.m GROUP BY t.m

-- answered
SELECT COUNT(*) FROM orders o JOIN customers c USING (customer_id) WHERE AGE(o.ordered, c.joined) > INTERVAL '3 months 2 days'

-- answered
SELECT COUNT(*) FROM orders o JOIN customers c USING (customer_id) WHERE AGE(o.ordered, c.joined) BETWEEN -INTERVAL 1 YEAR AND INTERVAL 1 YEAR

-- answered
SELECT AVG(EXTRACT(MONTH FROM AGE(o.ordered, c.joined))) FROM orders o JOIN customers c USING (customer_id)

-- answered
SELECT CASE WHEN channel IN (SELECT channel FROM orders GROUP BY channel HAVING COUNT(*) > 3) THEN 'often' ELSE 'rarely' END AS k, COUNT(*) FROM orders GROUP BY k

-- answered
SELECT c.segment, COUNT(o.order_id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id AND c.newsletter AND o.status = 'paid' GROUP BY c.segment

-- answered
SELECT COUNT(i.price) FROM orders o LEFT JOIN items i ON i.order_id = o.order_id AND i.price > o.total / 10

-- answered
SELECT COUNT(*) FROM orders o FULL JOIN customers c ON o.customer_id = c.customer_id AND o.total > 5
