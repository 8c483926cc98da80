af runs diagnose sales_rollup manual__2025-03-01
af tasks logs sales_rollup manual__2025-03-01 load --try 2
