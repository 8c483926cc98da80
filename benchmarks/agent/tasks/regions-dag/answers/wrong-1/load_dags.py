from airflow import DAG
import dagfactory
f = dagfactory.DagFactory("region_loads.yml")
f.clean_dags(globals())
f.generate_dags(globals())
