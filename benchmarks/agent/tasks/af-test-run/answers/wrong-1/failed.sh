af dags state sales_rollup manual__2025-03-01
af tasks logs sales_rollup load manual__2025-03-01 --try-number 2
