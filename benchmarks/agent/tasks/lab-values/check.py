"""Check of the task `lab-values`: a script that harmonizes lab values."""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, run

check = Check()


def cleaned():
    """Return the rows that the script wrote, by patient."""
    run("harmonize.py")
    with Path("clean.csv").open(newline="", encoding="utf-8") as file:
        return {r["patient"]: [r[c] for c in r if c != "patient"] for r in csv.DictReader(file)}


found = cleaned()
check.need("C" not in found and "D" not in found, "rows with missing values are dropped")
wanted = {
    "A": ["7.61", "10.75", "1.23"],
    "B": ["1.20", "12.50", "350.00"],
    "E": ["5000.00", "3.06", "88.00"],
    "F": ["2.05", "15.00", "4005.00"],
}
for patient, values in wanted.items():
    check.need(found.get(patient) == values, f"values of patient {patient}: {found.get(patient)}")
Path("labs.csv").write_text(
    'patient,Serum_Creatinine,Hemoglobin,Ferritin\nX,88.4,1.2E2,"150,75"\nY,0.7,11,none\n', encoding="utf-8"
)
check.need(cleaned() == {"X": ["1.00", "12.00", "150.75"]}, "values of other patients")
check.done()
