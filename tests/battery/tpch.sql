-- answered
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 +
l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS
avg_disc, count(*) AS count_order FROM lineitem WHERE l_shipdate <= CAST('1998-09-02' AS date) GROUP BY
l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus

-- answered
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment FROM part, supplier,
partsupp, nation, region WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type
LIKE '%BRASS' AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE' AND
ps_supplycost = (SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region WHERE p_partkey =
ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name =
'EUROPE') ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100

-- refused: group_by_unit
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority FROM
customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey =
o_orderkey AND o_orderdate < CAST('1995-03-15' AS date) AND l_shipdate > CAST('1995-03-15' AS date) GROUP BY
l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10

-- answered
SELECT o_orderpriority, count(*) AS order_count FROM orders WHERE o_orderdate >= CAST('1994-07-01' AS date)
AND o_orderdate < CAST('1994-10-01' AS date) AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey
AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority

-- answered
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem, supplier,
nation, region WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND
c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND
o_orderdate >= CAST('1994-01-01' AS date) AND o_orderdate < CAST('1995-01-01' AS date) GROUP BY n_name ORDER
BY revenue DESC

-- answered
SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= CAST('1994-01-01' AS
date) AND l_shipdate < CAST('1995-01-01' AS date) AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24

-- answered
SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue FROM (SELECT n1.n_name AS supp_nation,
n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year, l_extendedprice * (1 - l_discount) AS
volume FROM supplier, lineitem, orders, customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey AND
o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey AND c_nationkey =
n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name =
'FRANCE')) AND l_shipdate BETWEEN CAST('1995-01-01' AS date) AND CAST('1996-12-31' AS date)) AS shipping GROUP
BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year

-- answered
SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share FROM (SELECT
extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region WHERE p_partkey = l_partkey AND
s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey
AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey AND o_orderdate
BETWEEN CAST('1995-01-01' AS date) AND CAST('1996-12-31' AS date) AND p_type = 'ECONOMY ANODIZED STEEL') AS
all_nations GROUP BY o_year ORDER BY o_year

-- answered
SELECT nation, o_year, sum(amount) AS sum_profit FROM (SELECT n_name AS nation, extract(year FROM o_orderdate)
AS o_year, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount FROM part, supplier,
lineitem, partsupp, orders, nation WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey =
l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE
'%green%') AS profit GROUP BY nation, o_year ORDER BY nation, o_year DESC

-- refused: group_by_unit
SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address,
c_phone, c_comment FROM customer, orders, lineitem, nation WHERE c_custkey = o_custkey AND l_orderkey =
o_orderkey AND o_orderdate >= CAST('1994-10-01' AS date) AND o_orderdate < CAST('1994-01-01' AS date) AND
l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name,
c_address, c_comment ORDER BY revenue DESC LIMIT 20

-- answered
SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation WHERE ps_suppkey
= s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY' GROUP BY ps_partkey HAVING sum(ps_supplycost
* ps_availqty) > (SELECT sum(ps_supplycost * ps_availqty) * 0.0001000000 FROM partsupp, supplier, nation WHERE
ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY') ORDER BY value DESC

-- answered
SELECT l_shipmode, sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END)
AS high_line_count, sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0
END) AS low_line_count FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= CAST('1994-01-01' AS date)
AND l_receiptdate < CAST('1995-01-01' AS date) GROUP BY l_shipmode ORDER BY l_shipmode

-- answered
SELECT c_count, count(*) AS custdist FROM (SELECT c_custkey, count(o_orderkey) FROM customer LEFT OUTER JOIN
orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) AS c_orders
(c_custkey, c_count) GROUP BY c_count ORDER BY custdist DESC, c_count DESC

-- answered
SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) /
sum(l_extendedprice * (1 - l_discount)) AS promo_revenue FROM lineitem, part WHERE l_partkey = p_partkey AND
l_shipdate >= date '1995-06-01' AND l_shipdate < CAST('1995-10-01' AS date)

-- answered
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, (SELECT l_suppkey AS supplier_no,
sum(l_extendedprice * (1 - l_discount)) AS total_revenue FROM lineitem WHERE l_shipdate >= CAST('1995-01-01'
AS date) AND l_shipdate < CAST('1995-10-01' AS date) GROUP BY supplier_no) revenue0 WHERE s_suppkey =
supplier_no AND total_revenue = (SELECT max(total_revenue) FROM (SELECT l_suppkey AS supplier_no,
sum(l_extendedprice * (1 - l_discount)) AS total_revenue FROM lineitem WHERE l_shipdate >= CAST('1995-01-01'
AS date) AND l_shipdate < CAST('1995-10-01' AS date) GROUP BY supplier_no) revenue1) ORDER BY s_suppkey

-- answered
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part WHERE p_partkey
= ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45,
19, 3, 36, 9) AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE
'%Customer%Complaints%') GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size

-- answered
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand =
'Brand#23' AND p_container = 'MED BOX' AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE
l_partkey = p_partkey)

-- refused: group_by_unit
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) FROM customer, orders,
lineitem WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) >
300) AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, c_custkey, o_orderkey,
o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderdate LIMIT 100

-- answered
SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part WHERE (p_partkey = l_partkey AND
p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity >= 1 AND
l_quantity <= 11 AND p_size BETWEEN 1 AND 5 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER
IN PERSON') OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED
PKG', 'MED PACK') AND l_quantity >= 10 AND l_quantity <= 20 AND p_size BETWEEN 1 AND 10 AND l_shipmode IN
('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')

-- answered
SELECT s_name, s_address FROM supplier, nation WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp WHERE
ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%') AND ps_availqty > (SELECT 0.5 *
sum(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >=
CAST('1994-01-01' AS date) AND l_shipdate < CAST('1995-01-01' AS date))) AND s_nationkey = n_nationkey AND
n_name = 'CANADA' ORDER BY s_name

-- answered
SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey
AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND EXISTS
(SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey) AND
s_nationkey = n_nationkey AND n_name = 'INDIA' GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100

-- answered
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (SELECT substring(c_phone FROM 1 FOR
2) AS cntrycode, c_acctbal FROM customer WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29',
'30', '18', '17') AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND
substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')) AND NOT EXISTS (SELECT * FROM
orders WHERE o_custkey = c_custkey)) AS custsale GROUP BY cntrycode ORDER BY cntrycode

-- answered
SELECT n_name, COUNT(*) AS customers, AVG(c_acctbal) AS balance FROM customer JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name ORDER BY balance DESC

-- answered
SELECT r_name, n_name, SUM(o_totalprice) FROM orders JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey GROUP BY r_name, n_name

-- answered
SELECT EXTRACT(YEAR FROM o_orderdate) AS y, o_orderpriority, COUNT(*) FROM orders GROUP BY y, o_orderpriority ORDER BY y, o_orderpriority

-- answered
SELECT c_mktsegment, AVG(n) FROM (SELECT c_custkey, c_mktsegment, COUNT(o_orderkey) AS n FROM customer LEFT JOIN orders ON o_custkey = c_custkey GROUP BY c_custkey, c_mktsegment) t GROUP BY c_mktsegment

-- other: values inside a place, one of 4,096, are not distinguished
SELECT o_orderstatus, MEDIAN(o_totalprice) FROM orders GROUP BY o_orderstatus

-- other: the bounds that the histogram chooses clip
SELECT l_shipmode, AVG(l_receiptdate - l_shipdate) AS days FROM lineitem WHERE l_receiptdate - l_shipdate BETWEEN 0 AND 60 GROUP BY l_shipmode

-- answered
SELECT l_shipmode, AVG(CASE WHEN l_receiptdate > l_commitdate THEN 1.0 ELSE 0.0 END) AS late FROM lineitem GROUP BY l_shipmode ORDER BY late DESC

-- answered
SELECT COUNT(*) FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_returnflag = 'R')

-- answered
SELECT COUNT(DISTINCT l_orderkey) FROM lineitem WHERE l_commitdate < l_receiptdate

-- answered
SELECT SUBSTRING(c_phone, 1, 2) AS code, COUNT(*) FROM customer GROUP BY code HAVING COUNT(*) > 10

-- answered
SELECT p_brand, SUM(l_quantity) FROM lineitem JOIN part ON p_partkey = l_partkey GROUP BY p_brand

-- answered
SELECT COUNT(*) FROM customer WHERE c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0)

-- answered
SELECT COUNT(*) FROM customer WHERE c_acctbal > 1000 AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)

-- answered
SELECT COUNT(*), SUM(total) FROM (SELECT o_orderkey, SUM(l_quantity) AS total FROM orders JOIN lineitem ON l_orderkey = o_orderkey GROUP BY o_orderkey) t WHERE total > 100

-- answered
SELECT o_orderpriority, COUNT(DISTINCT o_orderkey) AS n FROM orders JOIN lineitem ON l_orderkey = o_orderkey WHERE l_commitdate < l_receiptdate GROUP BY o_orderpriority

-- answered
SELECT s_name, SUM(l_extendedprice) AS revenue FROM lineitem JOIN supplier ON l_suppkey = s_suppkey GROUP BY s_name ORDER BY revenue DESC, s_name LIMIT 5

-- answered
SELECT l_returnflag, l_linestatus, COUNT(*), SUM(l_quantity) FROM lineitem GROUP BY CUBE (l_returnflag, l_linestatus)

-- answered
SELECT YEAR(l_shipdate) AS y, SUM(l_extendedprice * (1 - l_discount)) AS revenue, SUM(SUM(l_extendedprice * (1 - l_discount))) OVER (ORDER BY YEAR(l_shipdate)) AS so_far FROM lineitem GROUP BY y ORDER BY y

-- answered
SELECT o_orderpriority, COUNT(*) FROM orders WHERE NOT EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey =
o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority

-- answered
SELECT n_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey
AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND EXISTS
(SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey) AND NOT
EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey AND
l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey GROUP BY n_name ORDER BY numwait DESC,
n_name

-- answered
SELECT c_mktsegment, COUNT(*) AS big_orders, SUM(o_totalprice) AS total FROM customer, orders WHERE o_orderkey
IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 60) AND c_custkey = o_custkey
GROUP BY c_mktsegment

-- answered
WITH big AS (SELECT l_orderkey, SUM(l_quantity) AS quantity FROM lineitem GROUP BY l_orderkey HAVING
SUM(l_quantity) > 60) SELECT o_orderpriority, COUNT(*) AS n, AVG(quantity) AS mean FROM orders JOIN big ON
o_orderkey = big.l_orderkey GROUP BY o_orderpriority

-- answered
SELECT COUNT(*) FROM orders AS o WHERE o.o_totalprice > (SELECT AVG(p.o_totalprice) FROM orders AS p WHERE
p.o_custkey = o.o_custkey)

-- answered
SELECT o_orderpriority, AVG((SELECT COUNT(*) FROM lineitem WHERE l_orderkey = o_orderkey)) AS items FROM
orders GROUP BY o_orderpriority

-- answered
SELECT items, COUNT(*) AS orders FROM (SELECT l_orderkey, COUNT(*) AS items FROM lineitem GROUP BY l_orderkey)
AS t GROUP BY items ORDER BY items

-- answered
SELECT a.l_shipmode, COUNT(*) AS pairs FROM lineitem AS a JOIN lineitem AS b ON a.l_orderkey = b.l_orderkey
AND a.l_partkey < b.l_partkey GROUP BY a.l_shipmode

-- answered
SELECT COUNT(*) FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM orders AS p WHERE p.o_custkey = o.o_custkey
AND p.o_orderdate < o.o_orderdate)

-- answered
SELECT l_shipmode, COUNT(*) FROM lineitem AS l WHERE l_quantity < (SELECT 0.8 * AVG(m.l_quantity) FROM
lineitem AS m WHERE m.l_orderkey = l.l_orderkey) GROUP BY l_shipmode

-- answered
SELECT COUNT(*) FROM lineitem AS l WHERE l_partkey IN (SELECT m.l_partkey FROM lineitem AS m WHERE
m.l_orderkey = l.l_orderkey AND m.l_quantity > 20)

-- answered
SELECT s_suppkey, (SELECT SUM(l_quantity) FROM lineitem WHERE l_suppkey = s_suppkey) AS quantity FROM supplier
ORDER BY s_suppkey

-- answered
SELECT s_name, s_address FROM supplier, nation WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp WHERE
ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '%e%') AND ps_availqty > (SELECT 0.5 *
SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >=
CAST('1994-01-01' AS date) AND l_shipdate < CAST('1996-01-01' AS date))) AND s_nationkey = n_nationkey AND
n_name = 'INDIA' ORDER BY s_name

-- answered
SELECT n_name, (SELECT AVG(c_acctbal) FROM customer WHERE c_nationkey = n_nationkey AND c_acctbal > 0) AS
balance FROM nation ORDER BY n_name

-- answered
SELECT o_shippriority, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE
'1995-03-15' AND l_shipdate > DATE '1995-03-15' GROUP BY o_shippriority

-- answered
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1994-10-01' AND o_orderdate <
DATE '1995-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY n_name ORDER BY revenue DESC
LIMIT 20

-- answered
SELECT COUNT(DISTINCT o_orderkey) AS orders, SUM(l_quantity) AS quantity FROM customer, orders, lineitem WHERE
o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 60) AND c_custkey
= o_custkey AND o_orderkey = l_orderkey

-- answered
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand =
'Brand#23' AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem, part WHERE p_partkey = l_partkey AND
p_brand = 'Brand#23')

-- answered
SELECT n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year, SUM(l_extendedprice * (1 - l_discount)) AS
sum_price FROM part, supplier, lineitem, orders, nation WHERE s_suppkey = l_suppkey AND p_partkey = l_partkey
AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%' GROUP BY n_name, o_year
ORDER BY n_name, o_year DESC

-- answered
SELECT SUM(l_quantity * ps_supplycost) FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey

-- answered
SELECT ps_suppkey, COUNT(*) AS lines FROM lineitem LEFT JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND ps_availqty > 5000 WHERE ps_suppkey < 3 GROUP BY ps_suppkey

-- answered
SELECT COUNT(*) FROM lineitem LEFT JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND ps_availqty > 5000 WHERE ps_suppkey IS NULL

-- answered
SELECT COUNT(*) FROM lineitem, partsupp WHERE l_partkey = ps_partkey AND ps_supplycost < l_extendedprice / l_quantity

-- answered
SELECT n_name, COUNT(*) FROM customer JOIN supplier ON c_nationkey = s_nationkey JOIN nation ON s_nationkey = n_nationkey GROUP BY n_name

-- answered
SELECT SUM(l_extendedprice) FROM lineitem JOIN partsupp ON l_suppkey = ps_suppkey

-- answered
SELECT r.r_name, COUNT(c.c_custkey) FROM region r LEFT JOIN nation n ON n.n_regionkey = r.r_regionkey LEFT JOIN customer c ON c.c_nationkey = n.n_nationkey GROUP BY r.r_name

-- answered
SELECT n.n_name, COUNT(c.c_custkey), AVG(c.c_acctbal) FROM nation n FULL OUTER JOIN customer c ON c.c_nationkey = n.n_nationkey GROUP BY n.n_name

-- answered
SELECT COUNT(*), SUM(l_quantity) FROM lineitem WHERE (l_partkey, l_suppkey) IN (SELECT ps_partkey, ps_suppkey FROM partsupp WHERE ps_availqty > 5000)

-- answered
SELECT COUNT(*), SUM(l_quantity) FROM lineitem WHERE (l_partkey, l_suppkey) NOT IN (SELECT ps_partkey, ps_suppkey FROM partsupp WHERE ps_availqty > 5000)

-- answered
SELECT COUNT(*) FROM lineitem WHERE AGE(l_receiptdate, l_shipdate) > INTERVAL 30 DAY

-- answered
SELECT COUNT(*) FROM lineitem WHERE l_receiptdate::TIMESTAMP - l_shipdate::TIMESTAMP > INTERVAL 30 DAY

-- answered
SELECT EXTRACT(DAY FROM AGE(l_receiptdate, l_shipdate)) AS d, COUNT(*) FROM lineitem GROUP BY d
