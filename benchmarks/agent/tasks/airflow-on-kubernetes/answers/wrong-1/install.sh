helm repo add apache-airflow https://airflow.apache.org
helm repo update
helm install airflow apache-airflow/airflow --namespace airflow --create-namespace -f values.yaml
kubectl port-forward svc/airflow-webserver 8080:8080 -n airflow
