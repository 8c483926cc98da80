from airflow.decorators import dag, task
from airflow.operators.bash import BashOperator
from airflow.operators.dummy_operator import DummyOperator
from pendulum import datetime


def tell(context):
    """Runs when the load is done, and when it is skipped."""
    print("finished")


@dag(start_date=datetime(2024, 1, 1))
def etl():
    start = DummyOperator(task_id="start")

    @task(on_success_callback=tell)
    def load(**context):
        day = context["execution_date"]
        before = context["yesterday_ds"]
        print(day, before)

    clean = BashOperator(task_id="clean", bash_command="rm -rf /tmp/{{ yesterday_ds }}")
    start >> load() >> clean


etl()
