af dags trigger sales_rollup --conf '{"region":"eu"}'
