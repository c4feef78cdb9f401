-- refused: no_groups
SELECT sex, COUNT(*) FROM people WHERE sex = 'none' GROUP BY sex

-- refused: no_groups
SELECT sex, COUNT(*) FROM people WHERE sex = 'male' AND sex = 'female' GROUP BY sex

-- refused: no_groups
SELECT smoker, COUNT(*) FROM people WHERE smoker AND NOT smoker GROUP BY 1

-- refused: no_groups
SELECT hours, COUNT(*) FROM people WHERE hours > 80 GROUP BY hours

-- refused: no_groups
SELECT sex, hours, COUNT(*) FROM people WHERE hours IN (81, 82) GROUP BY ALL

-- refused: no_groups
SELECT sex = 'male' AS m, COUNT(*) FROM people WHERE sex IS NULL GROUP BY m

-- refused: no_groups
SELECT FLOOR(hours / 10) AS k, AVG(age) FROM people WHERE hours < 0 GROUP BY k
