af dags list-import-errors
