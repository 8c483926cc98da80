af dags errors
