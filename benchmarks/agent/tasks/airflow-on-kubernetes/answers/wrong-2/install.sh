helm repo add apache-airflow https://airflow.apache.org
helm repo update
helm install airflow apache-airflow/airflow --namespace airflow -f values.yaml
kubectl port-forward svc/airflow-api-server 8080:8080 -n airflow
