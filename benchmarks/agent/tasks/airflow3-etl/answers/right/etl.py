from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import dag, task
from pendulum import datetime


def tell(context):
    """Runs when the load is done, and when it is skipped."""
    print("finished")


@dag(start_date=datetime(2024, 1, 1), schedule=timedelta(days=1), catchup=True)
def etl():
    start = EmptyOperator(task_id="start")

    @task(on_success_callback=tell, on_skipped_callback=tell)
    def load(**context):
        day = context["dag_run"].logical_date
        before = context["macros"].ds_add(context["ds"], -1)
        print(day, before)

    clean = BashOperator(task_id="clean", bash_command="rm -rf /tmp/{{ macros.ds_add(ds, -1) }}")
    start >> load() >> clean


etl()
