-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE error('x') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE TRY(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE chr(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE factorial(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE make_timestamp(age, 1, 1, 1, 1, 1) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE strptime(education, '%Y') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE try_strptime(education, '%Y') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE regexp_matches(education, education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE repeat('x', age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE repeat('x', 2000000000) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE lpad('x', age, 'y') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE rpad('x', age, 'y') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE get_bit('1'::BIT, age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE from_hex(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE unhex(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE from_base64(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE decode(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE encode(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE json_extract(education, '$.a') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE json_valid(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE map([age], [1]) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE timezone('UTC', born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE hamming(education, 'a') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE list_dot_product([1.0], [1.0]) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE bar(age, 0, 100) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE format('{}', age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE printf('%d', age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE sleep_ms(700) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE sleep_ms(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE stats(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE getenv('HOME') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE query('SELECT 1') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE list_value(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE [age] IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE list_transform([age], lambda x: x) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE struct_pack(a := age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE row(age, hours) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE array_value(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE md5(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE sha256(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE hash(person_id) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE age(born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE bit_count(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE even(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE gamma(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE lgamma(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE cot(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE levenshtein(education, 'a') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE jaccard(education, 'a') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE jaro_winkler_similarity(education, 'a') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE string_split(education, ',') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE split(education, ',') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE reverse(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE nfc_normalize(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE url_decode(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE parse_path(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE epoch_ms(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE to_timestamp(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE to_days(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE julian(born) IS NULL

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE xor(age, 1) IS NULL

-- refused: volatile_function
SELECT COUNT(*) FROM people WHERE current_setting('x') || error('y') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE divide(age, 0) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE add(age, 9223372036854775807) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE multiply(age, 9223372036854775807) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE subtract(age, 1) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE pg_typeof(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE typeof(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE alias(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE vector_type(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE enum_range(sex) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE can_cast_implicitly(age, 1) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE nextafter(income, 1.0) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE greatest_common_divisor(age, 2) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE gcd(age, 0) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE lcm(age, 0) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE isnan(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE isinf(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE isfinite(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE constant_or_null(1, age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE combine(age, 1) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE finalize(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE in_search_path('a', 'b') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE write_log('x') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE read_text('x') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE icu_sort_key(education, 'de') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE create_sort_key(age, 'asc') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE equi_width_bins(0, 100, 10, true) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE is_histogram_other_bin(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE nvl(age, 0) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE signum(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE truncate(income) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE iif(smoker, 1, 2) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE endswith(education, 'a') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE startswith(education, 'a') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE day_of_week(born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE week_of_year(born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE date_to_date_str(born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE ts_or_ds_to_date_str(born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE mod(age, 2, hours) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE log10(age, 3) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE log2() IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE log10() IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE date_trunc('year', born, born) IS NULL

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE ifnull(age) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE like(education, 'a') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE if(smoker, 1) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE date_trunc(lower('MONTH'), born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE extract(dummy FROM born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE date_part(sex, born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE date_trunc('millennium2', born) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE timestamp_trunc(born, 'year') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE convert(age, bigint) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE try_convert(age, bigint) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE "nvl"(age, 0) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE nvl2(age, 1, 2) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE decode(age, 1, 2) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE to_char(born, 'x') IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE to_number(education) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE substring_index(education, 'a', 1) IS NULL

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE ltrim(education, sex, sex) IS NULL

-- refused: unsupported_function
SELECT error('x'), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE error('x') IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN error('x') IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(error('x')) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, error('x')

-- refused: unsupported_function
SELECT COUNT_IF(error('x') IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN error('x') IS NULL ELSE TRUE END

-- refused: unsupported_function
SELECT chr(age), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE chr(age) IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN chr(age) IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(chr(age)) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, chr(age)

-- refused: unsupported_function
SELECT COUNT_IF(chr(age) IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN chr(age) IS NULL ELSE TRUE END

-- refused: unsupported_function
SELECT factorial(age), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE factorial(age) IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN factorial(age) IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(factorial(age)) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, factorial(age)

-- refused: unsupported_function
SELECT COUNT_IF(factorial(age) IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN factorial(age) IS NULL ELSE TRUE END

-- refused: unsupported_function
SELECT strptime(education, '%Y'), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE strptime(education, '%Y') IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN strptime(education, '%Y') IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(strptime(education, '%Y')) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, strptime(education, '%Y')

-- refused: unsupported_function
SELECT COUNT_IF(strptime(education, '%Y') IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN strptime(education, '%Y') IS NULL ELSE TRUE END

-- refused: unsupported_function
SELECT sleep_ms(700), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE sleep_ms(700) IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN sleep_ms(700) IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(sleep_ms(700)) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, sleep_ms(700)

-- refused: unsupported_function
SELECT COUNT_IF(sleep_ms(700) IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN sleep_ms(700) IS NULL ELSE TRUE END

-- refused: unsupported_function
SELECT repeat('x', 2000000000), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE repeat('x', 2000000000) IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN repeat('x', 2000000000) IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(repeat('x', 2000000000)) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, repeat('x', 2000000000)

-- refused: unsupported_function
SELECT COUNT_IF(repeat('x', 2000000000) IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN repeat('x', 2000000000) IS NULL ELSE TRUE END

-- refused: unsupported_function
SELECT from_hex(education), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE from_hex(education) IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN from_hex(education) IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(from_hex(education)) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, from_hex(education)

-- refused: unsupported_function
SELECT COUNT_IF(from_hex(education) IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN from_hex(education) IS NULL ELSE TRUE END

-- refused: unsupported_function
SELECT md5(education), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE md5(education) IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN md5(education) IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(md5(education)) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, md5(education)

-- refused: unsupported_function
SELECT COUNT_IF(md5(education) IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN md5(education) IS NULL ELSE TRUE END

-- refused: unsupported_function
SELECT nvl(age, 0), COUNT(*) FROM people GROUP BY 1

-- refused: unsupported_function
SELECT COUNT(*) FILTER (WHERE nvl(age, 0) IS NULL) FROM people

-- refused: unsupported_function
SELECT SUM(CASE WHEN nvl(age, 0) IS NULL THEN 1 ELSE 0 END) FROM people

-- refused: unsupported_function
SELECT COUNT(nvl(age, 0)) FROM people

-- refused: unsupported_function
SELECT sex, COUNT(*) FROM people GROUP BY sex, nvl(age, 0)

-- refused: unsupported_function
SELECT COUNT_IF(nvl(age, 0) IS NOT NULL) FROM people

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN nvl(age, 0) IS NULL ELSE TRUE END

-- refused: unsupported_sql
SELECT MEDIAN(DISTINCT age) FROM people

-- refused: unsupported_sql
SELECT QUANTILE_CONT(DISTINCT age, 0.5) FROM people

-- refused: unsupported_sql
SELECT QUANTILE_DISC(DISTINCT age, 0.5) FROM people

-- refused: unsupported_sql
SELECT MODE(DISTINCT sex), COUNT(*) FROM people

-- refused: unsupported_function
SELECT FIRST(age) FROM people

-- refused: unsupported_function
SELECT LAST(age) FROM people

-- refused: unsupported_function
SELECT ANY_VALUE(age) FROM people

-- refused: unsupported_function
SELECT ARG_MAX(age, hours) FROM people

-- refused: unsupported_function
SELECT ARG_MIN(age, hours) FROM people

-- refused: unsupported_function
SELECT LIST(age) FROM people

-- refused: unsupported_function
SELECT ARRAY_AGG(age) FROM people

-- refused: unsupported_function
SELECT STRING_AGG(sex, ',') FROM people

-- refused: unsupported_function
SELECT GROUP_CONCAT(sex) FROM people

-- refused: unsupported_function
SELECT HISTOGRAM(person_id) FROM people


-- refused: unsupported_sql
SELECT APPROX_QUANTILE(age, 1.5) FROM people

-- refused: unsupported_sql
SELECT QUANTILE(age, [0.5, 1.9]) FROM people

-- refused: unsupported_sql
SELECT QUANTILE_CONT(age, age) FROM people

-- refused: unsupported_sql
SELECT QUANTILE_DISC(age, -0.5) FROM people

-- refused: unsupported_sql
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age DESC) FROM people

-- refused: unsupported_type
SELECT KURTOSIS(education) FROM people

-- refused: unsupported_type
SELECT SKEWNESS(education) FROM people

-- refused: unsupported_function
SELECT ENTROPY(age, 2) FROM people

-- refused: unsupported_function
SELECT sex, MAD(age) FROM people GROUP BY ROLLUP (sex)

-- refused: unsupported_function
SELECT PRODUCT(age) FROM people

-- refused: unsupported_function
SELECT BIT_AND(age) FROM people

-- refused: unsupported_function
SELECT BIT_OR(age) FROM people

-- refused: unsupported_function
SELECT BIT_XOR(age) FROM people

-- refused: unsupported_sql
SELECT BOOL_AND(DISTINCT smoker) FROM people

-- refused: unsupported_sql
SELECT BOOL_OR(smoker ORDER BY age) FROM people

-- refused: unsupported_type
SELECT CORR(age, education) FROM people

-- refused: unsupported_type
SELECT COVAR_POP(age, education) FROM people

-- refused: unsupported_type
SELECT COVAR_SAMP(age, education) FROM people

-- refused: unsupported_type
SELECT REGR_SLOPE(age, education) FROM people

-- refused: unsupported_type
SELECT REGR_COUNT(age, education) FROM people

-- refused: unsupported_function
SELECT SUM_NO_OVERFLOW(age) FROM people

-- refused: unsupported_function
SELECT FSUM(age, hours) FROM people

-- refused: unsupported_function
SELECT FAVG(age, hours) FROM people

-- refused: unsupported_function
SELECT GEOMEAN(age, hours) FROM people

-- refused: unsupported_function
SELECT SEM(age, hours) FROM people

-- refused: unsupported_function
SELECT RESERVOIR_QUANTILE(age, 0.5) FROM people

-- refused: unsupported_function
SELECT MAX_BY(age, hours) FROM people

-- refused: unsupported_function
SELECT MIN_BY(age, hours) FROM people

-- refused: unsupported_function
SELECT BITSTRING_AGG(age) FROM people

-- refused: unsupported_function
SELECT ARBITRARY(age) FROM people

-- refused: unsupported_function
SELECT CHECKSUM(age) FROM people

-- refused: unsupported_sql
SELECT APPROX_TOP_K(age, 21) FROM people

-- refused: unsupported_function
SELECT COUNT_STAR_(age) FROM people

-- refused: unsupported_function
SELECT GROUPING(sex) FROM people

-- refused: unsupported_function
SELECT HLL(age) FROM people

-- refused: unsupported_function
SELECT LISTAGG(sex, ',') FROM people

-- refused: unsupported_function
SELECT JSON_GROUP_ARRAY(age) FROM people

-- refused: unsupported_function
SELECT JSON_GROUP_OBJECT(sex, age) FROM people

-- refused: unsupported_function
SELECT MAP_AGG(sex, age) FROM people

-- refused: unsupported_function
SELECT HISTOGRAM_EXACT(age, [1]) FROM people

-- refused: unsupported_sql
SELECT sex, MEDIAN(DISTINCT age) FROM people GROUP BY sex

-- refused: unsupported_sql
SELECT sex, QUANTILE_CONT(DISTINCT age, 0.5) FROM people GROUP BY sex

-- refused: unsupported_sql
SELECT sex, QUANTILE_DISC(DISTINCT age, 0.5) FROM people GROUP BY sex

-- refused: unsupported_sql
SELECT sex, MODE(education) FROM people GROUP BY GROUPING SETS ((sex), (sex))

-- refused: unsupported_function
SELECT sex, FIRST(age) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT sex, LAST(age) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT sex, ANY_VALUE(age) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT sex, ARG_MAX(age, hours) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT sex, ARG_MIN(age, hours) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT sex, LIST(age) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT sex, ARRAY_AGG(age) FROM people GROUP BY sex

-- refused: unsupported_function
SELECT sex, STRING_AGG(sex, ',') FROM people GROUP BY sex

-- refused: unsupported_function
SELECT sex, GROUP_CONCAT(sex) FROM people GROUP BY sex

-- refused: unsupported_sql
SELECT sex, HISTOGRAM(age) FROM people GROUP BY GROUPING SETS ((sex), (), (sex))

-- refused: parse_error
SELECT COUNT(*) FROM people WHERE position('a', education) > 0

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE SUBSTRING(education, 1 FOR 4) = 'Bach'

-- refused: unsupported_sql
SELECT COUNT(*) FROM people WHERE strpos(education, 'a', 2) = 2

-- refused: unsupported_function
SELECT COUNT(*) FROM people WHERE strpos(education, education) = 2
