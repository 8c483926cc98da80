af runs trigger-wait sales_rollup --conf '{"region": "eu"}' --timeout 1200
