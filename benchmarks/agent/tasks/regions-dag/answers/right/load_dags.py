import os
from pathlib import Path

from dagfactory import load_yaml_dags

ROOT = Path(os.getenv("CONFIG_ROOT_DIR", "/usr/local/airflow/dags/"))
load_yaml_dags(globals_dict=globals(), config_filepath=str(ROOT / "region_loads.yml"))
